package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// At an upgrade this process executes another program, and the agents go on. The recorded state is read from the record
// as after a kill. A Handover has the rest. The steps can be undone up to the last one, and then everything goes on as
// before:
//
//   - the output of the agents is no longer read, and their stdin no longer written
//   - all decisions are committed, and no more are made
//   - the program is replaced

// A Handover is the state of a team that is not in its record.
type Handover struct {
	Began  time.Time     `json:"began"`
	Agents []handedAgent `json:"agents"`
	Tally  handedTally   `json:"tally"`
}

// A handedAgent is an agent of a Handover.
type handedAgent struct {
	Name     string          `json:"name"`
	State    control.State   `json:"state"`
	Reason   string          `json:"reason"`
	Wanted   bool            `json:"wanted"`
	Freely   bool            `json:"freely"`
	Run      string          `json:"run"`
	As       string          `json:"as"`
	LastExit string          `json:"last_exit"`
	LastUp   time.Duration   `json:"last_up"`
	LastStop string          `json:"last_stop"`
	EndedRun string          `json:"ended_run"`
	Starts   int             `json:"starts"`
	Restarts int             `json:"restarts"`
	Refused  int64           `json:"refused"`
	Streak   int             `json:"streak"`
	Ages     []time.Duration `json:"ages"` // of the restarts within the window
	Endings  []string        `json:"endings"`
	Backoff  time.Duration   `json:"backoff"` // until its next start
	Deaf     string          `json:"deaf"`
	Silent   string          `json:"silent"`
	Stopped  string          `json:"stopped"`
	Output   output.Handover `json:"output"`

	// Of a running agent.
	Runs  bool           `json:"runs"`
	Mail  int64          `json:"mail"` // the last message in its mailbox
	Stdin stdin.Handover `json:"stdin"`
}

// A handedTally is an idleCounter of a Handover.
type handedTally struct {
	Tasks      int             `json:"tasks"`
	Undone     int             `json:"undone"`
	Submitters map[string]bool `json:"submitters"`
	Workers    map[string]bool `json:"workers"`
}

// heldTime is how long the parts of a team may take to come to rest.
const heldTime = 3 * time.Second

// heldProcess is a process that can go over to the next program.
type heldProcess interface {
	Hold(patience time.Duration) error
	Resume()
}

// HandOver brings the team to rest and calls replace with its state, which executes another program.
// HandOver returns only if that is not possible, and then the team goes on.
func (s *Supervisor) HandOver(ctx context.Context, replace func(Handover) error) error {
	if s.options.Record == nil {
		return &wire.Error{Code: wire.CodeConflict, Message: "nothing is recorded"}
	}
	var held []*agent
	resume := func() {
		for _, a := range held {
			a.mail.Resume()
			a.child.(heldProcess).Resume()
		}
	}
	_, err := ask(ctx, s, func() (any, error) {
		var err error
		if err = s.life.mayGoOver(); err == nil {
			held, err = s.life.holdAll()
		}
		return nil, err
	})
	if err != nil {
		return err
	}
	// Work that the output caused until the hold is done before this turn.
	_, err = ask(context.WithoutCancel(ctx), s, func() (any, error) {
		defer resume()
		if err := s.life.mayGoOver(); err != nil {
			return nil, err
		}
		release, err := s.dispatcher.Hold(heldTime)
		if err != nil {
			return nil, err
		}
		defer release()
		select {
		case <-s.cancelled: // a signal
			return nil, errStopping
		default:
			return nil, replace(s.life.handover(s.began))
		}
	})
	return err
}

// mayGoOver returns an error if an agent cannot go over now.
func (l *lifecycle) mayGoOver() error {
	refused := func(a *agent, why, hint string) error {
		return &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("agent %s %s, and so cannot be handed over to another program", a.Name, why), Hint: hint,
			Details: map[string]any{"agent": a.Name},
		}
	}
	if l.stopping != nil {
		return errStopping
	}
	for _, a := range l.order {
		_, able := a.child.(heldProcess)
		there, elsewhere := a.child.(*hosts.Process)
		switch {
		case elsewhere:
			return refused(a, "runs on "+there.Host(), "Stop it first, and start it afterwards: orchestrator agent stop "+a.Name)
		case a.joined != nil:
			return refused(a, "has joined over a connection", "End its program first")
		case a.child != nil && !able:
			return refused(a, "is a coding agent", "Stop it first, and start it afterwards; its conversation continues: orchestrator agent stop "+a.Name)
		case a.state == control.StateStarting, a.state == control.StateStopping, a.halt != nil, a.exit != nil, a.next != nil, a.removed:
			return refused(a, "is being started or stopped", "Try again")
		}
	}
	return nil
}

