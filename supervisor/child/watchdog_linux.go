package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogName is the name under which this binary runs as the watchdog. It differs from the
// program's name, so that pkill orchestrator does not kill the watchdog.
const watchdogName = "orc-watchdog"

const bootClock = unix.CLOCK_BOOTTIME

// A watchdog is a small process that ends the remaining children if this process is killed. It reads lines about the
// runs from a pipe. If the pipe ends without a goodbye, this process is dead. The methods accept a nil watchdog.
type watchdog struct {
	home   string
	leaves *delegation

	mu      sync.Mutex
	pid     int      // 0 if none runs
	pipe    *os.File // its other end is the watchdog's stdin
	handed  int      // the pid that handover has returned
	over    bool     // dismiss was called
	runs    map[string]bool
	seen    map[identity]bool
	started time.Time
	limit   time.Duration // see Host.EndAt; 0: none
}

// startWatchdog starts the watchdog of a home. It knows the runs of the program before, if there was one.
func startWatchdog(home string, leaves *delegation, before *Handover) (*watchdog, error) {
	w := &watchdog{home: home, leaves: leaves, runs: make(map[string]bool), seen: make(map[identity]bool)}
	if before != nil {
		w.inherit(before)
	}
	return w, w.start()
}

// inherit takes the state of the watchdog of the program before.
func (w *watchdog) inherit(before *Handover) {
	for _, c := range before.Children {
		w.runs[c.Run] = true
	}
	if before.Watchdog == nil {
		return
	}
	for _, run := range before.Watchdog.Runs {
		w.runs[run] = true
	}
	for _, p := range before.Watchdog.Seen {
		w.seen[identity{pid: p.PID, born: p.Born}] = true
	}
}

// handover returns the watchdog for the next program, or nil if none runs.
func (w *watchdog) handover() *HandedWatchdog {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.handed = w.pid; w.pid == 0 {
		return nil
	}
	conn, err := w.pipe.SyscallConn()
	if err != nil {
		return nil
	}
	o := &HandedWatchdog{PID: w.pid, Pipe: numberOf(conn), Runs: slices.Collect(maps.Keys(w.runs))}
	for p := range w.seen {
		o.Seen = append(o.Seen, Seen{PID: p.pid, Born: p.born})
	}
	return o
}

// holdStill keeps the watchdog from being replaced until release is called, and from reading half a line. It returns an
// error if handover has returned another watchdog.
func (w *watchdog) holdStill() (release func(), err error) {
	if w == nil {
		return func() {}, nil
	}
	w.mu.Lock()
	if w.pid != w.handed {
		w.mu.Unlock()
		return nil, errors.New("the watchdog has just been replaced; try again")
	}
	return w.mu.Unlock, nil
}

// dismissWatchdog ends the watchdog of the program before. This host has the same runs, and a
// watchdog for them.
func (o *Handover) dismissWatchdog() {
	if o == nil || o.Watchdog == nil {
		return
	}
	unix.CloseOnExec(o.Watchdog.Pipe)
	before := watchdog{pid: o.Watchdog.PID, pipe: os.NewFile(uintptr(o.Watchdog.Pipe), "watchdog")}
	before.dismiss()
}

// start starts the process and sends it everything known. w.mu must be held, except in
// startWatchdog.
//
// The process has its own session, so that signals of the terminal do not reach it. It has no
// parent-death signal and an empty environment, so that no sweep takes it for an agent.
func (w *watchdog) start() error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		_ = ours.Close()
		return err
	}
	defer null.Close()
	// Fill the pipe before the process starts, because the process may have to act at once.
	text := w.everything()
	first := min(len(text), 32<<10)
	if _, err := ours.Write(text[:first]); err != nil {
		_ = ours.Close()
		return err
	}
	p, err := os.StartProcess("/proc/self/exe", []string{watchdogName}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{theirs, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = ours.Close()
		return err
	}
	w.pid, w.pipe, w.started = p.Pid, ours, time.Now()
	_ = p.Release() // it is reaped like an orphan
	w.tell(text[first:])
	return nil
}

