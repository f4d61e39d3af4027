package serve

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve/systemd"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/hub"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// A heeding handles the signals of a team. Its context ends with the first signal to stop,
// or after --timeout.
type signalHandler struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	quit   chan struct{}
	hurry  chan struct{} // closed by the second signal
	group  sync.WaitGroup
	forced int // the exit code after a second signal, or a timeout
	hangs  *hangups
}

// heed starts to handle signals. Its goroutines end with end.
func heed(a *cli.App, t *hub.Hub) *signalHandler {
	h := &signalHandler{quit: make(chan struct{}), hurry: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	// A full disk or a closed pipe must be an error of the write, not the end of the
	// program. The signals are caught and not ignored, so that agents start with the
	// default actions. They stay caught, because the program writes until its end.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGPIPE, syscall.SIGXFSZ)
	systemd.Notify(a.Getenv, systemd.Ready)
	hungUp := make(chan struct{})
	if h.hangs = newHangups(a.Stdin, a.Stdout); h.hangs != nil {
		h.group.Go(func() {
			if h.hangs.watch() {
				close(hungUp)
			}
			_ = h.hangs.wake[0].Close()
		})
	}
	h.group.Go(func() {
		defer signal.Stop(signals)
		h.listen(a, t, signals, hungUp)
	})
	if every := systemd.Watchdog(a.Getenv); every > 0 {
		h.group.Go(func() { h.showLife(a, t, every) })
	}
	return h
}

// showLife tells the service manager that decisions are made. The service manager kills a program that stops telling it.
func (h *signalHandler) showLife(a *cli.App, t *hub.Hub, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-h.quit:
			return
		case <-ticker.C:
			t.Super.Held("", "") // it waits for the decision that is being made
			systemd.Notify(a.Getenv, systemd.Alive)
		}
	}
}

func (h *signalHandler) listen(a *cli.App, t *hub.Hub, signals <-chan os.Signal, hungUp <-chan struct{}) {
	var timeout <-chan time.Time
	if limit := a.Flags.Timeout.Duration; limit > 0 {
		timeout = time.After(limit)
	}
	stops, first := 0, time.Time{}
	for {
		select {
		case <-h.quit:
			return
		case <-timeout:
			h.forced = cli.ExitTimeout
			h.cancel(errors.New("the --timeout has passed"))
			systemd.Notify(a.Getenv, systemd.Stopping)
		case <-hungUp:
			hungUp = nil
			h.leave(a, t, "its terminal was hung up")
		case s := <-signals:
			switch s {
			case syscall.SIGHUP:
				if h.hangs.happened() { // a SIGHUP for a lost terminal does not mean reload
					hungUp = nil
					h.leave(a, t, "its terminal was hung up")
					continue
				}
				h.group.Go(func() { reloadBySignal(h.ctx, a, t) })
			case syscall.SIGUSR1:
				report(h.ctx, t)
			case syscall.SIGUSR2: // log files are rotated by size, not by this signal
			default:
				now := time.Now()
				if stops == 0 {
					stops, first = 1, now
					h.leave(a, t, unix.SignalName(s.(syscall.Signal)))
					continue
				}
				if now.Sub(first) < cli.SignalEcho {
					continue
				}
				if stops++; stops == 2 {
					close(h.hurry)
				}
				h.forced = 128 + int(s.(syscall.Signal))
				forced := h.forced
				time.AfterFunc(forcedEnd, func() { late(a, t, forced, 0) })
				t.Super.Kill("a second signal")
			}
		}
	}
}

// leave starts the ordered stop.
func (h *signalHandler) leave(a *cli.App, t *hub.Hub, why string) {
	// The program ends even if a write blocks it then, such as on a terminal that accepts no output.
	// The agents have ended by that time.
	time.AfterFunc(t.Config.Orchestrator.Shutdown+lateEnd, func() { late(a, t, cli.ExitNo, keepEnd) })
	h.cancel(errors.New(why))
	systemd.Notify(a.Getenv, systemd.Stopping)
}

// late exits, unless a snapshot of the state is being written. That takes longer for more
// tasks, so it has a separate limit.
func late(a *cli.App, t *hub.Hub, code int, more time.Duration) {
	facts := t.Super.Keeping()
	if facts > 0 && more > 0 {
		time.AfterFunc(time.Second, func() { late(a, t, code, more-time.Second) })
		return
	}
	if facts > 0 {
		said := make(chan struct{})
		go func() { // a write to stderr may block
			defer close(said)
			t.Place.Log.Error("the program ends before its state is saved: the next start reads these facts again", "facts", facts)
		}()
		select {
		case <-said:
		case <-time.After(time.Second):
		}
	}
	a.Exit(code)
}

