package handlers

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

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
	s.turn = decision{state: s, at: in.At.UTC().Truncate(time.Millisecond), from: in.From, random: in.Random, took: in.Took, starts: isStart(in.Message), out: &s.outcome}
	s.turn.handle(in.Message, in.Refusal)
	return s.outcome
}

func (d *decision) handle(message wire.Message, refusal *wire.Error) {
	defer func() {
		if p := recover(); p != nil {
			d.out.Fault = fmt.Errorf("handling a %T: %v", message, p)
			if d.request != nil && !d.settled {
				d.refuse(&wire.Error{Code: wire.CodeInternal, Message: "something went wrong here; it is in the orchestrator's log"})
			}
		}
	}()
	switch m := message.(type) {
	case *wire.Request:
		d.request = m
		if refusal != nil {
			d.refuse(refusal)
			return
		}
		d.ask(m)
	case *wire.AgentEvent:
		d.out.Refused = d.tasks().report(m)
	case *wire.Event:
		d.agents().happen(m)
	case *wire.Delivered:
		d.tasks().told(m)
	case *wire.AgentGone:
		d.agents().gone(m.Agent)
	case *wire.AgentSet:
		d.agents().syncAgents(m)
		d.sessions().syncSessions(m.Sessions)
	case wire.Tick:
		d.expire(m)
	default:
		panic("there is no decision for it")
	}
	if d.out.Again {
		return // nothing has been decided
	}
	d.tasks().reassignLost()
	d.tasks().dispatch()
	d.delegations().forward()
	d.tasks().announce()
	d.sessions().bring()
	d.delegations().bringResponses()
}

// ask handles a request.
func (d *decision) ask(r *wire.Request) {
	o := byName[r.Operation]
	if o == nil {
		d.refuse(&wire.Error{
			Code:    wire.CodeUnknownType,
			Message: fmt.Sprintf("there is no operation %q", r.Operation),
			Details: map[string]any{"type": "request:" + r.Operation},
		})
		return
	}
	if err := o.mayAsk(d.from); err != nil {
		d.refuse(err)
		return
	}
	if a := d.state.agents.byID[d.from.Name]; d.from.Only != "" && (a == nil || a.run != d.from.Only) {
		d.refuse(&wire.Error{Code: wire.CodeDenied, Message: "the run that this credential is for has ended"})
		return
	}
	if o.Writes && (d.unknown() || d.repeated(r)) {
		return
	}
	if d.outdated(r) {
		d.out.Again, d.settled = true, true
		return
	}
	if a := d.state.agents.byID[d.from.Name]; d.from.Kind == Agent && a != nil && a.remote != nil {
		d.agents().seen(a)
	}
	answer, err := o.do(d, r.Body)
	switch {
	case err != nil:
		d.refuse(err)
	case d.out.Again:
	case answer == nil:
		d.wait()
	default:
		d.answer(answer)
	}
}

// unknown refuses a request of an unknown agent and reports whether it did. Without the agent a
// repeat could not be recognized.
func (d *decision) unknown() bool {
	if d.from.Kind != Agent || d.state.agents.byID[d.from.Name] != nil {
		return false
	}
	d.refuse(&wire.Error{
		Code: wire.CodeDenied, Message: fmt.Sprintf("%q is not one of the agents", d.from.Name),
		Details: map[string]any{"agent": d.from.Name},
	})
	return true
}

// wait defers the answer to a later turn.
func (d *decision) wait() { d.out.Waits, d.settled = true, true }

// answer grants the request.
func (d *decision) answer(payload any) {
	switch answer := payload.(type) {
	case *wire.TaskReply:
		d.look(&answer.Task)
	case *wire.Sent:
		if answer.Payload == nil {
			d.pages = append(d.pages, history.Page{Sent: answer.Seq})
		}
	case *wire.TaskList:
		if d.request.Operation != "query-tasks" { // its tasks are in short form
			for i := range answer.Tasks {
				d.look(&answer.Tasks[i])
			}
		}
	}
	d.settled = true
	d.out.Letters = append(d.out.Letters, Letter{To: d.from, Request: d.request.ID, Form: d.request.Form, Payload: payload, Pages: d.pages})
}

// look adds the pages that a task in the answer needs.
func (d *decision) look(v *wire.Task) {
	k := d.state.tasks.byID[v.ID]
	if k == nil {
		return
	}
	p, missing := k.page(v.State, d.until)
	p.Inputs, p.Results = d.state.tasks.inputPages(v), d.state.tasks.resultPages(v)
	if missing || p.Inputs != nil || p.Results != nil {
		p.Task = v.ID
		d.pages = append(d.pages, p)
	}
}

func (d *decision) refuse(err *wire.Error) {
	d.out.Refused, d.settled = err, true
	d.out.Letters = append(d.out.Letters, Letter{To: d.from, Request: d.request.ID, Form: d.request.Form, Refusal: err})
}

// notice sends an agent a notification.
func (o *Outcome) notice(to Actor, name, receipt string, payload any) {
	o.Letters = append(o.Letters, Letter{To: to, Notice: name, Payload: payload, Task: receipt})
}

// fact records a fact and applies it.
func (d *decision) fact(to, correlation string, f fact) {
	d.factOf(d.from.String(), to, correlation, f)
}

// ownFact is fact with the orchestrator as the cause.
func (d *decision) ownFact(to, correlation string, f fact) {
	d.factOf(Actor{}.String(), to, correlation, f)
}

// factOf is fact with a cause other than the caller.
func (d *decision) factOf(from, to, correlation string, f fact) {
	topic := ""
	if m, ok := f.(onBus); ok {
		if actor, about := m.mailTo(d.state); actor != "" {
			to, topic = actor, about
		}
	}
	payload, err := object.Encode(f)
	if err != nil {
		panic(fmt.Sprintf("a %s cannot be spelled: %v", f.kind(), err))
	}
	d.state.seq++
	r := wire.Record{
		Seq: d.state.seq, At: d.at, From: from, To: to, Topic: topic, Kind: f.kind(), Payload: payload, Correlation: correlation,
	}
	d.out.Records = append(d.out.Records, r)
	d.state.bus.Arrived(&r)
	f.apply(d.state, &r)
}
