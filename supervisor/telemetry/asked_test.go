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
	"orchestrator/wire/events"
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
