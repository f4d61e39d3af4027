package agents_test

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// calls maps an operation to the SDK method that sends it.
var calls = map[string]func(ctx context.Context, c *agents.Conn, payload []byte) (any, error){
	"query-agents":  verb((*agents.Conn).QueryAgents),
	"query-tasks":   verb((*agents.Conn).QueryTasks),
	"submit-task":   verb((*agents.Conn).SubmitTask),
	"ask-user":      verb((*agents.Conn).AskUser),
	"update-task":   verb((*agents.Conn).UpdateTask),
	"assign-task":   verb((*agents.Conn).AssignTask),
	"send-message":  verb((*agents.Conn).SendMessage),
	"poll-messages": verb((*agents.Conn).PollMessages),
	"add-note":      verb((*agents.Conn).AddNote),

	"query-servers": bare((*agents.Conn).Servers),
	"poll-tasks":    bare((*agents.Conn).PollTasks),
	"heartbeat":     bare((*agents.Conn).Heartbeat),

	"get-task":     about((*agents.Conn).GetTask),
	"start-task":   about((*agents.Conn).StartTask),
	"auto-assign":  about((*agents.Conn).AutoAssign),
	"match-agents": about((*agents.Conn).MatchAgents),
	"list-notes":   about((*agents.Conn).ListNotes),
	"approve-plan": about((*agents.Conn).ApprovePlan),

	"ack-messages": verb(func(c *agents.Conn, ctx context.Context, p wire.AckMessages) (wire.Acked, error) {
		return c.AckMessages(ctx, p.Seq)
	}),
	"check-tasks": verb(func(c *agents.Conn, ctx context.Context, p wire.CheckTasks) ([]wire.Task, error) {
		return c.CheckTasks(ctx, p.SessionID)
	}),
	"complete-task": verb(func(c *agents.Conn, ctx context.Context, p struct {
		TaskID string   `json:"taskId"`
		Result wire.Raw `json:"result"`
	},
	) (wire.Task, error) {
		return c.CompleteTask(ctx, p.TaskID, given(p.Result))
	}),
	"fail-task": verb(func(c *agents.Conn, ctx context.Context, p wire.FailTask) (wire.Task, error) {
		return c.FailTask(ctx, p.TaskID, p.Error)
	}),
	"cancel-task": verb(func(c *agents.Conn, ctx context.Context, p wire.CancelTask) (wire.Task, error) {
		return c.CancelTask(ctx, p.TaskID, p.Reason)
	}),
	"add-dependency": verb(func(c *agents.Conn, ctx context.Context, p struct {
		TaskID   string `json:"taskId"`
		On       string `json:"dependsOnTaskId"`
		Type     string `json:"dependencyType"`
		Contract string `json:"contractKey"`
	},
	) (wire.Link, error) {
		return c.AddDependency(ctx, p.TaskID, hub.Dependency{On: p.On, Type: p.Type, Contract: p.Contract})
	}),
	"remove-dependency": verb(func(c *agents.Conn, ctx context.Context, p wire.RemoveDependency) (wire.Link, error) {
		return c.RemoveDependency(ctx, p.TaskID, p.DependencyID)
	}),
	"request-help": verb(func(c *agents.Conn, ctx context.Context, p wire.RequestHelp) (wire.Task, error) {
		return c.RequestHelp(ctx, p.TaskID, p.Question, given(p.Context))
	}),
	"update-capabilities": verb(func(c *agents.Conn, ctx context.Context, p struct {
		Capabilities wire.Raw `json:"capabilities"`
		System       wire.Raw `json:"system"`
	},
	) (wire.Server, error) {
		return c.UpdateCapabilities(ctx, wire.UpdateCapabilities{Capabilities: &hub.Capabilities{Document: p.Capabilities}, System: p.System})
	}),
	"submit-plan": verb(func(c *agents.Conn, ctx context.Context, p wire.SubmitPlan) (wire.Task, error) {
		return c.SubmitPlan(ctx, p.TaskID, given(p.Plan))
	}),
	"revise-plan": verb(func(c *agents.Conn, ctx context.Context, p wire.RevisePlan) (wire.Task, error) {
		return c.RevisePlan(ctx, p.TaskID, p.Feedback)
	}),
}

// given returns nil for a missing value.
func given(text wire.Raw) any {
	if text == nil {
		return nil
	}
	return text
}

