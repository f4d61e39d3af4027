package handlers

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A decision is the handling of one input.
type decision struct {
	state     *State
	at        time.Time
	from      Actor
	random    [16]byte
	request   *wire.Request // nil unless it is one
	settled   bool          // the request is answered, or will be later
	pages     []Page        // of the log, that the answer needs
	until     int64         // the last record to use, for a repeated answer; 0: all
	out       *Outcome
	took      time.Duration     // since the input came
	byMail    string            // a task whose change the bus already has as a message
	bySession bool              // a session ends the task, so no agent is notified
	hushed    string            // an agent that need not be notified
	responded *task             // the task whose own agent reports its end
	departed  map[*agent]string // that do not come back by themselves
	lost      bool              // all runs are lost, although the State has them

	lostTasks     []lostTask       // of this turn
	announcements []*taskAnnounced // that end the turn
}

// Prepare decodes the payload of a request. It may run outside of the goroutine that calls
// Handle.
func Prepare(r *wire.Request, depth int) *wire.Error {
	return PrepareIn(&wire.Payloads{Depth: depth}, r)
}

// programOperations are the operations of the supervisor, which are only for operators.
var programOperations = []string{"status", "start-agent", "stop-agent", "restart-agent", "reload", "down"}

// PrepareIn is Prepare with a reader that is used for many requests.
func PrepareIn(p *wire.Payloads, r *wire.Request) *wire.Error {
	body, err := p.Request(r.Operation, r.Payload)
	if err != nil && err.Code == wire.CodeUnknownType && slices.Contains(programOperations, r.Operation) {
		return &wire.Error{Code: wire.CodeDenied, Message: r.Operation + " is for operators"}
	}
	if err != nil {
		return err
	}
	r.Body = body
	if wire.OperationNamed(r.Operation).IsWrite() {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(r.Operation))
		_, _ = sum.Write(r.Payload)
		r.Sum = sum.Sum64()
	}
	return nil
}

// Handle decides about one input. What it returns is valid until the next call.
//
// A panic is a bug and affects only its input. The caller gets an internal error, unless it has
// an answer already. Facts that were decided before the panic stand, since they are applied.
func (s *State) Handle(in Input) Outcome {
	s.outcome.Records, s.outcome.Letters = s.outcome.Records[:0], s.outcome.Letters[:0]
	s.outcome.Refused, s.outcome.Waits, s.outcome.Again, s.outcome.Fault = nil, false, false, nil
	s.turn = decision{state: s, at: in.At.UTC().Truncate(time.Millisecond), from: in.From, random: in.Random, took: in.Took, out: &s.outcome}
	s.turn.handle(in.Message, in.Refusal)
	return s.outcome
}

func (t *decision) handle(message wire.Message, refusal *wire.Error) {
	defer func() {
		if p := recover(); p != nil {
			t.out.Fault = fmt.Errorf("handling a %T: %v", message, p)
			if t.request != nil && !t.settled {
				t.refuse(&wire.Error{Code: wire.CodeInternal, Message: "something went wrong here; it is in the orchestrator's log"})
			}
		}
	}()
	switch m := message.(type) {
	case *wire.Request:
		t.request = m
		if refusal != nil {
			t.refuse(refusal)
			return
		}
		t.ask(m)
	case *wire.AgentEvent:
		t.out.Refused = t.report(m)
	case *wire.Event:
		t.happen(m)
	case *wire.Delivered:
		t.told(m)
	case *wire.AgentGone:
		t.gone(m.Agent)
	case *wire.AgentSet:
		t.syncAgents(m)
		t.syncSessions(m.Sessions)
	case wire.Tick:
		t.expire(m)
	default:
		panic("there is no decision for it")
	}
	if t.out.Again {
		return // nothing has been decided
	}
	t.reassignLost()
	t.dispatch()
	t.forward()
	t.announce()
	t.bring()
	t.bringResponses()
}

