package supervisor

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// mailbox returns the mailbox of a run that has begun.
func (l *lifecycle) mailbox(a *agent, m *agentRun, c Process) *stdin.Mailbox {
	if c.Stdin() == nil {
		return stdin.Closed()
	}
	if a.Raw { // gets no messages; stdin is closed when the agent is to end
		return stdin.New(stdin.Options{Shut: func() { c.CloseStdin() }})
	}
	o := stdin.Options{
		Limits:   a.Mailbox,
		Timeout:  a.Health.WriteTimeout,
		To:       c.Stdin(),
		Shut:     func() { c.CloseStdin() },
		Listener: m,
	}
	if m.speech.Echoes != nil {
		o.OnWrite = m.speech.Echoes.Wrote
	}
	return stdin.New(o)
}

// Received implements stdin.Listener.
func (ar *agentRun) Received(receipts []wire.Delivered, written bool) {
	ar.life.dispatcher.Receive(receipts, written)
}

// StdinStalled implements stdin.Listener.
func (ar *agentRun) StdinStalled(yes bool) {
	ar.life.post(func() { ar.life.stdinStalled(ar.agent, ar.run, yes) })
}

// StdinBroken implements stdin.Listener.
func (ar *agentRun) StdinBroken(err error) {
	ar.life.post(func() {
		ar.life.event(ar.agent, wire.Event{Kind: events.AgentStdinClosed, Run: ar.run, Text: "no longer reads its stdin: " + err.Error()})
	})
}

// stdinStalled handles an agent's stdin that has blocked for too long, or that is read again.
func (l *lifecycle) stdinStalled(a *agent, run string, yes bool) {
	if a.run != run || a.child == nil {
		return
	}
	if !yes {
		l.recovered(a, &a.deaf, "reads its stdin again")
		return
	}
	messages, _, _ := a.mail.Waiting()
	why := fmt.Sprintf("does not read its stdin: %d bytes unread, %d messages waiting", a.child.Unread(), messages)
	if mail := a.mail.MailWaiting(); mail > 0 {
		why += fmt.Sprintf(", %d of them mail", mail)
	}
	l.stalled(a, &a.deaf, why)
}

// frozen handles a leader that was stopped by a signal, or that continues. A stop may be short,
// as with Ctrl-Z in a terminal. The agent counts as stalled once the stop has lasted as long as
// a write to its stdin may block.
func (l *lifecycle) frozen(a *agent, run string, yes bool) {
	if a.run != run || a.child == nil {
		return
	}
	l.deadlines.drop(a.thaw)
	a.thaw = nil
	if !yes {
		l.recovered(a, &a.stopped, "continues after a signal stopped it")
		return
	}
	a.thaw = l.deadlines.add(time.Now().Add(a.Health.WriteTimeout), func() {
		if a.run == run && a.child != nil {
			l.stalled(a, &a.stopped, fmt.Sprintf("was stopped by a signal (to continue it: kill -CONT %d)", a.child.PID()))
		}
	})
}

// watchSilence sets a deadline that checks whether an agent has been silent for too long.
func (l *lifecycle) watchSilence(a *agent) {
	limit := a.Health.Silence
	if limit <= 0 || a.child == nil {
		return
	}
	run := a.run
	l.deadlines.drop(a.watch)
	a.watch = l.deadlines.add(time.Now().Add(limit-a.voice.Silence()), func() {
		if turn := a.turn(); a.voice.Silence() < a.Health.Silence || turn != nil && turn.State == activity.Waiting {
			l.watchSilence(a)
			return
		}
		woken := func() {
			l.post(func() {
				if a.run == run && a.child != nil {
					l.recovered(a, &a.silent, "speaks again")
					l.watchSilence(a)
				}
			})
		}
		a.voice.WhenHeard(woken)
		l.stalled(a, &a.silent, fmt.Sprintf("has been silent for %s", short(a.voice.Silence())))
	})
}

// stalled marks an agent as stalled, and restarts it if its settings say so. The causes are a
// blocked stdin, silence, and a stop by a signal. The agent has recovered when none is left.
func (l *lifecycle) stalled(a *agent, cause *string, why string) {
	if !a.state.Live() || a.halt != nil || a.exit != nil || *cause != "" {
		return
	}
	*cause = why
	a.set(control.StateStalled, why)
	if a.Health.Restart && a.joined == nil && cause != &a.far {
		l.event(a, wire.Event{Kind: events.AgentStalled, Text: why + ", is restarted"})
		l.halt(a, stopRequest{reason: "stalled: " + why, again: true, crash: true})
		return
	}
	l.event(a, wire.Event{Kind: events.AgentStalled, Text: why})
}

func (l *lifecycle) recovered(a *agent, cause *string, how string) {
	if *cause == "" {
		return
	}
	*cause = ""
	if a.state != control.StateStalled {
		return
	}
	l.event(a, wire.Event{Kind: events.AgentRecovered, Text: how})
	if rest := cmp.Or(a.deaf, a.silent, a.stopped, a.far); rest != "" {
		a.reason = rest
		return
	}
	a.set(control.StateRunning, "")
}

// again restarts an agent that was stopped because it had stalled. The restart counts like one
// after a crash.
func (l *lifecycle) again(a *agent) {
	v := a.history.again(a.Restart, "stalled", a.lastUp, time.Now(), rand.Float64())
	if !v.again {
		l.fail(a, v.why, -1)
		return
	}
	l.restartIn(a, v.delay, "", v.attempt)
}
