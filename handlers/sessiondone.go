package handlers

import (
	"fmt"
	"strings"

	"orchestrator/handlers/history"
	"orchestrator/handlers/scope"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// considerCompletion decides about a completion. A completion that changes files outside of the
// scope is refused.
func (wd workDecision) considerCompletion(x *messageContext, c *session.Completion) *wire.Error {
	w, err := wd.completable(x, c.TaskID)
	if err != nil {
		return err
	}
	if c.Refused != nil {
		return c.Refused
	}
	files, wrong := c.Files()
	if len(files) > maxFiles {
		return state.Errorf(wire.CodeTooLarge, state.Details{"pointer": "/payload/changes"},
			"it changes %d files, and the limit is %d", len(files), maxFiles)
	}
	x.notes = append(x.notes, wrong...)
	if outside, n := outside(w.Scope, files); n > 0 {
		return wd.outOfScope(w, outside, n)
	}
	if w.Tested && !c.SelfReview.TestsRun && c.Status != session.OutcomeFailed {
		x.notes = append(x.notes, "/payload/self_review/tests_run: the task requires tests, and none were run")
	}
	if wd.passed(w.Wished) {
		x.notes = append(x.notes, "it missed its deadline, "+w.Wished)
	}
	x.effect, x.work = effectComplete, w
	if e := c.Error; e != nil && c.Status == session.OutcomeFailed && wd.mayRetry(w, e) {
		x.effect = effectRetry
		x.fate = state.FateKept // the work continues; the architect gets only the last completion
	}
	return nil
}

// beginAnew applies a completion of a failed work that is tried again.
func (wd workDecision) beginAnew(w *state.Work, e *session.ExecutionError) {
	wd.beginWork(w)
	if w.Open != nil { // its review was requested early
		wd.reviews().breakReview(w, "its developer starts again: "+e.ErrorMessage)
	}
	wd.retryWork(w, e)
}

// completed applies any other completion.
func (wd workDecision) completed(x *messageContext, c *session.Completion) {
	w := x.work
	wd.beginWork(w)
	switch {
	case c.Status == session.OutcomeFailed:
		wd.failedWork(w, c)
	case w.Phase == session.PhaseReviewing: // the review was requested before the completion
		wd.fact(state.AgentPrefix+w.Architect, c.TaskID, &state.WorkCompleted{ID: c.TaskID, Result: payloadOf(x.Document)})
	default:
		wd.completeWork(w, payloadOf(x.Document))
	}
}

// The maximum number of files in a completion, and in an error about them.
const (
	maxFiles   = 20_000
	maxOutside = 10 // named in an error
)

// outside returns the first files that are outside of a scope, and their number.
func outside(patterns, files []string) (some []string, all int) {
	some = scope.Outside(patterns, files[:min(len(files), maxFiles)])
	return some[:min(len(some), maxOutside)], len(some)
}

// maxSaid is the maximum length of a text that the orchestrator quotes, in bytes.
const maxSaid = 1000

// brief returns text, cut to maxSaid.
func brief(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	return strings.ToValidUTF8(text[:maxSaid], "") + "…"
}

// completable returns the work that a completion ends. A work under review can be completed if
// its review was requested early.
func (wd workDecision) completable(x *messageContext, id string) (*state.Work, *wire.Error) {
	if w := wd.state.Tasks.WorkOn(x.of, id); w != nil && w.Phase == session.PhaseReviewing && w.Result == nil && w.Developer == x.from.AgentID {
		x.task, x.chain = id, w.Chain
		return w, nil
	}
	return wd.activeWork(x, id)
}

// payloadOf returns the payload of a session message, unchanged.
func payloadOf(document wire.Raw) wire.Raw {
	var o object.Reader
	if o.Read(document, history.Deepest, "") != nil {
		return nil
	}
	return o.Document("payload")
}

// outOfScope refuses a completion that changes files outside the scope.
func (wd workDecision) outOfScope(w *state.Work, files []string, n int) *wire.Error {
	e := &session.ExecutionError{
		TaskID: w.Task.View.ID, ErrorType: session.ExecutionScopeViolation, Recoverable: true, SuggestedAction: session.SuggestRetry,
		ErrorMessage: fmt.Sprintf("%s changed outside the scope, for example %.200q", state.Counted(n, "file"), files[0]),
	}
	wd.troubled(w, e)
	return &wire.Error{
		Code: wire.CodeConflict, Message: e.ErrorMessage,
		Details: map[string]any{
			"pointer": "/payload/changes", "reason": "scope_violation", "scope": w.Scope, "files": files, "task_execution_error": e,
		},
		Hint: "send the completion again, as a new message, without the files outside the scope",
	}
}

// completeWork applies a completion: the task is done, or waits for its review if the session
// requires one.
func (wd workDecision) completeWork(w *state.Work, result wire.Raw) {
	if w.Of.Spec.RequireReview || w.Task.View.State.Final() {
		wd.questions().cancelQuestions(w.Task)
		wd.fact(state.AgentPrefix+w.Architect, w.Task.View.ID, &state.WorkCompleted{ID: w.Task.View.ID, Result: result})
		return
	}
	wd.doneWork(w, result)
}

// doneWork completes the task of a work, and the tasks that it revises.
func (wd workDecision) doneWork(w *state.Work, document wire.Raw) {
	result := &succeeded
	if document != nil {
		result = hub.ReadResult(document)
	}
	for ; w != nil; w = w.Revises {
		if t := w.Task; !t.View.State.Final() {
			wd.questions().cancelQuestions(t)
			wd.tasks().complete(t, result, end{inSession: true})
		}
	}
}

// failWork fails the task of a work, and the tasks that it revises.
func (wd workDecision) failWork(w *state.Work, why string) {
	why = brief(why)
	for ; w != nil; w = w.Revises {
		wd.endWork(w, why, "")
		if t := w.Task; !t.View.State.Final() {
			wd.tasks().fail(t, failure{why: why, end: end{inSession: true}})
		}
	}
}

// drop ends a work that is no longer wanted. The agent quiet is not notified.
func (wd workDecision) drop(w *state.Work, why, quiet string) {
	why = brief(why)
	for ; w != nil; w = w.Revises {
		if w.Over() {
			continue
		}
		wd.endWork(w, why, quiet)
		if t := w.Task; !t.View.State.Final() {
			wd.tasks().cancel(t, why, end{inSession: true, quiet: quiet})
			wd.links().abandon(t, quiet)
		}
	}
}

// endWork ends a work after the end of its task, and withdraws its question. Any other work ends
// with its task. The agent quiet is not notified.
func (wd workDecision) endWork(w *state.Work, why, quiet string) {
	if q := wd.state.Questions.ByID[w.Question]; q != nil && w.Task.Extra.Question == "" {
		wd.fact(state.AgentPrefix+w.Architect, w.Task.View.ID, &state.QuestionWithdrawn{ID: w.Question, Agent: w.Architect, Task: w.Task.View.ID})
	}
	if !w.Over() && w.Task.View.State.Final() {
		wd.reviews().recallReview(w, why, quiet)
		wd.moveWork(w, session.PhaseOver, why)
	}
}

// failedWork applies a completion with the outcome failed.
func (wd workDecision) failedWork(w *state.Work, c *session.Completion) {
	why := c.Summary
	if len(c.Blockers) > 0 {
		why += ": " + c.Blockers[0]
	}
	if c.Error != nil {
		e := *c.Error // the original is not modified
		e.Recoverable, e.SuggestedAction = false, session.Suggested(e.ErrorType)
		wd.troubled(w, &e)
	}
	wd.failWork(w, why)
}

// tellEnd sends the members of a session a completion of a task that another actor has ended, as
// if its developer had sent it.
func (wd workDecision) tellEnd(t *state.Task, outcome, why string) {
	w := t.Work()
	if w == nil || w.Of.Closed() {
		return
	}
	wd.sayCompletion(w, outcome, why, nil)
}

// sayCompletion sends a completion for a developer that does not send one.
func (wd workDecision) sayCompletion(w *state.Work, outcome, why string, e *session.ExecutionError) {
	from, to := w.Of.Member(w.Developer), w.Lead()
	if from == nil || to == nil {
		return // the sender or the recipient is gone
	}
	wd.sayFor(w, from, to, func(h session.Head) *session.Message {
		return h.Completion(w.Task.View.ID, outcome, brief(why), e)
	})
}

// sayFor sends a message for a member that does not send it itself.
func (wd workDecision) sayFor(w *state.Work, from, to *state.Member, spell func(session.Head) *session.Message) {
	m := spell(wd.sessions().head(w.Of, from, to, w.Chain))
	wd.sessions().say(&messageContext{Message: m, of: w.Of, from: from, to: to, chain: w.Chain, task: w.Task.View.ID, notes: m.Notes}, nil)
}

// head returns the envelope of a message that the orchestrator sends for a member.
func (sd sessionDecision) head(s *state.SessionState, from, to *state.Member, chain string) session.Head {
	var named string // only if both members share several sessions
	for _, seat := range sd.state.Sessions.Seats[from.AgentID] {
		if other := seat.Of; other != s && !other.Closed() && other.Member(to.AgentID) != nil {
			named = s.Spec.ID
		}
	}
	return session.Head{
		SessionID: named,
		MessageID: messageID(s.Spec.ID, sd.state.Seq()+1), At: sd.at, SequenceNumber: s.Last + 1,
		From: session.Agent{AgentID: from.AgentID, AgentType: from.AgentType},
		To:   session.Agent{AgentID: to.AgentID, AgentType: to.AgentType}, CorrelationID: chain,
	}
}
