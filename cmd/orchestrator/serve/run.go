package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/console"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// runFlags are the flags of run.
type runFlags struct {
	pty        bool
	answers    string
	inheritEnv bool
}

// RunCommand returns the run command.
func RunCommand(a *cli.App) *cobra.Command {
	var f runFlags
	verb := &cobra.Command{
		Use: "run [flags] -- CMD…", DisableFlagsInUseLine: true,
		Short: "Run one command as an agent, without a file",
		Long: `Runs one command as an agent. Ctrl-C stops it cleanly, and its whole process tree ends
with it. Its output is printed in whole lines. Stdin is copied to the command and then
closed. If stdin is /dev/null, the command's stdin stays open. The command gets no tasks:
for these, write a file with orchestrator init.

The exit code is that of the command, or 128 plus the number of the signal that ended
it. It is 126 or 127 if the command could not be started, and 141 if its output has no
reader. It is 1 if the command succeeded but its output could not be written.`,
		Example: `  orchestrator run -- ./agent.sh
  echo hello | orchestrator run -- cat
  orchestrator run --pty -- python3`,
		Args:              cli.ArgCount(1, -1),
		ValidArgsFunction: nil,
		RunE:              func(_ *cobra.Command, args []string) error { return runOne(a, args, f) },
	}
	verb.Flags().BoolVar(&f.pty, "pty", false, "give the command a terminal")
	verb.Flags().StringVar(&f.answers, "answers", "", "answer its questions from `FILE`: lines such as \"Which login* => oauth\"")
	verb.Flags().BoolVar(&f.inheritEnv, "inherit-env", false, "also pass on variables that look like credentials")
	verb.Flags().SetInterspersed(false)
	return verb
}

// runOne runs one command with a temporary state directory.
func runOne(a *cli.App, command []string, f runFlags) error {
	var rules []scripted
	if f.answers != "" {
		var err error
		if rules, err = readAnswers(a.Path(f.answers)); err != nil {
			return err
		}
	}
	stateDir, err := os.MkdirTemp("", "orchestrator-run-")
	if err != nil {
		return fmt.Errorf("making a place for its state: %w", err)
	}
	defer os.RemoveAll(stateDir)
	name := strings.TrimSuffix(filepath.Base(command[0]), filepath.Ext(command[0]))
	c := config.Alone(a.Dir, stateDir, name, command)
	c.Agents[0].Pty = f.pty
	c.Store.Kind = "memory" // the state directory is temporary
	t := NewHub(a, new(hub.Place), hub.NewFile(), c, logger(a, c, a.Flags.JSON))
	ctx := context.Background()
	if err := t.Hold(ctx); err != nil {
		return CannotHold(err, stateDir)
	}
	defer t.Stop()
	t.File.Base = hub.AgentBase(a.Environ)
	c.Agents[0].InheritEnv = config.InheritEnv{All: f.inheritEnv, Ordinary: !f.inheritEnv}
	NoteLeftOut(a, c, t.File.Base)
	if err := t.Supervise(ctx, supervisor.Options{Name: name, ExitWhenIdle: true}); err != nil {
		return CannotRecord(err, c.Store)
	}
	if term.IsTerminal(a.Stdin) {
		a.Note("Your input goes to its stdin. It gets no tasks. For tasks, write a file: orchestrator init")
	}
	return runAlone(a, t, name, rules)
}

// runAlone runs a team of one agent and returns that agent's exit code.
func runAlone(a *cli.App, t *hub.Hub, name string, rules []scripted) error {
	show := console.NewSingle(a, console.SingleOptions{Team: t.Super, Agent: name, StateDir: t.Place.Home.Dir, Scripted: len(rules) > 0})
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		show.Run()
	}()
	fate := newFate(name, t.Super.Listen(false))
	go fate.hear() // ends with the team
	feeding, enough := context.WithCancel(context.Background())
	defer enough()
	go feed(feeding, a.Stdin, t, fate) // a read of a terminal cannot be interrupted: it ends with the program
	signals := heed(a, t)              // before a client can see that it runs
	t.Serve()
	(&Answerer{App: a, Team: t, scripted: rules}).begin(feeding)
	err := t.Super.Run(signals.ctx)
	<-fate.heard
	all := signals.awaitReader(shown)
	if !all {
		t.Place.Log.Warn("the last lines are not shown: their reader does not read them")
	}
	forced := signals.end()
	t.Shut()
	failed := errors.Is(err, supervisor.ErrAgentsFailed)
	if errors.Is(err, supervisor.ErrTasksUndone) || errors.Is(err, supervisor.ErrUnmerged) {
		err = nil // open tasks of the command are not an error
	}
	switch {
	case forced != 0:
		return cli.ExitWith(forced)
	case fate.refused != nil:
		return meantAgent(a, cli.FailureOf(fate.refused), name)
	case all && show.Unread:
		return cli.ExitWith(cli.ExitBrokenPipe)
	case failed && fate.exit != cli.ExitOK:
		return cli.ExitWith(fate.exit)
	case failed, all && show.Broken:
		return cli.ExitWith(cli.ExitNo)
	}
	return err
}

