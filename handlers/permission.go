package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A grant is a permission that a person has given for more than one time.
type grant struct {
	Tool  string   `json:"tool"`
	Input wire.Raw `json:"input"`
	// Session is the conversation, or the run, for which it holds; "" is for ever.
	Session string `json:"session,omitzero"`
}

// maxGrants is the maximum number of remembered permissions of an agent. The oldest is forgotten
// first, and asked again.
const maxGrants = 1000

// granted returns the choice that answers a request for permission, if it was granted before, or
// "".
func (a *agent) granted(r *wire.AskPermission) string {
	i := slices.IndexFunc(a.grants, func(g grant) bool {
		return g.Tool == r.Tool && string(g.Input) == string(r.Input) && (g.Session == "" || g.Session == a.session())
	})
	if i < 0 {
		return ""
	}
	for _, kind := range []string{wire.AllowOnce, wire.AllowSession, wire.AllowAlways} {
		for _, c := range r.Choices {
			if c.Kind == kind {
				return c.ID
			}
		}
	}
	return ""
}

// session returns for how long a permission for the session holds: as long as the conversation
// of the agent's program, or the run if there is none.
func (a *agent) session() string {
	if a.conversation != nil {
		return a.conversation.ID
	}
	return a.run
}

// grant remembers a permission that was given for more than one time.
func (a *agent) grant(p *wire.Permission, answer string) {
	i := slices.IndexFunc(p.Choices, func(c wire.PermissionChoice) bool { return c.ID == answer })
	if i < 0 || p.Choices[i].Kind != wire.AllowSession && p.Choices[i].Kind != wire.AllowAlways {
		return
	}
	g := grant{Tool: p.Tool, Input: p.Input}
	if p.Choices[i].Kind == wire.AllowSession {
		g.Session = a.session()
	}
	if a.grants = append(a.grants, g); len(a.grants) > maxGrants {
		a.grants = a.grants[1:]
	}
}

// maxPermissionWait is how long a request for permission waits if it names no time.
const maxPermissionWait = 365 * 24 * time.Hour

func askPermission(qd questionDecision, r *wire.AskPermission) (*wire.UserAnswer, *wire.Error) {
	a := qd.state.agents.byID[qd.from.Name]
	if choice := a.granted(r); choice != "" {
		return &wire.UserAnswer{
			Answer: choice, Choice: choice, Metadata: wire.AnswerMetadata{AnsweredAt: object.Timestamp(qd.at)},
		}, nil
	}
	wait := maxPermissionWait
	if r.Timeout > 0 {
		wait = time.Duration(r.Timeout) * time.Millisecond
	}
	options := make([]wire.Option, 0, len(r.Choices))
	for _, c := range r.Choices {
		options = append(options, wire.Option{Label: cmp.Or(c.Label, c.ID), Value: c.ID})
	}
	return nil, qd.ask(&questionAsked{
		Question: r.Title, Options: options, Task: r.TaskID, Deadline: object.Timestamp(qd.at.Add(wait)),
		Permission: &wire.Permission{Tool: r.Tool, Input: r.Input, Paths: r.Paths, Reason: r.Reason, Choices: r.Choices},
	})
}

// ask puts a question whose caller waits, unless the same question is open.
func (qd questionDecision) ask(f *questionAsked) *wire.Error {
	if f.Task == "" {
		f.Task = qd.state.agents.parentOf(qd.from.Name)
	} else if k := qd.state.tasks.byID[f.Task]; k == nil || k.view.AssignedTo != qd.from.Name {
		return &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("you have no task %.80q", f.Task),
			Details: map[string]any{"taskId": f.Task, "pointer": "/payload/taskId"},
		}
	}
	switch q := qd.askedBefore(); {
	case q == nil:
		if err := qd.tooMany(); err != nil {
			return err
		}
		f.ID, f.Agent, f.Request = qd.state.questions.questionID(), qd.from.Name, qd.mark()
		qd.fact("", "", f)
	case q.waited(qd.state): // a repeat of an earlier question
	default:
		qd.fact("", "", &questionRejoined{ID: q.view.ID, Agent: qd.from.Name, Deadline: f.Deadline, Request: qd.mark()})
	}
	return nil
}

// withdrawQuestion closes a question of the caller. The request that asked it is refused.
func withdrawQuestion(qd questionDecision, r *wire.WithdrawQuestion) (*wire.Withdrawn, *wire.Error) {
	for _, q := range qd.state.questions.open {
		if q.view.Agent != qd.from.Name || r.QuestionID != "" && q.view.ID != r.QuestionID ||
			r.RequestID != "" && (q.request == nil || q.request.ID != r.RequestID || q.run != qd.from.Run) {
			continue
		}
		if qd.state.tasks.awaits(q) {
			return nil, &wire.Error{
				Code: wire.CodeConflict, Message: "your task waits for the answer: start it again to go on without",
				Details: map[string]any{"questionId": q.view.ID, "taskId": q.view.Task},
			}
		}
		qd.withdraw(q)
		break
	}
	return &wire.Withdrawn{Withdrawn: true}, nil // one that is closed was answered or withdrawn before
}

func (qd questionDecision) withdraw(q *question) {
	waited := q.waited(qd.state)
	to, request := q.asker(), q.request
	qd.fact(agentPrefix+q.view.Agent, q.view.Task, &questionWithdrawn{ID: q.view.ID, Agent: q.view.Agent, Asked: true})
	if waited && request != nil {
		qd.out.Letters = append(qd.out.Letters, Letter{To: to, Request: request.ID, Refusal: withdrawn()})
	}
}

func withdrawn() *wire.Error {
	return &wire.Error{Code: wire.CodeConflict, Message: "the question was withdrawn"}
}
