package handlers

import (
	"fmt"
	"strings"

	"orchestrator/handlers/history"
	"orchestrator/handlers/scope"
	"orchestrator/wire"
	"orchestrator/wire/events"
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
		return errorf(wire.CodeTooLarge, details{"pointer": "/payload/changes"},
			"it changes %d files, and %d is the most that a completion may", len(files), maxFiles)
	}
	x.notes = append(x.notes, wrong...)
	if outside, n := outside(w.scope, files); n > 0 {
		return wd.outOfScope(w, outside, n)
	}
	if w.tested && !c.SelfReview.TestsRun && c.Status != session.OutcomeFailed {
		x.notes = append(x.notes, "/payload/self_review/tests_run: the task requires tests, and none were run")
	}
	if wd.passed(w.wished) {
		x.notes = append(x.notes, "it comes after its deadline, "+w.wished)
	}
	x.effect, x.work = effectComplete, w
	if e := c.Error; e != nil && c.Status == session.OutcomeFailed && wd.mayRetry(w, e) {
		x.effect = effectRetry
		x.fate = fateKept // the work continues; the architect gets only the last completion
	}
	return nil
}

// beginAnew applies a completion of a failed work that is tried again.
func (wd workDecision) beginAnew(w *work, e *session.ExecutionError) {
	wd.beginWork(w)
	if w.open != nil { // its review was requested early
		wd.reviews().breakReview(w, "its developer begins anew: "+e.ErrorMessage)
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
	case w.phase == session.PhaseReviewing: // the review was requested before the completion
		wd.fact(agentPrefix+w.architect, c.TaskID, &workCompleted{ID: c.TaskID, Result: payloadOf(x.Document)})
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
func (wd workDecision) completable(x *messageContext, id string) (*work, *wire.Error) {
	if w := wd.state.tasks.workOn(x.of, id); w != nil && w.phase == session.PhaseReviewing && w.result == nil && w.developer == x.from.AgentID {
		x.task, x.chain = id, w.chain
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

// outOfScope refuses a completion that changes files outside of the scope.
func (wd workDecision) outOfScope(w *work, files []string, n int) *wire.Error {
	e := &session.ExecutionError{
		TaskID: w.task.view.ID, ErrorType: session.ExecutionScopeViolation, Recoverable: true, SuggestedAction: session.SuggestRetry,
		ErrorMessage: fmt.Sprintf("%s changed outside of the scope, such as %.200q", counted(n, "file"), files[0]),
	}
	wd.troubled(w, e)
	return &wire.Error{
		Code: wire.CodeConflict, Message: e.ErrorMessage,
		Details: map[string]any{
			"pointer": "/payload/changes", "reason": "scope_violation", "scope": w.scope, "files": files, "task_execution_error": e,
		},
		Hint: "say the completion again, as a new message, without what is outside",
	}
}

// completeWork applies a completion: the task is done, or waits for its review if the session
// requires one.
func (wd workDecision) completeWork(w *work, result wire.Raw) {
	if w.of.spec.RequireReview || w.task.view.State.Final() {
		wd.questions().cancelQuestions(w.task)
		wd.fact(agentPrefix+w.architect, w.task.view.ID, &workCompleted{ID: w.task.view.ID, Result: result})
		return
	}
	wd.doneWork(w, result)
}

// workCompleted records that a developer has completed a work whose task does not end now: it is
// reviewed first, or was done before.
type workCompleted struct {
	ID     string   `json:"task"`
	Result wire.Raw `json:"result"`
}

func (*workCompleted) kind() string { return events.SessionCompleted }

func (wc *workCompleted) apply(s *core, r *wire.Record) {
	w := s.tasks.byID[wc.ID].work()
	w.result = wc.Result
	if w.phase != session.PhaseReviewing {
		s.enter(w, session.PhaseCompleted, r.At)
	}
}

// doneWork completes the task of a work, and the tasks that it revises.
func (wd workDecision) doneWork(w *work, document wire.Raw) {
	result := &succeeded
	if document != nil {
		result = hub.ReadResult(document)
	}
	for ; w != nil; w = w.revises {
		if k := w.task; !k.view.State.Final() {
			wd.questions().cancelQuestions(k)
			wd.tasks().complete(k, result, end{inSession: true})
		}
	}
}

// failWork fails the task of a work, and the tasks that it revises.
func (wd workDecision) failWork(w *work, why string) {
	why = brief(why)
	for ; w != nil; w = w.revises {
		wd.endWork(w, why, "")
		if k := w.task; !k.view.State.Final() {
			wd.tasks().fail(k, failure{why: why, end: end{inSession: true}})
		}
	}
}

// drop ends a work that is not wanted any more. The agent quiet is not notified.
func (wd workDecision) drop(w *work, why, quiet string) {
	why = brief(why)
	for ; w != nil; w = w.revises {
		if w.over() {
			continue
		}
		wd.endWork(w, why, quiet)
		if k := w.task; !k.view.State.Final() {
			wd.tasks().cancel(k, why, end{inSession: true, quiet: quiet})
			wd.links().abandon(k, quiet)
		}
	}
}

// endWork ends a work whose task has already ended, and withdraws its question. Any other work
// ends with its task. The agent quiet is not notified.
func (wd workDecision) endWork(w *work, why, quiet string) {
	if q := wd.state.questions.byID[w.question]; q != nil && w.task.more.question == "" {
		wd.fact(agentPrefix+w.architect, w.task.view.ID, &questionWithdrawn{ID: w.question, Agent: w.architect, Task: w.task.view.ID})
	}
	if !w.over() && w.task.view.State.Final() {
		wd.reviews().recallReview(w, why, quiet)
		wd.moveWork(w, session.PhaseOver, why)
	}
}

// failedWork applies a completion with the outcome failed.
func (wd workDecision) failedWork(w *work, c *session.Completion) {
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
func (wd workDecision) tellEnd(k *task, outcome, why string) {
	w := k.work()
	if w == nil || w.of.closed() {
		return
	}
	wd.sayCompletion(w, outcome, why, nil)
}

// sayCompletion sends a completion for a developer that does not send one.
func (wd workDecision) sayCompletion(w *work, outcome, why string, e *session.ExecutionError) {
	from, to := w.of.member(w.developer), w.lead()
	if from == nil || to == nil {
		return // the sender or the recipient is gone
	}
	wd.sayFor(w, from, to, func(h session.Head) *session.Message {
		return h.Completion(w.task.view.ID, outcome, brief(why), e)
	})
}

// sayFor sends a message for a member that does not send it itself.
func (wd workDecision) sayFor(w *work, from, to *member, spell func(session.Head) *session.Message) {
	m := spell(wd.sessions().head(w.of, from, to, w.chain))
	wd.sessions().say(&messageContext{Message: m, of: w.of, from: from, to: to, chain: w.chain, task: w.task.view.ID, notes: m.Notes}, nil)
}

// head returns the envelope of a message that the orchestrator sends for a member.
func (sd sessionDecision) head(s *sessionState, from, to *member, chain string) session.Head {
	var named string // only if both members share several sessions
	for _, seat := range sd.state.sessions.seats[from.AgentID] {
		if other := seat.of; other != s && !other.closed() && other.member(to.AgentID) != nil {
			named = s.spec.ID
		}
	}
	return session.Head{
		SessionID: named,
		MessageID: messageID(s.spec.ID, sd.state.Seq()+1), At: sd.at, SequenceNumber: s.last + 1,
		From: session.Agent{AgentID: from.AgentID, AgentType: from.AgentType},
		To:   session.Agent{AgentID: to.AgentID, AgentType: to.AgentType}, CorrelationID: chain,
	}
}
