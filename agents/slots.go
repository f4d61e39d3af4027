package agents

import (
	"context"
	"math"
	"slices"
	"time"

	"orchestrator/wire"
)

// slots are for the jobs that are done, in the order in which they were asked for. A
// job that waits for something gives its place to another one: otherwise two agents
// that wait for each other would wait for ever. When it goes on it comes before those
// that have not begun. They are behind the door of serving.
type slots struct {
	free int
	back []ticket // of the jobs that have waited for something
	line []ticket // of those that have not begun
}

// ticket is a place among those at work, or in a line for one. It is closed when there
// is no more to wait for: it has become a place, or was given up.
type ticket chan struct{}

func placesFor(capacity int) *slots {
	if capacity <= 0 {
		capacity = math.MaxInt // which is no bound
	}
	return &slots{free: capacity}
}

// join takes a place, or gets into a line for one.
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

// leave lets the next one have a place, or gets out of the line for one.
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

// begin waits until it is the turn of a job, after the one before it of the same task:
// two of them would work at the same things. False says that it does not begin.
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
	j.status, j.started = wire.ResponseInProgress, time.Now()
	return true
}

// leave gives back the place of a job of which nothing is done any more.
func (j *Delegated) leave() {
	j.serving.mu.Lock()
	defer j.serving.mu.Unlock()
	j.returned = true
	j.makeRoom()
}

// makeRoom gives the place of a job away, or the one that it waits for. The caller
// holds the lock.
func (j *Delegated) makeRoom() {
	if j.place != nil {
		j.serving.places.leave(j.place)
		j.place = nil
	}
}

// aside lets another one have the place of a job that waits. Back waits for a place,
// unless the job is to end or ctx does: then it goes on as it is.
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

// comeBack gets a job that has waited for something a place: one for all that it has
// waited for, as what it has waited for may come at once. There is none for a job whose
// skill has returned, or that waits for something else.
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
