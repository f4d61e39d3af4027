package handlers

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/snapshot"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/mail"
)

// An Input is one message to decide about.
type Input struct {
	At      time.Time
	From    Actor
	Message wire.Message
	Random  [16]byte // new for each input; source of ids and keys
	// Refusal is set if a request cannot be decided, because a required lookup failed or a file
	// cannot be read. A repeat of an earlier request still gets the answer to that.
	Refusal *wire.Error
	Took    time.Duration // time since a session message arrived, for its log

	// Archived has the newest records of archived tasks that the input names, and Absent the other
	// ids of Outcome.Missing.
	Archived []wire.Record
	Absent   map[string]bool
}

// A State decides. It holds all open work and a bounded history of finished work. One goroutine at a time may use it.
type State struct {
	*state.State
	turn    turn // the current one, reused
	outcome Outcome
}

// New returns an empty State.
func New(rules Rules) *State { return &State{State: state.New(rules)} }

// Restore returns the State in a snapshot, which it reads with spread. It reports false if the snapshot cannot be used,
// for instance because another version wrote it.
func Restore(rules Rules, text []byte, spread state.Spread) (*State, bool) {
	c, ok := snapshot.Restore(rules, text, spread)
	return &State{State: c}, ok
}

// Snapshot begins a snapshot of the present State. It ends an earlier unfinished one.
func (s *State) Snapshot() *Snapshot { return snapshot.Begin(s.State) }

// An Outcome is the result of Handle. It is valid until the next call; a caller that needs its
// slices longer must copy them.
type Outcome struct {
	Records []wire.Record
	Letters []Letter
	// Refused is the error of a request or an event, for the audit; nil if it was accepted.
	// Waits reports whether the answer comes later.
	Refused *wire.Error
	Waits   bool
	// Again reports that no decision was made, because the Lookup of the request is too old. The
	// caller must repeat the search and call Handle again.
	Again bool
	// Missing has ids that archived tasks may have, in an outcome with Again. The caller must add
	// their records to the input.
	Missing []string
	// Fault is an internal error, if there was one. It is for the log of the orchestrator and
	// not for the caller.
	Fault error
}

// A Letter is a message to send once the records are durable: the answer to a request, or a
// notice to an agent.
type Letter struct {
	To      Actor
	Request string          // of an answer: the id of the request
	Form    dialect.Dialect // of an answer: the form of the request
	Notice  string          // of a notice: its name
	Payload any             // of either
	Refusal *wire.Error     // of an answer: instead of a payload
	Task    string          // of a notice: a wire.Delivered reports that it was written
	Pages   []history.Page  // of an answer: the parts that are only in the log
	Line    wire.Raw        // a complete line, instead of the fields above
	Said    int64           // of a Line: its record, for the wire.Delivered that reports it
	Kept    int64           // instead of a Line: the record that holds it; see LineOf
	After   int64           // of a session message: the previous one that is on its way

	Metadata *delegation.Metadata // of the task, for the members that the line lacks
}

// Prepare decodes the payload of a request. It may run outside of the goroutine that calls
// Handle.
func Prepare(r *wire.Request, depth int) *wire.Error {
	return PrepareIn(&wire.Payloads{Depth: depth}, r)
}

// PrepareIn is Prepare with a reader that is used for many requests.
func PrepareIn(p *wire.Payloads, r *wire.Request) *wire.Error {
	body, err := p.Request(r)
	if err != nil && err.Code == wire.CodeUnknownType && isControl(r.Operation) {
		return &wire.Error{Code: wire.CodeDenied, Message: r.Operation + " is for operators"}
	}
	if err != nil {
		return err
	}
	r.Body = body
	if r.Declaration().IsWrite() {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(r.Operation))
		_, _ = sum.Write(r.Payload)
		r.Sum = sum.Sum64()
	}
	return nil
}

// isControl reports whether the supervisor performs an operation, which is only for operators.
func isControl(operation string) bool {
	return slices.ContainsFunc(wire.ControlOperations, func(o *wire.Operation) bool { return o.Name == operation })
}