type calling = func(ctx context.Context, c *agents.Conn, payload []byte) (any, error)

func verb[P, A any](do func(*agents.Conn, context.Context, P) (A, error)) calling {
	return func(ctx context.Context, c *agents.Conn, payload []byte) (any, error) {
		var p P
		if err := object.DecodeOwn(payload, &p); err != nil {
			panic(err)
		}
		answer, err := do(c, ctx, p)
		return answer, err
	}
}

func bare[A any](do func(*agents.Conn, context.Context) (A, error)) calling {
	return verb(func(c *agents.Conn, ctx context.Context, _ struct{}) (A, error) { return do(c, ctx) })
}

func about[A any](do func(*agents.Conn, context.Context, string) (A, error)) calling {
	return verb(func(c *agents.Conn, ctx context.Context, p wire.TaskID) (A, error) { return do(c, ctx, p.TaskID) })
}

// call calls the method of an operation.
func call(ctx context.Context, c *agents.Conn, operation, payload string) (any, error) {
	if do := calls[operation]; do != nil {
		return do(ctx, c, []byte(payload))
	}
	var answer wire.Raw
	err := c.Ask(ctx, operation, wire.Raw(payload), &answer)
	return answer, err
}

// tell calls the method of an event.
func tell(c *agents.Conn, event, payload string) error {
	var p struct {
		TaskID      string   `json:"taskId"`
		Progress    float64  `json:"progress"`
		Level       string   `json:"level"`
		Message     string   `json:"message"`
		Error       string   `json:"error"`
		Recoverable bool     `json:"recoverable"`
		Question    string   `json:"question"`
		Context     wire.Raw `json:"context"`
	}
	_ = object.DecodeOwn([]byte(payload), &p) // the method reports what is wrong
	switch event {
	case "progress":
		return c.Progress(p.TaskID, p.Progress, p.Message)
	case "log":
		return c.Log(p.Level, p.Message, given(p.Context))
	case "error":
		return c.Trouble(p.TaskID, errors.New(p.Error), p.Recoverable)
	case "question":
		return c.Wonder(p.Question, given(p.Context))
	}
	return c.Tell(event, wire.Raw(payload))
}

// A speech has the arguments of all session methods.
type speech struct {
	Said       string               `json:"said"`
	Chain      string               `json:"chain"`
	Developer  string               `json:"developer"`
	Reviewer   string               `json:"reviewer"`
	TaskID     string               `json:"task_id"`
	To         session.Agent        `json:"to"`
	Assignment agents.Assignment    `json:"assignment"`
	Progress   agents.Progress      `json:"progress"`
	Completion agents.Completion    `json:"completion"`
	Request    agents.ReviewRequest `json:"request"`
	Result     agents.ReviewResult  `json:"result"`
	Feedback   agents.Feedback      `json:"feedback"`
	Status     wire.Raw             `json:"status"`
	Abort      agents.Abort         `json:"abort"`
}

// say sends one message of the session.
func (p *player) say(verb, text string) (*agents.Sent, error) {
	var m speech
	if err := object.DecodeOwn([]byte(text), &m); err != nil {
		return nil, err
	}
	s, said := p.session, p.said[m.Said]
	if m.Chain != "" {
		s = s.Chain(m.Chain)
	}
	switch verb {
	case "assign":
		return s.Assign(p.ctx, m.Developer, m.Assignment)
	case "acknowledge":
		return s.Acknowledge(p.ctx, said)
	case "report":
		return s.Report(p.ctx, said, m.Progress)
	case "complete":
		return s.Complete(p.ctx, said, m.Completion)
	case "request-review":
		return s.RequestReview(p.ctx, m.Reviewer, m.Request)
	case "judge":
		return s.Judge(p.ctx, said, m.Result)
	case "give-feedback":
		return s.GiveFeedback(p.ctx, m.To, m.Feedback)
	case "answer":
		return s.Answer(p.ctx, said, m.Feedback)
	case "ask-status":
		return s.AskStatus(p.ctx, m.To, agents.StatusQuery{TaskID: m.TaskID})
	case "tell-status":
		return s.TellStatus(p.ctx, said, m.Status)
	case "abort":
		return s.Abort(p.ctx, m.To, m.Abort)
	}
	return nil, fmt.Errorf("nobody knows the verb %s", verb)
}
