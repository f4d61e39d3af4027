package telemetry

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/trace"
)

// TestRequests checks that the span of a request ends with its reply, or with the run that
// waited for it.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.Begin(0)
		w.happen(events.TaskCreated, `{"task":"k"}`)
		w.happen(events.TaskAssigned, `{"task":"k","agent":"a","run":"r","attempt":1}`)
		synctest.Wait()
		ask := func(operation, run, id string) {
			w.Asked(Asked{At: time.Now(), Operation: operation, From: "agent:a", Agent: "a", Run: run, ID: id})
		}
		ask("one", "r", "1")
		ask("two", "r", "2")
		ask("thrice", "r", "3")
		ask("thrice", "r", "3")
		w.happen(events.TaskCreated, `{"task":"l"}`)
		w.happen(events.TaskAssigned, `{"task":"l","agent":"a","run":"r","attempt":1}`)
		ask("unclear", "r", "4") // it holds two tasks
		ask("elsewhere", "s", "1")
		w.Answered(Answered{At: time.Now(), Run: "r", ID: "1"})
		w.Answered(Answered{At: time.Now(), Run: "r", ID: "4", Code: wire.CodeDenied})
		w.Answered(Answered{At: time.Now(), Run: "r", ID: "unknown"})
		w.happen(events.AgentEnded, `{"agent":"a","run":"r"}`)
		synctest.Wait()
		require.Len(t, w.work.asks, 1, "that of another run")
		w.Close()
		var told []string
		for _, s := range w.spans {
			if name, ok := strings.CutPrefix(s.GetName(), "request "); ok {
				told = append(told, fmt.Sprintf("%s %s %v", name, outcomeOf(s), bytes.Equal(s.GetParentSpanId(), idOf("k 1"))))
			}
		}
		slices.Sort(told)
		require.Equal(t, []string{"one granted true", "thrice forsaken true", "two forsaken true", "unclear denied false"}, told,
			"of those that were asked at the same moment under the same id one is told")
	})
}

func outcomeOf(s *tracepb.Span) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == "request.outcome" {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

func idOf(what string) []byte {
	id, _ := hex.DecodeString(spanOf(what))
	return id
}

// TestRequestsAreBounded checks that the number of tracked requests is bounded.
func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		for i := range maxAsks + 5 {
			w.work.asked(&Asked{At: time.Now(), Run: "r", ID: fmt.Sprint(i)})
		}
		require.Len(t, w.work.asks, 5)
		require.Equal(t, fmt.Sprint(maxAsks), w.figure(`spans_total{outcome="dropped"}`))
		w.Close()
	})
}

// TestLabelsAreFew checks that labels from agents have few values.
func TestLabelsAreFew(t *testing.T) {
	w := newWorld(t, nil)
	w.Judged("stdio", "request:submit-task", "", 3)
	w.Judged("stdio", "event:progress", wire.CodeInvalid, 1)
	for i := range 1000 {
		w.Judged("http", fmt.Sprintf("request:%d", i), wire.CodeUnknownType, 1)
	}
	require.Equal(t, "3", w.figure(`messages_total{door="stdio",kind="request:submit-task"}`))
	require.Equal(t, "1", w.figure(`messages_total{door="stdio",kind="event:progress"}`))
	require.Equal(t, "1000", w.figure(`messages_total{door="http",kind="other"}`))
	require.Equal(t, "1000", w.figure(`refused_total{door="http",code="unknown_type"}`)+w.figure(`refused_total{code="unknown_type",door="http"}`))
	w.Close()
}

// TestCut checks that cut keeps whole characters.
func TestCut(t *testing.T) {
	require.Equal(t, "abc", cut("abc", 3))
	require.Equal(t, "ab…", cut("abcd", 2))
	require.Equal(t, "a…", cut("aéb", 2))
}

// handedOn returns the fact of a delegated task, as recorded. It includes baggage, which is for
// agents.
func handedOn(id, parent, trace, span string) string {
	return fmt.Sprintf(`{"task":%[1]q,"name":"parse","type":"parse","priority":"normal","parent":%[2]q,"patient":true,"trace_id":%[3]q,"span_id":%[4]q,`+
		`"delegated":{"document":{"id":%[1]q,"type":"parse","payload":{},"observability":{"traceId":%[3]q,"baggage":{"user":"secret"}}},"sum":7}}`, id, parent, trace, span)
}

// wordsOf returns an attribute of a span as text.
func wordsOf(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			if text := a.GetValue().GetStringValue(); text != "" {
				return text
			}
			return fmt.Sprint(a.GetValue().GetIntValue())
		}
	}
	return ""
}

