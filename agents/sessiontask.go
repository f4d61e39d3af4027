package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/google/uuid"

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
	sent    *Sent           // the last assignment
	past    map[string]bool // message_ids of completions that an earlier run of the architect had

	mu        sync.Mutex
	id        string
	developer string
	work      Assignment // as it was assigned last
	chain     string     // its correlation_id
	tidings   []update   // not taken yet
}

// update is an update of a task: one of these.
type update struct {
	completion *Completion
	id         string // the message_id of the completion
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
				ended, late = err, time.After(0) // unless it has arrived by now
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
	m, err := t.wait(ctx, t.sent, func(m update) bool { return m.completion != nil && !t.past[m.id] }, true)
	if err != nil {
		return Completion{}, err
	}
	t.done = *m.completion
	return t.done, nil
}

// Review has the task reviewed and waits for the result. Empty fields of the request are filled in
// from the task. Errors are the errors of Completion, and ErrUnreviewed if the reviewer cannot
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
// task that a caller still refers to. Other tasks are dropped with their updates.
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

// Ended is the error of a task that has ended, or waits for a person, without the result that
// the architect waits for.
type Ended struct {
	TaskID string
	State  wire.TaskState // "" if unknown
	Why    string
}

// Error returns the task, its state and the reason.
func (e *Ended) Error() string {
	if e.State == "" {
		return fmt.Sprintf("task %s: %s", e.TaskID, e.Why)
	}
	return fmt.Sprintf("task %s is %s: %s", e.TaskID, e.State, e.Why)
}

// heed returns an *Ended if a notice means that the task does not go on. Notices describe
// changes only in words, so heed asks for the state of the task. A task that the orchestrator
// does not show counts as ended.
func (t *SessionTask) heed(ctx context.Context, n update) error {
	if n.cancelled {
		return &Ended{TaskID: n.notice.TaskID, State: wire.TaskCancelled, Why: n.notice.Reason}
	}
	ended, err := t.architect.ended(ctx, n.notice.TaskID, n.notice.Message)
	var refused *Refusal
	switch {
	case ended != nil:
		return ended
	case errors.As(err, &refused):
		return &Ended{TaskID: n.notice.TaskID, Why: n.notice.Message}
	}
	return err
}

// ended asks for the state of a task. It returns nil if the task goes on.
func (a *Architect) ended(ctx context.Context, task, why string) (*Ended, error) {
	view, err := a.view(ctx, task)
	if err != nil || view == nil {
		return nil, err
	}
	return endedAs(view, why), nil
}

// view asks for a task as the session has it. It returns nil if the session does not have it.
func (a *Architect) view(ctx context.Context, task string) (*wire.SessionTask, error) {
	var document struct {
		Tasks []wire.SessionTask `json:"tasks"`
	}
	err := a.conn.askPatiently(ctx, "get-session", wire.GetSession{SessionID: a.me.Session, TaskID: task, Limit: 1}, &document)
	if err != nil {
		return nil, err
	}
	for i := range document.Tasks {
		if document.Tasks[i].TaskID == task {
			return &document.Tasks[i], nil
		}
	}
	return nil, nil
}

// recall asks for the task as the session has it, and remembers its completions so far. They may be
// delivered again, and belong to attempts before the next one.
func (t *SessionTask) recall(ctx context.Context) (view *wire.SessionTask, err error) {
	a := t.architect
	page := wire.GetSession{SessionID: a.me.Session, TaskID: t.ID(), To: a.me.Agent, Limit: session.MaxPage}
	t.past = make(map[string]bool)
	for more := true; more; {
		var document struct {
			Tasks    []wire.SessionTask `json:"tasks"`
			Messages []struct {
				ID   string `json:"message_id"`
				Type string `json:"message_type"`
			} `json:"messages"`
			More bool  `json:"more"`
			Next int64 `json:"next"`
		}
		if err := a.conn.askPatiently(ctx, "get-session", page, &document); err != nil {
			return nil, err
		}
		for _, m := range document.Messages {
			if m.Type == session.TypeTaskCompletion {
				t.past[m.ID] = true
			}
		}
		i := slices.IndexFunc(document.Tasks, func(v wire.SessionTask) bool { return v.TaskID == t.ID() })
		if i < 0 {
			return nil, nil
		}
		view, more, page.After = &document.Tasks[i], document.More, document.Next
	}
	return view, nil
}

