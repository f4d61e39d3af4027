package api

import (
	"bytes"
	"net/http"
	"strconv"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/trace"
)

// metricsPath is the path that Prometheus scrapes by default.
const metricsPath = "/metrics"

// inFigures is the content type of the Prometheus text format.
const inFigures = "text/plain; version=0.0.4; charset=utf-8"

// metrics answers with all figures or an error. The figures name the agents, so callers need
// the same right as for the status.
func (api *API) metrics(w http.ResponseWriter, r *http.Request) {
	var text bytes.Buffer
	if err := api.Metrics(r.Context(), &text); err != nil {
		api.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", inFigures)
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	control := http.NewResponseController(w)
	_ = hurry(control)
	_, _ = w.Write(text.Bytes()) // a caller that is gone has no use for it
	_ = sent(control)
}

// metricsEndpoint describes the route of the metrics.
func metricsEndpoint() *endpoint {
	return &endpoint{
		ID: "metrics", Summary: "Metrics for Prometheus", Tags: []string{tagDoor}, Security: security(byToken),
		Responses: responses(openResponse{
			Description: "Metrics of agents, tasks, messages and the event log.",
			Content:     map[string]openContent{inFigures: {Schema: wire.Raw(`{"type":"string"}`)}},
		}, 400, 401, 403, 409),
	}
}

// A request may name its trace in the W3C trace context header traceparent. tracestate is
// ignored, because tasks do not store it.

// traceparent is the name of the header.
const traceparent = "traceparent"

var byTrace = parameter{
	name: traceparent, header: true,
	words: "The trace and the parent span of the task, in the form of the W3C; only for a task that names neither itself. A malformed value is ignored.",
}

// traceOf returns the trace of a request. A malformed or repeated header is ignored.
func traceOf(h http.Header) (trace.Context, bool) {
	values := h.Values(traceparent)
	if len(values) != 1 {
		return trace.Context{}, false
	}
	return trace.Parse(values[0])
}

// opensTask reports whether an operation creates a task, which may be in a trace.
func opensTask(operation string) bool {
	return operation == "submit-task" || operation == "submit-task-request"
}

// inTrace returns a new task with the trace of the request, unless the task names a trace. An
// unreadable task is returned unchanged; its reader reports the error.
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
	document := delegation.Request{Document: bytes.TrimSpace(text)} // both kinds of new tasks have it in the same place
	return document.Forwarded(delegation.Forwarding{TraceID: from.TraceID, SpanID: from.SpanID})
}

// readTask reads a new task of the hub.
func readTask(a *params) any {
	s := wire.ReadHubTask(&a.body)
	from, ok := traceOf(a.header)
	said := s.Observability
	if !ok || said != nil && (said.TraceID != "" || said.SpanID != "") {
		return s
	}
	s.Observability = &delegation.Trace{TraceID: from.TraceID, SpanID: from.SpanID}
	if said != nil {
		s.Observability.Baggage = said.Baggage
	}
	return s
}

var placeHeading = heading{
	name: traceparent, words: "The trace and the span of the task, in the form of the W3C; missing if its ids do not have that form.",
	of: placeOf,
}

// placed adds the header traceparent to the writing of one task.
func placed(g *writing) *writing {
	g.headings = []heading{placeHeading}
	return g
}

// placeOf returns the traceparent of an answer about one task, with the task's own span. It is "" without one.
func placeOf(answer any) string {
	place, id := traced(answer)
	if place == nil || !trace.IsSpanID(place.SpanID) {
		return ""
	}
	own := trace.Context{TraceID: place.TraceID, SpanID: trace.SpanIDOf([]byte(id)), Flags: 1}
	return own.Traceparent()
}

// traced returns the trace and the id of the task in an answer.
func traced(answer any) (trace *delegation.Trace, id string) {
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
