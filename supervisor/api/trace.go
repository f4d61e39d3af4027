package api

import (
	"bytes"
	"net/http"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A request may say to which trace it belongs, in the header that the W3C's
// recommendation on trace context has for it. tracestate is passed over: a task has
// no place for it, and nothing here would add to it.

// traceparent is the name of that header.
const traceparent = "traceparent"

var byTrace = parameter{
	name: traceparent, header: true,
	words: "The trace that the task is to be in, and the span that it is below, as the W3C has it; for a task that says neither itself. One that is wrong is passed over.",
}

// traceOf is where a request stands in a trace. A header that is wrong, or that
// stands twice, is as good as none: a trace begins anew then.
func traceOf(h http.Header) (wire.TraceContext, bool) {
	values := h.Values(traceparent)
	if len(values) != 1 {
		return wire.TraceContext{}, false
	}
	return wire.ParseTraceparent(values[0])
}

// opensTask reports whether an operation makes a task, which may say where it stands
// in a trace.
func opensTask(operation string) bool {
	return operation == "submit-task" || operation == "submit-task-request"
}

// inTrace is a new task as it was sent, in the trace of the request unless it says
// itself in which it is. One that cannot be read stays as it is: its reader
// says what is wrong.
func inTrace(text []byte, h http.Header, depth int) []byte {
	from, ok := traceOf(h)
	if !ok {
		return text
	}
	var task, said object.Reader
	if task.Read(text, depth, "") != nil {
		return text
	}
	block := task.Value("observability")
	if block != nil && said.Read(block, depth, "") != nil {
		return text
	}
	if said.Text("traceId") != "" || said.Text("spanId") != "" || said.Err() != nil || task.Err() != nil {
		return text
	}
	document := wire.TaskRequest{Document: bytes.TrimSpace(text)} // new tasks of both kinds say it in the same place
	return document.Forwarded(wire.Forwarding{TraceID: from.TraceID, SpanID: from.SpanID})
}

// readTask reads a new task of the hub.
var readTask = &reading{schema: "hub.new-task", need: true, read: func(a *params) any {
	s := wire.ReadHubTask(&a.body)
	from, ok := traceOf(a.header)
	said := s.Observability
	if !ok || said != nil && (said.TraceID != "" || said.SpanID != "") {
		return s
	}
	s.Observability = &wire.TaskTrace{TraceID: from.TraceID, SpanID: from.SpanID}
	if said != nil {
		s.Observability.Baggage = said.Baggage
	}
	return s
}}

var placeHeading = heading{
	name: traceparent, words: "The trace that the task is in, and its own span, as the W3C has it; missing where its ids are none of the W3C's.",
	of: placeOf,
}

// placed is a writing of one task, which also says where that stands in a trace.
func placed(g *writing) *writing {
	g.headings = []heading{placeHeading}
	return g
}

// placeOf is the traceparent of an answer that is one task, or what became of one: of
// the span that is the task's own, and not of the one that it is below. It is "" when
// there is none.
func placeOf(answer any) string {
	trace, id := traced(answer)
	if trace == nil || !wire.IsSpanID(trace.SpanID) {
		return ""
	}
	own := wire.TraceContext{TraceID: trace.TraceID, SpanID: wire.SpanIDOf([]byte(id)), Flags: 1}
	return own.Traceparent()
}

// traced is the trace that an answer says its task is in, and the task's id.
func traced(answer any) (trace *wire.TaskTrace, id string) {
	switch a := answer.(type) {
	case *wire.TaskReply:
		if a != nil && a.Task.Details != nil {
			return a.Task.Details.Observability, a.Task.ID
		}
	case *wire.TaskAnswer:
		if a != nil && a.Trace != nil {
			return a.Trace, a.TaskID()
		}
	}
	return nil, ""
}
