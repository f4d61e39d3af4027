// Package watch shows agents, tasks, questions, messages and output on the full screen.
// Keys answer questions and run commands.
//
// Watch is a client of the API. It reads its data from the API, and runs commands of the command
// line for the user's requests. Quitting or killing it has no effect on the orchestrator. While the
// orchestrator does not answer, the screen shows the last known state and that it is outdated.
//
// The goroutine that handles keys owns the model. Anything slow runs in goroutines of the
// feed, which send their results to the model, so keys never wait for the orchestrator. All
// of them end before Run returns.
package watch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/inbox"
	"orchestrator/cmd/orchestrator/live"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Terminal is where the watch is shown.
type Terminal struct {
	In      io.Reader
	Out     io.Writer
	Environ []string
	Color   bool
	Bell    bool // ring when a question comes
}

// redraws is the maximum number of redraws in a second.
const redraws = 10

// Run shows an orchestrator until the user quits or ctx is done, and then restores the
// terminal. The status is the last known one.
func Run(ctx context.Context, o Orchestrator, status *control.Status, t Terminal) error {
	within, leave := context.WithCancel(ctx)
	f := newFeed(o)
	m := newModel(o, f, within.Done(), t.Color)
	m.bell = t.Bell
	m.hearStatus(statusNews{status: *status})
	f.begin(within)
	profile := colorprofile.Ascii
	if t.Color {
		profile = max(colorprofile.ANSI, colorprofile.Env(t.Environ))
	}
	_, err := tea.NewProgram(m,
		tea.WithContext(within), tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithEnvironment(slices.Clone(t.Environ)),
		tea.WithColorProfile(profile), tea.WithFPS(redraws), tea.WithoutSignalHandler(), // the caller handles signals
	).Run()
	leave()
	f.group.Wait()
	if ctx.Err() != nil { // ended by the caller
		return nil
	}
	return err
}

// Command returns the watch command.
func Command(a *cli.App) *cobra.Command {
	bell := false
	verb := &cobra.Command{
		Use:   "watch",
		Short: "Watch the team on the full screen",
		Long: `Shows the running orchestrator on the full screen and updates it: agents, tasks and
their dependencies, questions, messages, output, reviews and times. Keys and the mouse
answer questions and run commands; ":" runs any command, and "?" lists the keys.

Quitting with q does not stop the agents. While the orchestrator does not answer, watch
shows the last known state and reconnects. If watch is killed and the terminal looks wrong,
type reset and press Enter.`,
		Example: `  orchestrator watch
  orchestrator watch --host https://build.example.com:7433`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runWatch(a, bell) },
	}
	verb.Flags().BoolVar(&bell, "bell", false, "ring the bell when a question comes")
	return verb
}

func runWatch(a *cli.App, bell bool) error {
	if a.Flags.JSON || !term.IsTerminal(a.Stdin) || !term.IsTerminal(a.Stdout) {
		return cli.UsageError("watch needs a terminal", `Without a terminal: orchestrator status --watch     or: orchestrator events -f --json`)
	}
	if a.Getenv("TERM") == "dumb" {
		return cli.UsageError("this terminal cannot show a full screen (TERM=dumb)", "Use: orchestrator status --watch     or: orchestrator events -f")
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		status, _, err := a.Status(ctx, d)
		if err != nil {
			return err
		}
		if out, ok := a.Stdout.(*os.File); ok {
			defer live.StartGuard(out)()
		}
		err = Run(ctx, orchestrator{d, a}, &status, Terminal{
			In: a.Stdin, Out: a.Stdout, Environ: a.Environ, Color: bool(a.Paint(a.Stdout)), Bell: bell,
		})
		if err != nil {
			return err
		}
		a.Note("Left %s: its agents keep running. Watch again: orchestrator watch", wire.Visible(status.Name))
		return cli.UnlessLeft(a.Ended(ctx))
	})
}

// An orchestrator is the Orchestrator behind a client.
type orchestrator struct {
	*client.Client
	app *cli.App
}

// Follow implements Orchestrator.
func (o orchestrator) Follow(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		body, err := o.Get(ctx, list, query)
		if err != nil {
			yield(nil, err)
			return
		}
		o.Lines(ctx, body)(yield)
	}
}

// Answer implements Orchestrator.
func (o orchestrator) Answer(ctx context.Context, answer wire.AnswerQuestion) (string, error) {
	text, err := o.Ask(ctx, "answer-question", answer)
	if err != nil {
		return "", err
	}
	reply, err := client.Decode[wire.QuestionReply](text)
	return inbox.AnsweredWords(&reply), err
}

