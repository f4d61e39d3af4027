// Command orchestrator runs a team of agents from one file and answers
// questions about it.
//
// This package joins the commands, which are in the folders below it, to one command line.
// The package serve runs a team. The other commands are clients that speak HTTP over the
// orchestrator's socket, or they need only files.
package main

import (
	"os"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/supervisor"
	"orchestrator/supervisor/child"
)

func main() {
	child.Shim()
	dir, _ := os.Getwd()
	a := &cli.App{
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Environ:    os.Environ(),
		Dir:        dir,
		SocketPath: supervisor.SocketPath,
		Root:       rootCommand,
		OpenRecord: serve.OpenRecord,
	}
	os.Exit(a.Run(os.Args[1:]))
}
