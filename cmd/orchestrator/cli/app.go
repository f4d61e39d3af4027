// Package cli holds the parts that all commands share: the app and its streams, flags,
// arguments, errors, exit codes, completion and help pages. It connects package client to the
// orchestrator that the flags select.
//
// A package of commands builds cobra commands from an [App]. Commands write text for people
// with [App.Print], [App.Note] and package term, and documents for programs with
// [App.Document].
package cli

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// An Env holds the streams and surroundings that a run of the program gets from its caller.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Dir            string          // the working directory
	Over           <-chan struct{} // closed when the caller is gone; may be nil

	// SocketPath returns the path of the socket for a state directory.
	SocketPath func(stateDir string) string

	// Root returns the whole command line.
	Root func(*App) *cobra.Command

	// Served is set if the running orchestrator itself runs the command, for a program that passed it on.
	Served *Served

	// OpenRecord opens the event log of a target without a running orchestrator. It reports
	// whether it did.
	OpenRecord func(*App, client.Target) (*client.Client, bool, error)
}

// An App is one run of the program: its environment and the flags of every command.
type App struct {
	Env
	Flags   Flags
	args    []string
	parsed  bool           // the flags are parsed; until then JSON reads args
	looks   bool           // the command may be about the only team that runs
	found   bool           // it is, and has said so
	Unnamed bool           // commands find the team of this one without its configuration
	reading bool           // the command reads the event log if no orchestrator runs
	record  *client.Client // client of the event log, once opened
	stalled bool           // the note that the log accepts no records was printed
	mu      sync.Mutex
	atEnd   []func() // called at the end, the last one first
}

// New returns a run of the program in an environment.
func New(env Env) *App { return &App{Env: env} }

// Run runs the command that args name and returns the exit code.
func (a *App) Run(args []string) (code int) {
	a.args = args
	defer a.caught(&code)
	defer a.end()
	root := a.Root(a)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		unquoteUsage(root)
	}
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	return a.report(root.Execute())
}

// RedirectStderr replaces stderr.
func (a *App) RedirectStderr(to io.Writer) { a.Stderr = to }

// AtEnd adds a function that is called at the end of the program, the last one first.
func (a *App) AtEnd(end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.atEnd = append(a.atEnd, end)
}

func (a *App) end() {
	a.mu.Lock()
	ends := a.atEnd
	a.atEnd = nil
	a.mu.Unlock()
	for _, end := range slices.Backward(ends) {
		end()
	}
}

// Exit ends the program while a command runs, after the functions of AtEnd.
func (a *App) Exit(code int) {
	a.end()
	os.Exit(code)
}

// Args returns the command line.
func (a *App) Args() []string { return a.args }

