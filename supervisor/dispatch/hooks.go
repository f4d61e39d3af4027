package dispatch

import (
	"strings"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// Hooks observe requests and records without influencing decisions. A nil func costs nothing.
// The others are called by many goroutines at once, while the work waits. So they must not
// block. They may keep their arguments, except the slice of facts.
type Hooks struct {
	// Judged is called with the number of messages of one kind that came by a door, and their
	// result: the code of a refusal, or "" if they were granted.
	Judged func(door, kind string, code wire.Code, messages int)
	// Asked is called before the decision about a request, and Answered when its answer leaves.
	// Session messages, delegated tasks and messages about them do not count as requests here,
	// because only a refusal is answered.
	Asked    func(Asked)
	Answered func(Answered)
	// Recorded is called with the facts of a batch, in their order, after they are durable and
	// before anything about them is sent.
	Recorded func(facts []wire.Record, began time.Time, took time.Duration)
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
	if h.Asked == nil {
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
		h.Asked(a)
	}
}

// answered reports the answers among letters.
func (h *Hooks) answered(letters []handlers.Letter) {
	if h.Answered == nil {
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
		h.Answered(a)
	}
}

// judged reports the results of inputs. Consecutive inputs of one kind with the same result are
// reported together.
func (h *Hooks) judged(inputs []handlers.Input, verdicts []*wire.Error) {
	if h.Judged == nil {
		return
	}
	for i := 0; i < len(inputs); {
		first, n := said(&inputs[i]), 1
		for i+n < len(inputs) && first == said(&inputs[i+n]) && codeOf(verdicts[i]) == codeOf(verdicts[i+n]) {
			n++
		}
		if first.class != "" {
			h.Judged(doorOf(inputs[i].From), first.String(), codeOf(verdicts[i]), n)
		}
		i += n
	}
}

// refused reports a message that was refused before a decision.
func (h *Hooks) refused(from handlers.Actor, kind string, verdict *wire.Error) {
	if h.Judged != nil {
		h.Judged(doorOf(from), kind, codeOf(verdict), 1)
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
