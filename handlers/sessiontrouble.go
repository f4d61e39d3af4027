package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// maxTries is the maximum number of attempts of a developer at a task.
const maxTries = 2

// troubled records an error without further consequence.
func (wd workDecision) troubled(w *state.Work, e *session.ExecutionError) {
	wd.noteTrouble(w, e, w.Tries, w.Limit)
}

func (wd workDecision) noteTrouble(w *state.Work, e *session.ExecutionError, tries int, limit time.Duration) {
	e.TaskID, e.ErrorMessage = w.Task.View.ID, brief(e.ErrorMessage)
	wd.fact(state.AgentPrefix+w.Developer, e.TaskID, &state.WorkTroubled{ExecutionError: *e, Tries: tries, Limit: limit.Milliseconds()})
}

// mayRetry reports whether a work is retried after an error: once, after an exception or a
// timeout.
func (wd workDecision) mayRetry(w *state.Work, e *session.ExecutionError) bool {
	return (e.ErrorType == session.ExecutionException || e.ErrorType == session.ExecutionTimeout) && w.Tries < maxTries && w.Document != nil
}

// retryWork restarts a work. Its developer gets the assignment again, with the error as a
// previous attempt.
func (wd workDecision) retryWork(w *state.Work, trouble *session.ExecutionError) {
	again := *trouble // as it was said, it stays
	e := &again
	limit := w.Limit
	if e.ErrorType == session.ExecutionTimeout {
		limit *= 2
	}
	e.Recoverable, e.SuggestedAction = true, session.SuggestRetry
	tries := w.Tries + 1
	wd.noteTrouble(w, e, tries, limit)
	wd.tellArchitect(w, "Tried again after "+e.ErrorType+": "+e.ErrorMessage)
	wd.restartWork(w, tries, e.ErrorType, e.ErrorMessage)
}

// restartWork assigns a work to its developer again.
func (wd workDecision) restartWork(w *state.Work, attempt int, outcome, why string) {
	from, to := w.Lead(), w.Of.Member(w.Developer)
	if from == nil || to == nil || wd.state.Agents.ByID[w.Developer] == nil {
		wd.loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
		return
	}
	first, err := session.Read(w.Document, history.Deepest)
	if err != nil { // an earlier version took it
		wd.loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
		return
	}
	h := wd.sessions().head(w.Of, from, to, w.Chain)
	h.ReplyTo = w.Message
	again, spellErr := h.Again(first, int64(max(attempt-1, w.Task.View.Attempts)), outcome, brief(why))
	if spellErr != nil {
		wd.loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
		return
	}
	wd.moveWork(w, session.PhaseAssigned, brief(why))
	wd.sessions().say(&messageContext{Message: again, of: w.Of, from: from, to: to, chain: w.Chain, task: w.Task.View.ID}, nil)
	wd.factOf(state.AgentPrefix+w.Architect, state.AgentPrefix+w.Developer, w.Task.View.ID, &state.WorkRepeated{ID: w.Task.View.ID, Message: again.MessageID})
	wd.questions().cancelQuestions(w.Task)
	wd.startWorkTask(w)
}

// loseWork fails a work that its developer does not complete. Its architect gets a completion as
// if the developer had sent it.
func (wd workDecision) loseWork(w *state.Work, e *session.ExecutionError) {
	if w.Settled() {
		return
	}
	wd.troubled(w, e)
	wd.sayCompletion(w, session.OutcomeFailed, e.ErrorMessage, e)
	wd.failWork(w, e.ErrorMessage)
}

// breakWork handles an unrecoverable error that a developer reports about a work.
func (wd workDecision) breakWork(w *state.Work, why string) {
	e := &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestAbort}
	wd.beginWork(w)
	if wd.mayRetry(w, e) {
		wd.retryWork(w, e)
		return
	}
	wd.loseWork(w, e)
}

