package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Asked is the beginning of a request.
type Asked struct {
	At        time.Time
	Operation string
	From      string
	Agent     string // "" if the caller is not an agent
	Run       string
	ID        string // unique within Run
}

// Answered is the end of a request.
type Answered struct {
	At      time.Time
	Run, ID string
	Code    wire.Code // code of a refusal, or ""
}

// An askKey identifies a request that waits for its answer.
type askKey struct{ run, id string }

// maxAsks is the number of requests that are tracked at a time. When there are more, all
// earlier ones are forgotten, because some of them may never be answered.
const maxAsks = 10_000

// asked begins the span of a request.
func (w *openWork) asked(a *Asked) {
	key := askKey{run: a.Run, id: a.ID}
	if w.spans == nil {
		return
	}
	if before := w.asks[key]; before != nil {
		endAsk(before, a.At, "repeated", "") // the two answers could not be told apart
	}
	if len(w.asks) >= maxAsks {
		w.spans.drop(len(w.asks))
		clear(w.asks)
	}
	what := "request " + a.Run + " " + a.ID + " " + object.Timestamp(a.At)
	p := place{trace: traceOf(what), span: spanOf(what)}
	if held := w.held[a.Agent]; a.Agent != "" && len(held) == 1 && held[0].span != nil {
		h := held[0]
		p.trace, p.parent, p.sampled = h.place.trace, h.place.span, h.place.sampled
	}
	w.asks[key] = w.spans.start(p, "request "+a.Operation, a.At,
		attribute.String("request.operation", a.Operation), attribute.String("request.actor", a.From))
}

// answered ends the span of a request.
func (w *openWork) answered(a *Answered) {
	key := askKey{run: a.Run, id: a.ID}
	asked := w.asks[key]
	if asked == nil {
		return
	}
	delete(w.asks, key)
	outcome := "granted"
	if a.Code != "" {
		outcome = string(a.Code)
	}
	endAsk(asked, a.At, outcome, string(a.Code))
}

// forsake ends the requests of an ended run, which get no answer.
func (w *openWork) forsake(run string, at time.Time) {
	for key, asked := range w.asks {
		if key.run == run {
			delete(w.asks, key)
			endAsk(asked, at, "forsaken", "the agent has ended")
		}
	}
}

func endAsk(asked span, at time.Time, outcome, why string) {
	asked.SetAttributes(attribute.String("request.outcome", outcome))
	finish(asked, at, why)
}
