package handlers

import (
	"fmt"
	"strings"

	"orchestrator/handlers/scope"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// considerCompletion decides about the end of the work on a task. What changes files
// that it was not to change is refused, with the scope that holds.
func (t *decision) considerCompletion(x *messageContext, c *wire.Completion) *wire.Error {
	w, err := t.completable(x, c.TaskID)
	if err != nil {
		return err
	}
	files := c.Touched()
	if len(files) > mostFiles {
		return &wire.Error{
			Code: wire.CodeTooLarge, Message: fmt.Sprintf("it changes %d files, and %d is the most that a completion may", len(files), mostFiles),
			Details: map[string]any{"pointer": "/payload/changes"},
		}
	}
	if outside, n := outside(w.scope, files); n > 0 {
		return t.outOfScope(w, outside, n)
	}
	if w.tested && !c.TestsRun && c.Status != wire.OutcomeFailed {
		x.notes = append(x.notes, "/payload/self_review/tests_run: the task requires tests, and none were run")
	}
	if t.passed(w.wished) {
		x.notes = append(x.notes, "it comes after its deadline, "+w.wished)
	}
	result := payloadOf(x.Document)
	if e := c.Error; e != nil && c.Status == wire.OutcomeFailed && t.mayRetry(w, e) {
		x.fate = fateKept // it goes on: its architect hears of the end
		x.after = func() {
			t.beginWork(w)
			if w.open != nil { // its review was asked for early
				t.breakReview(w, "its developer begins anew: "+e.ErrorMessage)
			}
			t.retryWork(w, e)
		}
		return nil
	}
	x.after = func() {
		t.beginWork(w)
		switch {
		case c.Status == wire.OutcomeFailed:
			t.failedWork(w, c)
		case w.phase == wire.PhaseReviewing: // the review was asked for before it
			t.fact(agentPrefix+w.architect, c.TaskID, &workCompleted{ID: c.TaskID, Result: result})
		default:
			t.completeWork(w, result)
		}
	}
	return nil
}

// Bounds of what is looked at and told of files.
const (
	mostFiles   = 20_000
	mostOutside = 10 // that are told by name
)

// outside are the first of the files that are outside of a scope, and how many there
// are among those that are looked at.
func outside(patterns, files []string) (some []string, all int) {
	some = scope.Outside(patterns, files[:min(len(files), mostFiles)])
	return some[:min(len(some), mostOutside)], len(some)
}

// mostSaid is how much of a text stands in what the orchestrator says of
// it: the rest is in their own message.
const mostSaid = 1000

// brief is a text that is no longer than what is said of something.
func brief(text string) string {
	if len(text) <= mostSaid {
		return text
	}
	return strings.ToValidUTF8(text[:mostSaid], "") + "…"
}

// completable is the work that a completion ends. One that is being reviewed may be
// completed yet: its review was asked for early.
func (t *decision) completable(x *messageContext, id string) (*work, *wire.Error) {
	if w := t.state.workOn(x.of, id); w != nil && w.phase == wire.PhaseReviewing && w.result == nil && w.developer == x.from.AgentID {
		x.task, x.chain = id, w.chain
		return w, nil
	}
	return t.activeWork(x, id)
}

// payloadOf is the payload of a session message, as it came.
func payloadOf(document wire.Raw) wire.Raw {
	var o object.Reader
	if o.Read(document, deepest, "") != nil {
		return nil
	}
	return o.Document("payload")
}

// outOfScope refuses a completion that touches what it was not to touch.
func (t *decision) outOfScope(w *work, files []string, n int) *wire.Error {
	e := &wire.TaskExecutionError{
		TaskID: w.task.view.ID, ErrorType: wire.ExecutionScopeViolation, Recoverable: true, SuggestedAction: wire.SuggestRetry,
		ErrorMessage: fmt.Sprintf("%s changed outside of the scope, such as %.200q", counted(n, "file"), files[0]),
	}
	t.troubled(w, e)
	return &wire.Error{
		Code: wire.CodeConflict, Message: e.ErrorMessage,
		Details: map[string]any{
			"pointer": "/payload/changes", "reason": "scope_violation", "scope": w.scope, "files": files, "task_execution_error": e,
		},
		Hint: "say the completion again, as a new message, without what is outside",
	}
}

// completeWork is a completion: the task is done, or waits for its review where the
// session wants one.
func (t *decision) completeWork(w *work, result wire.Raw) {
	if w.of.spec.RequireReview || w.task.view.State.Final() {
		t.cancelQuestions(w.task)
		t.fact(agentPrefix+w.architect, w.task.view.ID, &workCompleted{ID: w.task.view.ID, Result: result})
		return
	}
	t.doneWork(w, result)
}

// workCompleted says that a developer is done with a work, and that its task is not:
// its review comes first, or it was done before.
type workCompleted struct {
	ID     string   `json:"task"`
	Result wire.Raw `json:"result"`
}

func (*workCompleted) kind() string { return wire.EventSessionCompleted }

func (f *workCompleted) apply(s *State, r *wire.Record) {
	w := s.tasks.byID[f.ID].work()
	w.result = f.Result
	if w.phase != wire.PhaseReviewing {
		s.enter(w, wire.PhaseCompleted, r.At)
	}
}

// doneWork ends the task of a work well, and those of which it is a revision.
func (t *decision) doneWork(w *work, document wire.Raw) {
	result := &succeeded
	if document != nil {
		result = wire.ReadResult(document)
	}
	defer t.among()()
	for ; w != nil; w = w.revises {
		if k := w.task; !k.view.State.Final() {
			t.cancelQuestions(k)
			t.complete(k, result, nil)
		}
	}
}

// failWork ends the task of a work badly, and those of which it is a revision.
func (t *decision) failWork(w *work, why string) {
	why = brief(why)
	defer t.among()()
	for ; w != nil; w = w.revises {
		t.endWork(w, why)
		if k := w.task; !k.view.State.Final() {
			t.fail(k, failure{why: why})
		}
	}
}

// drop ends a work that is not wanted any more.
func (t *decision) drop(w *work, why string) {
	why = brief(why)
	defer t.among()()
	for ; w != nil; w = w.revises {
		if w.over() {
			continue
		}
		t.endWork(w, why)
		if k := w.task; !k.view.State.Final() {
			t.cancel(k, why, nil)
			t.abandon(k)
		}
	}
}

// endWork ends a work whose task has ended before, and what a person is asked about
// it; that of others ends with it.
func (t *decision) endWork(w *work, why string) {
	if q := t.state.questions.byID[w.question]; q != nil && w.task.more.question == "" {
		t.fact(agentPrefix+w.architect, w.task.view.ID, &questionWithdrawn{ID: w.question, Agent: w.architect, Task: w.task.view.ID})
	}
	if !w.over() && w.task.view.State.Final() {
		t.recallReview(w, why)
		t.moveWork(w, wire.PhaseOver, why)
	}
}

// among says that it is its session that ends a task now, and returns what ends
// that: else its members are to be told.
func (t *decision) among() func() {
	before := t.bySession
	t.bySession = true
	return func() { t.bySession = before }
}

// failedWork is a completion that says that the work has failed.
func (t *decision) failedWork(w *work, c *wire.Completion) {
	why := c.Summary
	if len(c.Blockers) > 0 {
		why += ": " + c.Blockers[0]
	}
	if c.Error != nil {
		e := *c.Error // as it was said, it stays
		e.Recoverable, e.SuggestedAction = false, suggested(e.ErrorType)
		t.troubled(w, &e)
	}
	t.failWork(w, why)
}

// tellEnd tells the members of a session what became of a task of theirs that
// another actor has ended, as if its developer had said it.
func (t *decision) tellEnd(k *task, outcome, why string) {
	w := k.work()
	if w == nil || t.bySession || w.of.closed() {
		return
	}
	t.sayCompletion(w, outcome, why, nil)
}

// sayCompletion says a completion for a developer who says none.
func (t *decision) sayCompletion(w *work, outcome, why string, e *wire.TaskExecutionError) {
	from, to := w.of.member(w.developer), w.lead()
	if from == nil || to == nil {
		return // no member is left to say it, or to hear it
	}
	t.sayFor(w, from, to, func(h wire.SessionHead) *wire.SessionMessage {
		return h.Completion(w.task.view.ID, outcome, brief(why), e)
	})
}

// sayFor says something in the name of a member, because it does not.
func (t *decision) sayFor(w *work, from, to *member, spell func(wire.SessionHead) *wire.SessionMessage) {
	m := spell(t.head(w.of, from, to, w.chain))
	t.say(&messageContext{SessionMessage: m, of: w.of, from: from, to: to, chain: w.chain, task: w.task.view.ID, notes: m.Notes}, nil)
}

// head is what stands around a message that the orchestrator says for a member.
func (t *decision) head(s *session, from, to *member, chain string) wire.SessionHead {
	var named string // where the two could not tell which session it is
	for _, seat := range t.state.sessions.seats[from.AgentID] {
		if other := seat.of; other != s && !other.closed() && other.member(to.AgentID) != nil {
			named = s.spec.ID
		}
	}
	return wire.SessionHead{
		SessionID: named,
		MessageID: messageID(s.spec.ID, t.state.seq+1), At: t.at, SequenceNumber: s.last + 1,
		From: wire.AgentIdentifier{AgentID: from.AgentID, AgentType: from.AgentType},
		To:   wire.AgentIdentifier{AgentID: to.AgentID, AgentType: to.AgentType}, CorrelationID: chain,
	}
}