const (
	// keepEnd is how much longer than lateEnd the last snapshot may take.
	keepEnd = 5 * time.Minute
	// lateEnd is how long after the budget of the ordered stop the program exits in any
	// case.
	lateEnd = 30 * time.Second
	// forcedEnd is how long after a second signal the program exits in any case.
	forcedEnd = 5 * time.Second
)

// lastWords is how long the program waits for a blocked reader of its last lines.
const lastWords = 2 * time.Second

// hurriedWords is the same limit after a second signal.
const hurriedWords = time.Second

// await waits until the last lines are written, at most lastWords. It reports whether they
// were written.
func (h *signalHandler) await(shown <-chan struct{}) bool {
	enough := time.NewTimer(lastWords)
	defer enough.Stop()
	hurry := h.hurry
	for {
		select {
		case <-shown:
			return true
		case <-enough.C:
			return false
		case <-hurry:
			hurry = nil
			enough.Reset(hurriedWords)
		}
	}
}

// awaitReader is await for run: its output is the answer. It waits for a slow reader until a signal
// asks for the end.
func (h *signalHandler) awaitReader(shown <-chan struct{}) bool {
	select {
	case <-shown:
		return true
	case <-h.ctx.Done():
		return h.await(shown)
	}
}

// end stops handling signals. It returns the exit code of a forced end, or 0.
func (h *signalHandler) end() int {
	close(h.quit)
	h.hangs.close()
	h.group.Wait()
	h.cancel(nil)
	return h.forced
}

// reloadBySignal reloads the file after a signal, and logs the result.
func reloadBySignal(ctx context.Context, a *cli.App, t *hub.Hub) {
	systemd.Notify(a.Getenv, systemd.Reloading())
	defer systemd.Notify(a.Getenv, systemd.Reloaded)
	reply, err := t.Reload(ctx, control.ReloadRequest{})
	switch {
	case err != nil:
		t.Place.Log.Error("reload failed", "error", err)
	case reply.Errors == 0:
		t.Place.Log.Info("reloaded", "changes", len(reply.Changes))
	}
}

// report writes the status and a dump of the goroutines to a file.
func report(ctx context.Context, t *hub.Hub) {
	name := filepath.Join(t.Place.Home.Dir, "report-"+time.Now().UTC().Format("20060102T150405")+".txt")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		t.Place.Log.Error("cannot write the report", "error", err)
		return
	}
	defer file.Close()
	dropReports(t)
	if status, err := t.Super.Status(ctx); err == nil {
		text, _ := object.Encode(status)
		_, _ = file.Write(append(text, "\n\n"...))
	}
	_ = pprof.Lookup("goroutine").WriteTo(file, 1)
	t.Place.Log.Info("wrote a report", "file", name)
}

// maxReports is the number of reports that are kept.
const maxReports = 8

// dropReports removes the oldest reports. A file that cannot be removed is removed next time.
func dropReports(t *hub.Hub) {
	reports, _ := filepath.Glob(filepath.Join(t.Place.Home.Dir, "report-*.txt")) // sorted, so by time
	for _, old := range reports[:max(0, len(reports)-maxReports)] {
		_ = os.Remove(old)
	}
}

// hangups watches the terminals that this program was started in. A terminal is hung up
// when its window is closed or its connection ends.
type hangups struct {
	terminals []unix.PollFd
	wake      [2]*os.File // closing the second one ends watch
}

// newHangups returns the terminals among streams, or nil without one.
func newHangups(streams ...any) *hangups {
	h := new(hangups)
	for _, stream := range streams {
		if file, ok := stream.(*os.File); ok && term.IsTerminal(file) {
			h.terminals = append(h.terminals, unix.PollFd{Fd: int32(file.Fd())})
		}
	}
	var err error
	if len(h.terminals) == 0 {
		return nil
	}
	if h.wake[0], h.wake[1], err = os.Pipe(); err != nil {
		return nil
	}
	return h
}

// happened reports whether a terminal is hung up now.
func (h *hangups) happened() bool {
	if h == nil {
		return false
	}
	now := append([]unix.PollFd(nil), h.terminals...)
	n, err := unix.Poll(now, 0)
	return err == nil && n > 0 && hungUp(now)
}

// watch waits for a hangup or for close, and reports whether a terminal was hung up. It
// reads no input.
func (h *hangups) watch() bool {
	of := append([]unix.PollFd{{Fd: int32(h.wake[0].Fd()), Events: unix.POLLIN}}, h.terminals...)
	for {
		_, err := unix.Poll(of, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || of[0].Revents != 0:
			return false
		default: // includes POLLNVAL of systems that cannot poll terminals
			return hungUp(of[1:])
		}
	}
}

func hungUp(terminals []unix.PollFd) bool {
	for i := range terminals {
		if terminals[i].Revents&unix.POLLHUP != 0 {
			return true
		}
	}
	return false
}

func (h *hangups) close() {
	if h != nil {
		_ = h.wake[1].Close()
	}
}
