package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// maxTries is the maximum number of attempts of a developer at a task.
const maxTries = 2

// workTroubled records an error in the work on a task, and its consequence.
type workTroubled struct {
	session.ExecutionError
	Tries int   `json:"tries"`             // including one that begins now
	Limit int64 `json:"limit_ms,omitzero"` // the new limit
}

func (*workTroubled) kind() string { return events.SessionTrouble }

func (wt *workTroubled) apply(s *core, r *wire.Record) {
	w := s.tasks.byID[wt.TaskID].work()
	e := wt.ExecutionError
	w.trouble = &e
	if wt.Tries > w.tries && w.active() {
		w.begun, w.heard, w.overdue = r.At, r.At, false
	}
	s.sessions.watched.Drop(w)
	w.tries, w.limit = wt.Tries, time.Duration(wt.Limit)*time.Millisecond
	s.watchWork(w)
}

// troubled records an error without further consequence.
func (wd workDecision) troubled(w *work, e *session.ExecutionError) {
	wd.noteTrouble(w, e, w.tries, w.limit)
}

func (wd workDecision) noteTrouble(w *work, e *session.ExecutionError, tries int, limit time.Duration) {
	e.TaskID, e.ErrorMessage = w.task.view.ID, brief(e.ErrorMessage)
	wd.fact(agentPrefix+w.developer, e.TaskID, &workTroubled{ExecutionError: *e, Tries: tries, Limit: limit.Milliseconds()})
}

// mayRetry reports whether a work is retried after an error: once, after an exception or a
// timeout.
func (wd workDecision) mayRetry(w *work, e *session.ExecutionError) bool {
	return (e.ErrorType == session.ExecutionException || e.ErrorType == session.ExecutionTimeout) && w.tries < maxTries && w.document != nil
}

// retryWork restarts a work. Its developer gets the assignment again, with the error as a
// previous attempt.
func (wd workDecision) retryWork(w *work, trouble *session.ExecutionError) {
	again := *trouble // as it was said, it stays
	e := &again
	limit := w.limit
	if e.ErrorType == session.ExecutionTimeout {
		limit *= 2
	}
	e.Recoverable, e.SuggestedAction = true, session.SuggestRetry
	tries := w.tries + 1
	wd.noteTrouble(w, e, tries, limit)
	wd.tellArchitect(w, "Tried again after "+e.ErrorType+": "+e.ErrorMessage)
	wd.restartWork(w, tries, e.ErrorType, e.ErrorMessage)
}

// restartWork assigns a work to its developer again.
func (wd workDecision) restartWork(w *work, attempt int, outcome, why string) {
	from, to := w.lead(), w.of.member(w.developer)
	if from == nil || to == nil || wd.state.agents.byID[w.developer] == nil {
		wd.loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
		return
	}
	first, err := session.Read(w.document, history.Deepest)
	if err != nil { // an earlier version took it
		wd.loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
		return
	}
	h := wd.sessions().head(w.of, from, to, w.chain)
	h.ReplyTo = w.message
	again, spellErr := h.Again(first, int64(max(attempt-1, w.task.view.Attempts)), outcome, brief(why))
	if spellErr != nil {
		wd.loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
		return
	}
	wd.moveWork(w, session.PhaseAssigned, brief(why))
	wd.sessions().say(&messageContext{Message: again, of: w.of, from: from, to: to, chain: w.chain, task: w.task.view.ID}, nil)
	wd.factOf(agentPrefix+w.architect, agentPrefix+w.developer, w.task.view.ID, &workRepeated{ID: w.task.view.ID, Message: again.MessageID})
	wd.questions().cancelQuestions(w.task)
	wd.startWorkTask(w)
}

// loseWork fails a work that its developer does not complete. Its architect gets a completion as
// if the developer had sent it.
func (wd workDecision) loseWork(w *work, e *session.ExecutionError) {
	if w.settled() {
		return
	}
	wd.troubled(w, e)
	wd.sayCompletion(w, session.OutcomeFailed, e.ErrorMessage, e)
	wd.failWork(w, e.ErrorMessage)
}

// breakWork handles an unrecoverable error that a developer reports about a work.
func (wd workDecision) breakWork(w *work, why string) {
	e := &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestAbort}
	wd.beginWork(w)
	if wd.mayRetry(w, e) {
		wd.retryWork(w, e)
		return
	}
	wd.loseWork(w, e)
}

// bereaveWorks decides about the works of an agent whose run has ended. Works that it had not
// begun wait for its next run. Others are retried once if the run ended by itself. An ordered
// stop, or the loss of the orchestrator, is not counted.
func (wd workDecision) bereaveWorks(a *agent, how string, ordered bool) {
	for _, w := range wd.state.sessions.worksOf(a.ID) {
		if w.phase != session.PhaseWorking {
			continue
		}
		e := &session.ExecutionError{
			ErrorType: session.ExecutionException, ErrorMessage: fmt.Sprintf("%s ended while it had the task: %s", a.ID, how),
		}
		switch {
		case ordered:
			wd.restartWork(w, w.tries+1, "interrupted", how)
		case wd.mayRetry(w, e):
			wd.retryWork(w, e)
		default:
			e.SuggestedAction = session.SuggestAbort
			wd.loseWork(w, e)
		}
	}
}

