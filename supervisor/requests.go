package supervisor

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// enlist submits the present agents and sessions to the dispatcher.
func (s *Supervisor) enlist() {
	roster := &wire.AgentSet{Sessions: s.sessions}
	for _, a := range s.order {
		roster.Agents = append(roster.Agents, wire.Member{
			ID: a.Name, Role: a.Role, Capabilities: a.Offers, Capacity: a.Capacity, OnExit: a.OnExit, Deaf: a.Raw || a.NoStdin,
			Names: a.Names, Abilities: a.Abilities, Actor: a.Actor,
		})
	}
	s.dispatcher.note(roster)
}

// does reports whether an agent can do tasks of a type. It tells a task request from a
// misspelled message.
func (d *dispatcher) does(kind string) (so bool) {
	d.look(func(state *handlers.State) { so = state.Does(kind) })
	return so
}

// channel returns the channel of a run that is about to begin.
func (s *Supervisor) channel(a *agent, m *startRequest) *channel {
	c := &channel{
		dispatcher: s.dispatcher,
		actor:      handlers.Actor{Kind: handlers.Agent, Name: m.spec.Name, Run: m.run},
		payloads:   wire.Payloads{Depth: s.options.Protocol.Depth},
		bucket:     s.options.Protocol.bucket(),
		complain: func(kind, text string, count int64) {
			a.voice.Tell(wire.Event{Kind: kind, Run: m.run, Text: text, Figures: wire.Figures{Count: count}})
		},
	}
	c.reader = wire.Reader{Agent: m.spec.Name, Depth: s.options.Protocol.Depth, Capability: s.dispatcher.does, Given: c.given}
	return c
}

// Restore rebuilds the State from the record and removes unfinished files of earlier runs. It
// must be called before Run.
func (s *Supervisor) Restore(ctx context.Context) error {
	s.dispatcher.artifacts.clear()
	if err := s.dispatcher.restore(ctx, s.options.Rules); err != nil {
		return err
	}
	s.audience.Recent.Begin(s.dispatcher.last.Load())
	s.tally.tasks = s.dispatcher.state.Open()
	return nil
}

// Look answers read-only requests until ctx is done. It starts no agent and records nothing.
func (s *Supervisor) Look(ctx context.Context) {
	defer close(s.done)
	defer s.audience.Recent.Close()
	go s.dispatcher.keepRecording()
	for {
		select {
		case <-s.inbox.wake:
			for _, turn := range s.take() {
				turn()
			}
		case <-ctx.Done():
			s.dispatcher.close()
			return
		}
	}
}

// Ask performs an operation for a caller outside an agent's pipe, such as an operator, and
// returns its answer. The answer is a document of package wire. A refusal is a *wire.Error.
func (s *Supervisor) Ask(ctx context.Context, from handlers.Actor, operation string, payload []byte) (any, error) {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	r := asking(operation)
	r.Payload = payload
	if err := handlers.Prepare(r, s.options.Protocol.Depth); err != nil {
		return nil, s.Refuse(from, operation, err)
	}
	return s.ask(ctx, from, r)
}

// Do is like Ask, for a payload that was decoded already.
func (s *Supervisor) Do(ctx context.Context, from handlers.Actor, operation string, body any) (any, error) {
	r := asking(operation)
	r.Body = body
	return s.ask(ctx, from, r)
}

func asking(operation string) *wire.Request {
	return &wire.Request{ID: uuid.NewString(), Operation: operation, Timestamp: object.Timestamp(time.Now())}
}

// Refuse records a refusal before a decision in the audit, and returns it.
func (s *Supervisor) Refuse(from handlers.Actor, operation string, err *wire.Error) *wire.Error {
	s.dispatcher.refused(time.Now(), from, "request:"+operation, object.Quote(uuid.NewString()), err)
	return err
}

func (s *Supervisor) ask(ctx context.Context, from handlers.Actor, r *wire.Request) (any, error) {
	if from.Kind == handlers.Agent {
		s.audience.NoteMessage(from.Name)
	}
	from.Run = doorPrefix + strconv.FormatInt(s.dispatcher.doors.Add(1), 10)
	answer := s.dispatcher.recipients.wait(from.Run)
	defer s.dispatcher.recipients.leave(from.Run)
	s.dispatcher.submit([]handlers.Input{{At: time.Now(), From: from, Message: r, Random: chance()}}, new(work))
	letter, err := await(ctx, s, answer)
	if err != nil {
		return nil, err
	}
	if letter.Refusal != nil {
		return nil, letter.Refusal
	}
	if err := s.dispatcher.complete(&letter); err != nil {
		return nil, err
	}
	return letter.Payload, nil
}

// Adopt applies changed rules.
func (s *Supervisor) Adopt(rules handlers.Rules) {
	rules.Depth = s.options.Protocol.Depth
	s.dispatcher.look(func(state *handlers.State) { state.Adopt(rules) })
}

// TokenRevoked reports whether a person's token was revoked.
func (s *Supervisor) TokenRevoked(id string) (revoked bool) {
	s.dispatcher.look(func(state *handlers.State) { revoked = state.TokenRevoked(id) })
	return revoked
}

// AgentOf returns the agent that a key belongs to.
func (s *Supervisor) AgentOf(key string) (name string, err error) {
	known := false
	s.dispatcher.look(func(state *handlers.State) { name, known = state.AgentOf(handlers.HashKey(key), time.Now()) })
	if !known {
		return "", &wire.Error{Code: wire.CodeDenied, Message: "the key is not known"}
	}
	return name, nil
}

// ActorOf returns the actor that a token belongs to.
func (s *Supervisor) ActorOf(token string) (actor string, known bool) {
	s.dispatcher.look(func(state *handlers.State) { actor, known = state.ActorOf(handlers.HashKey(token), time.Now()) })
	return actor, known
}

// bringMail starts the delivery of mail to a started agent, from the first message that it has
// not acked.
func (d *dispatcher) bringMail(a *agent) {
	if a.Raw || a.NoStdin || d.record == nil {
		return
	}
	r := &round{to: handlers.Actor{Kind: handlers.Agent, Name: a.Name, Run: a.run}, mail: a.mail}
	d.look(func(state *handlers.State) { r.actor, r.after = state.Reads(a.Name) })
	if r.actor != "" {
		d.mail.begin(r)
	}
}

// quiet reports whether messages of a dialect are answered only if they are refused. This holds
// for session messages, delegated tasks and messages about them. Their results arrive as
// separate lines.
func quiet(form wire.Dialect) bool {
	return form == wire.DialectSession || form == wire.DialectTaskRequest || form == wire.DialectTaskAct
}

// unspoken returns the answer to a granted message of a quiet dialect. The answer is never
// sent, but it becomes a refusal if the decision cannot be recorded.
func unspoken(in *handlers.Input, r *wire.Request) handlers.Letter {
	return handlers.Letter{To: in.From, Request: r.ID, Form: r.Form}
}

// tacit reports whether a letter is an answer that is not sent.
func tacit(l handlers.Letter) bool {
	return quiet(l.Form) && isAnswer(l) && l.Refusal == nil
}
