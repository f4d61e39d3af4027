package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"orchestrator/wire/delegation"
)

// A Skill does a job and returns its result: any value, or nil for success without a result. An
// error that is or wraps a *Fault is reported as that fault. Any other error and a panic become
// a wire.FaultInternal that is not recoverable. The context ends when the job is cancelled or
// the agent has to shut down; the Skill should then return soon.
type Skill func(ctx context.Context, job *Delegated) (result any, err error)

// Server configures ServeAs. Agents that need only Skills can call Conn.Serve instead.
type Server struct {
	Skills map[string]Skill // by the type of the request
	// Agent is the agent's name in its responses; "" means $ORC_AGENT_ID.
	Agent string
	// Capacity is the number of jobs done at a time; further jobs wait. A job gives up its place
	// while it waits for input or for delegated work. 0 means no limit other than the
	// orchestrator's.
	Capacity int
}

// Serve does the jobs that other agents delegate to the agent, until the agent has to shut down, or
// the stream or ctx ends. Then it waits for the skills and returns. A job without a skill fails
// with wire.FaultCapabilityNotFound.
//
// Each job gets one final response. Before it, only the skill reports progress. Serve answers
// status queries at once, and those about a finished job with its final response. It answers a
// repeated request in the same way. If the job was cancelled, or failed with a recoverable
// fault, a repeated request does it again.
//
// A cancelled job is over at once, and the result of its skill is dropped. At a shutdown, a skill
// may give up by returning the error of its context or of a question. Such jobs, and jobs that have
// not begun, are not reported: the orchestrator decides about them. Serve then returns an error, as
// Work does. Until the last skill has returned, Serve answers requests and accepts cancellations.
//
// Requests that arrive before Serve is called are queued, up to a thousand and 8 MiB. Dropped
// ones are counted in the log. Serve consumes no notices, so Work, News or a session role may
// run beside it. Only one Serve may run at a time.
func (c *Conn) Serve(ctx context.Context, skills map[string]Skill) error {
	return c.ServeAs(ctx, Server{Skills: skills})
}

// ServeAs is like Serve, with the settings of a Server.
func (c *Conn) ServeAs(ctx context.Context, server Server) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	idle, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	server.Agent = cmp.Or(server.Agent, os.Getenv("ORC_AGENT_ID"))
	s := &serving{
		Server: server, conn: c, stop: stop, rest: rest, places: placesFor(server.Capacity),
		jobs: make(map[string]*Delegated), repeats: make(map[string]bool),
	}
	c.serves(+1)
	defer c.serves(-1)
	s.listen(ctx, ctx)
	stop(c.ending()) // an earlier cause prevails
	s.leave()
	s.listen(ctx, idle) // a skill that is to return may take a while
	s.running.Wait()
	return parting(ctx, s.unfinished+s.notBegun())
}

// serving is one call of ServeAs.
type serving struct {
	Server
	conn    *Conn
	stop    context.CancelCauseFunc
	rest    context.CancelFunc // called when the agent shuts down and no job runs
	running sync.WaitGroup

	mu         sync.Mutex
	places     *slots
	jobs       map[string]*Delegated // by task, until its work is over
	repeats    map[string]bool       // the tasks with a response to repeat
	busy       int                   // the number of running goroutines
	leaving    bool
	unfinished int
}

// listen handles requests until a context or the stream ends.
func (s *serving) listen(ctx, until context.Context) {
	for a, ok := s.conn.nextAsked(until); ok; a, ok = s.conn.nextAsked(until) {
		s.troubled(s.heed(ctx, a))
	}
}

// leave records that the agent is shutting down.
func (s *serving) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	if s.busy == 0 {
		s.rest()
	}
}

// beside runs a function in a goroutine that ServeAs waits for. Only the goroutine that handles
// requests calls it, so none starts after the end.
func (s *serving) beside(do func()) {
	s.mu.Lock()
	s.busy++
	s.mu.Unlock()
	s.running.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.busy--
			if s.leaving && s.busy == 0 {
				s.rest()
			}
		}()
		do()
	})
}

