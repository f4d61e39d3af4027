package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

// app is one run of the program: its streams, its surroundings and the flags
// that every verb has. Each verb is a method that makes its command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	dir            string // the working directory
	args           []string
	parsed         bool // the flags are known; until then the arguments are looked at
	flags          flags
	leaving        func()          // nil, or what gives a terminal back that was taken
	over           <-chan struct{} // closed when the caller of this program has left; nil: never
	reading        bool            // the verb reads the record when no orchestrator runs
	recordDoor     *client         // to the record, once it was opened
	cleanups       []func()        // are called at the end, the last one first

	// socketPath says where the orchestrator of a state directory listens.
	socketPath func(stateDir string) string

	// root makes the whole command line.
	root func(*app) *cobra.Command

	// openRecord opens what the record says where no orchestrator runs. It reports
	// whether it did.
	openRecord func(*app, target) (*client, bool, error)
}

// run does what the arguments ask and returns the exit code.
func (a *app) run(args []string) (code int) {
	a.args = args
	defer a.caught(&code)
	defer func() {
		for _, end := range slices.Backward(a.cleanups) {
			end()
		}
	}()
	root := a.root(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return a.report(root.Execute())
}

// json reports whether a program reads the answer. It looks at the arguments as
// well, because a command line too wrong to be parsed is answered in JSON too.
func (a *app) json() bool {
	if a.parsed || a.flags.json {
		return a.flags.json
	}
	for _, arg := range a.args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

// env returns a variable of the environment; one that is empty is as good as
// none.
func (a *app) env(name string) string {
	for i := len(a.environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(a.environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// print writes a part of the answer. The error says that it is not read any more.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

// note writes progress to stderr. It is silent with --quiet and --json.
func (a *app) note(format string, args ...any) {
	if a.flags.quiet || a.json() {
		return
	}
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

// printNames prints what each of a list is called, a line each, for scripts.
func printNames[T any](a *app, all []T, name func(*T) string) error {
	for i := range all {
		if err := a.print("%s\n", wire.Visible(name(&all[i]))); err != nil {
			return err
		}
	}
	return nil
}

// document writes the answer of a verb for programs.
func (a *app) document(v any) error {
	text, err := wire.Encode(v)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return a.print("%s\n", text)
}