// TestWorkThatIsHandedOnIsOneTree checks that work delegated from agent to agent is one tree, in
// the trace of its origin.
//
// Rows: D-13, D-15, D-43.
func TestWorkThatIsHandedOnIsOneTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.Begin(0)
		own := trace.IDOf([]byte("alone"))
		w.happen(events.TaskCreated, handedOn("first", "", trace1, span1))
		w.happen(events.TaskCreated, handedOn("second", "first", trace1, "")) // its agent delegates it
		w.happen(events.TaskCreated, handedOn("third", "second", trace1, "b7ad6b7169203331"))
		w.happen(events.TaskCreated, handedOn("alone", "", own, ""))
		w.happen(events.TaskCreated, handedOn("below", "alone", own, ""))
		for _, id := range []string{"third", "second", "first", "below", "alone"} {
			w.happen(events.TaskDone, fmt.Sprintf(`{"task":%q,"name":"parse","agent":"w","result":null}`, id))
		}
		w.Close()
		for id, want := range map[string][2]string{
			"first": {trace1, span1}, "second": {trace1, spanOf("first")}, "third": {trace1, "b7ad6b7169203331"},
			"alone": {own, ""}, "below": {own, spanOf("alone")},
		} {
			s := w.span(id)
			require.NotNil(t, s, id)
			require.Equal(t, want, [2]string{hex.EncodeToString(s.GetTraceId()), hex.EncodeToString(s.GetParentSpanId())}, id)
			require.NotContains(t, s.String(), "secret", "baggage is not for a collector")
		}
	})
}

// TestWorkThatIsTriedAgain checks that each attempt of a retried task is a span, which has the
// number of earlier attempts and the time of its delivery.
//
// Rows: D-34, D-44.
func TestWorkThatIsTriedAgain(t *testing.T) {
	for name, begun := range map[string]bool{"in one life": true, "begun in an earlier one": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, collecting)
				happen := func(kind, payload string) { w.add(kind, payload) }
				if begun {
					w.Begin(0)
					happen = w.happen
				}
				happen(events.TaskCreated, handedOn("a", "", trace1, ""))
				happen(events.TaskAssigned, `{"task":"a","name":"parse","agent":"w","run":"","attempt":1,"way":"handed"}`)
				<-time.After(time.Second) // the bubble's
				brought := time.Now()
				happen(events.TaskForwarded, `{"task":"a","name":"parse","agent":"w","run":"r1"}`)
				if !begun {
					w.Begin(int64(len(w.facts)))
				}
				w.happen(events.TaskRetried, `{"task":"a","name":"parse","agent":"w","error":{"code":"MCP_RATE_LIMITED","message":"too much","recoverable":true},"next":"2026-11-21T14:00:01Z"}`)
				require.Equal(t, "0", w.figure("queue_age_seconds"), "it waits")
				w.happen(events.TaskAssigned, `{"task":"a","name":"parse","agent":"w","run":"r2","attempt":2,"way":"handed"}`)
				w.happen(events.TaskForwarded, `{"task":"a","name":"parse","agent":"w","run":"r2"}`)
				w.happen(events.TaskForwarded, `{"task":"nobody's","name":"parse","agent":"w","run":"r2"}`)
				w.happen(events.TaskFailed, `{"task":"a","name":"parse","agent":"w","error":"MCP_ERROR: no"}`)
				w.Close()
				first, second := w.span("a 1"), w.span("a 2")
				require.Equal(t, "too much", first.GetStatus().GetMessage())
				require.Equal(t, "0", wordsOf(first, "task.retries"))
				require.Equal(t, "r1", wordsOf(first, "agent.run"))
				require.Len(t, first.GetEvents(), 1)
				require.Equal(t, "forwarded", first.GetEvents()[0].GetName())
				require.EqualValues(t, brought.UnixNano(), first.GetEvents()[0].GetTimeUnixNano())
				require.Equal(t, "1", wordsOf(second, "task.retries"))
				require.Equal(t, "r2", wordsOf(second, "agent.run"))
				require.Len(t, second.GetEvents(), 1)
				require.Equal(t, "MCP_ERROR: no", second.GetStatus().GetMessage())
				require.Equal(t, w.span("a").GetSpanId(), second.GetParentSpanId())
			})
		})
	}
}

// TestDelegatedWorkIsCounted checks that messages about delegated work are counted by kind.
//
// Rows: D-17.
func TestDelegatedWorkIsCounted(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"request", "status", "update", "cancel", "response"} {
		w.Judged("stdio", "task:"+name, "", 2)
		require.Equal(t, "2", w.figure(`messages_total{door="stdio",kind="task:`+name+`"}`))
	}
	w.Judged("stdio", "task:made up", "", 1)
	require.Equal(t, "1", w.figure(`messages_total{door="stdio",kind="other"}`))
	w.Close()
}

