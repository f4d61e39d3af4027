// Package cli is what every command shares: the app and its streams, flags, kinds of
// arguments, errors and exit codes, completion, the help page of a command, and the
// client of a running orchestrator.
//
// A package of commands makes cobra commands out of an [App]. What a command writes for
// people goes through [App.Print], [App.Note] and package term; what it writes for programs
// goes through [App.Document].
package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// App is one run of the program: its streams, its surroundings and the flags of every
// command.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Dir            string // the working directory
	Args           []string
	Parsed         bool // the flags are known; until then the arguments are looked at
	Flags          Flags
	Leaving        func()          // nil, or what gives a terminal back that was taken
	Over           <-chan struct{} // closed when the caller of this program has left; nil: never
	Reading        bool            // the verb reads the record when no orchestrator runs
	recordDoor     *Client         // to the record, once it was opened
	Cleanups       []func()        // are called at the end, the last one first

	// SocketPath says where the orchestrator of a state directory listens.
	SocketPath func(stateDir string) string

	// Root makes the whole command line.
	Root func(*App) *cobra.Command

	// OpenRecord opens what the record says where no orchestrator runs. It reports
	// whether it did.
	OpenRecord func(*App, Target) (*Client, bool, error)
}

// Run does what the arguments ask and returns the exit code.
func (a *App) Run(args []string) (code int) {
	a.Args = args
	defer a.caught(&code)
	defer func() {
		for _, end := range slices.Backward(a.Cleanups) {
			end()
		}
	}()
	root := a.Root(a)
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	return a.report(root.Execute())
}

// JSON reports whether a program reads the answer. It looks at the arguments as
// well, because a command line too wrong to be parsed is answered in JSON too.
func (a *App) JSON() bool {
	if a.Parsed || a.Flags.JSON {
		return a.Flags.JSON
	}
	for _, arg := range a.Args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

// Env returns a variable of the environment; one that is empty is as good as
// none.
func (a *App) Env(name string) string {
	for i := len(a.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(a.Environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// Print writes a part of the answer. The error says that it is not read any more.
func (a *App) Print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format, args...)
	return err
}

// Note writes progress to stderr. It is silent with --quiet and --json.
func (a *App) Note(format string, args ...any) {
	if a.Flags.Quiet || a.JSON() {
		return
	}
	_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
}

// PrintNames prints what each of a list is called, a line each, for scripts.
func PrintNames[T any](a *App, all []T, name func(*T) string) error {
	for i := range all {
		if err := a.Print("%s\n", wire.Visible(name(&all[i]))); err != nil {
			return err
		}
	}
	return nil
}

// Document writes the answer of a verb for programs.
func (a *App) Document(v any) error {
	text, err := object.Encode(v)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return a.Print("%s\n", text)
}

// Paint reports whether a stream takes colour: --color, then NO_COLOR and TERM,
// then whether it is a terminal.
func (a *App) Paint(w io.Writer) term.Paint {
	switch {
	case a.Flags.color.Value == "always":
		return true
	case a.Flags.color.Value == "never" || a.Env("NO_COLOR") != "" || a.Env("TERM") == "dumb":
		return false
	}
	return term.Paint(term.IsTerminal(w))
}
