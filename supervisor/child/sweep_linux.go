package child

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watched holds what a watchdog knows.
type watched struct {
	home   string
	leaves *delegation // nil without a delegated cgroup
	runs   map[string]bool
	seen   map[identity]bool
}

// keepWatch reads lines from the orchestrator until the pipe ends. If the last line was not a
// goodbye, it ends what is left of the runs.
func keepWatch(told io.Reader) {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTSTP)
	_ = os.WriteFile("/proc/self/comm", []byte(watchdogName), 0)
	w := watched{runs: make(map[string]bool), seen: make(map[identity]bool)}
	for lines := bufio.NewScanner(told); lines.Scan(); {
		if w.hear(lines.Text()) {
			return
		}
	}
	w.sweep()
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

// sweep ends what is left of the runs: processes in their leaves, processes with their marks,
// and known descendants. It ends no others, because a new orchestrator may have the same home.
func (w *watched) sweep() {
	e := earlier{home: w.home, spare: ancestors(), met: make(map[identity]Process), mine: func(run string) bool { return w.runs[run] }}
	for p := range w.seen {
		s, living, err := readLiving(p.pid)
		if err == nil && living && s.born == p.born {
			e.known = append(e.known, s.process(p.pid))
		}
	}
	var leaves []*leaf
	if w.leaves != nil {
		for run := range w.runs {
			leaves = append(leaves, &leaf{dir: filepath.Join(w.leaves.dir, w.leaves.prefix+run), fd: -1})
		}
	}
	_, _ = e.killLeaves(leaves)
	e.clearMarked()
	w.note(e.met) // at once: the next start may come soon
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

// readSwept parses what note has written.
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
