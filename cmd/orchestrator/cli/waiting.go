package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// interrupted is the error of a command that a signal stops.
type interrupted struct{ signal os.Signal }

func (i *interrupted) Error() string {
	switch i.signal {
	case os.Interrupt:
		return "stopped by Ctrl-C"
	case syscall.SIGTERM:
		return "stopped by SIGTERM"
	}
	return "stopped by " + i.signal.String()
}

var errTimeout = errors.New("the time ran out")

// Context returns the context of a command that uses an orchestrator. It ends at the first
// Ctrl-C or SIGTERM, when the terminal is closed, and after --timeout. A second signal
// kills the program. The goroutine of Context ends with the returned function.
func (a *App) Context() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	if a.Served == nil { // the signals of this process are not for the command
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		if !signal.Ignored(syscall.SIGHUP) { // it is ignored under nohup
			signal.Notify(signals, syscall.SIGHUP)
		}
	}
	over := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			cancel(&interrupted{signal: s})
			select { // the same signal may arrive twice: see SignalEcho
			case <-time.After(SignalEcho):
			case <-over:
			}
			signal.Stop(signals)
		case <-a.Over:
			signal.Stop(signals)
			cancel(&interrupted{signal: os.Interrupt})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	if limit := a.Flags.Timeout.Duration; limit > 0 {
		timed, release := context.WithTimeoutCause(ctx, limit, errTimeout)
		return timed, sync.OnceFunc(func() { release(); cancel(nil); close(over) })
	}
	return ctx, sync.OnceFunc(func() { cancel(nil); close(over) })
}

// Ended returns the failure for a context that is done, or nil.
func (a *App) Ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if by, ok := errors.AsType[*interrupted](cause); ok {
		exit := ExitInterrupted
		switch by.signal {
		case syscall.SIGTERM:
			exit = ExitTerminated
		case syscall.SIGHUP:
			exit = ExitHungUp
		}
		return &Failure{Exit: exit, Code: codeStopped, Message: by.Error()}
	}
	return a.TimedOut()
}

// TimedOut returns the failure for the end of --timeout.
func (a *App) TimedOut() *Failure {
	return &Failure{
		Exit: ExitTimeout, Code: wire.CodeTimeout,
		Message: fmt.Sprintf("not done within %s", term.Duration(a.Flags.Timeout.Duration)),
		Hint:    "Use a longer --timeout, or none",
	}
}

// leftOff reports whether an error is only an interrupt, the usual end of a followed
// stream.
func leftOff(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Exit == ExitInterrupted
}

// UnlessLeft returns err, or nil for an interrupt.
func UnlessLeft(err error) error {
	if leftOff(err) {
		return nil
	}
	return err
}

// WaitShownAfter is the delay before a wait is shown: a little more than the second that an agent
// must run before its start counts.
const WaitShownAfter = 1200 * time.Millisecond

// ShowWait shows the awaited event after WaitShownAfter: on a terminal in one line with a counter,
// elsewhere as a line every ten seconds. Its goroutine has ended when done returns.
func (a *App) ShowWait(what string) (done func()) {
	return a.ShowDoing(func(since time.Duration) string {
		return fmt.Sprintf("Waiting for %s, %ds", what, int(since.Seconds()))
	})
}

// ShowDoing is ShowWait with a line about the current step, which may change.
func (a *App) ShowDoing(line func(since time.Duration) string) (done func()) {
	if a.Flags.Quiet || a.JSON() {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		a.tellWaiting(line, quit)
	}()
	return func() {
		close(quit)
		<-gone
	}
}

func (a *App) tellWaiting(say func(since time.Duration) string, quit <-chan struct{}) {
	live := term.IsTerminal(a.Stderr)
	every := 10 * time.Second
	if live {
		every = time.Second
	}
	shown := 0
	next := time.NewTimer(WaitShownAfter)
	defer next.Stop()
	for began := time.Now(); ; next.Reset(every) {
		select {
		case <-quit:
			if live && shown > 0 {
				_, _ = fmt.Fprintf(a.Stderr, "\r%s\r", strings.Repeat(" ", shown))
			}
			return
		case <-next.C:
		}
		line := say(time.Since(began))
		if !live {
			_, _ = fmt.Fprintln(a.Stderr, line)
			continue
		}
		rest := max(shown-term.Width(line), 0) // of a longer line before
		shown = term.Width(line)
		_, _ = fmt.Fprint(a.Stderr, "\r"+line+strings.Repeat(" ", rest))
	}
}

// Confirm asks a question on the terminal. It returns an error without a terminal or a yes.
func (a *App) Confirm(question string) error {
	if err := a.decline(); err != nil {
		return err
	}
	if !term.IsTerminal(a.Stdin) || !term.IsTerminal(a.Stderr) || a.Flags.JSON {
		return UsageError("this cannot be undone, and no terminal is available to confirm it", "To confirm: add --yes")
	}
	_, _ = fmt.Fprintf(a.Stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &Failure{Exit: ExitNo, Code: CodeFailed, Message: "cancelled: nothing was changed"}
}

// SignalEcho is how long after a signal another one counts as the same. A program such as
// timeout signals its child and then the child's group.
const SignalEcho = 500 * time.Millisecond

// ClearScreen returns the sequence that clears the screen, or "" without a terminal.
func (a *App) ClearScreen() string {
	if term.IsTerminal(a.Stdout) && bool(a.Paint(a.Stdout)) && !a.JSON() {
		return "\x1b[H\x1b[2J"
	}
	return ""
}

// EverySecond calls look every second until it fails or ctx is done. An interrupt is not an
// error.
func (a *App) EverySecond(ctx context.Context, look func() error) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		if err := look(); err != nil {
			return UnlessLeft(err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return UnlessLeft(a.Ended(ctx))
		}
	}
}
