// Package first runs plain commands before the rest of the program is initialized.
//
// Go initializes packages in the order of their paths, each as soon as its imports are. This package imports only
// packages that are initialized at once, so it runs before the libraries that up needs: their initialization takes
// longer than a plain command. It passes the command line to the running orchestrator, which runs the command and
// sends back its output. Whatever this package does not understand, or the orchestrator declines, is left to main.
package first

import (
	"bytes"
	"os"
	"slices"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/first/form"
)

// A Failure is the end of a command without its whole answer. Main must report it: the command must not run twice.
type Failure struct {
	Socket string // of the orchestrator
	Err    error  // of a write; nil: the connection ended
}

// Failed is the failure of the command, or nil: then main must run it.
var Failed = run()

// run runs a plain command and exits. Otherwise it returns.
func run() *Failure {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		if _, err := os.Stdout.WriteString(build.Line() + "\n"); err != nil {
			return &Failure{Err: err}
		}
		os.Exit(0)
	}
	if len(os.Args) < 2 || !isPlain(os.Args[1:]) {
		return nil
	}
	return pass(os.Args[1:])
}

// isPlain reports whether a command line begins with a plain command, and has no argument that keeps it here.
func isPlain(args []string) bool {
	verb := args[0]
	if !slices.Contains(form.Plain, verb) && len(args) > 1 {
		verb += " " + args[1]
	}
	return slices.Contains(form.Plain, verb) && !slices.ContainsFunc(args, isOwn)
}

// isOwn reports whether an argument keeps a command here: stdin, a file, or a flag of form.Own or its letter.
func isOwn(arg string) bool {
	switch {
	case arg == "" || arg[0] != '-' && arg[0] != '@':
		return false
	case arg[0] == '@' || arg == "-":
		return true
	case arg[1] != '-':
		return bytes.ContainsAny([]byte(arg), "cfhw")
	}
	name, _, _ := bytes.Cut([]byte(arg[2:]), []byte("="))
	return slices.Contains(form.Own, string(name))
}