// JSON reports whether the answer is JSON. It also looks at the arguments, because errors
// in a command line that cannot be parsed are JSON too.
func (a *App) JSON() bool {
	if a.parsed || a.Flags.JSON {
		return a.Flags.JSON
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

// Getenv returns a variable of the environment, or "".
func (a *App) Getenv(name string) string {
	for i := len(a.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(a.Environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// Print writes a part of the answer to stdout. It fails when the reader of stdout has gone.
func (a *App) Print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format, args...)
	return err
}

// Note writes progress to stderr. It is silent with --quiet and --json.
func (a *App) Note(format string, args ...any) {
	if a.Flags.Quiet || a.JSON() || a.Stderr == nil {
		return
	}
	_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
}

// PrintNames prints the name of each item on a line, for scripts.
func PrintNames[T any](a *App, all []T, name func(*T) string) error {
	for i := range all {
		if err := a.Print("%s\n", wire.Visible(name(&all[i]))); err != nil {
			return err
		}
	}
	return nil
}

// Document writes v to stdout as the JSON answer of a command.
func (a *App) Document(v any) error {
	text, err := object.Encode(v)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	return a.PrintJSON(text)
}

// PrintJSON prints a JSON document on a line. Characters that a terminal does not show, or obeys, are
// escaped.
func (a *App) PrintJSON(text []byte) error {
	_, err := a.Stdout.Write(append(wire.AppendVisibleJSON(nil, text), '\n'))
	return err
}

// Paint reports whether to color the output to w. It looks at --color first, then at
// NO_COLOR and TERM, then at whether w is a terminal.
func (a *App) Paint(w io.Writer) term.Paint {
	switch {
	case a.Flags.color.Value == "always":
		return true
	case a.Flags.color.Value == "never" || a.Getenv("NO_COLOR") != "" || a.Getenv("TERM") == "dumb":
		return false
	}
	return term.Paint(term.IsTerminal(w))
}

// Root returns the whole command line: the commands verbs, and version, completion and help.
func Root(a *App, verbs ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:               "orchestrator",
		Short:             "Run a team of agents from one file",
		SilenceErrors:     true, // report prints them, in text or JSON
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(verb *cobra.Command, _ []string) error {
			a.parsed, a.reading, a.looks = true, ReadsRecord(verb), looksAround(verb)
			return a.mayServe(verb)
		},
		RunE: func(root *cobra.Command, args []string) error {
			switch asked, _ := root.Flags().GetBool("version"); {
			case len(args) > 0:
				return UnknownVerb(root, args)
			case asked:
				return a.showVersion()
			case a.Flags.JSON:
				return noCommand(root)
			}
			return a.Print("%s", Overview(root, a.Paint(a.Stdout)))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.AddFlags(root.PersistentFlags())
	root.Flags().BoolP("version", "V", false, "which orchestrator this is")
	_ = root.Flags().MarkHidden("version") // the manual names the version command only
	root.AddCommand(verbs...)
	root.AddCommand(a.versionCommand(), a.completionCommand(), a.manCommand())
	root.SetHelpCommand(a.helpCommand())
	root.InitDefaultHelpCmd()
	root.SetHelpFunc(func(verb *cobra.Command, _ []string) {
		if a.decline() == nil {
			a.showHelp(verb)
		}
	})
	root.SetFlagErrorFunc(flagFailure)
	addAliases(root)
	a.completeFlags(root)
	return root
}

// onRecord is the annotation of the commands that OnRecord marks.
const onRecord = "record"

// OnRecord marks a command that reads the event log if no orchestrator runs.
func OnRecord(verb *cobra.Command) *cobra.Command {
	verb.Annotations = map[string]string{onRecord: ""}
	return verb
}

// ReadsRecord reports whether a command reads the event log if no orchestrator runs.
func ReadsRecord(verb *cobra.Command) bool {
	_, marked := verb.Annotations[onRecord]
	return marked
}

// Overview returns the text that "orchestrator" prints without a command: all commands in
// groups.
func Overview(root *cobra.Command, p term.Paint) string {
	groups := []struct {
		title string
		verbs []string
	}{
		{"Start", []string{"init", "demo", "validate", "simulate", "doctor", "fmt", "schema", "sdk"}},
		{"Run", []string{"up", "run", "pipe", "mcp", "acp", "lead", "join", "reload", "upgrade", "down"}},
		{"Look", []string{"status", "watch", "ui", "notify", "logs", "events", "why", "cost", "graph"}},
		{"Work", []string{"task", "inbox", "bus", "session", "review", "workspace"}},
		{"Agents", []string{"agent", "ps", "hosts", "drain", "check"}},
		{"Access", []string{"key", "token"}},
		{"Record", []string{"backup", "restore", "store", "replay"}},
		{"", []string{"version", "completion", "man", "help"}},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", root.Short)
	for _, group := range groups {
		b.WriteByte('\n')
		title := group.title
		for _, name := range group.verbs {
			verb, _, err := root.Find([]string{name})
			if err != nil || verb == root {
				continue
			}
			fmt.Fprintf(&b, "%s %s%s\n", p.Strong(term.Pad(title, 9)), term.Pad(name, 13), verb.Short)
			title = ""
		}
	}
	b.WriteString(`
  orchestrator init          write a first orchestrator.hcl here
  orchestrator up            run it
  orchestrator help          the manual: quickstart, config, troubleshooting, …
`)
	return b.String()
}

// caught turns a panic into one line of output, exit code 125 and a crash file.
func (a *App) caught(code *int) {
	cause := recover()
	if cause == nil {
		return
	}
	file, err := writeCrash(cause, debug.Stack())
	hint := "Please report it. The details are in " + file + " (without secrets)"
	if err != nil {
		hint = fmt.Sprintf("Please report it. The details could not be saved: %v", err)
	}
	*code = a.report(&Failure{
		Exit:    exitBug,
		Code:    wire.CodeInternal,
		Message: "this is a bug in orchestrator: " + term.FirstLine(fmt.Sprint(cause)) + ". " + hint,
		Details: map[string]any{"report": file},
	})
}

// writeCrash writes the stack to a file. It leaves out the arguments and the environment,
// which may hold secrets.
func writeCrash(cause any, stack []byte) (string, error) {
	name := "orchestrator-crash-" + time.Now().UTC().Format("20060102T150405") + "-*.txt"
	file, err := os.CreateTemp("", name)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(file, "%s\n\npanic: %v\n\n%s", build.Line(), cause, stack)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return file.Name(), err
}
