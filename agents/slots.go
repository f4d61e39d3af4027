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
func (p *slots) join(line *[]ticket) ticket {
	t := make(ticket)
	if p.free > 0 {
		p.free--
		close(t)
	} else {
		*line = append(*line, t)
	}
	return t
}

// leave passes a place to the next in line, or leaves the line.
func (p *slots) leave(t ticket) {
	for _, line := range []*[]ticket{&p.back, &p.line} {
		if at := slices.Index(*line, t); at >= 0 {
			*line = slices.Delete(*line, at, at+1)
			close(t)
			return
		}
	}
	for _, line := range []*[]ticket{&p.back, &p.line} {
		if len(*line) > 0 {
			close((*line)[0])
			*line = slices.Delete(*line, 0, 1)
			return
		}
	}
	p.free++
}

// begin waits for a place, and for the previous job of the same task, because both would change
// the same things. It reports whether the job begins.
func (j *Delegated) begin(ctx context.Context) bool {
	s := j.serving
	if j.before != nil {
		select {
		case <-j.before.done:
			s.mu.Lock()
			j.place = s.places.join(&s.places.line)
			s.mu.Unlock()
		case <-ctx.Done():
			return false
		}
	}
	select {
	case <-j.place:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	j.status, j.started = delegation.InProgress, time.Now()
	return true
}

// leave gives back the place of a job whose skill has returned.
func (j *Delegated) leave() {
	j.serving.mu.Lock()
	defer j.serving.mu.Unlock()
	j.returned = true
	j.makeRoom()
}

// makeRoom gives up a job's place or its position in line. The caller holds the lock.
func (j *Delegated) makeRoom() {
	if j.place != nil {
		j.serving.places.leave(j.place)
		j.place = nil
	}
}

// aside gives up the place of a job that waits. back waits for a place again; it returns
// without one if the job or ctx ends.
func (j *Delegated) aside() (back func(context.Context)) {
	j.serving.mu.Lock()
	defer j.serving.mu.Unlock()
	j.waiting++
	j.makeRoom()
	return func(ctx context.Context) {
		t := j.comeBack()
		if t == nil {
			return
		}
		select {
		case <-t:
		case <-j.leaving:
		case <-ctx.Done():
		}
	}
}

// comeBack requests a place for a job that has finished waiting. Concurrent waits of a job
// share one place. It returns nil if the skill has returned or another wait goes on.
func (j *Delegated) comeBack() ticket {
	s := j.serving
	s.mu.Lock()
	defer s.mu.Unlock()
	j.waiting--
	if j.returned || j.waiting > 0 {
		return nil
	}
	if j.place == nil {
		j.place = s.places.join(&s.places.back)
	}
	return j.place
}
