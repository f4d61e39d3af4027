package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// role starts an SDK call that calls functions of the program.
func (p *player) role(word, number, options string) {
	var o struct {
		Plan          bool                 `json:"plan"`
		Mail          bool                 `json:"mail"`
		Rescope       bool                 `json:"rescope"`
		Correct       bool                 `json:"correct"`
		Capacity      int                  `json:"capacity"`
		ProgressAfter int64                `json:"progressAfter"`
		ProgressEvery int64                `json:"progressEvery"`
		Developer     string               `json:"developer"`
		Reviewer      string               `json:"reviewer"`
		Assignment    agents.Assignment    `json:"assignment"`
		Review        agents.ReviewRequest `json:"review"`
	}
	if options != "" {
		p.read(options, &o)
	}
	switch word {
	case "work":
		worker := agents.Worker{Do: p.worker("task")}
		if o.Plan {
			worker.Plan = p.worker("plan")
		}
		if o.Mail {
			worker.Mail = p.reader
		}
		p.start(number, func() (any, error) { return nil, p.conn.WorkAs(p.ctx, worker) })
	case "develop":
		developer := agents.Developer{
			Do: p.developer, Capacity: o.Capacity,
			ProgressAfter: time.Duration(o.ProgressAfter) * time.Millisecond, ProgressEvery: time.Duration(o.ProgressEvery) * time.Millisecond,
		}
		if o.Rescope {
			developer.Rescope = p.rescoper
		}
		p.start(number, func() (any, error) { return nil, p.session.DevelopAs(p.ctx, developer) })
	case "review":
		reviewer := agents.Reviewer{Do: p.reviewer, Capacity: o.Capacity}
		if o.Correct {
			reviewer.Correct = p.corrector
		}
		p.start(number, func() (any, error) { return nil, p.session.ReviewAs(p.ctx, reviewer) })
	case "lead":
		p.start(number, func() (any, error) { return nil, p.session.Lead(p.ctx, p.architect) })
		p.hand("lead", "lead", "")
	case "order":
		order := agents.Order{Developer: o.Developer, Reviewer: o.Reviewer, Assignment: o.Assignment, Review: o.Review}
		p.start(number, func() (any, error) {
			d, err := p.lead.Deliver(p.ctx, order)
			return map[string]any{
				"taskId": d.TaskID, "reviews": d.Reviews, "forced": d.Forced, "completion": d.Completion, "review": d.Review,
			}, err
		})
	}
}

// A handed value is a call of a function of the program by the SDK.
type handed struct {
	ctx       context.Context
	kind, who string
	with      any
	acts      chan action
	answered  chan result // the outcome of asking for help
	did       chan error  // the outcome of progress, or of an artifact
	job       *agents.Job
	skilled   *agents.Delegated
	progress  func(with string) error
}

// An action is a step that such a function carries out.
type action struct {
	word, with string
	done       chan result // the outcome of delegating
}

// hand waits until a function is called.
func (p *player) hand(kind, who, with string) {
	h := await(p.s, p.handed, "the call of a function")
	require.Equal(p.s, []string{kind, who}, []string{h.kind, h.who})
	p.hands[who] = h
	p.tells(with, h.with)
}

// does makes a function carry out an action.
func (p *player) does(h *handed, what, with string) {
	act := action{word: what, with: with}
	if what == "delegate" {
		w := words(with, 2)
		act.with, act.done = w[1], make(chan result, 1)
		p.started[w[0]] = act.done
	}
	h.acts <- act
	if what == "progress" || what == "artifact" {
		require.NoError(p.s, await(p.s, h.did, "the end of "+what))
	}
}

// called runs a function of the program: it carries out actions until one of them returns.
func (p *player) called(h *handed) (returned string, err error) {
	h.acts, h.answered, h.did = make(chan action, 10), make(chan result, 1), make(chan error, 1)
	p.handed <- h
	for act := range h.acts {
		switch act.word {
		case "return":
			return act.with, nil
		case "leave":
			return "", context.Cause(h.ctx)
		case "fail":
			return p.failing(act.with)
		case "fatal":
			var f struct {
				Code  string `json:"code"`
				Error string `json:"error"`
			}
			p.read(act.with, &f)
			return "", agents.Fatal(f.Code, errors.New(f.Error))
		case "fault":
			return "", p.fault(act.with)
		case "ask", "artifact", "delegate":
			p.jobs(h, act)
		case "progress":
			err := h.progress(act.with)
			h.did <- err
			if err != nil {
				return "", err
			}
		case "help":
			var q wire.RequestHelp
			p.read(act.with, &q)
			answer, err := h.job.Help(h.ctx, q.Question, given(q.Context))
			h.answered <- result{answer, err}
		case "permission":
			answer, err := call(h.ctx, p.conn, "ask-permission", act.with)
			h.answered <- result{answer, err}
		}
	}
	return "", errors.New("the dialogue is over")
}