// Handle decides about one input. The outcome is valid until the next call.
//
// A panic is a bug and affects only its input. The caller gets an internal error, unless it has
// an answer already. Facts that were decided before the panic stand, since they are applied.
func (s *State) Handle(in Input) Outcome {
	s.outcome.Records, s.outcome.Letters = s.outcome.Records[:0], s.outcome.Letters[:0]
	s.outcome.Refused, s.outcome.Waits, s.outcome.Again, s.outcome.Missing, s.outcome.Fault = nil, false, false, nil, nil
	archive := &s.Tasks.Archive
	archive.Begin(in.Absent)
	slices.SortFunc(in.Archived, func(a, b wire.Record) int { return cmp.Compare(a.ReplyTo, b.ReplyTo) }) // parents first
	for i := range in.Archived {
		if err := s.Tasks.Visit(&in.Archived[i]); err != nil {
			s.outcome.Fault = err // the task counts as missing
		}
	}
	t := &s.turn
	*t = turn{state: s.State, at: in.At.UTC().Truncate(time.Millisecond), random: in.Random, took: in.Took, starts: isStart(in.Message), out: &s.outcome}
	t.sender, t.own = decision{turn: t, from: in.From}, decision{turn: t}
	t.sender.handle(in.Message, in.Refusal)
	archive.Dismiss(&s.Tasks)
	if len(archive.Missing) > 0 && len(s.outcome.Records) == 0 && !s.outcome.Again && s.outcome.Fault == nil {
		s.outcome = Outcome{Records: s.outcome.Records, Letters: s.outcome.Letters[:0], Again: true, Missing: archive.Missing}
	}
	return s.outcome
}

func (d *decision) handle(message wire.Message, refusal *wire.Error) {
	defer func() {
		p := recover()
		if _, missed := p.(missedTask); p != nil && !missed {
			d.out.Fault = fmt.Errorf("handling a %T: %v", message, p)
			if d.request != nil && !d.settled {
				d.refuse(&wire.Error{Code: wire.CodeInternal, Message: "internal error; see the orchestrator's log"})
			}
		}
	}()
	switch m := message.(type) {
	case *wire.Request:
		d.request = m
		d.ask(m, refusal)
	case *wire.AgentEvent:
		d.out.Refused = d.tasks().report(m)
	case *wire.Event:
		d.agents().applyLifecycle(m)
	case *wire.Delivered:
		d.tasks().told(m)
	case *wire.TaskChecked:
		d.tasks().checked(m)
	case *wire.TaskHeld:
		d.tasks().hold(m)
	case *wire.AgentGone:
		d.agents().gone(m.Agent)
	case *wire.AgentSet:
		d.agents().syncAgents(m)
		d.sessions().syncSessions(m.Sessions)
		d.tasks().queueClosed()
	case wire.Tick:
		d.expire(m)
	case wire.ClockSet:
		d.fact("", "", &state.ClockSet{By: m.By.Milliseconds()})
	default:
		panic("there is no decision for it")
	}
	if d.out.Again {
		return // no decision was made
	}
	d.tasks().reassignLost()
	d.tasks().dispatch()
	d.delegations().forward()
	d.tasks().announce()
	d.sessions().flush()
	d.delegations().flushResponses()
	d.out.Letters = append(d.out.Letters, d.closed...)
	d.tasks().archive()
}

