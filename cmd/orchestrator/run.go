package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

func (a *app) runCommand() *cobra.Command {
	var pty bool
	verb := &cobra.Command{
		Use:   "run -- CMD…",
		Short: "Run one command as an agent, without a file",
		Long: `Runs one command as an agent: with its whole tree ended afterwards, its lines kept
whole, and a stop in order at Ctrl-C. What is typed or piped in goes to its
stdin, and the end of it too; only when stdin is /dev/null does the command's
stdin stay open. What it prints is printed.

The exit code is the command's own, 128 and the signal's number if one ended it,
126 or 127 if it could not be started.`,
		Example: `  orchestrator run -- ./agent.sh
  echo hello | orchestrator run -- cat
  orchestrator run --pty -- python3`,
		Args:              words(1, -1),
		ValidArgsFunction: nil,
		RunE:              func(_ *cobra.Command, args []string) error { return a.runOne(args, pty) },
	}
	verb.Flags().BoolVar(&pty, "pty", false, "give the command a terminal")
	verb.Flags().SetInterspersed(false)
	return verb
}

// runOne runs one command in a state directory of its own, which goes when the
// command is gone.
func (a *app) runOne(command []string, pty bool) error {
	stateDir, err := os.MkdirTemp("", "orchestrator-run-")
	if err != nil {
		return fmt.Errorf("making a place for its state: %w", err)
	}
	defer os.RemoveAll(stateDir)
	name := strings.TrimSuffix(filepath.Base(command[0]), filepath.Ext(command[0]))
	c := config.Alone(a.dir, stateDir, name, command)
	c.Agents[0].Pty = pty
	log := a.logger(c)
	t := &team{}
	if err := t.hold(stateDir, a.socketPath(stateDir), log); err != nil {
		return cannotHold(err, stateDir)
	}
	defer t.release()
	t.base = agentBase(a.environ)
	t.super = supervisor.New(supervisor.Options{
		Name: name, Version: version, StateDir: stateDir, Start: t.start, Log: log,
		Shutdown: c.Orchestrator.Shutdown, ExitWhenIdle: true,
	}, t.specs(c))
	return a.runAlone(t, name)
}

// runAlone runs a team of one and makes its exit code ours.
func (a *app) runAlone(t *team, name string) error {
	solo := &solo{app: a, name: name, follower: t.super.Listen(true), out: bufio.NewWriter(a.stdout), started: make(chan struct{})}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		solo.run()
	}()
	feeding, enough := context.WithCancel(context.Background())
	defer enough()
	go solo.feed(feeding, t) // a read of a terminal cannot be called back: it ends with the program
	signals := a.heed(t)
	err := t.super.Run(signals.ctx)
	stopped := signals.ctx.Err() != nil
	forced := signals.end()
	<-shown
	switch {
	case forced != 0:
		return answered(forced)
	case solo.refused != nil:
		return solo.refused
	case stopped, err == nil, !errors.Is(err, supervisor.ErrAgentsFailed):
		return err
	}
	return answered(solo.exit)
}

// solo shows the one agent of run: its lines as they are, stdout to stdout and
// stderr to stderr, and nothing else but trouble.
type solo struct {
	app      *app
	name     string
	follower *supervisor.Follower
	out      *bufio.Writer
	started  chan struct{}
	ran      bool
	exit     int
	refused  error
}

func (s *solo) run() {
	var spare supervisor.Backlog
	tty := isTerminal(s.app.stdout)
	for s.follower.Next(context.Background(), &spare, func(l supervisor.Line) { s.show(l, tty) }) {
		_ = s.out.Flush()
	}
}

func (s *solo) show(l supervisor.Line, tty bool) {
	if l.Event != nil {
		s.event(l.Event)
		return
	}
	if s.app.flags.json {
		if text, err := wire.Encode(wire.LogLine{At: wire.Timestamp(l.At), Agent: l.Agent, Stream: l.Stream, Text: string(l.Text), Missed: l.Missed}); err == nil {
			_, _ = s.out.Write(append(text, '\n'))
		}
		return
	}
	var to io.Writer = s.out
	text := l.Text
	if l.Stream == wire.StreamErr {
		_ = s.out.Flush()
		to, tty = s.app.stderr, isTerminal(s.app.stderr)
	}
	if tty {
		text = wire.AppendVisible(nil, text)
	}
	_, _ = to.Write(append(text[:len(text):len(text)], '\n'))
}

func (s *solo) event(e *wire.Event) {
	switch e.Kind {
	case wire.EventStarted:
		s.ran = true
		close(s.started)
	case wire.EventExited:
		s.exit = exitNo
		if e.Facts.ExitCode != nil {
			s.exit = *e.Facts.ExitCode
		} else if sig := signalNumber(e.Facts.Signal); e.Facts.Signal != "" {
			s.exit = 128 + int(sig)
		}
	case wire.EventGaveUp:
		if !s.ran {
			s.refused = &failure{exit: *e.Facts.ExitCode, code: codeFailed, message: "Cannot run " + s.name + ": " + e.Text}
		}
	case wire.EventLeftOver, wire.EventHeldOpen, wire.EventLineCut, wire.EventStalled:
		s.app.talk("%s: %s", s.name, wire.Visible(e.Text))
	}
}

// feed passes stdin on, line by line, and its end too. /dev/null is how
// programs say that nobody will ever type: then the agent's stdin stays open,
// so that it can be answered.
func (s *solo) feed(ctx context.Context, t *team) {
	select {
	case <-s.started:
	case <-ctx.Done():
		return
	}
	if isNull(s.app.stdin) {
		return
	}
	in := bufio.NewReader(s.app.stdin)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 && t.super.TellWaiting(ctx, s.name, line) != nil {
			return
		}
		if err != nil {
			t.super.EndInput(s.name)
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
