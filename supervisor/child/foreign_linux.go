package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// Not everything below us is ours: a program that starts a sidecar and then becomes
// the orchestrator by exec leaves it a child that it never made. Such a
// process is foreign, and what descends from it is. It is not signalled, and
// only its mark, if it bears our home's, makes it ours again.

// meetForeign remembers what is below this process before the first Start. It
// looks again until it meets no new process: one that loses its parent between the
// reading of two lists is in neither.
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

// followForeign remembers what the foreign processes have made since, before
// it is orphaned and nothing tells where it came from. The census is held.
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
			return err // what is known stays known
		}
	}
	h.foreign = found
	return nil
}

// isForeign reports whether an unmarked orphan is not ours: it is known, or in a
// group with one that is, or in our own. Our children have groups of their
// own, so nothing of theirs gets there by itself.
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
