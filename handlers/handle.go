package handlers

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// decision is the handling of one input.
type decision struct {
	state     *State
	at        time.Time
	from      Actor
	random    [16]byte
	request   *wire.Request // nil unless it is one
	settled   bool          // it is answered, or will be
	pages     []Page        // of the log, that the answer needs
	until     int64         // and no record after this one, when it was given before; 0: all
	out       *Outcome
	took      time.Duration     // since the input came
	byMail    string            // a task of which the bus has this in a message
	bySession bool              // a session ends a task now: no agent has to be told
	hushed    string            // an agent that hears of it already
	responded *task             // the task whose own agent reports its end
	departed  map[*agent]string // that do not come back by themselves
	lost      bool              // no run is there any more, though it looks so

	lostTasks     []lostTask       // of this turn
	announcements []*taskAnnounced // that end the turn
}

// Prepare reads the payload of a request, off the goroutine that decides.
func Prepare(r *wire.Request, depth int) *wire.Error {
	return PrepareIn(&wire.Payloads{Depth: depth}, r)
}

// programOperations are the operations of the program itself, which only its operators
// have.
var programOperations = []string{"status", "start-agent", "stop-agent", "restart-agent", "reload", "down"}

// PrepareIn is Prepare for those who read many.
func PrepareIn(p *wire.Payloads, r *wire.Request) *wire.Error {
	body, err := p.Request(r.Operation, r.Payload)
	if err != nil && err.Code == wire.CodeUnknownType && slices.Contains(programOperations, r.Operation) {
		return &wire.Error{Code: wire.CodeDenied, Message: r.Operation + " is for operators"}
	}
	if err != nil {
		return err
	}
	r.Body = body
	if Writes(r.Operation) {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(r.Operation))
		_, _ = sum.Write(r.Payload)
		r.Sum = sum.Sum64()
	}
	return nil
}

// Handle decides about one input. What it returns is valid until the next call.
//
// A panic is a mistake of ours and costs only the input: the caller is
// answered with an internal error, unless there is an answer already. The facts
// that were decided before stand, for they are applied.
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
		return // nothing was decided
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

// unknown refuses an agent that is not known, or not any more: what it did
// could not be remembered, and a repeat would be done twice.
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

// wait leaves the answer to the request to a later turn.
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
		if t.request.Operation != "query-tasks" { // those are brief
			for i := range answer.Tasks {
				t.look(&answer.Tasks[i])
			}
		}
	}
	t.settled = true
	t.out.Letters = append(t.out.Letters, Letter{To: t.from, Request: t.request.ID, Form: t.request.Form, Payload: payload, Pages: t.pages})
}

// look notes what of a task in the answer is only in the log.
func (t *decision) look(v *wire.Task) {
	k := t.state.tasks.byID[v.ID]
	if k == nil {
		return
	}
	p, missing := k.page(v.State, t.until)
	p.Inputs, p.Results = t.state.inputPages(v), t.state.resultPages(v)
	if missing || p.Inputs != nil || p.Results != nil {
		p.Task = v.ID
		t.pages = append(t.pages, p)
	}
}

func (t *decision) refuse(err *wire.Error) {
	t.out.Refused, t.settled = err, true
	t.out.Letters = append(t.out.Letters, Letter{To: t.from, Request: t.request.ID, Form: t.request.Form, Refusal: err})
}

// notice tells an agent something without having been asked.
func (t *decision) notice(to Actor, name, receipt string, payload any) {
	t.out.Letters = append(t.out.Letters, Letter{To: to, Notice: name, Payload: payload, Task: receipt})
}

// fact makes something true: it is recorded and applied.
func (t *decision) fact(to, correlation string, f fact) {
	t.factOf(t.from.String(), to, correlation, f)
}

// factOf is fact for what another actor than the caller has caused.
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
	t.state.arrived(&r)
	f.apply(t.state, &r)
}
