package supervisor

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"orchestrator/supervisor/dispatch"
	"orchestrator/wire"
)

// tendEvery is how often old facts are removed and the disk is checked.
const tendEvery = 10 * time.Second

// tend removes old facts and artifacts, and checks the disk and the clock, in the background. The returned function
// ends that.
func (s *Supervisor) tend() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.sweep(ctx)
		ticker := time.NewTicker(tendEvery)
		defer ticker.Stop()
		var disk diskWatch
		var told string
		for {
			s.trim(ctx, &told)
			disk.check(s, roomOf)
			s.dispatcher.Tick() // also in a team that is idle, the clock may be set
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// trim removes old facts, and then the artifacts that only they refer to. An error is logged once.
func (s *Supervisor) trim(ctx context.Context, told *string) {
	if s.options.Keep == (dispatch.Retention{}) {
		return
	}
	before, err := s.options.Record.Base(ctx)
	var after wire.Base
	if err == nil {
		after, err = s.dispatcher.Trim(ctx, s.options.Keep)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && err.Error() != *told:
		*told = err.Error()
		s.options.Log.Error("old records cannot be removed", "error", err)
	case err == nil && after.Seq > before.Seq:
		s.options.Log.Info("removed old records", "up_to", after.Seq, "from", before.Seq+1)
		s.sweep(ctx)
	}
}

// sweep removes the artifacts that no record refers to.
func (s *Supervisor) sweep(ctx context.Context) {
	if s.artifacts == nil {
		return
	}
	began, err := s.recordBegan(ctx)
	if err != nil || began.IsZero() {
		return // the record is empty, or reading it fails for its readers, too
	}
	removed, err := s.artifacts.Sweep(ctx, s.options.Record, began, s.dispatcher.Settle)
	if removed > 0 {
		s.options.Log.Info("removed artifacts that no record refers to", "files", removed)
	}
	if err != nil && ctx.Err() == nil {
		s.options.Log.Warn("artifacts that no record refers to stay: the record cannot be read", "error", err)
	}
}

// recordBegan returns the time of the first record, even if that was removed.
func (s *Supervisor) recordBegan(ctx context.Context) (began time.Time, err error) {
	base, err := s.options.Record.Base(ctx)
	if err != nil || base.Seq > 0 {
		return base.Began, err
	}
	for r, err := range s.options.Record.Records(ctx, 0) {
		return r.At, err
	}
	return began, nil
}

// A diskWatch logs a warning when the disk of the state directory becomes full. When little room is left, it makes the
// dispatcher refuse additions of agents.
type diskWatch struct{ warned, shut bool }

// A disk is nearly full when it has less free space than this share of it, and less than this many bytes: a fifth of a
// large disk lasts for long.
const (
	nearlyFull = 0.2
	fewBytes   = 10 << 30
)

// A room is the free and the total space of a disk for this user, in bytes.
type room struct{ free, total float64 }

// reserve returns the free space that agents do not get: 1 GiB, and on a small disk a twentieth of it.
func (r room) reserve() float64 { return min(1<<30, r.total/20) }

// check warns once, and refuses once, until there is room again. Agents are heard again when a tenth more than the
// reserve is free. If the disk cannot be read, no request is refused.
func (w *diskWatch) check(s *Supervisor, look func(dir string) (room, error)) {
	if s.options.StateDir == "" {
		return
	}
	r, err := look(s.options.StateDir)
	known := err == nil && r.total > 0
	full := known && r.free <= min(nearlyFull*r.total, fewBytes)
	if full && !w.warned {
		s.options.Log.Warn("the disk of the state directory is nearly full",
			"used", fmt.Sprintf("%.0f%%", 100*(1-r.free/r.total)), "see", "orchestrator help limits", "bound", `store { keep = "30d" }`)
	}
	w.warned = full
	switch little := r.reserve(); {
	case known && r.free < little && !w.shut:
		w.shut = true
		free := mib(r.free)
		s.options.Log.Error("agents cannot add tasks, messages or questions: the disk of the state directory is full except for a reserve",
			"free", free, "reserve", mib(little), "see", "orchestrator help limits")
		s.dispatcher.SetFull(&wire.Error{
			Code: wire.CodeLimited, Message: "the disk of the orchestrator is full except for " + free + ": try again when there is room",
			Details: map[string]any{"reason": "disk_full", "free": int64(r.free), "reserve": int64(little)},
		})
	case w.shut && (!known || r.free > 1.1*little):
		w.shut = false
		s.options.Log.Info("agents can add tasks, messages and questions again: the disk of the state directory has room")
		s.dispatcher.SetFull(nil)
	}
}

func mib(bytes float64) string { return fmt.Sprintf("%.0f MiB", bytes/(1<<20)) }

// roomOf returns the room of the disk of a folder.
func roomOf(dir string) (room, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return room{}, err
	}
	size, used := float64(s.Bsize), float64(s.Blocks)-float64(s.Bfree)
	return room{free: size * float64(s.Bavail), total: size * max(used+float64(s.Bavail), 1)}, nil
}