// meantAgent adds a hint if the missing program has the name of an agent of the file.
func meantAgent(a *cli.App, f *cli.Failure, name string) *cli.Failure {
	file, err := config.Find(a.Dir, a.Flags.Config, a.Environ)
	if f.Exit != cli.ExitNoProgram || err != nil {
		return f
	}
	c, _ := config.Load(file, a.Options())
	if c != nil && knowAgents(c, []string{name}, "run") == nil {
		f.Hint = fmt.Sprintf("%s is an agent of %s. Start it: orchestrator up %s", name, file, name)
	}
	return f
}

// piece is the maximum size of a write of stdin without a line end.
const piece = 64 << 10

// feed copies stdin to the agent line by line, longer lines in parts, and then closes its
// stdin. It leaves that open if stdin is /dev/null, so that answers can still be delivered.
func feed(ctx context.Context, stdin io.Reader, t *hub.Hub, f *exitWatch) {
	select {
	case <-f.started:
	case <-ctx.Done():
		return
	}
	if isNull(stdin) {
		return
	}
	in := bufio.NewReaderSize(stdin, piece)
	for {
		line, err := in.ReadSlice('\n')
		// The mailbox keeps the slice, and the reader reuses its buffer.
		if len(line) > 0 && t.Super.TellWaiting(ctx, f.name, bytes.Clone(line)) != nil {
			return
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			t.Super.EndInput(f.name)
			return
		}
	}
}

func isNull(stream io.Reader) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	null, missing := os.Stat(os.DevNull)
	return err == nil && missing == nil && os.SameFile(info, null)
}

// An exitWatch records the fate of the one agent of run. It follows only events, so slow
// readers of the output do not delay it.
type exitWatch struct {
	name     string
	follower *output.Follower
	started  chan struct{} // closed when the agent runs
	heard    chan struct{} // closed when hear has ended

	// Valid when heard is closed:
	ran     bool
	exit    int   // exit code of the last run
	refused error // why the agent could not be started
}

func newFate(name string, follower *output.Follower) *exitWatch {
	return &exitWatch{name: name, follower: follower, started: make(chan struct{}), heard: make(chan struct{})}
}

// hear follows the events until the team has ended.
func (ew *exitWatch) hear() {
	defer close(ew.heard)
	var spare output.Backlog
	for ew.follower.Next(context.Background(), &spare, func(l output.Line) {
		if l.Event != nil {
			ew.event(l.Event)
		}
	}) {
	}
}

func (ew *exitWatch) event(e *wire.Event) {
	switch e.Kind {
	case events.AgentStarted:
		if !ew.ran { // it may be started again by an operator
			ew.ran = true
			close(ew.started)
		}
	case events.AgentExited:
		ew.exit = cli.ExitNo
		if e.Figures.ExitCode != nil {
			ew.exit = *e.Figures.ExitCode
		} else if sig := signalOf(e.Figures.Signal); sig != 0 {
			ew.exit = 128 + sig
		}
	case events.AgentGaveUp:
		if !ew.ran {
			ew.refused = &cli.Failure{Exit: *e.Figures.ExitCode, Code: cli.CodeFailed, Message: "cannot run " + ew.name + ": " + e.Text}
		}
	}
}

// signalOf returns the number of a signal that an event names. Signals without a name, such
// as real-time signals, are named by number.
func signalOf(name string) int {
	if number, ok := strings.CutPrefix(name, "signal "); ok {
		n, _ := strconv.Atoi(number)
		return n
	}
	return int(unix.SignalNum(name))
}