// ask handles a request. A refusal that is not nil was decided before.
func (d *decision) ask(r *wire.Request, refusal *wire.Error) {
	o := byName[r.Operation]
	if o == nil {
		d.refuse(state.Errorf(wire.CodeUnknownType, state.Details{"type": "request:" + r.Operation}, "unknown operation %q", r.Operation))
		return
	}
	if err := o.mayAsk(d.from); err != nil {
		d.refuse(err)
		return
	}
	if a := d.state.Agents.ByID[d.from.Name]; d.from.Only != "" && (a == nil || a.Run != d.from.Only) {
		d.refuse(&wire.Error{Code: wire.CodeDenied, Message: "the run of this credential has ended"})
		return
	}
	if o.Writes && (d.unknown() || d.repeated(r)) {
		return
	}
	if refusal != nil {
		d.refuse(refusal)
		return
	}
	if d.outdated(r) {
		d.out.Again, d.settled = true, true
		return
	}
	if a := d.state.Agents.ByID[d.from.Name]; d.from.Kind == Agent && a != nil && a.Remote != nil {
		d.touch(reflect.ValueOf(r.Body))
		if m, ok := r.Body.(*wire.SendMessage); ok {
			d.state.Tasks.Find(d.mail().taskIn(m))
		}
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
	if d.from.Kind != Agent || d.state.Agents.ByID[d.from.Name] != nil {
		return false
	}
	d.refuse(state.Errorf(wire.CodeDenied, state.Details{"agent": d.from.Name}, "%q is not one of the agents", d.from.Name))
	return true
}

// wait defers the answer to a later turn.
func (d *decision) wait() { d.out.Waits, d.settled = true, true }

// answer grants the request.
func (d *decision) answer(payload any) {
	switch answer := payload.(type) {
	case *wire.TaskReply:
		d.look(&answer.Task)
	case *mail.Sent:
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
	t := d.state.Tasks.Find(v.ID)
	if t == nil {
		return
	}
	p, missing := t.Page(v.State, d.until)
	p.Inputs, p.Results = d.state.Tasks.InputPages(t, v), d.state.Tasks.ResultPages(t, v)
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
func (d *decision) fact(to, correlation string, f state.Fact) {
	d.factOf(d.from.String(), to, correlation, f)
}

// factOf is fact with a cause other than the actor.
func (d *decision) factOf(from, to, correlation string, f state.Fact) {
	d.recallGuests()
	topic := ""
	if m, ok := f.(state.OnBus); ok {
		if actor, about := m.MailTo(d.state); actor != "" {
			to, topic = actor, about
		}
	}
	payload, err := state.Encode(f)
	if err != nil {
		panic(fmt.Sprintf("a %s cannot be encoded: %v", state.FactKind(f), err))
	}
	r := wire.Record{
		Seq: d.state.Next(), At: d.at, From: from, To: to, Topic: topic, Kind: state.FactKind(f), Payload: payload, Correlation: correlation,
	}
	if a, ok := f.(*state.TaskArchived); ok {
		r.ReplyTo = a.Created
	}
	d.out.Records = append(d.out.Records, r)
	d.state.Take(f, &r)
}

// expire handles everything that is due: questions that expire, silent servers, actors and
// developers, session messages to be retried, and delegated tasks to be retried or reported.
func (d *decision) expire(due wire.Tick) {
	if due.Late {
		d.fact("", "", new(state.StoodStill)) // all servers and actors get their time again
	}
	d.agents().silence()
	d.mail().missBeats()
	d.sessions().retryItems(due.Blocked || due.Late)
	d.works().watch()
	d.delegations().tryAgain()
	d.agents().unlimit()
	d.tasks().resumePostponed()
	for len(d.state.Questions.Deadlines) > 0 && !d.state.Questions.Deadlines[0].Due().After(d.at) {
		q := d.state.Questions.Deadlines[0]
		waited := q.Waited(d.state)
		if !q.Until.IsZero() {
			to, request := q.Asker(), q.Request
			d.fact(state.AgentPrefix+q.View.Agent, "", &state.QuestionKept{ID: q.View.ID, Agent: q.View.Agent})
			if waited {
				d.out.Letters = append(d.out.Letters, Letter{To: to, Request: request.ID, Payload: q.Asked()})
			}
			continue
		}
		d.fact(state.AgentPrefix+q.View.Agent, "", &state.QuestionExpired{ID: q.View.ID, Agent: q.View.Agent})
		if waited {
			d.out.Letters = append(d.out.Letters, Letter{To: q.Asker(), Request: q.Request.ID, Refusal: state.Expired()})
		}
	}
}
