// Command orchestrator runs a team of agents from one file and answers
// questions about it.
//
// This package is the command line: verbs, flags, what is printed where, and
// the wiring of the parts in a process that runs a team: up, run, and pipe where
// none runs. The other verbs are clients that speak HTTP over the orchestrator's
// socket, or need nothing but files. Nothing is decided here that an agent or another
// client would have to know.
package main

import (
	"os"

	"orchestrator/supervisor"
	"orchestrator/supervisor/child"
)

func main() {
	child.Shim()
	dir, _ := os.Getwd()
	a := &app{
		stdin:      os.Stdin,
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		environ:    os.Environ(),
		dir:        dir,
		socketPath: supervisor.SocketPath,
		root:       (*app).rootCommand,
		openRecord: (*app).past,
	}
	os.Exit(a.run(os.Args[1:]))
}
