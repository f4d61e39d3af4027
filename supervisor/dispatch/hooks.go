package dispatch

import (
	"strings"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
)

// Hooks observe requests and records without influencing decisions. A nil hook has no cost. Methods of
// hooks are called by many goroutines at once, while the work waits. So they must not block. They may keep their
// arguments, except the slice of facts.
type Hooks struct {
	Meter  Meter
	Tracer Tracer
}

// A Meter observes messages and batches of facts.
type Meter interface {
	// Judged is called with the number of messages of one kind that came by a door, and their
	// result: the code of a refusal, or "" if they were granted.
	Judged(door, kind string, code wire.Code, messages int)
	// Recorded is called with the facts of a batch, in their order, after they are durable and
	// before anything about them is sent.
	Recorded(facts []wire.Record, began time.Time, took time.Duration)
}

// A Tracer observes requests.
type Tracer interface {
	// Asked is called before the decision about a request, and Answered when its answer leaves.
	// Session messages, delegated tasks and messages about them do not count as requests here,
	// because only a refusal is answered.
	Asked(Asked)
	Answered(Answered)
}

// The doors that Judged is called with.
const (
	doorStdio = "stdio"
	doorHTTP  = "http"
)

// Asked describes a request.
type Asked struct {
	At        time.Time
	Operation string
	From      string // the actor, as in the log
	Agent     string // "" if the caller is not an agent
	Run       string // the agent's run, or a unique name
	ID        string // unique within Run
}

// Answered describes the answer to a request.
type Answered struct {
	At      time.Time
	Run, ID string
	Code    wire.Code // code of a refusal, or ""
}

// asked reports the requests among inputs.
func (h *Hooks) asked(inputs []handlers.Input) {
	if h.Tracer == nil {
		return
	}
	for i := range inputs {
		in := &inputs[i]
		r, ok := in.Message.(*wire.Request)
		if !ok || quiet(r.Form) || observes(in.From) {
			continue
		}
		a := Asked{At: in.At, Operation: r.Operation, From: in.From.String(), Run: in.From.Run, ID: r.ID}
		if in.From.Kind == handlers.Agent {
			a.Agent = in.From.Name
		}
		h.Tracer.Asked(a)
	}
}

// answered reports the answers among letters.
func (h *Hooks) answered(letters []handlers.Letter) {
	if h.Tracer == nil {
		return
	}
	now := time.Now()
	for i := range letters {
		l := &letters[i]
		if !isAnswer(*l) || quiet(l.Form) || observes(l.To) {
			continue
		}
		a := Answered{At: now, Run: l.To.Run, ID: l.Request}
		if l.Refusal != nil {
			a.Code = l.Refusal.Code
		}
		h.Tracer.Answered(a)
	}
}

// judged reports the results of inputs. Consecutive inputs of one kind with the same result are
// reported together.
func (h *Hooks) judged(inputs []handlers.Input, verdicts []*wire.Error) {
	if h.Meter == nil {
		return
	}
	for i := 0; i < len(inputs); {
		first, n := said(&inputs[i]), 1
		for i+n < len(inputs) && first == said(&inputs[i+n]) && codeOf(verdicts[i]) == codeOf(verdicts[i+n]) {
			n++
		}
		if first.class != "" {
			h.Meter.Judged(doorOf(inputs[i].From), first.String(), codeOf(verdicts[i]), n)
		}
		i += n
	}
}

// refused reports a message that was refused before a decision.
func (h *Hooks) refused(from handlers.Actor, kind string, verdict *wire.Error) {
	if h.Meter != nil {
		h.Meter.Judged(doorOf(from), kind, codeOf(verdict), 1)
	}
}

// said returns the kind of message of an input, or a zero value for other inputs.
func said(in *handlers.Input) called {
	if observes(in.From) {
		return called{}
	}
	switch m := in.Message.(type) {
	case *wire.Request:
		return calledOf(m)
	case *wire.AgentEvent:
		return calledIn(m)
	}
	return called{}
}

func observes(who handlers.Actor) bool { return who.Kind == observer.Kind && who.Name == observer.Name }

func codeOf(verdict *wire.Error) wire.Code {
	if verdict == nil {
		return ""
	}
	return verdict.Code
}

// doorOf returns the door through which an actor sends: stdio for the run of an agent, http for
// every other actor.
func doorOf(from handlers.Actor) string {
	if from.Kind == handlers.Agent && from.Run != "" && !strings.HasPrefix(from.Run, callerPrefix) {
		return doorStdio
	}
	return doorHTTP
}

// called is the name of a message's kind in the audit and in counters, in two parts.
type called struct{ class, name string }

func (c called) String() string { return c.class + c.name }

// The classes of messages.
const (
	classRequest = "request:"
	classEvent   = "event:"
	classSession = "session:"
	classTask    = "task:" // delegated tasks and messages about them
)

// acts maps each operation that a requester uses on its delegated task to its name.
var acts = map[string]string{"get-task-response": "status", "update-task-request": "update", "cancel-task": "cancel"}

// calledOf returns the name of a request.
func calledOf(r *wire.Request) called {
	switch r.Form {
	case dialect.Session:
		if said, ok := r.Body.(*wire.SaySession); ok {
			return called{class: classSession, name: said.Type}
		}
	case dialect.TaskRequest:
		return called{class: classTask, name: "request"}
	case dialect.TaskAct:
		return called{class: classTask, name: acts[r.Operation]}
	}
	return called{class: classRequest, name: r.Operation}
}

// calledIn returns the name of an agent's event.
func calledIn(r *wire.AgentEvent) called {
	if r.Name == wire.ReportTaskResponse {
		return called{class: classTask, name: "response"}
	}
	return called{class: classEvent, name: r.Name}
}

// sayOperation is the operation of a session message that an agent prints.
const sayOperation = "send-session-message"

// saying reports whether an input is a session message, over any transport.
func saying(in *handlers.Input) bool {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return false
	}
	_, ok = r.Body.(*wire.SaySession)
	return ok
}

// quiet reports whether messages of a dialect are answered only if they are refused. This holds
// for session messages, delegated tasks and messages about them. Their results arrive as
// separate lines.
func quiet(form dialect.Dialect) bool {
	return form == dialect.Session || form == dialect.TaskRequest || form == dialect.TaskAct
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
