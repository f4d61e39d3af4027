package child

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// An Origin describes where a process comes from.
type Origin struct {
	PID     int
	Program string // its name; "" if that is not known
	Below   bool   // it descends from a child of the Host
	Run     string // of that child; "" if it is not known
	Foreign bool   // it descends from a child of another Host, which this process does not descend from
}

// climbs bounds how often Origin begins again when a process on its way ends.
const climbs = 20

// Origin returns the origin of a process. A process cannot change it: it may fork and end as often
// as it likes, because the Host is the parent of all orphans of its children. The caller makes sure
// that the pid is not reused meanwhile.
func (h *Host) Origin(pid int) (Origin, error) {
	o := Origin{PID: pid}
	for try := 0; ; try++ {
		top, above, program, err := climb(pid)
		switch {
		case errors.Is(err, errMoved) && try < climbs:
			continue
		case err != nil:
			return o, fmt.Errorf("tracing process %d: %w", pid, err)
		}
		if o.Program = program; top != 0 {
			o.Run, o.Below = h.runOf(top)
			return o, nil
		}
		_, own, _, _ := climb(os.Getpid())
		o.Foreign = slices.ContainsFunc(above, func(pid int) bool { return hasWatchdog(pid) && !slices.Contains(own, pid) })
		return o, nil
	}
}

// errMoved reports that a process got another parent while it was traced.
var errMoved = errors.New("its parents end")

// climb goes from a process to its parents. It returns the child of this process at which it
// arrives, or 0 and all parents if it does not. Each parent is checked again after its own parent was
// read: if it is still the parent, its pid was not reused.
func climb(pid int) (top int, above []int, program string, err error) {
	self := os.Getpid()
	parent, program, err := parentOf(pid)
	at := pid
	for err == nil && parent > 1 {
		if parent == self {
			return at, nil, program, nil
		}
		above = append(above, parent)
		var next int
		next, _, err = parentOf(parent)
		if again, _, _ := parentOf(at); again != parent {
			return 0, nil, program, errMoved
		}
		at, parent = parent, next
	}
	return 0, above, program, err
}

// runOf returns the run of a child of this process, and reports whether it belongs to one. The run
// of an orphan is the one that its mark names, which a program can forge.
func (h *Host) runOf(pid int) (run string, ours bool) {
	h.census.Lock() // a child that is just being started is among the leaders afterwards
	defer h.census.Unlock()
	h.mu.Lock()
	leader := h.leaders[pid]
	run, unclaimed := h.unclaimed[pid]
	h.mu.Unlock()
	if leader != nil {
		return leader.spec.Run, true
	}
	if unclaimed {
		return run, true
	}
	run, foreign := h.runOfOrphan(pid)
	return run, !foreign
}