// notBegun counts the jobs that were never begun.
func (s *serving) notBegun() (count int) {
	for _, j := range s.jobs {
		if !j.closed {
			count++
		}
	}
	return count
}

func (s *serving) troubled(err error) {
	if !errors.Is(err, errOver) { // it was said in time, by another goroutine
		s.conn.troubled(s.stop, err)
	}
}

// heed handles one item. It blocks only on writing to the orchestrator.
func (s *serving) heed(ctx context.Context, a asked) error {
	switch {
	case a.leave:
		s.stop(ErrShutdown)
		return nil
	case a.request != nil:
		return s.requested(ctx, a.request)
	case a.refused != nil:
		return s.protested(a.id, a.refused)
	}
	j := s.job(a.act.ID)
	switch {
	case j == nil && a.act.Type == delegation.ActStatus:
		return s.again(a.act.ID)
	case j == nil: // the sender has not heard yet that it is over
		return nil
	case a.act.Type == delegation.ActStatus:
		return s.say(j, func() ([]byte, error) { return j.standing() })
	case a.act.Type == delegation.ActUpdate:
		return s.say(j, func() ([]byte, error) { return j.answered(a.act.Input) })
	}
	return s.cancel(j, a.act.Reason)
}

// job returns the unfinished job of a task, or nil.
func (s *serving) job(task string) *Delegated {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[task]; j != nil && !j.over {
		return j
	}
	return nil
}

// requested begins a job, unless it is running. It repeats the final response of a job that is
// not to be done again.
func (s *serving) requested(ctx context.Context, request *delegation.Request) error {
	if s.job(request.ID) != nil {
		return nil
	}
	if word := s.conn.finalWord(request.ID); word != nil && !word.again {
		return s.again(request.ID)
	}
	j := &Delegated{Request: request, serving: s, status: delegation.Pending, done: make(chan struct{}), asking: make(chan struct{}, 1)}
	skill := s.Skills[request.Type]
	if skill == nil {
		return s.end(j, &delegation.Response{Status: delegation.Failed, Fault: &delegation.Fault{
			Code: delegation.FaultCapabilityNotFound, Message: fmt.Sprintf("this agent has no skill for %s", request.Type),
		}})
	}
	ctx, stop := context.WithCancelCause(ctx)
	j.stop, j.leaving = stop, ctx.Done()
	s.mu.Lock()
	j.before = s.jobs[request.ID] // which is over
	s.jobs[request.ID] = j
	if j.before == nil {
		j.place = s.places.join(&s.places.line)
	}
	s.mu.Unlock()
	s.beside(func() {
		defer stop(nil)
		defer s.gone(j)
		if j.begin(ctx) {
			result, err := s.perform(ctx, j, skill)
			s.finish(ctx, j, result, err)
		}
	})
	return nil
}

// perform calls a skill. A panic fails the job, not the agent.
func (s *serving) perform(ctx context.Context, j *Delegated, skill Skill) (result any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = s.conn.panicked("the skill", j.ID, reason)
		}
	}()
	return skill(ctx, j)
}

// finish ends a job, or counts it as unfinished if the skill gave up.
func (s *serving) finish(ctx context.Context, j *Delegated, result any, failed error) {
	s.mu.Lock()
	left := !j.closed && gaveUp(ctx, failed)
	if left {
		s.unfinished++
		j.closed = true
	}
	s.mu.Unlock()
	if !left {
		s.troubled(s.end(j, outcome(result, failed)))
	}
}

// gone removes a job that is over. It first waits for the previous job of the same task. A job
// that was never begun stays, so that a repeated request is ignored.
func (s *serving) gone(j *Delegated) {
	j.leave()
	if j.before != nil {
		<-j.before.done
	}
	defer close(j.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[j.ID] == j && j.closed {
		delete(s.jobs, j.ID)
	}
}

// slots are places for running jobs, given out in the order of requests. A waiting job gives up
// its place; otherwise two agents that wait for each other would deadlock. A job that continues
// goes before jobs that have not begun. serving.mu guards slots.
type slots struct {
	free int
	back []ticket // of the jobs that have waited
	line []ticket // of the jobs that have not begun
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

// leave gives back the place of a job after its skill has returned.
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
