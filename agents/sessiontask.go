package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"weak"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// A SessionTask is a task that an architect has assigned. Only one goroutine at a time may wait
// for it.
type SessionTask struct {
	architect *Architect
	bell      chan struct{} // rings when there is a tiding

	first   string // the first description of the task
	done    Completion
	reviews []ReviewSummary
	sent    *Sent // the last assignment

	mu        sync.Mutex
	id        string
	developer string
	work      Assignment // as it was assigned last
	chain     string     // its correlation_id
	tidings   []update   // not taken yet
}

// update is something new about a task: one of these.
type update struct {
	completion *Completion
	result     *ReviewResult
	feedback   *session.Feedback
	answers    string // the message that the feedback answers
	notice     *wire.TaskNotice
	cancelled  bool
}

// kind returns the kind of an update. An update is dropped only for another of its kind.
func (u *update) kind() string {
	switch {
	case u.completion != nil:
		return session.TypeTaskCompletion
	case u.result != nil:
		return session.TypeReviewResult
	case u.feedback != nil:
		return session.TypeFeedback
	case u.cancelled:
		return TaskCancelled
	}
	return TaskUpdated
}

// ID is the id of the task.
func (t *SessionTask) ID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

// maxTidings bounds the queued updates of each kind.
const maxTidings = 64

// put queues an update. A full queue drops the oldest update of the same kind, so that other
// messages cannot displace a completion.
func (t *SessionTask) put(m update) {
	t.mu.Lock()
	alike, oldest := 0, 0
	for i := len(t.tidings) - 1; i >= 0; i-- {
		if t.tidings[i].kind() == m.kind() {
			alike, oldest = alike+1, i
		}
	}
	if alike == maxTidings {
		t.tidings = slices.Delete(t.tidings, oldest, oldest+1)
	}
	t.tidings = append(t.tidings, m)
	t.mu.Unlock()
	ring(t.bell)
}

// find takes the first update that is wanted.
func (t *SessionTask) find(wanted func(update) bool) (update, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, m := range t.tidings {
		if wanted(m) {
			t.tidings = append(t.tidings[:i:i], t.tidings[i+1:]...)
			return m, true
		}
	}
	return update{}, false
}

// lastWord is how long wait waits for a message that must be on its way.
const lastWord = 10 * time.Second

// wait waits for an update. It fails if the message sent is refused, or if a notice reports the
// end of the task.
func (t *SessionTask) wait(ctx context.Context, sent *Sent, wanted func(update) bool, done bool) (update, error) {
	var ended error
	var late <-chan time.Time
	for {
		if m, ok := t.find(wanted); ok {
			return m, nil
		}
		if m, ok := t.find(func(m update) bool { return m.notice != nil }); ok {
			var final *Ended
			switch err := t.heed(ctx, m); {
			case err == nil:
			case done && errors.As(err, &final) && (final.State == wire.TaskDone || final.State == wire.TaskFailed): // its completion must be on its way
				ended, late = err, time.After(lastWord)
			default:
				ended, late = err, time.After(0) // unless it has come meanwhile
			}
			continue
		}
		select {
		case <-t.bell:
		case <-sent.Refused():
			return update{}, sent.Err()
		case <-late:
			if m, ok := t.find(wanted); ok { // both were there, and one of them was taken
				return m, nil
			}
			return update{}, ended
		case <-ctx.Done():
			return update{}, context.Cause(ctx)
		}
	}
}

// assign sends an assignment with the correlation_id of the first one.
func (t *SessionTask) assign(ctx context.Context, developer string, work Assignment) error {
	t.mu.Lock()
	t.id, t.developer, t.work = work.Task.TaskID, developer, work
	t.mu.Unlock()
	sent, err := t.session().Assign(ctx, developer, work)
	if err == nil {
		t.sent = sent
		t.mu.Lock()
		t.chain = sent.CorrelationID
		t.mu.Unlock()
	}
	return err
}

// session returns the session with the task's correlation_id.
func (t *SessionTask) session() *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.architect.Chain(cmp.Or(t.chain, t.architect.chain))
}

// Completion waits for the completion of the task. The error is an *Undelivered if the
// assignment is refused, and an *Ended if the task has ended without a completion.
func (t *SessionTask) Completion(ctx context.Context) (Completion, error) {
	m, err := t.wait(ctx, t.sent, func(m update) bool { return m.completion != nil }, true)
	if err != nil {
		return Completion{}, err
	}
	t.done = *m.completion
	return t.done, nil
}

// Review has the task reviewed and waits for the result. Empty fields of the request are filled
// in from the task. Errors are those of Completion, and ErrUnreviewed if the reviewer cannot
// review it.
func (t *SessionTask) Review(ctx context.Context, reviewer string, request ReviewRequest) (ReviewResult, error) {
	request = t.asking(request)
	sent, err := t.session().RequestReview(ctx, reviewer, request)
	if err != nil {
		return ReviewResult{}, err
	}
	m, err := t.wait(ctx, sent, func(m update) bool {
		return m.result != nil && m.result.ReviewID == request.ReviewID || m.feedback != nil && m.answers == sent.MessageID
	}, false)
	switch {
	case err != nil:
		return ReviewResult{}, err
	case m.feedback != nil:
		return ReviewResult{}, fmt.Errorf("%w: %s: %s", ErrUnreviewed, m.feedback.Subject, m.feedback.Content)
	}
	t.reviewed(*m.result)
	return *m.result, nil
}

// Abort aborts the task and wakes the caller that waits for it.
func (t *SessionTask) Abort(ctx context.Context, reason string, cleanup bool) error {
	t.mu.Lock()
	id, developer := t.id, t.developer
	t.mu.Unlock()
	_, err := t.session().Abort(ctx, DeveloperID(developer), Abort{
		Scope: session.AbortTask, TargetID: id, Reason: reason, CleanupRequired: cleanup,
	})
	if err == nil {
		t.put(update{notice: &wire.TaskNotice{TaskID: id, Reason: reason}, cancelled: true})
	}
	return err
}

// taskIndex finds the tasks of an architect by id. It keeps the latest few thousand, and every
// task that a caller still refers to. Others are dropped with their updates.
type taskIndex struct {
	byID   map[string]weak.Pointer[SessionTask]
	latest []*SessionTask // a ring buffer once full
	next   int            // index of the oldest task, once full
	sweep  int            // the size of byID that starts a search for dropped tasks
}

// find returns the task with an id, or nil.
func (ti *taskIndex) find(id string) *SessionTask { return ti.byID[id].Value() }

// enter registers a task under an id. A task may have several ids.
func (ti *taskIndex) enter(id string, t *SessionTask) {
	if ti.byID == nil {
		ti.byID, ti.sweep = make(map[string]weak.Pointer[SessionTask]), 2*remembered
	}
	ti.byID[id] = weak.Make(t)
	if len(ti.latest) < remembered {
		ti.latest = append(ti.latest, t)
	} else {
		ti.latest[ti.next] = t
		ti.next = (ti.next + 1) % remembered
	}
	if len(ti.byID) < ti.sweep {
		return
	}
	for id, task := range ti.byID {
		if task.Value() == nil {
			delete(ti.byID, id)
		}
	}
	ti.sweep = max(2*remembered, 2*len(ti.byID))
}