// everything returns the lines for a new watchdog.
func (w *watchdog) everything() []byte {
	text := fmt.Appendf(nil, "home %s\n", w.home)
	if w.leaves != nil {
		text = fmt.Appendf(text, "leaves %s %s\n", w.leaves.prefix, w.leaves.dir)
	}
	if w.limit != 0 {
		text = fmt.Appendf(text, "end %d\n", w.limit)
	}
	for run := range w.runs {
		text = fmt.Appendf(text, "run %s\n", run)
	}
	for p := range w.seen {
		text = fmt.Appendf(text, "seen %d %d\n", p.pid, p.born)
	}
	return text
}

// sayWithin is how long the watchdog may take to read a line. It is slower only if a signal
// stopped it.
const sayWithin = 200 * time.Millisecond

// say sends the watchdog a line. w.mu must be held.
func (w *watchdog) say(format string, args ...any) { w.tell(fmt.Appendf(nil, format+"\n", args...)) }

func (w *watchdog) tell(text []byte) {
	if w.pipe == nil || len(text) == 0 {
		return
	}
	_ = w.pipe.SetWriteDeadline(time.Now().Add(sayWithin))
	if _, err := w.pipe.Write(text); err != nil {
		w.drop()
	}
}

// drop gives up a watchdog that does not read. It kills the process before it closes the pipe,
// because the watchdog would otherwise end the living children.
func (w *watchdog) drop() {
	if w.pid != 0 {
		_ = syscall.Kill(w.pid, syscall.SIGKILL)
	}
	_ = w.pipe.Close()
	w.pid, w.pipe = 0, nil
}

// begins reports a run before its process is started.
func (w *watchdog) begins(run string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[run] = true
	w.say("run %s", run)
}

// ended reports that no process of a run is left.
func (w *watchdog) ended(run string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, run)
	w.say("ended %s", run)
}

// endAt reports when the children are to be ended.
func (w *watchdog) endAt(limit time.Duration) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = limit
	w.say("end %d", limit)
}

// sees reports the living processes of runs.
func (w *watchdog) sees(now map[identity]bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range now {
		if !w.seen[p] {
			w.say("seen %d %d", p.pid, p.born)
		}
	}
	for p := range w.seen {
		if !now[p] {
			w.say("gone %d %d", p.pid, p.born)
		}
	}
	w.seen = now
}

// is reports whether pid is the watchdog's.
func (w *watchdog) is(pid int) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pid == pid
}

// died records that the watchdog was reaped.
func (w *watchdog) died() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		_ = w.pipe.Close()
	}
	w.pid, w.pipe = 0, nil
}

// again starts a new watchdog if none runs, at most once a second.
func (w *watchdog) again() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pid == 0 && !w.over && time.Since(w.started) > time.Second {
		w.started = time.Now()
		_ = w.start() // again is called with the next look
	}
}

// dismiss sends the goodbye to the watchdog and waits for its end.
func (w *watchdog) dismiss() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.pid == 0 {
		return
	}
	pid := w.pid
	w.say("bye")
	if w.pid != 0 {
		_ = w.pipe.Close()
	}
	reapWithin(pid, time.Second)
	w.pid, w.pipe = 0, nil
}

// reapWithin waits for a child to end and kills it after limit, because it may have been
// stopped.
func reapWithin(pid int, limit time.Duration) {
	options := syscall.WNOHANG
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		ended, err := syscall.Wait4(pid, nil, options, nil)
		if ended != 0 && err != syscall.EINTR {
			return
		}
		if options != 0 && time.Since(began) > limit {
			_ = syscall.Kill(pid, syscall.SIGKILL) // its pid is not reused before it is reaped
			options = 0
		}
	}
}

// sweptName is the file in a home that lists the processes that a watchdog ended.
const sweptName = "swept"

// Swept returns the processes that a watchdog ended after an earlier host was killed, and
// removes the list.
func (h *Host) Swept() []Process {
	name := filepath.Join(h.home, sweptName)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	_ = os.Remove(name)
	return readSwept(string(text))
}