// failing returns an error, and the completion that goes with it if there is one.
func (p *player) failing(with string) (string, error) {
	if strings.HasPrefix(with, `"`) {
		with = `{"error":` + with + `}`
	}
	var f struct {
		Error      string   `json:"error"`
		Completion wire.Raw `json:"completion"`
	}
	p.read(with, &f)
	return string(f.Completion), errors.New(f.Error)
}

// sees expects an event in a function, such as an answer or its cancellation.
func (h *handed) sees(s *stage, what, rest string) {
	var text string
	if rest != "" && what != "input" && what != "refused" {
		text = parsed(s, rest).(string)
	}
	switch what {
	case "refused":
		var refused *agents.Refusal
		r, w := await(s, h.answered, "a refusal"), words(rest, 2)
		require.ErrorAs(s, r.err, &refused)
		require.Equal(s, w[0], string(refused.Code))
		s.tells(w[1], refused)
		return
	case "input":
		r := await(s, h.answered, "input")
		require.NoError(s, r.err)
		require.Empty(s, s.same(parsed(s, rest), parsed(s, string(r.value.(wire.Raw))), ""))
		return
	case "answer":
		r := await(s, h.answered, "an answer")
		require.NoError(s, r.err)
		require.Equal(s, text, r.value)
		return
	case "withdrawn":
		require.ErrorIs(s, await(s, h.answered, "an answer").err, agents.ErrWithdrawn)
		return
	case "update":
		ctx, stop := context.WithTimeout(h.ctx, patience)
		defer stop()
		for update := range h.job.Updates(ctx) {
			require.Equal(s, text, update)
			return
		}
		require.Fail(s, "nothing is new")
	}
	await(s, h.ctx.Done(), "the end")
	cause := context.Cause(h.ctx)
	switch what {
	case "cancelled":
		require.ErrorIs(s, cause, agents.ErrCancelled)
		require.ErrorContains(s, cause, ": "+text)
	case "shutdown":
		require.True(s, errors.Is(cause, agents.ErrShutdown) || errors.Is(cause, io.EOF), "%s", cause)
	case "again":
		require.EqualError(s, cause, "the task was assigned again")
	}
}

// worker returns the Do or the Plan function of a Worker.
func (p *player) worker(kind string) func(context.Context, *agents.Job) (any, error) {
	return func(ctx context.Context, job *agents.Job) (any, error) {
		returned, err := p.called(&handed{ctx: ctx, kind: kind, who: job.Task.ID, with: job.Task, job: job, progress: func(with string) error {
			var now activity.Progress
			p.read(with, &now)
			if now.Output != nil {
				return p.conn.PartialResult(job.Task.ID, now.Progress, now.Message, now.Output)
			}
			return p.conn.Progress(job.Task.ID, now.Progress, now.Message)
		}})
		if err != nil || returned == "" {
			return nil, err
		}
		return wire.Raw(returned), nil
	}
}

func (p *player) reader(ctx context.Context, mail mail.Message) error {
	_, err := p.called(&handed{ctx: ctx, kind: "mail", who: strconv.FormatInt(mail.Seq, 10), with: mail})
	return err
}

func (p *player) developer(ctx context.Context, task *agents.Assigned) (what agents.Completion, err error) {
	returned, err := p.called(&handed{ctx: ctx, kind: "assignment", who: task.Task.TaskID, with: task.Assignment, progress: func(with string) error {
		var now struct {
			Percent float64  `json:"percent"`
			Step    string   `json:"step"`
			Files   []string `json:"files"`
		}
		p.read(with, &now)
		return task.Progress(now.Percent, now.Step, now.Files...)
	}})
	if returned != "" {
		p.read(returned, &what)
	}
	return what, err
}

func (p *player) rescoper(ctx context.Context, task *agents.Assigned, why *agents.Undelivered) (what agents.Completion, err error) {
	scope, _ := why.Scope()
	returned, err := p.called(&handed{ctx: ctx, kind: "rescope", who: task.Task.TaskID, with: map[string]any{"scope": scope}})
	if returned != "" {
		p.read(returned, &what)
	}
	return what, err
}