// gone gives up the tasks and messages of an agent that is not restarted automatically.
func (ad agentDecision) gone(name string) {
	if a := ad.state.agents.byID[name]; a == nil || a.remote != nil || ad.state.stopping {
		return
	}
	why := name + " does not run any more"
	ad.own.questions().withdrawPermissions(func(q *question) bool { return q.view.Agent == name })
	ad.delegations().takeBack(ad.state.agents.byID[name], why)
	ad.sessions().abandonItems(name, why)
	for _, w := range ad.state.sessions.worksOf(name) {
		ad.works().loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
	}
	for _, m := range ad.state.sessions.seats[name] {
		for _, w := range slices.Clone(m.of.open) {
			if w.architect == name && w.lead() == m && w.stands() {
				ad.reviews().askPerson(w, "its architect does not run any more")
			}
		}
	}
}

// stands reports whether a work waits for its architect. A work that was revised under another
// id does not.
func (w *work) stands() bool {
	return !w.settled() && w.revision == nil && (w.phase == session.PhaseCompleted || w.phase == session.PhaseRevise || w.phase == session.PhaseRedesign)
}

// watch handles works whose developers have been silent or have taken too long.
func (wd workDecision) watch() {
	for len(wd.state.sessions.watched) > 0 && !wd.state.sessions.watched[0].due.After(wd.at) && !wd.state.stopping {
		w := wd.state.sessions.watched[0]
		if w.limit > 0 && !w.begun.Add(w.limit).After(wd.at) {
			wd.timeOut(w)
			continue
		}
		if at, ok := w.deadlineAt(); ok && !at.After(wd.at) {
			wd.passDeadline(w)
			continue
		}
		wd.fact(agentPrefix+w.developer, w.task.view.ID, &progressOverdue{ID: w.task.view.ID, Name: w.task.view.Name, Agent: w.developer, Since: object.Timestamp(w.heard)})
	}
}

// timeOut handles a work that exceeds its time limit. The first time, the limit is doubled.
func (wd workDecision) timeOut(w *work) {
	e := &session.ExecutionError{
		ErrorType: session.ExecutionTimeout, ErrorMessage: fmt.Sprintf("%s has not completed the task in %s", w.developer, w.limit),
	}
	if !wd.mayRetry(w, e) {
		e.SuggestedAction = session.SuggestReassign
		wd.loseWork(w, e)
		return
	}
	e.Recoverable, e.SuggestedAction = true, session.SuggestRetry
	wd.noteTrouble(w, e, w.tries+1, 2*w.limit)
	more := fmt.Sprintf("%s: it has %s more", e.ErrorMessage, w.limit)
	wd.tasks().tell(wd.state.agents.byID[w.developer], w.task, wire.NoticeUpdated, more)
	wd.tellArchitect(w, more)
}

// passDeadline notifies the architect and the developer of a work that its deadline has passed.
// A deadline is advisory: the work continues.
func (wd workDecision) passDeadline(w *work) {
	wd.fact(agentPrefix+w.developer, w.task.view.ID, &deadlinePassed{
		ID: w.task.view.ID, Name: w.task.view.Name, Agent: w.developer, Deadline: w.wished,
	})
	message := fmt.Sprintf("The deadline of task %s has passed: %s", w.task.label(), w.wished)
	wd.tasks().tell(wd.state.agents.byID[w.developer], w.task, wire.NoticeUpdated, message)
	wd.tellArchitect(w, message)
}

// deadlinePassed records that a work has not been completed by its deadline.
type deadlinePassed struct {
	ID       string `json:"task"`
	Name     string `json:"name"`
	Agent    string `json:"agent"`
	Deadline string `json:"deadline"`
}

func (*deadlinePassed) kind() string { return events.TaskDeadlinePassed }

func (d *deadlinePassed) apply(s *core, _ *wire.Record) {
	w := s.tasks.byID[d.ID].work()
	w.expired = true
	s.watchWork(w)
}

// progressOverdue records that a task has had no progress report for too long.
type progressOverdue struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Since string `json:"since"`
}

func (*progressOverdue) kind() string { return events.TaskProgressOverdue }

func (p *progressOverdue) apply(s *core, _ *wire.Record) {
	w := s.tasks.byID[p.ID].work()
	w.overdue = true
	s.watchWork(w)
}

// workRepeated records that a work was assigned again by a new message, after an interruption or
// an error.
type workRepeated struct {
	ID      string `json:"task"`
	Message string `json:"message_id"`
}

func (*workRepeated) kind() string { return events.SessionReassigned }

func (wr *workRepeated) apply(s *core, _ *wire.Record) {
	w := s.tasks.byID[wr.ID].work()
	w.message, w.document = wr.Message, w.of.latest.Document
}
