package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// The exit codes that shells use for programs that did not start.
const (
	notRunnable = 126
	notFound    = 127
)

// startFailed handles an attempt that created no process. A lack of resources may pass; any
// other error needs a person.
func (l *lifecycle) startFailed(a *agent, err error) {
	defer l.vacateActor(a)
	if l.parted(a, child.Ending{}, l.unseated(a, err)) {
		return
	}
	var refused *child.StartError
	temporary := errors.As(err, &refused) && refused.Temporary
	text := err.Error()
	if refused != nil && refused.Hint != "" {
		text += "; " + refused.Hint
	}
	switch {
	case a.halt != nil || l.stopping != nil:
		l.stopped(a, child.Ending{})
	case errors.Is(err, hosts.ErrUnknownAgent):
		l.wait(a, "a host with it in its file")
		l.post(l.wakeWaiting) // on another host, or it shows why no host fits
	case temporary:
		l.restartIn(a, a.Restart.MaxDelay, text, 0)
	case errors.Is(err, fs.ErrNotExist):
		l.fail(a, text, notFound)
	default:
		l.fail(a, text, notRunnable)
	}
}

// exited handles the death of the leader. Other processes of its tree may still run.
func (l *lifecycle) exited(a *agent, exit child.Exit) {
	a.exit = &exit
	a.mail.EndWaits()
	up := exit.At.Sub(a.child.StartedAt())
	a.lastExit, a.lastUp = exit.String(), up
	a.set(control.StateStopping, exit.String()+", its processes are being ended")
	l.deadlines.drop(a.watch)
	l.deadlines.drop(a.proof)
	if a.halt == nil {
		figures := exitFigures(exit, false)
		figures.PID, figures.UpMS = a.child.PID(), up.Milliseconds()
		l.event(a, wire.Event{Kind: events.AgentExited, Text: fmt.Sprintf("%s after %s", exit, short(up)), Figures: figures})
		return
	}
	l.stopWork(a)
	// stopped reports a requested stop as a whole. Processes that the leader left behind get the rest of the stop
	// sequence: a wrapper dies at once, but its program may have work to finish.
	if !a.halt.signalled {
		l.signalRung(a)
	}
}

// exitFigures returns how a run ended, and whether the end was requested.
func exitFigures(exit child.Exit, ordered bool) wire.Figures {
	if exit.Signal != 0 {
		return wire.Figures{Signal: child.SignalName(exit.Signal), Ordered: ordered}
	}
	return wire.Figures{ExitCode: &exit.Code, Ordered: ordered}
}

// ended handles the end of a run's whole process tree. It decides about a restart.
func (l *lifecycle) ended(a *agent, ending child.Ending) {
	exit := *a.exit
	a.noteHost()
	l.clearUp(a, ending)
	l.event(a, wire.Event{Kind: events.AgentEnded, Text: exit.String(), Figures: exitFigures(exit, a.halt != nil && !a.halt.crash || l.stopping != nil)})
	a.endedRun = a.run
	defer l.vacateActor(a)
	if l.parted(a, ending, nil) {
		return
	}
	switch {
	case a.halt != nil || l.stopping != nil:
		l.stopped(a, ending)
		return
	case a.afresh:
		a.afresh = false
		a.set(control.StateStopped, "")
		l.want(a, a.freely)
		return
	}
	v := a.history.after(a.Restart, exit.Code, exit.String(), a.lastUp, exit.At, rand.Float64())
	switch {
	case v.again:
		l.restartIn(a, v.delay+l.spread(a, exit.At), "", v.attempt)
	case v.why != "":
		l.fail(a, v.why, exit.Code)
	default:
		a.wanted = false
		a.set(control.StateExited, exit.String())
		l.dispatcher.Note(&wire.AgentGone{Agent: a.Name})
		l.wakeWaiting()
		l.idle.check()
	}
}

// clearUp releases the resources of a run and reports the left-over processes.
func (l *lifecycle) clearUp(a *agent, ending child.Ending) {
	if a.halt != nil {
		ending.LeftOver = nil // stopped reports them
	}
	l.leftOver(a, ending, "")
	if ending.HeldOpen {
		l.event(a, wire.Event{
			Kind:    events.AgentHeldOpen,
			Text:    "its output was held open from outside its tree and cut off" + heldBy(ending.HeldBy),
			Figures: wire.Figures{LeftOver: views(ending.HeldBy)},
		})
	}
	l.dispatcher.Detach(a.Name, a.run)
	a.mail.Drop()
	_, _, refused := a.mail.Waiting()
	a.refused += refused
	a.survivors = len(ending.Survivors)
	a.child, a.mail, a.exit = nil, nil, nil
}

// leftOver reports left-over processes, ended or not. The text ends with of, which names their origin.
func (l *lifecycle) leftOver(a *agent, ending child.Ending, of string) {
	if len(ending.LeftOver) > 0 {
		l.event(a, wire.Event{
			Kind:    events.AgentLeftOver,
			Text:    "ended " + leftOvers(ending.LeftOver) + of,
			Figures: wire.Figures{LeftOver: views(ending.LeftOver), Count: int64(len(ending.LeftOver))},
		})
	}
	if len(ending.Survivors) > 0 {
		l.options.Log.Error("processes do not die", "agent", a.Name, "processes", names(ending.Survivors))
		l.event(a, wire.Event{
			Kind:    events.AgentLeftOver,
			Text:    "could not end " + leftOvers(ending.Survivors) + of,
			Figures: wire.Figures{LeftOver: views(ending.Survivors)},
		})
	}
	if ending.Unverified {
		l.event(a, wire.Event{Kind: events.AgentLeftOver, Text: "its process tree could not be fully inspected; some processes may be left"})
	}
}

// restartIn schedules the restart of an agent after a delay.
func (l *lifecycle) restartIn(a *agent, delay time.Duration, why string, attempt int) {
	a.set(control.StateBackoff, why)
	text := "restart in " + short(delay)
	if attempt > 0 {
		text = fmt.Sprintf("restart %d of %d in %s", attempt, a.Restart.Burst, short(delay))
	}
	if why != "" {
		text = why + "; " + text
	}
	l.event(a, wire.Event{
		Kind:    events.AgentRestarting,
		Text:    text,
		Figures: wire.Figures{Attempt: attempt, Burst: a.Restart.Burst, DelayMS: delay.Milliseconds()},
	})
	l.startLater(a, delay)
}

// startLater starts an agent in the state backoff after a delay.
func (l *lifecycle) startLater(a *agent, delay time.Duration) {
	a.due = l.deadlines.add(time.Now().Add(delay), func() {
		a.set(control.StateStopped, "")
		a.restarts++
		l.tryStart(a)
	})
}

// fail marks an agent as failed for good. code is its last exit code, or the code that a shell
// uses for a program that did not start. It is -1 if neither is the cause.
func (l *lifecycle) fail(a *agent, why string, code int) {
	a.wanted = false
	a.set(control.StateFailed, why)
	l.event(a, wire.Event{Kind: events.AgentGaveUp, Text: why, Figures: wire.Figures{ExitCode: &code}})
	a.lastStop = why
	if l.options.AbortOnFailure {
		l.stop(a.Name + " failed")
		return
	}
	l.idle.check()
}

// gaveUp describes why there were too many restarts.
func gaveUp(endings []string, r settings.Restart) string {
	return fmt.Sprintf("it ended %d times within %s (%s), the limit is %s",
		len(endings), r.Window, strings.Join(endings, ", "), count(r.Burst, "restart"))
}
