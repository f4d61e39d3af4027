package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// HandedOn reports whether a task was delegated by a task request. It is false for tasks
// from lists, which omit the details.
func HandedOn(t *wire.Task) bool { return t.Details != nil && t.Routing != nil }

// addDelegation adds the rows of a delegated task: source, target, conversation and trace.
func addDelegation(c *term.Card, t *wire.Task) {
	if r := t.Routing; r != nil {
		c.Row("asked by", r.Source)
		c.Row("asked of", r.Target)
		c.Row("by way of", strings.Join(r.Chain, " -> "))
	}
	if x := t.Context; x != nil {
		c.Row("conversation", x.ConversationID)
		c.Row("user", x.User)
		c.Row("asked at", x.Timestamp)
	}
	if trace := t.Observability; trace != nil {
		c.Row("trace", trace.TraceID)
		c.Row("span", trace.SpanID)
		if trace.Baggage != nil {
			c.Text("baggage", string(trace.Baggage))
		}
	}
}

// artifacts adds the rows of the artifacts: names, types and sizes.
func artifacts(c *term.Card, r *delegation.Response) {
	names, types := 0, 0
	for i := range r.Artifacts {
		names = max(names, term.Width(term.OneLine(r.Artifacts[i].Name)))
		types = max(types, term.Width(term.OneLine(r.Artifacts[i].Type)))
	}
	var lines []string
	for i := range r.Artifacts {
		made := &r.Artifacts[i]
		where := sizeWords(len(made.Content))
		switch {
		case made.Content != "" || made.Ref == "":
		case delegation.IsArtifactRef(made.Ref): // the content would be here if it were not lost
			where = "lost: " + term.OneLine(made.Ref)
		default:
			where = "at " + term.OneLine(made.Ref)
		}
		lines = append(lines, term.Pad(term.OneLine(made.Name), names)+"  "+term.Pad(term.OneLine(made.Type), types)+"  "+where)
	}
	c.Rows("artifacts", lines)
}

// responseCard returns a response in full.
func responseCard(r *delegation.Response, p term.Paint, now time.Time) string {
	c := term.Card{}
	m := r.Metadata
	at := func(stamp string) string { return term.Clock(stamp, now, time.TimeOnly) }
	c.Row("agent", m.Agent)
	c.Row("started", at(m.StartedAt))
	c.Row("ended", at(m.CompletedAt))
	if m.DurationMS != nil {
		c.Row("took", term.Duration(time.Duration(*m.DurationMS)*time.Millisecond))
	}
	if m.RetryCount != nil && *m.RetryCount > 0 {
		c.Row("tried again", timesWords(*m.RetryCount))
	}
	c.Text("question", r.Question)
	var options []string
	for _, o := range r.Options {
		option := o.Value
		if o.Label != "" && o.Label != o.Value {
			option += "  " + o.Label
		}
		options = append(options, option)
	}
	c.Rows("answers", options)
	c.Text("result", resultText(r.Result))
	if f := r.Fault; f != nil {
		c.Text("error", f.Code+": "+f.Message)
		c.Text("details", string(f.Details))
		if f.Recoverable {
			c.Row("", "another try may go well")
		}
	}
	artifacts(&c, r)
	return p.Strong(wire.Visible(r.ID)) + "  " + inkResponse(p, r.Status, wire.Visible(r.Status)) + "\n" + term.Table(c.Lines)
}

func timesWords(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// inkResponse paints a text in the color of the status of a response.
func inkResponse(p term.Paint, status, text string) string {
	for _, state := range wire.TaskStates {
		if state.Response() == status {
			return p.Task(state, text)
		}
	}
	return text
}

// responseWords returns a response in one line, without its id.
func responseWords(r *delegation.Response, p term.Paint, t *wire.Task) string {
	with := "with no agent yet"
	if t != nil && t.AssignedTo != "" {
		with = "with " + term.OneLine(t.AssignedTo)
	}
	words := inkResponse(p, r.Status, wire.Visible(r.Status)) + ", " + with
	switch {
	case r.Fault != nil:
		words += term.Colon(r.Fault.Code + ": " + r.Fault.Message)
	case r.Question != "":
		words += term.Colon(r.Question)
	}
	return words + resultWords(r.Result)
}

// WasBrought reports whether a delegated task was forwarded to its current agent.
func WasBrought(found []wire.Event) bool {
	for _, e := range slices.Backward(found) {
		switch e.Kind {
		case events.TaskForwarded:
			return true
		case events.TaskAssigned, events.TaskReturned:
			return false
		}
	}
	return false
}