// watched is the state of a watchdog.
type watched struct {
	home   string
	leaves *delegation // nil without a delegated cgroup
	runs   map[string]bool
	seen   map[identity]bool
	limit  time.Duration // when the children are to be ended; 0: never
}

// keepWatch reads lines from the orchestrator until the pipe ends. If the last line was not a goodbye, it ends the rest
// of the runs. It does the same when the time of Host.EndAt has come.
func keepWatch(told io.Reader) {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTSTP)
	_ = os.WriteFile("/proc/self/comm", []byte(watchdogName), 0)
	w := watched{runs: make(map[string]bool), seen: make(map[identity]bool)}
	lines := make(chan string)
	go func() {
		for text := bufio.NewScanner(told); text.Scan(); {
			lines <- text.Text()
		}
		close(lines)
	}()
	clock := time.NewTicker(500 * time.Millisecond)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				w.note(w.sweep()) // at once: the next start may come soon
				w.clearLeaves()
				return
			}
			if w.hear(line) {
				return
			}
		case <-clock.C:
			if w.limit != 0 && SinceBoot() > w.limit {
				w.limit = 0
				w.sweep()
			}
		}
	}
}

// hear handles a line. It reports whether the line was the goodbye.
func (w *watched) hear(line string) (bye bool) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "home":
		w.home = rest
	case "leaves":
		prefix, dir, _ := strings.Cut(rest, " ")
		w.leaves = &delegation{dir: dir, prefix: prefix}
	case "run":
		w.runs[rest] = true
	case "ended":
		delete(w.runs, rest)
	case "end":
		if limit, err := strconv.ParseInt(rest, 10, 64); err == nil {
			w.limit = time.Duration(limit)
		}
	case "seen", "gone":
		var p identity
		if _, err := fmt.Sscan(rest, &p.pid, &p.born); err == nil {
			if delete(w.seen, p); word == "seen" {
				w.seen[p] = true
			}
		}
	}
	return word == "bye"
}

// sweep ends the rest of the runs: processes in their leaves, processes with their marks, and known descendants. It
// ends no other process, because a new orchestrator may have the same home. It returns the ended processes.
func (w *watched) sweep() map[identity]Process {
	e := earlier{home: w.home, spare: ancestors(), met: make(map[identity]Process), mine: func(run string) bool { return w.runs[run] }}
	for p := range w.seen {
		s, living, err := readLiving(p.pid)
		if err == nil && living && s.born == p.born {
			e.known = append(e.known, s.process(p.pid))
		}
	}
	_, _ = e.killLeaves(w.leavesOfRuns())
	e.clearMarked()
	return e.met
}

// leavesOfRuns returns the cgroups of the runs.
func (w *watched) leavesOfRuns() (leaves []*leaf) {
	if w.leaves == nil {
		return nil
	}
	for run := range w.runs {
		leaves = append(leaves, &leaf{dir: filepath.Join(w.leaves.dir, w.leaves.prefix+run), fd: -1})
	}
	return leaves
}

// clearLeaves removes the cgroups of the runs when they are empty.
func (w *watched) clearLeaves() {
	leaves := w.leavesOfRuns()
	for end := time.Now().Add(unkillable); len(leaves) > 0 && time.Now().Before(end); {
		leaves = slices.DeleteFunc(leaves, func(l *leaf) bool { return l.rmdir() != unix.EBUSY })
		time.Sleep(20 * time.Millisecond)
	}
}

// note appends the ended processes to a file in the home, unless the home is gone.
func (w *watched) note(met map[identity]Process) {
	if len(met) == 0 {
		return
	}
	file, err := os.OpenFile(filepath.Join(w.home, sweptName), os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	for _, p := range met {
		fmt.Fprintf(file, "%d %s\n", p.PID, p.Program)
	}
}

// readSwept parses the text of note.
func readSwept(text string) (ended []Process) {
	for line := range strings.Lines(text) {
		var p Process
		number, program, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, err := fmt.Sscan(number, &p.PID); err == nil {
			p.Program = program
			ended = append(ended, p)
		}
	}
	return ended
}