// holdAll stops the reading and writing of all running agents. If it returns an error, they go on.
func (l *lifecycle) holdAll() (held []*agent, err error) {
	for _, a := range l.order {
		if a.child == nil {
			continue
		}
		process := a.child.(heldProcess)
		if err = process.Hold(heldTime); err == nil {
			if held = append(held, a); a.mail.Hold(heldTime) {
				continue
			}
			err = fmt.Errorf("its stdin is busy")
		}
		for _, h := range held {
			h.mail.Resume()
			h.child.(heldProcess).Resume()
		}
		return nil, &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("agent %s cannot be handed over now: %v", a.Name, err), Hint: "Try again"}
	}
	return held, nil
}

// handover returns the state of a team at rest.
func (l *lifecycle) handover(began time.Time) Handover {
	t := &l.idle.tally
	t.mu.Lock()
	h := Handover{Began: began, Tally: handedTally{Tasks: t.tasks, Undone: t.undone, Submitters: t.submitters, Workers: t.workers}}
	t.mu.Unlock()
	now := time.Now()
	for _, a := range l.order {
		x := handedAgent{
			Name: a.Name, State: a.state, Reason: a.reason, Wanted: a.wanted, Freely: a.freely, Run: a.run, As: a.as,
			LastExit: a.lastExit, LastUp: a.lastUp, LastStop: a.lastStop, EndedRun: a.endedRun,
			Starts: a.starts, Restarts: a.restarts, Refused: a.refused, Streak: a.history.streak, Endings: a.history.endings,
			Deaf: a.deaf, Silent: a.silent, Stopped: a.stopped, Runs: a.child != nil,
		}
		for _, at := range a.history.restarts {
			x.Ages = append(x.Ages, now.Sub(at))
		}
		if a.state == control.StateBackoff {
			x.Backoff = max(0, time.Until(a.due.at))
		}
		if a.child == nil {
			x.Output = a.voice.Handover(nil)
		} else {
			x.Output, x.Stdin = a.voice.Handover(a.speech), a.mail.Handover()
			if a.channel != nil {
				x.Mail = a.channel.MailAfter()
			}
		}
		h.Agents = append(h.Agents, x)
	}
	return h
}

// takeOver goes on with the team of an earlier program.
func (l *lifecycle) takeOver(h *Handover) {
	t := &l.idle.tally
	t.tasks, t.undone, t.submitters, t.workers = h.Tally.Tasks, h.Tally.Undone, h.Tally.Submitters, h.Tally.Workers
	for i := range h.Agents {
		x := &h.Agents[i]
		a := l.agents[x.Name]
		if a == nil {
			l.options.Log.Error("an agent is no longer in the configuration and is ended", "agent", x.Name)
			continue
		}
		a.set(x.State, x.Reason)
		a.wanted, a.freely, a.run, a.as, a.starts, a.restarts, a.refused = x.Wanted, x.Freely, x.Run, x.As, x.Starts, x.Restarts, x.Refused
		a.lastExit, a.lastUp, a.lastStop, a.endedRun = x.LastExit, x.LastUp, x.LastStop, x.EndedRun
		a.deaf, a.silent, a.stopped = x.Deaf, x.Silent, x.Stopped
		a.history = restartHistory{streak: x.Streak, endings: x.Endings}
		for _, age := range x.Ages {
			a.history.restarts = append(a.history.restarts, time.Now().Add(-age))
		}
		switch {
		case x.Runs:
			l.goOn(a, x)
		case a.state == control.StateBackoff:
			l.startLater(a, x.Backoff)
		}
		if !x.Runs {
			a.voice.TakeOver(&x.Output, nil)
		}
	}
	for _, a := range slices.Clone(l.order) {
		if a.wanted && a.child == nil {
			l.tryStart(a)
		}
	}
}

// goOn goes on with the run of an agent.
func (l *lifecycle) goOn(a *agent, x *handedAgent) {
	ar := l.runOf(a)
	ar.handed = x
	defer close(ar.handled)
	if named := a.as; named != "" {
		l.takeActor(a)
	}
	c, err := ar.make(context.Background())
	if err != nil {
		l.options.Log.Error("an agent does not continue", "agent", a.Name, "error", err)
		code := -1
		l.event(a, wire.Event{Kind: events.AgentExited, Text: "lost at an upgrade: " + err.Error(), Figures: wire.Figures{ExitCode: &code}})
		l.event(a, wire.Event{Kind: events.AgentEnded, Text: "lost at an upgrade", Figures: wire.Figures{ExitCode: &code}})
		l.fail(a, "it was lost at an upgrade: "+err.Error(), notRunnable)
		return
	}
	a.child, a.speech, a.channel = c, ar.speech, ar.channel
	a.mail = l.mailbox(a, ar, c)
	a.mail.TakeOver(x.Stdin)
	if ar.channel != nil {
		ar.channel.Open(a.mail)
		if !a.NoStdin {
			ar.channel.BringMail(x.Mail)
		}
	}
	l.watchSilence(a)
	for _, cause := range []*string{&a.deaf, &a.silent} { // its end could no longer be noticed
		if *cause != "" {
			l.recovered(a, cause, "is watched again after an upgrade")
		}
	}
}

var _ heldProcess = (*child.Child)(nil)