// runEnded decides about the works of an agent after the end of its run. Works that it had not
// begun wait for its next run. All other works are retried once if the run ended by itself. An
// ordered stop, or the loss of the orchestrator, is not counted.
func (wd workDecision) runEnded(a *state.KnownAgent, how string, ordered bool) {
	for _, w := range wd.state.Sessions.WorksOf(a.ID) {
		if w.Phase != session.PhaseWorking {
			continue
		}
		e := &session.ExecutionError{
			ErrorType: session.ExecutionException, ErrorMessage: fmt.Sprintf("%s ended while it had the task: %s", a.ID, how),
		}
		switch {
		case ordered:
			wd.restartWork(w, w.Tries+1, "interrupted", how)
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
	if a := ad.state.Agents.ByID[name]; a == nil || a.Remote != nil || ad.state.Stopping {
		return
	}
	why := name + " is no longer running"
	ad.own.questions().withdrawPermissions(func(q *state.Question) bool { return q.View.Agent == name })
	ad.delegations().takeBack(ad.state.Agents.ByID[name], why)
	ad.sessions().abandonItems(name, why)
	for _, w := range ad.state.Sessions.WorksOf(name) {
		ad.works().loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
	}
	for _, m := range ad.state.Sessions.Seats[name] {
		for _, w := range slices.Clone(m.Of.Open) {
			if w.Architect == name && w.Lead() == m && w.Stands() {
				ad.reviews().askPerson(w, "its architect is no longer running")
			}
		}
	}
}

// watch handles works of developers that were silent or took too long.
func (wd workDecision) watch() {
	for len(wd.state.Sessions.Watched) > 0 && !wd.state.Sessions.Watched[0].Due.After(wd.at) && !wd.state.Stopping {
		w := wd.state.Sessions.Watched[0]
		if w.Limit > 0 && !w.Begun.Add(w.Limit).After(wd.at) {
			wd.timeOut(w)
			continue
		}
		if at, ok := w.DeadlineAt(); ok && !at.After(wd.at) {
			wd.passDeadline(w)
			continue
		}
		wd.fact(state.AgentPrefix+w.Developer, w.Task.View.ID, &state.ProgressOverdue{ID: w.Task.View.ID, Name: w.Task.View.Name, Agent: w.Developer, Since: object.Timestamp(w.Heard)})
	}
}

// timeOut handles a work that exceeds its time limit. The first time, the limit is doubled.
func (wd workDecision) timeOut(w *state.Work) {
	e := &session.ExecutionError{
		ErrorType: session.ExecutionTimeout, ErrorMessage: fmt.Sprintf("%s has not completed the task in %s", w.Developer, w.Limit),
	}
	if !wd.mayRetry(w, e) {
		e.SuggestedAction = session.SuggestReassign
		wd.loseWork(w, e)
		return
	}
	e.Recoverable, e.SuggestedAction = true, session.SuggestRetry
	wd.noteTrouble(w, e, w.Tries+1, 2*w.Limit)
	more := fmt.Sprintf("%s: it has %s more", e.ErrorMessage, w.Limit)
	wd.tasks().tell(wd.state.Agents.ByID[w.Developer], w.Task, wire.NoticeUpdated, more)
	wd.tellArchitect(w, more)
}

// passDeadline notifies the architect and the developer of a work that its deadline has passed.
// A deadline is advisory: the work continues.
func (wd workDecision) passDeadline(w *state.Work) {
	wd.fact(state.AgentPrefix+w.Developer, w.Task.View.ID, &state.DeadlinePassed{
		ID: w.Task.View.ID, Name: w.Task.View.Name, Agent: w.Developer, Deadline: w.Wished,
	})
	message := fmt.Sprintf("The deadline of task %s has passed: %s", w.Task.Label(), w.Wished)
	wd.tasks().tell(wd.state.Agents.ByID[w.Developer], w.Task, wire.NoticeUpdated, message)
	wd.tellArchitect(w, message)
}