// endedAs returns how a task has ended, or that it waits for a person. It returns nil if the task
// goes on.
func endedAs(t *wire.SessionTask, why string) *Ended {
	if why == "" {
		why = fmt.Sprintf("changes are requested after %d of %d reviews", t.Iteration, t.MaxIterations)
	}
	switch {
	case t.Phase == session.PhaseHuman:
		return &Ended{TaskID: t.TaskID, State: wire.TaskNeedsHuman, Why: why}
	case t.Phase == session.PhaseOver && t.Escalated == session.EscalateAbort: // it may have been done before
		return &Ended{TaskID: t.TaskID, State: wire.TaskCancelled, Why: why}
	case t.Phase == session.PhaseOver, t.State == wire.TaskFailed, t.State == wire.TaskCancelled:
		return &Ended{TaskID: t.TaskID, State: t.State, Why: why}
	}
	return nil
}

// adopt makes a task of an earlier run known to this one.
func (t *SessionTask) adopt(view *wire.SessionTask, o *Order) {
	t.first = o.Assignment.Task.Description
	t.mu.Lock()
	defer t.mu.Unlock()
	t.developer, t.work, t.chain = view.Developer, o.Assignment, view.CorrelationID
	t.work.Task.TaskID = t.id
}

// catchUp takes the completion that an earlier run received, if it is sent again.
func (t *SessionTask) catchUp(d *Delivery) {
	if m, ok := t.find(func(m update) bool { return m.completion != nil }); ok {
		t.done = *m.completion
		d.Completion = t.done
	}
}

// resumeReview waits for the result of a review that an earlier run has requested.
func (t *SessionTask) resumeReview(ctx context.Context, o *Order, d *Delivery) (again bool, err error) {
	var open struct {
		Reviews []session.ReviewView `json:"reviews"`
	}
	err = t.architect.conn.askPatiently(ctx, "list-reviews", wire.ListReviews{SessionID: t.architect.me.Session, TaskID: t.ID()}, &open)
	i := slices.IndexFunc(open.Reviews, func(r session.ReviewView) bool { return r.Verdict == "" && r.DecidedAt == "" })
	switch {
	case err != nil:
		return false, err
	case i < 0: // it has just ended
		*d, err = t.Resume(ctx, *o)
		return false, err
	}
	m, err := t.wait(ctx, nil, func(m update) bool {
		return m.result != nil && m.result.ReviewID == open.Reviews[i].ReviewID || m.feedback != nil
	}, false)
	switch {
	case err != nil:
		return false, err
	case m.feedback != nil:
		return false, fmt.Errorf("%w: %s: %s", ErrUnreviewed, m.feedback.Subject, m.feedback.Content)
	}
	t.reviewed(*m.result)
	return t.follow(ctx, o, d, *m.result)
}

// lastReview returns the known part of the review that requires a new assignment of a task.
func lastReview(t *wire.SessionTask) ReviewResult {
	r := ReviewResult{Verdict: session.VerdictChangesRequested, Summary: "these findings are open"}
	for _, f := range t.Findings {
		r.Findings = append(r.Findings, Finding{
			FindingID: f.ID, Severity: f.Severity, Category: f.Category, Location: session.Location{File: f.File}, Description: f.Text, FixedIn: int64(f.Fixed),
		})
	}
	return r
}

