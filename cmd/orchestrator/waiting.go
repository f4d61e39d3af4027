package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// interrupted is the error of a verb that Ctrl-C stops.
type interrupted struct{ signal os.Signal }

func (i *interrupted) Error() string { return "stopped by " + i.signal.String() }

var errTimeout = errors.New("the time ran out")

// begin returns the context of a verb that speaks to an orchestrator: it ends
// at the first Ctrl-C or SIGTERM, when its terminal is closed, and when --timeout is
// over. A second signal kills the program, as without us. The goroutine it starts ends
// with stop.
func (a *app) begin() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	over := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			cancel(&interrupted{signal: s})
			select { // the same signal may come twice at once: see echo
			case <-time.After(echo):
			case <-over:
			}
			signal.Stop(signals)
		case <-a.over:
			signal.Stop(signals)
			cancel(&interrupted{signal: os.Interrupt})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	if limit := a.flags.timeout.Duration; limit > 0 {
		timed, release := context.WithTimeoutCause(ctx, limit, errTimeout)
		return timed, sync.OnceFunc(func() { release(); cancel(nil); close(over) })
	}
	return ctx, sync.OnceFunc(func() { cancel(nil); close(over) })
}

// ended returns why a context is over; nil if it is not.
func (a *app) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if by, ok := errors.AsType[*interrupted](cause); ok {
		exit := exitInterrupted
		switch by.signal {
		case syscall.SIGTERM:
			exit = exitTerminated
		case syscall.SIGHUP:
			exit = exitHungUp
		}
		return &failure{exit: exit, code: codeStopped, message: by.Error()}
	}
	return a.timedOut()
}

// timedOut is the end of --timeout.
func (a *app) timedOut() *failure {
	return &failure{
		exit: exitTimeout, code: wire.CodeTimeout,
		message: fmt.Sprintf("not done within %s", plain.Duration(a.flags.timeout.Duration)),
		hint:    "Wait longer with --timeout, or without it for as long as it takes",
	}
}

// leftOff reports whether a stream that was followed ended because its reader
// had seen enough: that is no failure.
func leftOff(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.exit == exitInterrupted
}

// unlessLeft passes on an error, but not that of a reader who has seen enough.
func unlessLeft(err error) error {
	if leftOff(err) {
		return nil
	}
	return err
}

// firstWord is how long a wait is silent: a little more than the second for
// which an agent must run before its start counts.
const firstWord = 1200 * time.Millisecond

// patience says what is awaited once that takes longer than usual: in a terminal
// in one line that counts, elsewhere now and then. The goroutine it starts has
// ended when done returns.
func (a *app) patience(what string) (done func()) {
	if a.flags.quiet || a.json() {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		a.tellWaiting(what, quit)
	}()
	return func() {
		close(quit)
		<-gone
	}
}

func (a *app) tellWaiting(what string, quit <-chan struct{}) {
	live := isTerminal(a.stderr)
	every := 10 * time.Second
	if live {
		every = time.Second
	}
	shown := 0
	next := time.NewTimer(firstWord)
	defer next.Stop()
	for began := time.Now(); ; next.Reset(every) {
		select {
		case <-quit:
			if live && shown > 0 {
				_, _ = fmt.Fprintf(a.stderr, "\r%s\r", strings.Repeat(" ", shown))
			}
			return
		case <-next.C:
		}
		line := fmt.Sprintf("Waiting for %s, %ds", what, int(time.Since(began).Seconds()))
		if !live {
			_, _ = fmt.Fprintln(a.stderr, line)
			continue
		}
		shown = plain.Width(line)
		_, _ = fmt.Fprint(a.stderr, "\r"+line)
	}
}
