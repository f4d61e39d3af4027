// Command orchestrator runs a team of agents from one file and answers questions about it.
//
// This package joins the commands, each in a folder below it, to one command line. Package
// serve runs a team. The other commands work on files, or are HTTP clients of the
// orchestrator's socket.
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
	a := cli.New(cli.Env{
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Environ:    os.Environ(),
		Dir:        dir,
		SocketPath: supervisor.SocketPath,
		Root:       rootCommand,
		OpenRecord: serve.OpenRecord,
	})
	os.Exit(a.Run(os.Args[1:]))
}
