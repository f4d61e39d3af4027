package agents

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// Lead configures LeadAs. Agents that need only Do can call Session.Lead instead.
type Lead struct {
	// Do assigns tasks and waits for their results. Its context ends when the agent has to shut
	// down.
	Do func(ctx context.Context, a *Architect) error
	// Hear is called with every message, in order, before the message is processed. It is the
	// only way to see progress reports and plain feedback. It must not block.
	Hear func(*Said)
	// News is called with every notice, in order, after it was processed. It is the way to learn
	// of tasks outside the session. It must not block.
	News func(Notice)
}

// Lead calls do, which gives out the work of a session, and returns its error. While do runs,
// the Architect receives news about the tasks. Its methods may be called concurrently, so
// several tasks can proceed at once.
func (s *Session) Lead(ctx context.Context, do func(ctx context.Context, a *Architect) error) error {
	return s.LeadAs(ctx, Lead{Do: do})
}

// LeadAs is like Lead, but also passes every message to lead.Hear.
func (s *Session) LeadAs(ctx context.Context, lead Lead) error {
	if err := s.opened(session.AgentArchitect); err != nil {
		return err
	}
	listens, stop := context.WithCancelCause(ctx)
	a := &Architect{Session: s, hear: lead.Hear, news: lead.News, stop: stop}
	var listening sync.WaitGroup
	listening.Go(func() { a.listen(listens) })
	defer listening.Wait()
	defer stop(nil)
	defer s.conn.allSaid(ctx)
	return lead.Do(listens, a)
}

// An Architect assigns tasks and has them reviewed. Its methods may be called concurrently.
type Architect struct {
	*Session
	hear func(*Said)
	news func(Notice)
	stop context.CancelCauseFunc

	mu    sync.Mutex
	tasks taskIndex
}

// Task returns the task of the session with this id, no matter which agent assigned it. A task
// that the caller no longer refers to is forgotten after a few thousand newer tasks.
func (a *Architect) Task(id string) *SessionTask {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tasks.find(id)
	if t == nil {
		t = &SessionTask{architect: a, id: id, bell: make(chan struct{}, 1)}
		a.tasks.enter(id, t)
	}
	return t
}

// Assign gives a task to a developer. It sets a new id if the task has none.
func (a *Architect) Assign(ctx context.Context, developer string, work Assignment) (*SessionTask, error) {
	if work.Task.TaskID == "" {
		work.Task.TaskID = uuid.NewString()
	}
	t := a.Task(work.Task.TaskID)
	t.first = work.Task.Description
	return t, t.assign(ctx, developer, work)
}

// AbortSession ends the session for all its members. The message may go to any one of them.
func (a *Architect) AbortSession(ctx context.Context, to session.Agent, reason string) error {
	_, err := a.Abort(ctx, to, Abort{Scope: session.AbortSession, Reason: reason})
	return err
}

// listen passes session messages and notices to the tasks that wait for them, until ctx or the
// stream ends.
func (a *Architect) listen(ctx context.Context) {
	for e := range a.conn.events(ctx, true) {
		switch {
		case e.notice != nil:
			a.noticed(e.notice)
			if a.news != nil {
				a.news(*e.notice)
			}
		case e.said != nil:
			a.told(e.said)
		}
	}
	a.stop(a.conn.ending())
}

func (a *Architect) noticed(notice *Notice) {
	var about wire.TaskNotice
	switch notice.Name {
	case Shutdown:
		a.stop(ErrShutdown)
	case TaskCancelled, TaskUpdated:
		if notice.Read(&about) == nil && about.TaskID != "" {
			a.Task(about.TaskID).put(update{notice: &about, cancelled: notice.Name == TaskCancelled})
		}
	}
}

func (a *Architect) told(said *Said) {
	a.saw(said)
	if a.hear != nil {
		a.hear(said)
	}
	switch body := said.Body.(type) {
	case *session.Completion:
		var what Completion
		if said.Read(&what) == nil {
			a.Task(body.TaskID).put(update{completion: &what, id: said.MessageID})
		}
	case *session.ReviewResult:
		var what ReviewResult
		if said.Read(&what) == nil {
			a.Task(body.TaskID).put(update{result: &what})
		}
	case *session.Feedback:
		if body.TaskID != "" && body.ActionRequired && said.ReplyTo != "" {
			a.Task(body.TaskID).put(update{feedback: body, answers: said.ReplyTo})
		}
	}
}

// Errors of Deliver for a task that was not delivered.
var (
	ErrIncomplete = errors.New("the developer has not completed it")
	ErrRejected   = errors.New("the reviewer has rejected it: it has to be planned anew")
	ErrUnreviewed = errors.New("the reviewer cannot review it")
)

// Order describes a task to deliver: completed and, with a Reviewer, approved.
type Order struct {
	Developer, Reviewer string // without a Reviewer, a completion is enough
	Assignment          Assignment
	Review              ReviewRequest // empty fields are taken from the task
	// Rename returns the id of an attempt, from the second on. If nil, the task keeps its id.
	Rename func(attempt int) string
}

