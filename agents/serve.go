package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"orchestrator/wire"
)

// Skill does what the agent is asked, and returns what came of it: any value, or nil
// for no more than that it went well. An error that is a *Fault, or wraps one, says
// why it failed; any other is a wire.FaultInternal that another try does not fix,
// and so is a panic. Its context ends when the job is cancelled or the agent has to
// go; then it should return soon.
type Skill func(ctx context.Context, job *Delegated) (result any, err error)

// Server is what an agent does for others, when a list of skills is not
// enough.
type Server struct {
	Skills map[string]Skill // by the type of the request
	// Agent is who the agent is, as its responses say; $ORC_AGENT_ID when it is "".
	Agent string
	// Capacity is how many jobs are done at a time; the others wait. One that waits
	// itself, for input or for what it has delegated, makes room for another one. There
	// is no bound when it is 0 but that of the orchestrator, which hands over no more
	// than the agent has room for.
	Capacity int
}

// Serve does what others delegate to the agent, until the agent is to shut down, the
// stream ends or ctx does; then it waits for the skills and returns. What the agent
// has no skill for fails with wire.FaultCapabilityNotFound.
//
// Each job comes to one final response. Until then a skill says what it likes, and
// nothing is said by itself; a question how the job stands is answered at once, and
// when it is over gets its final response once more. So does a request for the
// same again, unless it was cancelled or failed so that another try may go well: then
// it is done again.
//
// A job that is cancelled is over at once, and what its skill returns is dropped.
// Of one that the skill gave up because the agent has to go, returning the error of
// its context or of a question, nothing is said by itself, nor of one that has not
// begun: the orchestrator knows what is to become of it. Serve then returns an error, as
// Work does. Until the last skill has returned requests are answered, and a job may
// be cancelled.
//
// What is asked before the agent serves waits for that, the latest thousand as far as
// 8 MiB go; what is dropped is counted in the log. Serve takes no notices, so Work,
// News or the roles of a session may go on beside it. There is one Serve at a time.
func (c *Conn) Serve(ctx context.Context, skills map[string]Skill) error {
	return c.ServeAs(ctx, Server{Skills: skills})
}

// ServeAs is Serve for a Server.
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
	stop(c.ending()) // which is why nothing more is asked, if nothing else was
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
	rest    context.CancelFunc // called when the agent is to go and nothing is done any more
	running sync.WaitGroup

	mu         sync.Mutex
	places     *slots
	jobs       map[string]*Delegated // by task, until nothing is done for it any more
	repeats    map[string]bool       // the tasks of which something is said again
	busy       int                   // how much is done
	leaving    bool
	unfinished int
}

// listen heeds what is asked until a context ends, or the stream does.
func (s *serving) listen(ctx, until context.Context) {
	for a, ok := s.conn.nextAsked(until); ok; a, ok = s.conn.nextAsked(until) {
		s.troubled(s.heed(ctx, a))
	}
}

// leave says that the agent is to go.
func (s *serving) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	if s.busy == 0 {
		s.rest()
	}
}

// beside does something in a goroutine, for which ServeAs waits. The one that heeds
// calls it, so that nothing begins when it has stopped.
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

// notBegun counts the jobs that the agent leaves as they came.
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

// heed does what is asked for. It waits for the orchestrator only, which reads.
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
	case j == nil && a.act.Type == wire.ActStatus:
		return s.again(a.act.ID)
	case j == nil: // the sender has not heard yet that it is over
		return nil
	case a.act.Type == wire.ActStatus:
		return s.say(j, func() ([]byte, error) { return j.standing() })
	case a.act.Type == wire.ActUpdate:
		return s.say(j, func() ([]byte, error) { return j.answered(a.act.Input) })
	}
	return s.cancel(j, a.act.Reason)
}

// job is what there is of a task that is not over; nil: nothing.
func (s *serving) job(task string) *Delegated {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[task]; j != nil && !j.over {
		return j
	}
	return nil
}

// requested begins a job, unless there is one, or nothing is to be done any more.
func (s *serving) requested(ctx context.Context, request *wire.TaskRequest) error {
	if s.job(request.ID) != nil {
		return nil
	}
	if word := s.conn.finalWord(request.ID); word != nil && !word.again {
		return s.again(request.ID)
	}
	j := &Delegated{TaskRequest: request, serving: s, status: wire.ResponsePending, done: make(chan struct{}), asking: make(chan struct{}, 1)}
	skill := s.Skills[request.Type]
	if skill == nil {
		return s.end(j, &wire.TaskResponse{Status: wire.ResponseFailed, Fault: &wire.TaskFault{
			Code: wire.FaultCapabilityNotFound, Message: fmt.Sprintf("this agent has no skill for %s", request.Type),
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

// perform calls a skill. One that panics takes its job with it, not the agent.
func (s *serving) perform(ctx context.Context, j *Delegated, skill Skill) (result any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = s.conn.panicked("the skill", j.ID, reason)
		}
	}()
	return skill(ctx, j)
}

// finish is the end of a job.
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

// gone forgets a job that is over, or was given up. A caller that waits for it waits for the
// one before it as well. One that has not begun when the agent is to go is there to the
// end, for later requests.
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