// Tree returns the rows of the tree that graph prints, without color.
func (orchestrator) Tree(tasks []wire.Task, all bool) (rows []Row, left int) {
	seen := make([]task.Seen, len(tasks))
	for i := range tasks {
		seen[i].Task = tasks[i]
	}
	g := task.NewGraph(seen)
	if all {
		g.Choose(func(int) bool { return true })
	} else {
		g.ChooseOpen()
	}
	t := task.NewTree(g, maxWatched, false)
	t.Grow()
	texts := strings.Split(term.Table(t.Rows), "\n")
	for i, n := range t.Of {
		rows = append(rows, Row{Task: g.Tasks[n].ID, State: g.Tasks[n].State, Text: texts[i]})
	}
	return rows, t.Left()
}

// maxWatched is the maximum number of tasks in a tree on the screen.
const maxWatched = 2000

// Run runs a command line in this process, without input, and returns its output. The
// command uses the orchestrator that is watched, unless it names another.
func (o orchestrator) Run(ctx context.Context, args []string, columns int) (text string, exit int) {
	a := o.app
	if len(args) > 0 && args[0] == "orchestrator" {
		args = args[1:]
	}
	kept := &keptOutput{wide: columns}
	inner := func() *cli.App {
		env := a.Env
		env.Stdin, env.Stdout, env.Stderr, env.Over = strings.NewReader(""), kept, kept, ctx.Done()
		env.Environ = append(slices.Clone(a.Environ), "NO_COLOR=1")
		return cli.New(env)
	}
	if err := unfit(inner(), args); err != nil {
		return err.Error(), cli.ExitUsage
	}
	exit = inner().Run(append(sameTarget(a), args...))
	return kept.String(), exit
}

// sameTarget returns the flags that select the orchestrator of this command.
func sameTarget(a *cli.App) []string {
	f := &a.Flags
	var args []string
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	add("--config", f.Config)
	add("--state-dir", f.StateDir)
	add("--host", f.Host)
	for _, v := range f.Vars {
		add("--var", v)
	}
	for _, file := range f.VarFiles {
		add("--var-file", file)
	}
	return args
}

// unfit returns an error for a command that never ends or needs the terminal. It ignores
// other errors in the command line, which the command reports itself.
func unfit(a *cli.App, args []string) error {
	verb, rest, err := a.Root(a).Find(args)
	if err != nil {
		return nil
	}
	name := strings.TrimPrefix(verb.CommandPath(), "orchestrator ")
	switch name {
	case "up", "run", "pipe", "watch":
		return fmt.Errorf("%q needs a terminal: run it in another one", name)
	case "inbox watch":
		return fmt.Errorf("%q does not end: tab 5 shows the same", name)
	}
	if verb.ParseFlags(rest) != nil {
		return nil
	}
	for _, flag := range []string{"follow", "watch"} {
		if f := verb.Flags().Lookup(flag); f != nil && f.Value.String() == "true" {
			return fmt.Errorf("%q does not end with --%s: leave it out%s", name, flag, shownIn(verb))
		}
	}
	return nil
}

// shownIn returns a hint to the tab that shows the same as a command, or "".
func shownIn(verb *cobra.Command) string {
	tab := map[string]string{"status": "1", "tail": "6", "logs": "7"}[verb.Name()]
	if tab == "" {
		return ""
	}
	return ", or see tab " + tab
}

// maxKeptOutput is how many bytes of a command's output are kept.
const maxKeptOutput = 1 << 20

// keptOutput collects output for a terminal of a given width.
type keptOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	more int64
	wide int
}

func (k *keptOutput) Columns() int { return k.wide }

// Write implements io.Writer.
func (k *keptOutput) Write(text []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := min(len(text), maxKeptOutput-k.text.Len())
	k.text.Write(text[:room])
	k.more += int64(len(text) - room)
	return len(text), nil
}

func (k *keptOutput) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.more > 0 {
		return k.text.String() + "\n… " + term.Bytes(k.more) + " more"
	}
	return k.text.String()
}

// shellBehind reports whether a shell with job control would continue this process after a
// stop. Such a shell is the parent, in the same session and in another process group.
// Without one, the process would not stop, and would wait forever to be continued.
func shellBehind() bool {
	parent := os.Getppid()
	theirs, err := unix.Getsid(parent)
	ours, failed := unix.Getsid(0)
	group, gone := unix.Getpgid(parent)
	return err == nil && failed == nil && gone == nil && theirs == ours && group != unix.Getpgrp()
}