// TestUsageOfTasks checks that the span of a task has the usage of the task, also in the turn that
// ended it, and that it does not wait for an agent that has ended or makes no reports.
func TestUsageOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.Begin(0)
		give := func(id string) {
			w.happen(events.TaskCreated, fmt.Sprintf(`{"task":%q}`, id))
			w.happen(events.TaskAssigned, fmt.Sprintf(`{"task":%q,"agent":"a","run":"r","attempt":1}`, id))
		}
		use := func(id string, turn, input int) {
			w.happen(events.AgentUsage, fmt.Sprintf(`{"agent":"a","taskId":%q,"turn":%d,"model":"m","input":%d,"output":2,"cost":0.25,"currency":"USD"}`, id, turn, input))
		}
		over := func(id string) { w.happen(events.TaskDone, fmt.Sprintf(`{"task":%q}`, id)) }
		ended := func() int {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			n := 0
			for _, s := range w.spans {
				if s.GetName() == "task" {
					n++
				}
			}
			return n
		}
		give("one")
		use("one", 1, 10)
		use("one", 2, 20)
		over("one")
		use("one", 2, 30)
		<-time.After(10 * time.Second) // the bubble's
		require.Equal(t, 1, ended())
		require.Equal(t, "60 6 0.75 USD 2", spentIn(w.span("one")))

		give("silent")
		over("silent")
		<-time.After(settling / 2)
		require.Equal(t, 1, ended())
		<-time.After(settling)
		require.Equal(t, 2, ended())
		require.Equal(t, "0 0 0  0", spentIn(w.span("silent")))

		give("dead")
		over("dead")
		w.happen(events.AgentEnded, `{"agent":"a","run":"r"}`)
		<-time.After(10 * time.Second)
		require.Equal(t, 3, ended())

		give("last")
		over("last")
		w.Close()
		require.Equal(t, 4, ended())
	})
}

func spentIn(s *tracepb.Span) string {
	var input, output, turns int64
	var cost float64
	var currency string
	for _, a := range s.GetAttributes() {
		switch v := a.GetValue(); a.GetKey() {
		case "task.tokens.input":
			input = v.GetIntValue()
		case "task.tokens.output":
			output = v.GetIntValue()
		case "task.turns":
			turns = v.GetIntValue()
		case "task.cost":
			cost = v.GetDoubleValue()
		case "task.currency":
			currency = v.GetStringValue()
		}
	}
	return fmt.Sprint(input, output, cost) + " " + currency + " " + fmt.Sprint(turns)
}

// TestUsageIsBounded checks that an agent cannot add metrics without end, and that the metrics of
// an agent end with it.
func TestUsageIsBounded(t *testing.T) {
	w := newWorld(t, nil)
	w.status.Agents = []control.AgentView{{Name: "a", Activity: &control.Activity{LimitedUntil: "2026-11-21T15:00:00.000Z"}}}
	for i := range 3 * maxModels {
		w.happen(events.AgentUsage, fmt.Sprintf(`{"agent":"a","turn":%d,"model":"m%d","input":1,"output":0,"cost":1,"currency":"USD"}`, i+1, i))
	}
	w.happen(events.AgentUsage, `{"agent":"a","turn":60,"model":"m0","input":1,"output":0,"cacheRead":5,"cacheWrite":6,"reasoning":7}`)
	w.happen(events.AgentStarted, `{"agent":"a","run":"s"}`)
	w.happen(events.AgentUsage, `{"agent":"a","turn":60,"model":"m0","input":1,"output":0}`)
	var text bytes.Buffer
	require.NoError(t, w.Metrics(t.Context(), &text))
	for _, line := range []string{
		`orchestrator_agent_tokens_total{agent="a",kind="input",model="m0"} 1`,
		`orchestrator_agent_tokens_total{agent="a",kind="input",model="other"} 42`,
		`orchestrator_agent_tokens_total{agent="a",kind="reasoning",model="other"} 7`,
		`orchestrator_agent_cost_total{agent="a",currency="USD",model="m0"} 1`,
		`orchestrator_agent_cost_total{agent="a",currency="other",model="other"} 40`,
		`orchestrator_agent_turns_total{agent="a"} 61`,
		`orchestrator_agent_limited{agent="a"} 1`,
	} {
		require.Contains(t, text.String(), line+"\n")
	}
	require.Equal(t, (maxModels+1)*5, strings.Count(text.String(), "\norchestrator_agent_tokens_total{"))
	w.status.Agents = nil
	text.Reset()
	require.NoError(t, w.Metrics(t.Context(), &text))
	require.NotContains(t, text.String(), "agent_tokens")
	require.Empty(t, w.usage.known())
}