// Delivery is the outcome of an order. After an error it holds the results so far.
type Delivery struct {
	TaskID     string       // of the last attempt that was reviewed, or of the first
	Completion Completion   // the last one
	Review     ReviewResult // the last one; its Verdict is "" if there was no review
	Reviews    int          // how many there were
	Forced     bool         // accepted although the last review did not approve it
}

// Deliver assigns a task, has it reviewed, and has it revised until it is approved. It also
// returns nil if the session accepts the task because it has used up its reviews.
//
// The error is ErrIncomplete or ErrRejected after such a report of the developer or the reviewer,
// and ErrUnreviewed if the task cannot be reviewed. It is an *Ended if the task was aborted or
// waits for a person. It is an *Undelivered if a required message was refused.
func (a *Architect) Deliver(ctx context.Context, o Order) (Delivery, error) {
	t, err := a.Assign(ctx, o.Developer, o.Assignment)
	if err != nil {
		return Delivery{TaskID: t.ID()}, err
	}
	return t.Deliver(ctx, o)
}

// Deliver is like Architect.Deliver for a task that is already assigned, such as a dependency
// of the next one.
func (t *SessionTask) Deliver(ctx context.Context, o Order) (Delivery, error) {
	return t.deliver(ctx, o, t.attempt)
}

// A step of a delivery reports whether an attempt follows.
type step func(ctx context.Context, o *Order, d *Delivery) (again bool, err error)

func (t *SessionTask) deliver(ctx context.Context, o Order, first step) (Delivery, error) {
	d := Delivery{TaskID: t.ID()}
	again, err := first(ctx, &o, &d)
	for again && err == nil {
		again, err = t.attempt(ctx, &o, &d)
	}
	if err != nil && d.Reviews > 0 {
		err = t.architect.settled(ctx, d.TaskID, err)
	}
	d.Forced = err == nil && d.Review.Verdict == session.VerdictChangesRequested
	return d, err
}

// attempt waits for a completion and its review. It reports whether another attempt follows.
func (t *SessionTask) attempt(ctx context.Context, o *Order, d *Delivery) (again bool, err error) {
	d.Completion, err = t.Completion(ctx)
	switch {
	case err != nil:
		return false, err
	case d.Completion.Status == session.OutcomeFailed, o.Reviewer == "" && d.Completion.Status != session.OutcomeCompleted:
		return false, ErrIncomplete
	case o.Reviewer == "":
		return false, nil
	}
	return t.judge(ctx, o, d)
}

// judge has a completed task reviewed.
func (t *SessionTask) judge(ctx context.Context, o *Order, d *Delivery) (again bool, err error) {
	result, err := t.Review(ctx, o.Reviewer, o.Review)
	if err != nil {
		return false, err
	}
	return t.follow(ctx, o, d, result)
}

// follow takes the next step after a review.
func (t *SessionTask) follow(ctx context.Context, o *Order, d *Delivery, result ReviewResult) (again bool, err error) {
	d.TaskID, d.Review = t.ID(), result
	d.Reviews++
	switch result.Verdict {
	case session.VerdictApproved:
		return false, nil
	case session.VerdictRejected:
		return false, ErrRejected
	}
	if err := t.mayRevise(ctx); err != nil {
		return false, err
	}
	id := t.ID()
	if o.Rename != nil {
		id = o.Rename(d.Reviews + 1)
	}
	return true, t.ReviseAs(ctx, id, result)
}

// Resume is like Deliver for a task that an earlier run of the architect has assigned. It goes on
// from the phase of the task in the session. The Developer of the order is not used.
func (t *SessionTask) Resume(ctx context.Context, o Order) (Delivery, error) {
	view, err := t.recall(ctx)
	switch {
	case err != nil:
		return Delivery{TaskID: t.ID()}, err
	case view == nil:
		return Delivery{TaskID: t.ID()}, &Ended{TaskID: t.ID(), Why: "the session does not have it"}
	}
	t.adopt(view, &o)
	if ended := endedAs(view, ""); ended != nil {
		if ended.State == wire.TaskDone {
			return Delivery{TaskID: t.ID(), Review: ReviewResult{Verdict: session.VerdictApproved}, Reviews: view.Iteration}, nil
		}
		return Delivery{TaskID: t.ID(), Reviews: view.Iteration}, ended
	}
	return t.deliver(ctx, o, func(ctx context.Context, o *Order, d *Delivery) (again bool, err error) {
		d.Reviews = view.Iteration
		switch view.Phase {
		case session.PhaseCompleted:
			t.catchUp(d)
			return t.judge(ctx, o, d)
		case session.PhaseReviewing:
			t.catchUp(d)
			return t.resumeReview(ctx, o, d)
		case session.PhaseRevise:
			t.catchUp(d)
			return true, t.ReviseAs(ctx, t.ID(), lastReview(view))
		case session.PhaseRedesign:
			return false, ErrRejected
		}
		return t.attempt(ctx, o, d)
	})
}
