package main

import (
	"bufio"
	"bytes"
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
)

// runFlags are how one command is run.
type runFlags struct {
	pty     bool
	answers string
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	verb := &cobra.Command{
		Use: "run [flags] -- CMD…", DisableFlagsInUseLine: true,
		Short: "Run one command as an agent, without a file",
		Long: `Runs one command as an agent: with its whole tree ended afterwards, its lines kept
whole, and a stop in order at Ctrl-C. What is typed or piped in goes to its
stdin, and the end of it too; only when stdin is /dev/null does the command's
stdin stay open. What it prints is printed.

The exit code is the command's own, 128 and the signal's number if one ended it,
126 or 127 if it could not be started; 141 when the reader of its output has gone,
and 1 when all went well but its output could not be written.`,
		Example: `  orchestrator run -- ./agent.sh
  echo hello | orchestrator run -- cat
  orchestrator run --pty -- python3`,
		Args:              argCount(1, -1),
		ValidArgsFunction: nil,
		RunE:              func(_ *cobra.Command, args []string) error { return a.runOne(args, f) },
	}
	verb.Flags().BoolVar(&f.pty, "pty", false, "give the command a terminal")
	verb.Flags().StringVar(&f.answers, "answers", "", "answer its questions from `FILE`: lines such as \"Which login* => oauth\"")
	verb.Flags().SetInterspersed(false)
	return verb
}

// runOne runs one command in a state directory of its own, which goes when the
// command is gone.
func (a *app) runOne(command []string, f runFlags) error {
	var rules []scripted
	if f.answers != "" {
		var err error
		if rules, err = readAnswers(a.path(f.answers)); err != nil {
			return err
		}
	}
	stateDir, err := os.MkdirTemp("", "orchestrator-run-")
	if err != nil {
		return fmt.Errorf("making a place for its state: %w", err)
	}
	defer os.RemoveAll(stateDir)
	name := strings.TrimSuffix(filepath.Base(command[0]), filepath.Ext(command[0]))
	c := config.Alone(a.dir, stateDir, name, command)
	c.Agents[0].Pty = f.pty
	c.Store.Kind = "memory" // it goes with the state directory
	log := a.logger(c, a.flags.json)
	t := newTeam()
	if err := t.hold(stateDir, a.socketPath(stateDir), log); err != nil {
		return cannotHold(err, stateDir)
	}
	defer t.release()
	t.base = agentBase(a.environ)
	if err := t.supervise(c, supervisor.Options{Name: name, ExitWhenIdle: true}); err != nil {
		return err
	}
	return a.runAlone(t, name, rules)
}

// runAlone runs a team of one and makes its exit code ours.
func (a *app) runAlone(t *instance, name string, rules []scripted) error {
	show := newSolo(a, t, name)
	show.scripted = len(rules) > 0
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		show.run()
	}()
	fate := newFate(name, t.super.Listen(false))
	go fate.hear() // ends with the team
	feeding, enough := context.WithCancel(context.Background())
	defer enough()
	go feed(feeding, a.stdin, t, fate) // a read of a terminal cannot be called back: it ends with the program
	signals := a.heed(t)               // before it can be seen to run
	shut := t.serve()
	(&answerer{app: a, team: t, scripted: rules}).begin(feeding)
	err := t.super.Run(signals.ctx)
	<-fate.heard
	all := signals.awaitReader(shown)
	if !all {
		t.log.Warn("the last lines are not shown: their reader does not take them")
	}
	forced := signals.end()
	shut()
	failed := errors.Is(err, supervisor.ErrAgentsFailed)
	if errors.Is(err, supervisor.ErrTasksUndone) {
		err = nil // what the command leaves undone is its own business
	}
	switch {
	case forced != 0:
		return exitWith(forced)
	case fate.refused != nil:
		return a.meantAgent(failureOf(fate.refused), name)
	case all && show.unread:
		return exitWith(exitBrokenPipe)
	case failed && fate.exit != exitOK:
		return exitWith(fate.exit)
	case failed, all && show.broken:
		return exitWith(exitNo)
	}
	return err
}

// meantAgent adds to why there is no such program that an agent of the file is
// called so.
func (a *app) meantAgent(f *failure, name string) *failure {
	file, err := config.Find(a.dir, a.flags.config, a.environ)
	if f.exit != exitNoProgram || err != nil {
		return f
	}
	c, _ := config.Load(file, a.options())
	if c != nil && knowAgents(c, []string{name}) == nil {
		f.hint = fmt.Sprintf("%s is an agent of %s. Start it: orchestrator up %s", name, file, name)
	}
	return f
}

// piece is how much of stdin is passed on at once where there is no line end.
const piece = 64 << 10

// feed passes stdin on, line by line, long ones in pieces, and its end too.
// /dev/null is how programs say that no input will ever come: then the agent's
// stdin stays open, so that it can be answered.
func feed(ctx context.Context, stdin io.Reader, t *instance, f *exitWatch) {
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
		// The mailbox keeps what it is given; the reader uses its buffer again.
		if len(line) > 0 && t.super.TellWaiting(ctx, f.name, bytes.Clone(line)) != nil {
			return
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			t.super.EndInput(f.name)
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