// mayRevise returns an *Ended if the session has ended the task or passed it to a person,
// because its reviews are used up. A revision under another id would count as a new task.
func (t *SessionTask) mayRevise(ctx context.Context) error {
	ended, err := t.architect.ended(ctx, t.ID(), "")
	var refused *Refusal
	switch {
	case ended != nil:
		return ended
	case errors.As(err, &refused): // the session will report it at the assignment
		return nil
	}
	return err
}

// settled returns the final error of a reviewed task that cannot be revised. It is nil if the
// session has marked the task as done, as its on_max setting may require.
func (a *Architect) settled(ctx context.Context, task string, err error) error {
	var refused *Undelivered
	var ended *Ended
	if errors.As(err, &refused) && (refused.Reason() == reasonTaken || refused.Reason() == reasonUsedUp) {
		ended, _ = a.ended(ctx, task, refused.Message) // if it cannot be looked at, the refusal is all there is
	} else {
		errors.As(err, &ended)
	}
	switch {
	case ended == nil:
		return err
	case ended.State == wire.TaskDone:
		return nil
	}
	return ended
}

// Reasons why a reviewed task cannot be assigned or reviewed again.
const (
	reasonTaken  = "task_id_taken"
	reasonUsedUp = "iterations_used_up"
)

// asking fills in the empty fields of a review request from the task, with a new id.
func (t *SessionTask) asking(r ReviewRequest) ReviewRequest {
	task := t.work.Task
	r.ReviewID, r.TaskID = cmp.Or(r.ReviewID, "review-"+uuid.NewString()), t.id
	if r.Scope.Files == nil {
		r.Scope.Files = t.done.Changes.Touched()
	}
	if r.Scope.FocusAreas == nil {
		r.Scope.FocusAreas = []string{session.FocusLogic}
	}
	r.Context.TaskDescription = cmp.Or(r.Context.TaskDescription, t.first)
	if r.Context.AcceptanceCriteria == nil {
		r.Context.AcceptanceCriteria = task.AcceptanceCriteria
	}
	if r.Context.PreviousReviews == nil {
		r.Context.PreviousReviews = t.reviews
	}
	return r
}

// reviewed records a review for the context of the next one.
func (t *SessionTask) reviewed(result ReviewResult) {
	key := []string{}
	for _, f := range result.Findings {
		if f.FixedIn == 0 && f.Severity != session.SeveritySuggestion {
			key = append(key, f.String())
		}
	}
	t.reviews = append(t.reviews[:len(t.reviews):len(t.reviews)], ReviewSummary{
		Number: int64(len(t.reviews)) + 1, Verdict: result.Verdict, KeyFindings: key,
	})
}

// Revise assigns the task to its developer again. The findings of the review are in the
// description and in a previous attempt.
func (t *SessionTask) Revise(ctx context.Context, result ReviewResult) error {
	return t.ReviseAs(ctx, t.id, result)
}

// ReviseAs is like Revise, but gives the task a new id.
func (t *SessionTask) ReviseAs(ctx context.Context, id string, result ReviewResult) error {
	a := t.architect
	a.mu.Lock()
	a.tasks.enter(id, t)
	a.mu.Unlock()
	work, said := t.work, requested(&result)
	work.Task.TaskID = id
	work.Task.Description = strings.TrimLeft(t.first+"\n\n"+said, "\n")
	attempts := work.Task.Context.PreviousAttempts
	work.Task.Context.PreviousAttempts = append(slices.Clone(attempts), Attempt{
		Number: int64(len(attempts)) + 1, Outcome: result.Verdict, Feedback: said,
	})
	return t.assign(ctx, t.developer, work)
}

// requested returns the changes that a result asks for, as text.
func requested(r *ReviewResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The review says %s: %s", r.Verdict, r.Summary)
	for _, c := range r.RequiredChanges {
		fmt.Fprintf(&b, "\n- %s: %s", c.Priority, c.Description)
	}
	for _, f := range r.Findings {
		if f.FixedIn == 0 {
			fmt.Fprintf(&b, "\n- %s", f)
		}
	}
	return b.String()
}
