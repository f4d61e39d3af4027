package agents

import (
	"context"
	"math"
	"slices"
	"time"

	"orchestrator/wire/delegation"
)

// slots are places for running jobs, given out in the order of requests. A waiting job gives up
// its place; otherwise two agents that wait for each other would deadlock. A job that continues
// goes before jobs that have not begun. serving.mu guards slots.
type slots struct {
	free int
	back []ticket // of the jobs that have waited for something
	line []ticket // of those that have not begun
}

// A ticket is a place, or a position in a line for one. It is closed when the place is granted
// or given up.
type ticket chan struct{}

func placesFor(capacity int) *slots {
	if capacity <= 0 {
		capacity = math.MaxInt // which is no bound
	}
	return &slots{free: capacity}
}

// join takes a place or joins a line for one.
func (s *slots) join(line *[]ticket) ticket {
	t := make(ticket)
	if s.free > 0 {
		s.free--
		close(t)
	} else {
		*line = append(*line, t)
	}
	return t
}

// leave passes a place to the next in line, or leaves the line.
func (s *slots) leave(t ticket) {
	for _, line := range []*[]ticket{&s.back, &s.line} {
		if at := slices.Index(*line, t); at >= 0 {
			*line = slices.Delete(*line, at, at+1)
			close(t)
			return
		}
	}
	for _, line := range []*[]ticket{&s.back, &s.line} {
		if len(*line) > 0 {
			close((*line)[0])
			*line = slices.Delete(*line, 0, 1)
			return
		}
	}
	s.free++
}

// begin waits for a place, and for the previous job of the same task, because both would change
// the same things. It reports whether the job begins.
func (d *Delegated) begin(ctx context.Context) bool {
	s := d.serving
	if d.before != nil {
		select {
		case <-d.before.done:
			s.mu.Lock()
			d.place = s.places.join(&s.places.line)
			s.mu.Unlock()
		case <-ctx.Done():
			return false
		}
	}
	select {
	case <-d.place:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	d.status, d.started = delegation.InProgress, time.Now()
	return true
}

// leave gives back the place of a job whose skill has returned.
func (d *Delegated) leave() {
	d.serving.mu.Lock()
	defer d.serving.mu.Unlock()
	d.returned = true
	d.makeRoom()
}

// makeRoom gives up a job's place or its position in line. The caller holds the lock.
func (d *Delegated) makeRoom() {
	if d.place != nil {
		d.serving.places.leave(d.place)
		d.place = nil
	}
}

// aside gives up the place of a job that waits. back waits for a place again; it returns
// without one if the job or ctx ends.
func (d *Delegated) aside() (back func(context.Context)) {
	d.serving.mu.Lock()
	defer d.serving.mu.Unlock()
	d.waiting++
	d.makeRoom()
	return func(ctx context.Context) {
		t := d.comeBack()
		if t == nil {
			return
		}
		select {
		case <-t:
		case <-d.leaving:
		case <-ctx.Done():
		}
	}
}

// comeBack requests a place for a job that has finished waiting. Concurrent waits of a job
// share one place. It returns nil if the skill has returned or another wait goes on.
func (d *Delegated) comeBack() ticket {
	s := d.serving
	s.mu.Lock()
	defer s.mu.Unlock()
	d.waiting--
	if d.returned || d.waiting > 0 {
		return nil
	}
	if d.place == nil {
		d.place = s.places.join(&s.places.back)
	}
	return d.place
}
