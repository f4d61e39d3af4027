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

// tend removes what nothing needs any more, in the background. The returned function ends that.
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
			disk.check(s, usedShare)
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

// trim removes old facts, and then the artifacts to which only they refer. An error is logged once.
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

// sweep removes the artifacts to which no record refers.
func (s *Supervisor) sweep(ctx context.Context) {
	if s.artifacts == nil {
		return
	}
	began, err := s.recordBegan(ctx)
	if err != nil || began.IsZero() {
		return // the record is empty, or reading it fails for its readers, too
	}
	removed, err := s.artifacts.sweep(ctx, s.options.Record, began, s.dispatcher.Settle)
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

// A diskWatch logs a warning when the disk of the state directory becomes full.
type diskWatch struct{ warned bool }

// nearlyFull is the share of a disk from which there is a warning.
const nearlyFull = 0.8

// check warns once until there is room again.
func (w *diskWatch) check(s *Supervisor, used func(dir string) (float64, error)) {
	if s.options.StateDir == "" {
		return
	}
	share, err := used(s.options.StateDir)
	if full := err == nil && share >= nearlyFull; full && !w.warned {
		s.options.Log.Warn("the disk of the state directory is nearly full",
			"used", fmt.Sprintf("%.0f%%", share*100), "see", "orchestrator help limits", "bound", `store { keep = "30d" }`)
	}
	w.warned = err == nil && share >= nearlyFull
}

// usedShare returns which share of the disk of a folder is used, of what this user may use.
func usedShare(dir string) (float64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	used := float64(s.Blocks) - float64(s.Bfree)
	return used / max(used+float64(s.Bavail), 1), nil
}
