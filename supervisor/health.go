package supervisor

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// mailbox makes the mailbox of a run that has begun.
func (s *Supervisor) mailbox(a *agent, m *startRequest, c Process) *stdin.Mailbox {
	if c.Stdin() == nil {
		return stdin.Closed()
	}
	if a.Raw { // nothing is put into it; its stdin is closed when it is to end
		return &stdin.Mailbox{Shut: func() { c.CloseStdin() }}
	}
	box := &stdin.Mailbox{
		Limits:     a.Mailbox,
		Timeout:    a.Health.WriteTimeout,
		To:         c.Stdin(),
		Shut:       func() { c.CloseStdin() },
		OnReceipts: s.dispatcher.receive,
		OnStall:    func(yes bool) { s.post(func() { s.stdinStalled(a, m.run, yes) }) },
		OnBroken: func(err error) {
			s.post(func() {
				s.event(a, wire.Event{Kind: wire.EventStdinClosed, Run: m.run, Text: "reads no more: " + err.Error()})
			})
		},
	}
	if m.speech.Echoes != nil {
		box.OnWrite = m.speech.Echoes.Wrote
	}
	return box
}

// stdinStalled is the turn after an agent's stdin took nothing for too long,
// or takes again.
func (s *Supervisor) stdinStalled(a *agent, run string, yes bool) {
	if a.run != run || a.child == nil {
		return
	}
	if !yes {
		s.recovered(a, &a.deaf, "reads its stdin again")
		return
	}
	messages, _, _ := a.mail.Waiting()
	why := fmt.Sprintf("does not read its stdin: %d bytes unread, %d messages waiting", a.child.Unread(), messages)
	if mail := a.mail.MailWaiting(); mail > 0 {
		why += fmt.Sprintf(", %d of them mail", mail)
	}
	s.stalled(a, &a.deaf, why)
}

// frozen is the turn after the leader of an agent was stopped by a signal, or goes on.
// It may stop for a moment, as with Ctrl-Z in a terminal: it is stalled when that takes
// as long as its stdin may take nothing.
func (s *Supervisor) frozen(a *agent, run string, yes bool) {
	if a.run != run || a.child == nil {
		return
	}
	s.deadlines.drop(a.thaw)
	a.thaw = nil
	if !yes {
		s.recovered(a, &a.stopped, "goes on after it was stopped by a signal")
		return
	}
	a.thaw = s.deadlines.add(time.Now().Add(a.Health.WriteTimeout), func() {
		if a.run == run && a.child != nil {
			s.stalled(a, &a.stopped, fmt.Sprintf("was stopped by a signal (kill -CONT %d lets it go on)", a.child.PID()))
		}
	})
}

// watchSilence looks at an agent's silence when it could be too long.
func (s *Supervisor) watchSilence(a *agent) {
	limit := a.Health.Silence
	if limit <= 0 || a.child == nil {
		return
	}
	run := a.run
	s.deadlines.drop(a.watch)
	a.watch = s.deadlines.add(time.Now().Add(limit-a.voice.Silence()), func() {
		if a.voice.Silence() < a.Health.Silence {
			s.watchSilence(a)
			return
		}
		woken := func() {
			s.post(func() {
				if a.run == run && a.child != nil {
					s.recovered(a, &a.silent, "speaks again")
					s.watchSilence(a)
				}
			})
		}
		a.voice.OnSound.Store(&woken)
		s.stalled(a, &a.silent, fmt.Sprintf("has said nothing for %s", short(a.voice.Silence())))
	})
}

// stalled marks an agent that runs without working, and restarts it if it is
// to be. It may be deaf, silent, stopped by a signal, or several of these; it has
// recovered when it is none of them.
func (s *Supervisor) stalled(a *agent, cause *string, why string) {
	if !a.state.Live() || a.halt != nil || a.exit != nil || *cause != "" {
		return
	}
	*cause = why
	a.set(wire.StateStalled, why)
	if a.Health.Restart && a.joined == nil {
		s.event(a, wire.Event{Kind: wire.EventStalled, Text: why + ", is restarted"})
		s.halt(a, stopRequest{reason: "stalled: " + why, again: true, crash: true})
		return
	}
	s.event(a, wire.Event{Kind: wire.EventStalled, Text: why})
}

func (s *Supervisor) recovered(a *agent, cause *string, how string) {
	if *cause == "" {
		return
	}
	*cause = ""
	if a.state != wire.StateStalled {
		return
	}
	s.event(a, wire.Event{Kind: wire.EventRecovered, Text: how})
	if rest := cmp.Or(a.deaf, a.silent, a.stopped); rest != "" {
		a.reason = rest
		return
	}
	a.set(wire.StateRunning, "")
}

// again restarts an agent that was stopped because it had stalled. That counts
// as if it had crashed.
func (s *Supervisor) again(a *agent) {
	v := a.history.again(a.Restart, "stalled", a.lastUp, time.Now(), rand.Float64())
	if !v.again {
		s.fail(a, v.why, -1)
		return
	}
	s.restartIn(a, v.delay, "", v.attempt)
}
