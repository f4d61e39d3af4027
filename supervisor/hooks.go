package supervisor

import (
	"strings"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// Hooks count and measure what happens, and decides nothing. A
// func that is nil costs nothing. The others are called in the midst of the work,
// by many goroutines at once: they must not wait, and may keep what they are given
// but for the slice of facts.
type Hooks struct {
	// Judged hears how many messages of a kind came by a door, and what became of
	// them: the code of a refusal, or "" when they were granted.
	Judged func(door, kind string, code wire.Code, messages int)
	// Asked hears of a request before the decision about it, and Answered when
	// its answer leaves. What is said in a session, or about delegated work as the line
	// that it is, is no request here: it has an answer only when it is refused.
	Asked    func(Asked)
	Answered func(Answered)
	// Recorded sees the facts of a batch when they are durable, in their order, and
	// before they are told of them.
	Recorded func(facts []wire.Record, began time.Time, took time.Duration)
}

// The doors of Watch.
const (
	doorStdio = "stdio"
	doorHTTP  = "http"
)

// Asked is a request.
type Asked struct {
	At        time.Time
	Operation string
	From      string // as the log spells an actor
	Agent     string // "" when it is none
	Run       string // of an agent; else one that is unique
	ID        string // among those of the run
}

// Answered is the end of a request.
type Answered struct {
	At      time.Time
	Run, ID string
	Code    wire.Code // of a refusal
}

// asked tells of the requests among inputs.
func (w *Hooks) asked(inputs []handlers.Input) {
	if w.Asked == nil {
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
		w.Asked(a)
	}
}

// answered tells of the answers among letters.
func (w *Hooks) answered(letters []handlers.Letter) {
	if w.Answered == nil {
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
		w.Answered(a)
	}
}

// judged tells what became of inputs. Those of one kind often come together, and
// are told of together.
func (w *Hooks) judged(inputs []handlers.Input, verdicts []*wire.Error) {
	if w.Judged == nil {
		return
	}
	for i := 0; i < len(inputs); {
		first, n := said(&inputs[i]), 1
		for i+n < len(inputs) && first == said(&inputs[i+n]) && codeOf(verdicts[i]) == codeOf(verdicts[i+n]) {
			n++
		}
		if first.class != "" {
			w.Judged(doorOf(inputs[i].From), first.String(), codeOf(verdicts[i]), n)
		}
		i += n
	}
}

// refused tells of a message without a decision.
func (w *Hooks) refused(from handlers.Actor, kind string, verdict *wire.Error) {
	if w.Judged != nil {
		w.Judged(doorOf(from), kind, codeOf(verdict), 1)
	}
}

// said is what kind of message an input is; none when it has none.
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

// doorOf returns the way by which an actor speaks: a run of an agent has its pipe, and who has
// something else in its place is at a door.
func doorOf(from handlers.Actor) string {
	if from.Kind == handlers.Agent && from.Run != "" && !strings.HasPrefix(from.Run, doorPrefix) {
		return doorStdio
	}
	return doorHTTP
}
