package agents_test

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// An errand is a task request as written in a dialogue.
type errand struct {
	ID            string             `json:"id"`
	Type          string             `json:"type"`
	Payload       json.RawMessage    `json:"payload"` // may be invalid
	Context       delegation.Context `json:"context"`
	Routing       delegation.Routing `json:"routing"`
	Observability struct {
		TraceID string          `json:"traceId"`
		SpanID  string          `json:"spanId"`
		Baggage json.RawMessage `json:"baggage"`
	} `json:"observability"`
}

func (p *player) errand(text string) delegation.Request {
	var e errand
	require.NoError(p.s, json.Unmarshal([]byte(text), &e))
	trace := delegation.Trace{TraceID: e.Observability.TraceID, SpanID: e.Observability.SpanID, Baggage: wire.Raw(e.Observability.Baggage)}
	return delegation.Request{ID: e.ID, Type: e.Type, Payload: wire.Raw(e.Payload), Context: e.Context, Routing: e.Routing, Observability: trace}
}

// delegates runs a step about delegated work. It returns false for other steps.
func (p *player) delegates(word, rest string) bool {
	w := words(rest, 3)
	switch word {
	case "delegate":
		request := p.errand(words(rest, 2)[1])
		p.start(w[0], func() (any, error) { return p.conn.Delegate(p.ctx, request) })
	case "await":
		d := p.delegation(w[1])
		p.start(w[0], func() (any, error) { return documented(d.Wait(p.ctx)) })
	case "status":
		d := p.delegation(w[1])
		p.start(w[0], func() (any, error) { return documented(d.Status(p.ctx)) })
	case "update":
		d := p.delegation(w[1])
		p.start(w[0], func() (any, error) { return nil, d.Update(p.ctx, wire.Raw(w[2])) })
	case "cancel":
		d, reason := p.delegation(w[1]), parsed(p.s, w[2]).(string)
		p.start(w[0], func() (any, error) { return nil, d.Cancel(p.ctx, reason) })
	case "response":
		p.responds(w[0], words(rest, 2)[1])
	case "failed", "cancelled":
		p.fails(word, w[0], words(rest, 2)[1])
	case "serve":
		p.serve(w[0], words(rest, 2)[1])
	default:
		return false
	}
	return true
}

func (p *player) delegation(number string) *agents.Delegation {
	d := p.delegated[number]
	require.NotNil(p.s, d, "nobody has said that %s was delegated", number)
	return d
}

// documented returns a response as the JSON object that a dialogue compares.
func documented(r *agents.Response, err error) (any, error) {
	if r == nil {
		return nil, err
	}
	m := map[string]any{
		"id": r.ID, "status": r.Status, "result": r.Result, "error": r.Fault, "metadata": r.Metadata, "artifacts": r.Artifacts, "message": r.Message,
	}
	if r.Status == delegation.InputRequired {
		m["question"], m["options"] = r.Question, r.Options
	}
	return m, err
}

// responds compares the next response of a delegation.
func (p *player) responds(number, want string) {
	d, next := p.delegation(number), make(chan any, 1)
	go func() {
		for r := range d.Responses(p.ctx) {
			m, _ := documented(r, nil)
			next <- m
			return
		}
		next <- nil
	}()
	got := await(p.s, next, "a response")
	if want == "end" {
		require.Nil(p.s, got, "there was to be no more")
		return
	}
	require.NotNil(p.s, got, "there is no more")
	p.tells(want, got)
}

// fails compares the error of delegated work.
func (p *player) fails(word, number, want string) {
	_, err := p.came(number)
	var fault *agents.Fault
	there := errors.As(err, &fault)
	switch {
	case word == "cancelled":
		require.ErrorIs(p.s, err, agents.ErrCancelled)
		require.Equal(p.s, want != "{}", there)
	default:
		require.NotErrorIs(p.s, err, agents.ErrCancelled)
		require.True(p.s, there, "%s", err)
	}
	if there {
		p.tells(want, map[string]any{"code": fault.Code, "message": fault.Message, "details": fault.Details, "recoverable": fault.Recoverable})
	}
}

func (p *player) serve(number, options string) {
	var o struct {
		Agent    string   `json:"agent"`
		Skills   []string `json:"skills"`
		Capacity int      `json:"capacity"`
	}
	p.read(options, &o)
	server := agents.Server{Agent: o.Agent, Capacity: o.Capacity, Skills: make(map[string]agents.Skill)}
	for _, name := range o.Skills {
		server.Skills[name] = p.skill
	}
	p.start(number, func() (any, error) { return nil, p.conn.ServeAs(p.ctx, server) })
}

// skill is the Skill function of every Server.
func (p *player) skill(ctx context.Context, job *agents.Delegated) (any, error) {
	returned, err := p.called(&handed{ctx: ctx, kind: "job", who: job.ID, with: job.Document, skilled: job, progress: func(with string) error {
		var now struct {
			Message string `json:"message"`
		}
		p.read(with, &now)
		return job.Progress(now.Message)
	}})
	if err != nil || returned == "" {
		return nil, err
	}
	return wire.Raw(returned), nil
}

// jobs carries out the actions of a job.
func (p *player) jobs(h *handed, act action) {
	switch act.word {
	case "ask":
		var q wire.AskUser
		p.read(act.with, &q)
		input, err := h.skilled.Ask(h.ctx, q.Question, q.Options...)
		h.answered <- result{input, err}
	case "artifact":
		var a delegation.Artifact
		p.read(act.with, &a)
		h.did <- h.skilled.Artifact(a.Name, a.Type, a.Content)
	case "delegate":
		d, err := h.skilled.Delegate(h.ctx, p.errand(act.with))
		act.done <- result{d, err}
	}
}

// fault returns the error that a job fails with.
func (p *player) fault(with string) error {
	var f struct {
		Code        string   `json:"code"`
		Message     string   `json:"message"`
		Details     wire.Raw `json:"details"`
		Recoverable bool     `json:"recoverable"`
	}
	p.read(with, &f)
	return &agents.Fault{Code: f.Code, Message: f.Message, Details: f.Details, Recoverable: f.Recoverable}
}

// isGiven records delegated tasks by id. What the agent prints about them counts as a response;
// a copy of the request counts as an echo.
func (s *stage) isGiven(line string) {
	if request, wrong := wire.ReadTaskRequest([]byte(line), 100); wrong == nil {
		s.given[request.ID] = true
	}
}
