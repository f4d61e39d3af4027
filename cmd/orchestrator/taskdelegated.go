package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// handedOn reports whether a task was handed on by a request, as far as what is known
// of it tells: lists do not.
func handedOn(t *wire.Task) bool { return t.Details != nil && t.Routing != nil }

// delegation are the rows of a task that was handed on: who asks which agent, for which, and
// where it stands in a trace.
func (c *card) delegation(t *wire.Task) {
	if r := t.Routing; r != nil {
		c.row("asked by", r.Source)
		c.row("asked of", r.Target)
		c.row("by way of", strings.Join(r.Chain, " -> "))
	}
	if x := t.Context; x != nil {
		c.row("conversation", x.ConversationID)
		c.row("user", x.User)
		c.row("asked at", x.Timestamp)
	}
	if trace := t.Observability; trace != nil {
		c.row("trace", trace.TraceID)
		c.row("span", trace.SpanID)
		if trace.Baggage != nil {
			c.text("baggage", string(trace.Baggage))
		}
	}
}

// artifacts are the rows of what was made: names, types and sizes.
func (c *card) artifacts(r *wire.TaskResponse) {
	names, types := 0, 0
	for i := range r.Artifacts {
		names = max(names, plain.Width(plain.OneLine(r.Artifacts[i].Name)))
		types = max(types, plain.Width(plain.OneLine(r.Artifacts[i].Type)))
	}
	var lines []string
	for i := range r.Artifacts {
		made := &r.Artifacts[i]
		where := sizeWords(len(made.Content))
		switch {
		case made.Content != "" || made.Ref == "":
		case wire.IsArtifactRef(made.Ref): // else its content would be here
			where = "lost: " + plain.OneLine(made.Ref)
		default:
			where = "at " + plain.OneLine(made.Ref)
		}
		lines = append(lines, plain.Pad(plain.OneLine(made.Name), names)+"  "+plain.Pad(plain.OneLine(made.Type), types)+"  "+where)
	}
	c.rows("artifacts", lines)
}

// responseCard is a response in full.
func responseCard(r *wire.TaskResponse, p paint, now time.Time) string {
	c := card{}
	m := r.Metadata
	at := func(stamp string) string { return plain.Clock(stamp, now, time.TimeOnly) }
	c.row("agent", m.Agent)
	c.row("started", at(m.StartedAt))
	c.row("ended", at(m.CompletedAt))
	if m.DurationMS != nil {
		c.row("took", plain.Duration(time.Duration(*m.DurationMS)*time.Millisecond))
	}
	if m.RetryCount != nil && *m.RetryCount > 0 {
		c.row("tried again", timesWords(*m.RetryCount))
	}
	c.text("question", r.Question)
	var options []string
	for _, o := range r.Options {
		option := o.Value
		if o.Label != "" && o.Label != o.Value {
			option += "  " + o.Label
		}
		options = append(options, option)
	}
	c.rows("answers", options)
	c.text("result", resultText(r.Result))
	if f := r.Fault; f != nil {
		c.text("error", f.Code+": "+f.Message)
		c.text("details", string(f.Details))
		if f.Recoverable {
			c.row("", "another try may go well")
		}
	}
	c.artifacts(r)
	return p.strong(wire.Visible(r.ID)) + "  " + p.response(r.Status, wire.Visible(r.Status)) + "\n" + table(c.lines)
}

func timesWords(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// response is the colour of the status of a response.
func (p paint) response(status, text string) string {
	for _, state := range wire.TaskStates {
		if state.Response() == status {
			return p.task(state, text)
		}
	}
	return text
}

// responseWords are a response in one line, without its id.
func responseWords(r *wire.TaskResponse, p paint, t *wire.Task) string {
	with := "with no agent yet"
	if t != nil && t.AssignedTo != "" {
		with = "with " + plain.OneLine(t.AssignedTo)
	}
	words := p.response(r.Status, wire.Visible(r.Status)) + ", " + with
	switch {
	case r.Fault != nil:
		words += colon(r.Fault.Code + ": " + r.Fault.Message)
	case r.Question != "":
		words += colon(r.Question)
	}
	return words + resultWords(r.Result)
}

// wasBrought reports whether a task that was handed on is in the hands of its agent.
func wasBrought(events []wire.Event) bool {
	for _, e := range slices.Backward(events) {
		switch e.Kind {
		case wire.EventTaskForwarded:
			return true
		case wire.EventTaskAssigned, wire.EventTaskReturned:
			return false
		}
	}
	return false
}

// nextOfHandedOn is for a task that was handed on and that no agent has begun.
func (c *taskCauses) nextOfHandedOn(id string) []string {
	give := "Give it up: orchestrator task cancel " + id
	switch {
	case c.task.State == wire.TaskPending:
		return []string{"It has failed, and is tried again in a moment.", give}
	case c.brought:
		return c.nextOfHeld("was brought it, and has not said that it has begun", give)
	}
	return c.nextOfHeld("is brought it when it has room", give)
}