func (p *player) reviewer(ctx context.Context, request agents.ReviewRequest) (result agents.ReviewResult, err error) {
	returned, err := p.called(&handed{ctx: ctx, kind: "request", who: request.ReviewID, with: request})
	if returned != "" {
		p.read(returned, &result)
	}
	return result, err
}

func (p *player) corrector(ctx context.Context, request agents.ReviewRequest, _ agents.ReviewResult, why *agents.Undelivered) (result agents.ReviewResult, err error) {
	returned, err := p.called(&handed{ctx: ctx, kind: "correct", who: request.ReviewID, with: why.Refusal})
	if returned != "" {
		p.read(returned, &result)
	}
	return result, err
}

func (p *player) architect(ctx context.Context, a *agents.Architect) error {
	p.lead = a
	_, err := p.called(&handed{ctx: ctx, kind: "lead", who: "lead", with: struct{}{}})
	return err
}

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

	"report-progress":   verb((*agents.Conn).ReportProgress),
	"ask-permission":    verb((*agents.Conn).AskPermission),
	"withdraw-question": verb((*agents.Conn).WithdrawQuestion),

	"query-servers": bare((*agents.Conn).Servers),
	"poll-tasks":    bare((*agents.Conn).PollTasks),
	"heartbeat":     bare((*agents.Conn).Heartbeat),
	"current-task":  bare((*agents.Conn).CurrentTask),

	"get-task":     about((*agents.Conn).GetTask),
	"start-task":   about((*agents.Conn).StartTask),
	"auto-assign":  about((*agents.Conn).AutoAssign),
	"match-agents": about((*agents.Conn).MatchAgents),
	"list-notes":   about((*agents.Conn).ListNotes),
	"approve-plan": about((*agents.Conn).ApprovePlan),

	"ack-messages": verb(func(c *agents.Conn, ctx context.Context, p wire.AckMessages) (mail.Acked, error) {
		return c.AckMessages(ctx, p.Seq)
	}),
	"check-tasks": verb(func(c *agents.Conn, ctx context.Context, p wire.CheckTasks) ([]wire.Task, error) {
		return c.CheckTasks(ctx, p.SessionID)
	}),
	"complete-task": verb(func(c *agents.Conn, ctx context.Context, p struct {
		TaskID string   `json:"taskId"`
		Result wire.Raw `json:"result"`

		Artifacts []hub.Artifact `json:"artifacts"`
	},
	) (wire.Task, error) {
		return c.CompleteTask(ctx, p.TaskID, given(p.Result), p.Artifacts...)
	}),
	"fail-task": verb(func(c *agents.Conn, ctx context.Context, p wire.FailTask) (wire.Task, error) {
		return c.FailTask(ctx, p.TaskID, p.Error)
	}),
	"return-task": verb(func(c *agents.Conn, ctx context.Context, p wire.ReturnTask) (wire.Task, error) {
		return c.ReturnTask(ctx, p)
	}),
	"cancel-task": verb(func(c *agents.Conn, ctx context.Context, p wire.CancelTask) (wire.Task, error) {
		return c.CancelTask(ctx, p.TaskID, p.Reason)
	}),
	"retry-task": verb(func(c *agents.Conn, ctx context.Context, p wire.RetryTask) (wire.Task, error) {
		return c.RetryTask(ctx, p)
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
	) (hub.Server, error) {
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
		Output      wire.Raw `json:"output"`
	}
	_ = object.DecodeOwn([]byte(payload), &p) // the method reports the mistake
	switch event {
	case "progress":
		if p.Output != nil {
			return c.PartialResult(p.TaskID, p.Progress, p.Message, p.Output)
		}
		return c.Progress(p.TaskID, p.Progress, p.Message)
	case "log":
		return c.Log(p.Level, p.Message, given(p.Context))
	case "error":
		return c.Trouble(p.TaskID, errors.New(p.Error), p.Recoverable)
	case "question":
		return c.Wonder(p.Question, given(p.Context))
	case "usage":
		return report(c.ReportUsage, payload)
	case "session":
		return report(c.ReportConversation, payload)
	case "turn":
		return report(c.ReportTurn, payload)
	case "limited":
		return report(c.ReportLimit, payload)
	case "receipt":
		return report(c.ReportReceipt, payload)
	}
	return c.Tell(event, wire.Raw(payload))
}

// report calls the method of an event of coding agents.
func report[P any](tell func(P) error, payload string) error {
	var p P
	if err := object.DecodeOwn([]byte(payload), &p); err != nil {
		panic(err)
	}
	return tell(p)
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
