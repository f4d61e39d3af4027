package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// A player is the program of a dialogue. It calls the SDK as the steps say.
type player struct {
	s       *stage
	conn    *agents.Conn
	ctx     context.Context
	stop    context.CancelFunc
	me      agents.Identity
	session *agents.Session
	lead    *agents.Architect

	started map[string]chan result  // by their numbers
	sent    map[string]*agents.Sent // by their numbers
	said    map[string]*agents.Said // by message_id

	delegated map[string]*agents.Delegation // by their numbers

	handed chan *handed
	hands  map[string]*handed // by WHO
}

// A result is the outcome of a started call.
type result struct {
	value any
	err   error
}

func newPlayer(s *stage, conn *agents.Conn) player {
	p := player{
		s: s, conn: conn, started: make(map[string]chan result), sent: make(map[string]*agents.Sent),
		said: make(map[string]*agents.Said), delegated: make(map[string]*agents.Delegation), handed: make(chan *handed, 10), hands: make(map[string]*handed),
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// giveUp ends all calls that are still running.
func (p *player) giveUp() {
	p.stop()
	for _, h := range p.hands {
		close(h.acts)
	}
	for _, done := range p.started {
		<-done
	}
}

// over checks at the end of a dialogue that all started calls have ended.
func (p *player) over() {
	for number := range p.started {
		require.Fail(p.s, "nobody says what came of "+number)
	}
}

// start runs a call in the background and stores its outcome under a number.
func (p *player) start(number string, do func() (any, error)) {
	done := make(chan result, 1)
	p.started[number] = done
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
}

// came waits for the outcome of a started call and returns it.
func (p *player) came(number string) (any, error) {
	done := p.started[number]
	require.NotNil(p.s, done, "%s was not started", number)
	r := await(p.s, done, "the outcome of "+number)
	delete(p.started, number)
	return r.value, r.err
}

// words splits off the first n words.
func words(rest string, n int) []string {
	parts := strings.SplitN(rest, " ", n)
	for len(parts) < n {
		parts = append(parts, "")
	}
	return parts
}

// act runs a step of the program.
func (p *player) act(word, rest string) {
	switch word {
	case "call":
		w := words(rest, 3)
		p.start(w[0], func() (any, error) { return call(p.ctx, p.conn, w[1], w[2]) })
	case "tell":
		w := words(rest, 3)
		p.start(w[0], func() (any, error) { return nil, tell(p.conn, w[1], w[2]) })
	case "as":
		var me struct {
			Agent   string `json:"agent"`
			Type    string `json:"type"`
			Session string `json:"session"`
		}
		p.read(rest, &me)
		p.me = agents.Identity{Agent: me.Agent, Type: me.Type, Session: me.Session}
		var err error
		p.session, err = p.conn.OpenSession(p.me)
		require.NoError(p.s, err)
	case "say":
		w := words(rest, 3)
		p.start(w[0], func() (any, error) { return p.say(w[1], w[2]) })
	case "work", "develop", "review", "lead", "order":
		w := words(rest, 2)
		p.role(word, w[0], w[1])
	case "task", "plan", "mail", "assignment", "rescope", "request", "correct", "job":
		w := words(rest, 2)
		p.hand(word, w[0], w[1])
	case "do":
		w := words(rest, 3)
		p.does(p.hands[w[0]], w[1], w[2])
	case "sees":
		w := words(rest, 3)
		p.hands[w[0]].sees(p.s, w[1], w[2])
	case "news", "said":
		p.hears(word, rest)
	default:
		if !p.delegates(word, rest) {
			p.comes(word, rest)
		}
	}
}

func (p *player) read(text string, into any) {
	require.NoError(p.s, object.DecodeOwn([]byte(text), into), text)
}

// tells compares a value that the program received.
func (p *player) tells(want string, got any) {
	text, ok := got.(wire.Raw)
	if !ok {
		var err error
		text, err = object.Encode(got)
		require.NoError(p.s, err)
	}
	if want == "" {
		want = "{}"
	}
	if why := told(parsed(p.s, want), parsed(p.s, string(text)), ""); why != "" {
		require.Fail(p.s, why, "want %.2000s\ngot  %.2000s", want, text)
	}
}

// comes compares the outcome of a started call.
func (p *player) comes(word, rest string) {
	w := words(rest, 3)
	if word == "undelivered" {
		await(p.s, p.sent[w[0]].Refused(), "the refusal")
		p.refused(p.sent[w[0]].Err(), w[1], w[2])
		return
	}
	value, err := p.came(w[0])
	switch word {
	case "answer", "delivered":
		require.NoError(p.s, err)
		p.tells(strings.TrimSpace(w[1]+" "+w[2]), value)
	case "refused":
		p.refused(err, w[1], w[2])
	case "done":
		require.NoError(p.s, err)
		switch value := value.(type) {
		case *agents.Sent:
			p.sent[w[0]] = value
		case *agents.Delegation:
			p.delegated[w[0]] = value
		}
	case "unsaid":
		var refused *agents.Refusal
		require.Error(p.s, err)
		require.NotErrorIs(p.s, err, io.EOF)
		require.False(p.s, errors.As(err, &refused), "%s", err)
	case "unasked":
		require.ErrorIs(p.s, err, io.EOF)
		require.ErrorContains(p.s, err, "not asked")
	case "unanswered":
		require.ErrorIs(p.s, err, io.EOF)
		require.ErrorContains(p.s, err, "there will be no answer")
	case "unfinished":
		require.ErrorContains(p.s, err, w[1]+" of the tasks left unfinished")
	case "undone":
		p.undone(err, w[1], w[2])
	default:
		require.Fail(p.s, "nobody knows the step "+word)
	}
}

func (p *player) refused(err error, code, want string) {
	var refused *agents.Refusal
	require.ErrorAs(p.s, err, &refused)
	require.Equal(p.s, code, string(refused.Code))
	p.tells(want, refused)
}

// undone compares the error of a failed order.
func (p *player) undone(err error, why, want string) {
	var ended *agents.Ended
	switch why {
	case "incomplete":
		require.ErrorIs(p.s, err, agents.ErrIncomplete)
	case "rejected":
		require.ErrorIs(p.s, err, agents.ErrRejected)
	case "unreviewed":
		require.ErrorIs(p.s, err, agents.ErrUnreviewed)
	case "undelivered":
		var refused *agents.Undelivered
		require.ErrorAs(p.s, err, &refused)
		p.tells(want, refused.Refusal)
	case "ended":
		require.ErrorAs(p.s, err, &ended)
		p.tells(want, map[string]any{"taskId": ended.TaskID, "state": ended.State, "why": ended.Why})
	default:
		require.Fail(p.s, "nobody knows why: "+why)
	}
}

// hears compares the next notice, or the next message of the session.
func (p *player) hears(word, want string) {
	next := make(chan any, 1)
	go func() {
		if word == "news" {
			next <- p.notice()
		} else {
			next <- p.message()
		}
	}()
	got := await(p.s, next, "what is "+word)
	if want == "end" {
		require.Nil(p.s, got, "there was to be no more")
		return
	}
	require.NotNil(p.s, got, "there is no more")
	p.tells(want, got)
}

func (p *player) notice() any {
	for n := range p.conn.News(p.ctx) {
		return map[string]any{"name": n.Name, "id": n.ID, "timestamp": n.Timestamp, "payload": n.Payload}
	}
	return nil
}

func (p *player) message() any {
	for said := range p.conn.Talk(p.ctx) {
		p.said[said.MessageID] = said
		return said.Document
	}
	return nil
}

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
		if h.skilled == nil {
			var a hub.Artifact
			p.read(act.with, &a)
			h.job.Artifact(a)
			h.did <- nil
			return
		}
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

// isGiven records delegated tasks by id. The agent's output about them counts as a response; a copy
// of the request counts as an echo.
func (s *stage) isGiven(line string) {
	if request, wrong := wire.ReadTaskRequest([]byte(line), 100); wrong == nil {
		s.given[request.ID] = true
	}
}
