package child

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// An Origin describes where a process comes from.
type Origin struct {
	PID     int
	Program string // its name; "" if that is not known
	Below   bool   // it descends from a child of the Host
	Run     string // of that child; "" if it is not known
	Orphan  bool   // its parents below that child have ended
	Claim   string // the run that an orphan's environment names, if that differs from Run
	Foreign bool   // it descends from a child of another Host, which this process does not descend from
}

// climbs bounds how often Origin begins again when a process on its way ends.
const climbs = 20

// Origin returns the origin of a process. A process cannot change it: it may fork and end as often as it likes, because
// the Host is the parent of all orphans of its children. The run of an orphan is known if the kernel has kept it in the
// cgroup or the session of the run, or if the Host has seen it below the run; the run that its environment names is
// only its Claim. The caller makes sure that the pid is not reused during the call.
func (h *Host) Origin(pid int) (Origin, error) {
	o := Origin{PID: pid}
	for try := 0; ; try++ {
		top, above, program, err := climb(pid)
		if err == nil && top != 0 {
			err = h.locate(&o, top)
		}
		switch {
		case errors.Is(err, errMoved) && try < climbs:
			continue
		case err != nil:
			return o, fmt.Errorf("tracing process %d: %w", pid, err)
		}
		if o.Program = program; top != 0 {
			return o, nil
		}
		o.Foreign = h.belowOther(above)
		return o, nil
	}
}

// errMoved reports that a process got another parent while it was traced.
var errMoved = errors.New("its parents end")

// climb goes from a process to its parents. It returns the child of this process that it arrives at, or 0 and all
// parents if it does not. Each parent is checked again after its own parent was read: if it is still the parent, its
// pid was not reused.
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

// belowOther reports whether one of the ancestors of a process is another Host, which this process does not descend from.
func (h *Host) belowOther(above []int) bool {
	var own []int
	for _, pid := range above {
		if !h.hosts.has(pid) {
			continue
		}
		if own == nil {
			_, own, _, _ = climb(os.Getpid())
		}
		if !slices.Contains(own, pid) {
			return true
		}
	}
	return false
}

// locate completes the origin of a process that descends from top, a child of this process. It climbs once more while
// no orphan can be reaped, so that the pid of top does not belong to a later process.
func (h *Host) locate(o *Origin, top int) error {
	h.census.Lock() // a child that is just being started is among the leaders afterwards
	defer h.census.Unlock()
	again, _, _, err := climb(o.PID)
	if err != nil || again != top {
		return cmp.Or(err, errMoved)
	}
	for _, t := range h.trees() {
		if t.leader == top {
			o.Below, o.Run = true, t.run
			return nil
		}
	}
	h.locateOrphan(o, top)
	return nil
}

// A tree describes the processes of a child, as far as a Host knows them.
type tree struct {
	leader int
	run    string
	below  []Process // as the latest trace has seen them
}

// trees returns the trees of all children that were not reaped.
func (h *Host) trees() []tree {
	h.mu.Lock()
	children := slices.Collect(maps.Values(h.leaders))
	handed := slices.Collect(maps.Values(h.unclaimed))
	h.mu.Unlock()
	trees := make([]tree, 0, len(children)+len(handed))
	for _, c := range children {
		trees = append(trees, tree{leader: c.pid, run: c.spec.Run, below: c.traced()})
	}
	for _, from := range handed {
		trees = append(trees, tree{leader: from.PID, run: from.Run, below: processesOf(from.Below)})
	}
	return trees
}
