package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// Some descendants of this process are foreign. A program may start a sidecar and then become
// the orchestrator by exec, which leaves it with a child that it did not start. That child and
// its descendants are not signalled, unless they have the mark of this home.

// meetForeign records the descendants of this process before the first Start. It repeats this
// until it finds no new process, because a process that loses its parent between the reading of
// two lists is in neither.
func (h *Host) meetForeign() error {
	h.foreign = make(map[int]Process)
	for range passes {
		found := make(map[int]Process)
		children, err := childrenOf(os.Getpid())
		for _, pid := range children {
			if !h.reapDead(pid) {
				err = firstError(err, enter(found, pid))
			}
		}
		if err != nil {
			return err
		}
		settled := true
		for pid, p := range found {
			settled = settled && h.foreign[pid].same(p)
			h.foreign[pid] = p
		}
		if settled {
			return nil
		}
	}
	return errUnsettled
}

// followForeign records the new descendants of foreign processes, before they become orphans
// whose origin is unknown. h.census must be held.
func (h *Host) followForeign() error {
	if len(h.foreign) == 0 {
		return nil
	}
	found := make(map[int]Process)
	for pid, known := range h.foreign {
		if _, again := found[pid]; again {
			continue
		}
		s, err := readStat(pid)
		if vanished(err) || err == nil && s.born != known.born {
			continue
		}
		if err == nil {
			err = enterAs(found, pid, s)
		}
		if err != nil {
			return err // keeps the earlier result
		}
	}
	h.foreign = found
	return nil
}

// isForeign reports whether an unmarked orphan is foreign: it is known, or its group is that of
// a known one or of this process. Children have their own groups, so their processes are not in
// one of these by themselves.
func (h *Host) isForeign(o orphan) (bool, error) {
	if known, ok := h.foreign[o.pid]; ok {
		s, err := readStat(o.pid)
		if err != nil && !vanished(err) {
			return false, err
		}
		if s.born == known.born {
			return true, nil
		}
	}
	if o.group == unix.Getpgrp() {
		return true, nil
	}
	for _, known := range h.foreign {
		if known.group == o.group {
			return true, nil
		}
	}
	return false, nil
}