// ask handles a request.
func (t *decision) ask(r *wire.Request) {
	o := byName[r.Operation]
	if o == nil {
		t.refuse(&wire.Error{
			Code:    wire.CodeUnknownType,
			Message: fmt.Sprintf("there is no operation %q", r.Operation),
			Details: map[string]any{"type": "request:" + r.Operation},
		})
		return
	}
	if err := o.mayAsk(t.from); err != nil {
		t.refuse(err)
		return
	}
	if a := t.state.agents.byID[t.from.Name]; t.from.Only != "" && (a == nil || a.run != t.from.Only) {
		t.refuse(&wire.Error{Code: wire.CodeDenied, Message: "the run that this credential is for has ended"})
		return
	}
	if o.Writes && (t.unknown() || t.repeated(r)) {
		return
	}
	if t.outdated(r) {
		t.out.Again, t.settled = true, true
		return
	}
	if a := t.state.agents.byID[t.from.Name]; t.from.Kind == Agent && a != nil && a.remote != nil {
		t.seen(a)
	}
	answer, err := o.do(t, r.Body)
	switch {
	case err != nil:
		t.refuse(err)
	case t.out.Again:
	case answer == nil:
		t.wait()
	default:
		t.answer(answer)
	}
}

// unknown refuses a request of an unknown agent and reports whether it did. Without the agent a
// repeat could not be recognized.
func (t *decision) unknown() bool {
	if t.from.Kind != Agent || t.state.agents.byID[t.from.Name] != nil {
		return false
	}
	t.refuse(&wire.Error{
		Code: wire.CodeDenied, Message: fmt.Sprintf("%q is not one of the agents", t.from.Name),
		Details: map[string]any{"agent": t.from.Name},
	})
	return true
}

// wait defers the answer to a later turn.
func (t *decision) wait() { t.out.Waits, t.settled = true, true }

// answer grants the request.
func (t *decision) answer(payload any) {
	switch answer := payload.(type) {
	case *wire.TaskReply:
		t.look(&answer.Task)
	case *wire.Sent:
		if answer.Payload == nil {
			t.pages = append(t.pages, Page{Sent: answer.Seq})
		}
	case *wire.TaskList:
		if t.request.Operation != "query-tasks" { // its tasks are in short form
			for i := range answer.Tasks {
				t.look(&answer.Tasks[i])
			}
		}
	}
	t.settled = true
	t.out.Letters = append(t.out.Letters, Letter{To: t.from, Request: t.request.ID, Form: t.request.Form, Payload: payload, Pages: t.pages})
}

// look adds the pages that a task in the answer needs.
func (t *decision) look(v *wire.Task) {
	k := t.state.tasks.byID[v.ID]
	if k == nil {
		return
	}
	p, missing := k.page(v.State, t.until)
	p.Inputs, p.Results = t.state.tasks.inputPages(v), t.state.tasks.resultPages(v)
	if missing || p.Inputs != nil || p.Results != nil {
		p.Task = v.ID
		t.pages = append(t.pages, p)
	}
}

func (t *decision) refuse(err *wire.Error) {
	t.out.Refused, t.settled = err, true
	t.out.Letters = append(t.out.Letters, Letter{To: t.from, Request: t.request.ID, Form: t.request.Form, Refusal: err})
}

// notice sends an agent a notification.
func (o *Outcome) notice(to Actor, name, receipt string, payload any) {
	o.Letters = append(o.Letters, Letter{To: to, Notice: name, Payload: payload, Task: receipt})
}

// fact records a fact and applies it.
func (t *decision) fact(to, correlation string, f fact) {
	t.factOf(t.from.String(), to, correlation, f)
}

// factOf is fact with a cause other than the caller.
func (t *decision) factOf(from, to, correlation string, f fact) {
	topic := ""
	if m, ok := f.(onBus); ok && (correlation == "" || correlation != t.byMail) {
		if actor, about := m.mailTo(t.state); actor != "" {
			to, topic = actor, about
		}
	}
	payload, err := object.Encode(f)
	if err != nil {
		panic(fmt.Sprintf("a %s cannot be spelled: %v", f.kind(), err))
	}
	t.state.seq++
	r := wire.Record{
		Seq: t.state.seq, At: t.at, From: from, To: to, Topic: topic, Kind: f.kind(), Payload: payload, Correlation: correlation,
	}
	t.out.Records = append(t.out.Records, r)
	t.state.bus.arrived(&r)
	f.apply(t.state, &r)
}
