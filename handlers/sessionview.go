package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/history"
	"orchestrator/wire"
)

func listSessions(sd sessionDecision, _ *wire.Nothing) (*wire.SessionList, *wire.Error) {
	answer := &wire.SessionList{Sessions: []wire.SessionBrief{}}
	for _, s := range sd.state.sessions.order {
		if sd.from.Kind != Agent || s.member(sd.from.Name) != nil {
			answer.Sessions = append(answer.Sessions, s.brief())
		}
	}
	return answer, nil
}

func (s *sessionState) brief() wire.SessionBrief {
	b := wire.SessionBrief{
		ID: s.spec.ID, State: s.state(), Source: s.source(), Members: s.spec.Members, Messages: s.messages, Refused: s.refused, Tasks: len(s.works),
	}
	for _, w := range s.works {
		if !w.settled() {
			b.Open++
		}
		if w.open != nil {
			b.Reviews++
		}
	}
	return b
}

func (s *sessionState) state() string {
	if s.closed() {
		return wire.SessionClosed
	}
	return wire.SessionOpen
}

func (s *sessionState) source() string {
	if s.file {
		return wire.SessionFromFile
	}
	return wire.SessionByHand
}

func getSession(sd sessionDecision, r *wire.GetSession) (*wire.SessionView, *wire.Error) {
	s, err := sd.sessionNamed(r.SessionID)
	if err != nil {
		return nil, err
	}
	page := &history.SessionPage{
		Session: s.key(), After: r.After, Until: max(sd.state.seq, 1), Limit: int(r.Limit), Chain: r.CorrelationID, Task: r.TaskID, To: r.To,
	}
	if page.Limit == 0 {
		page.Limit = wire.SessionPage
	}
	sd.pages = append(sd.pages, history.Page{Session: page})
	view := sd.state.agents.sessionView(s)
	if r.TaskID != "" {
		view.Tasks = slices.DeleteFunc(view.Tasks, func(k wire.SessionTask) bool { return k.TaskID != r.TaskID && k.Revises != r.TaskID })
		view.Reviews = slices.DeleteFunc(view.Reviews, func(v wire.ReviewView) bool { return v.TaskID != r.TaskID })
	}
	return view, nil
}

// sessionNamed returns a session that the caller may read.
func (sd sessionDecision) sessionNamed(id string) (*sessionState, *wire.Error) {
	seats := sd.state.sessions.seats[sd.from.Name]
	if id == "" && sd.from.Kind == Agent && len(seats) == 1 {
		return seats[0].of, nil
	}
	s := sd.state.sessions.byID[id]
	switch {
	case id == "":
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: "session_id is missing", Details: map[string]any{"pointer": "/payload/session_id"}}
	case s == nil:
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no session %q", id),
			Details: map[string]any{"session_id": id, "pointer": "/payload/session_id"},
		}
	case sd.from.Kind == Agent && s.member(sd.from.Name) == nil:
		return nil, &wire.Error{
			Code: wire.CodeDenied, Message: fmt.Sprintf("you are not a member of the session %q", id),
			Details: map[string]any{"session_id": id, "pointer": "/payload/session_id"},
		}
	}
	return s, nil
}

// sessionView returns a session without its messages.
func (as *agents) sessionView(s *sessionState) *wire.SessionView {
	v := &wire.SessionView{
		SessionSpec: s.spec, State: s.state(), Reason: s.reason, Source: s.source(),
		Standing: []wire.MemberView{}, Tasks: []wire.SessionTask{}, Reviews: []wire.ReviewView{}, Messages: []wire.SessionEntry{},
	}
	working := make(map[string]int)
	for _, w := range s.works {
		if w.active() {
			working[w.developer]++
		}
		v.Tasks = append(v.Tasks, w.view())
	}
	for _, m := range s.members {
		shown := wire.MemberView{SessionMember: m.SessionMember, Working: working[m.AgentID]}
		for _, p := range m.outbox {
			if !p.taken && !p.repeat {
				shown.Waiting++
			}
		}
		if a := as.byID[m.AgentID]; a != nil {
			shown.Status = a.status()
		}
		v.Standing = append(v.Standing, shown)
	}
	for _, r := range s.reviews {
		v.Reviews = append(v.Reviews, r.shown())
	}
	return v
}

// view returns the work as its members see it.
func (w *work) view() wire.SessionTask {
	k := w.task
	v := wire.SessionTask{
		TaskID: k.view.ID, Name: k.view.Name, Architect: w.architect, Developer: w.developer, Phase: w.phase, State: k.view.State,
		Progress: k.view.Progress, Step: k.view.Message, Overdue: w.overdue, Tries: w.tries, Iteration: w.loop.Iteration,
		MaxIterations: w.loop.Limit(), Escalated: w.escalated, CorrelationID: w.chain, Scope: w.scope, Findings: []wire.FindingView{}, Error: w.trouble,
	}
	if w.revises != nil {
		v.Revises = w.revises.task.view.ID
	}
	for _, f := range w.last().loop.Findings { // of its revisions: there they are fixed
		v.Findings = append(v.Findings, wire.FindingView{
			ID: f.ID, Severity: f.Severity, Category: f.Category, File: f.File, Text: f.Text, Found: f.Found, Fixed: f.Fixed,
		})
	}
	return v
}

func (r *reviewOf) shown() wire.ReviewView {
	shown := r.view
	if shown.Findings == nil {
		shown.Findings = []string{}
	}
	return shown
}

func listReviews(sd sessionDecision, r *wire.ListReviews) (*wire.ReviewList, *wire.Error) {
	if r.SessionID != "" {
		if _, err := sd.sessionNamed(r.SessionID); err != nil {
			return nil, err
		}
	}
	answer := &wire.ReviewList{Reviews: []wire.ReviewView{}}
	for _, s := range sd.state.sessions.order {
		if sd.from.Kind == Agent && s.member(sd.from.Name) == nil {
			continue
		}
		for _, v := range s.reviews {
			if (r.SessionID == "" || s.spec.ID == r.SessionID) && (r.TaskID == "" || v.view.TaskID == r.TaskID) &&
				(r.ReviewID == "" || v.view.ReviewID == r.ReviewID) {
				answer.Reviews = append(answer.Reviews, v.shown())
			}
		}
	}
	return answer, nil
}
