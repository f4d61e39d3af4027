package handlers

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// request has an agent delegate a task by printing a line:
//
//	request AGENT ID TYPE KEY=VALUE…
//
// A key is a path in the request; a few have short names. The value is JSON or a text; N*c
// repeats c N times. The command for sending the same line again is again AGENT ID.
func (p *player) request(rest string) {
	words := strings.Fields(p.withIDs(rest))
	line, before := spelledWork(map[string]any{"id": words[1], "type": words[2], "payload": map[string]any{}}, words[3:]), p.lines[words[1]]
	p.lines[words[1]], p.last = line, Outcome{}
	p.print(words[0], line)
	if len(p.last.Records) == 0 && before != "" {
		p.lines[words[1]] = before // the earlier line still counts
	}
}

// act has an agent send an act on a task: status, update INPUT, cancel REASON.
func (p *player) act(rest string) {
	words := strings.SplitN(p.withIDs(rest), " ", 4)
	a := delegation.Act{ID: words[1], Type: "task." + words[2]}
	if len(words) == 4 {
		a.Input, a.Reason = wire.Raw(words[3]), words[3]
		if a.Type == delegation.ActUpdate && strings.HasPrefix(words[3], `{"input":`) {
			a.Payload = wire.Raw(words[3])
		}
	}
	p.print(words[0], string(delegation.AppendAct(nil, &a)))
}

// respond has an agent report the status of a task: respond AGENT ID STATUS KEY=VALUE…
func (p *player) respond(rest string) {
	words := strings.Fields(p.withIDs(rest))
	p.print(words[0], spelledWork(map[string]any{"id": words[1], "status": words[2]}, words[3:]))
}

// longPaths maps the short names of members of delegated work to their paths.
var longPaths = map[string]string{
	"to": "routing.target", "source": "routing.source", "chain": "routing.delegationChain",
	"conversation": "context.conversationId", "parent": "context.parentTaskId", "user": "context.user",
	"priority": "context.priority", "timestamp": "context.timestamp",
	"trace": "observability.traceId", "span": "observability.spanId", "baggage": "observability.baggage",
	"code": "error.code", "says": "error.message", "recoverable": "error.recoverable", "agent": "metadata.agent",
}

var manyForm = regexp.MustCompile(`(\d+)\*(\w)`)

func spelledWork(m map[string]any, words []string) string {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if long := longPaths[key]; long != "" {
			key = long
		}
		value = manyForm.ReplaceAllStringFunc(value, func(many string) string {
			found := manyForm.FindStringSubmatch(many)
			n, _ := strconv.Atoi(found[1])
			return strings.Repeat(found[2], n)
		})
		put(m, strings.Split(key, "."), value)
	}
	line, err := object.Encode(m)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return string(line)
}

// put sets the value at a path: JSON, digit for digit, or a text.
func put(in map[string]any, path []string, value string) {
	in, last := innermost(in, path)
	if in[last] = value; json.Valid([]byte(value)) {
		in[last] = wire.Raw(value)
	}
}

// heardWork returns a short form of a line about delegated work. A forwarded request may differ
// from the original only in its routing, context and trace.
func (p *player) heardWork(line []byte) string {
	var m map[string]wire.Raw
	require.NoError(p.t, json.Unmarshal(line, &m), "%s", line)
	id, kind, status := unquoted(m["id"]), unquoted(m["type"]), unquoted(m["status"])
	short := strings.TrimSpace("response " + id + " " + status)
	switch {
	case delegation.IsAct(kind):
		short = kind + " " + id
	case kind != "":
		short = "request " + id + " " + kind + routeOf(m["routing"])
		p.requireForwarded(id, m)
	}
	for _, key := range []string{"payload", "context", "observability", "result", "error", "message", "input", "metadata", "artifacts"} {
		if value := string(m[key]); value != "" && value != "{}" {
			short += " " + key + " " + shortIDs(value)
		}
	}
	return short
}

func (p *player) requireForwarded(id string, m map[string]wire.Raw) {
	var said map[string]wire.Raw
	if p.lines[id] == "" || json.Unmarshal([]byte(p.lines[id]), &said) != nil {
		return
	}
	for key, value := range said {
		if !slices.Contains([]string{"context", "routing", "observability"}, key) {
			require.Equal(p.t, string(value), string(m[key]), "%s is forwarded as it was said", key)
		}
	}
}

func unquoted(value wire.Raw) (text string) {
	_ = json.Unmarshal(value, &text) // an error leaves it empty
	return text
}

// routeOf returns the routing of a request as text.
func routeOf(routing wire.Raw) string {
	var r delegation.Routing
	_ = json.Unmarshal(routing, &r) // an error leaves it empty
	return fmt.Sprintf(" from %s to %s chain %v", r.Source, r.Target, r.Chain)
}

var (
	idForm   = regexp.MustCompile(`"([0-9a-f]{4})[0-9a-f]{12}(?:[0-9a-f]{16})?"`)
	longForm = regexp.MustCompile(`(x{20})x+`)
)

// shortIDs shortens the ids that were made for traces.
func shortIDs(text string) string {
	return longForm.ReplaceAllString(idForm.ReplaceAllString(text, `"$1…"`), "$1…")
}

// shortened returns the payload of a record without its long members.
func shortened(r *wire.Record) string {
	text := string(r.Payload)
	if !strings.HasPrefix(r.Kind, "task.") {
		return documentForm.ReplaceAllString(text, "")
	}
	var m struct {
		Document  wire.Raw `json:"document"`
		Delegated wire.Raw `json:"delegated"`
	}
	if err := json.Unmarshal(r.Payload, &m); err != nil {
		return text
	}
	for key, value := range map[string]wire.Raw{"document": m.Document, "delegated": m.Delegated} {
		if value != nil {
			text = strings.Replace(text, `,"`+key+`":`+string(value), "", 1)
		}
	}
	return shortIDs(text)
}

// heardLine returns a short form of a line that is written to an agent's stdin.
func (p *player) heardLine(l *Letter) string {
	line, kept := l.Line, ""
	if l.Kept != 0 {
		var err error
		line, err = state.LineOf(p.records[l.Kept-1])
		require.NoError(p.t, err)
		kept = fmt.Sprintf("kept %d ", l.Kept)
		if l.Metadata != nil {
			line = l.Metadata.FillIn(line)
		}
	}
	if strings.Contains(string(line), `"message_type"`) {
		l.Line = line
		return kept + p.heardMessage(l)
	}
	return kept + p.heardWork(line)
}

// isReply reports whether a line is a response in the native form.
func isReply(line []byte) bool { return strings.Contains(string(line), `"type":"response:`) }

// carriedAs returns the number of the record for a receipt: the latest response to a task, or
// the latest input to it.
func (p *player) carriedAs(what, id string) int64 {
	kind := map[string]string{"response": events.TaskResponded, "update": events.TaskActed}[what]
	for _, r := range slices.Backward(p.records) {
		if r.Kind == kind && r.Correlation == id && (what != "update" || strings.Contains(string(r.Payload), `"task.update"`)) {
			return r.Seq
		}
	}
	require.Fail(p.t, "no such thing was said", "%s %s", what, id)
	return 0
}
