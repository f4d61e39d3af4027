package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// world is the environment of a Telemetry: a log, and a collector without a network.
type world struct {
	*Telemetry
	t       *testing.T
	warned  []string
	status  control.Status
	behind  int64
	block   chan struct{} // ResumePoint waits for it
	answers []http.Response

	mu     sync.Mutex
	facts  []wire.Record
	reads  int // of the log
	spans  map[string]*tracepb.Span
	order  []string
	posted []time.Time
}

var collecting = map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector"}

func newWorld(t *testing.T, env map[string]string) *world {
	w := &world{t: t, block: make(chan struct{}), spans: make(map[string]*tracepb.Span)}
	close(w.block)
	w.Telemetry = New(Options{
		Version: "1", Operations: []string{"submit-task"},
		Team: w,
		Env:  func(name string) string { return env[name] },
		Warn: func(message string, args ...any) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warned = append(w.warned, message+fmt.Sprint(args...))
		},
	})
	if w.tracing != nil {
		w.tracing.sender.client.Transport = w
	}
	return w
}

// Status implements Team.
func (w *world) Status(context.Context) (control.Status, error) { return w.status, nil }

// ResumePoint implements Team.
func (w *world) ResumePoint(context.Context, int64) (int64, []string, error) {
	<-w.block
	return w.behind, []string{"kitchen"}, nil
}

// Records implements Team.
func (w *world) Records(_ context.Context, after int64) iter.Seq2[wire.Record, error] {
	w.mu.Lock()
	w.reads++
	facts := slices.Clone(w.facts)
	w.mu.Unlock()
	return func(yield func(wire.Record, error) bool) {
		for _, r := range facts {
			if r.Seq > after && !yield(r, nil) {
				return
			}
		}
	}
}

// RoundTrip acts as the collector.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posted = append(w.posted, time.Now())
	if len(w.answers) > 0 {
		answer := w.answers[0]
		w.answers = w.answers[1:]
		if answer.StatusCode == 0 {
			return nil, errors.New("nobody is there")
		}
		if answer.StatusCode != http.StatusOK {
			answer.Body = http.NoBody
			return &answer, nil
		}
	}
	var all tracepb.TracesData
	if err := proto.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for _, s := range all.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
		id := hex.EncodeToString(s.GetSpanId())
		w.spans[id] = s
		w.order = append(w.order, id)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// add adds a fact to the log.
func (w *world) add(kind, payload string) wire.Record {
	r := wire.Record{Seq: int64(len(w.facts) + 1), At: time.Now().UTC(), From: "operator", Kind: kind, Payload: []byte(payload)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts = append(w.facts, r)
	return r
}

// happen records a fact in one batch.
func (w *world) happen(kind, payload string) {
	w.Recorded([]wire.Record{w.add(kind, payload)}, time.Now(), 0)
}

// done records the facts of a task from its creation to its end.
func (w *world) done(id string) {
	w.happen(events.TaskCreated, fmt.Sprintf(`{"task":%q,"name":"n","type":"t"}`, id))
	w.happen(events.TaskDone, fmt.Sprintf(`{"task":%q,"name":"n","result":null}`, id))
}

func (w *world) span(id string) *tracepb.Span { return w.spans[spanOf(id)] }

func (w *world) figure(name string) string {
	var text bytes.Buffer
	require.NoError(w.t, w.Metrics(w.t.Context(), &text))
	for line := range strings.Lines(text.String()) {
		if rest, ok := strings.CutPrefix(line, "orchestrator_"+name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// TestBatchesThatFindNoRoomAreReadAgain checks that batches without room are read again, and
// that no span of a task is missing.
func TestBatchesThatFindNoRoomAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.block = make(chan struct{})
		w.Begin(0)
		w.happen(events.OrchestratorStarted, `{}`)
		const n = 800
		for i := range n {
			w.done(fmt.Sprint(i))
		}
		close(w.block)
		synctest.Wait()
		w.done("last")
		synctest.Wait()
		require.Empty(t, w.work.tasks)
		w.Close()
		for i := range n {
			require.NotNil(t, w.span(fmt.Sprint(i)), i)
		}
		require.NotNil(t, w.span("last"))
		require.Len(t, w.warned, 1, "it is said once, not for each")
		require.Regexp(t, `^spans are lostcount57\dwhymore spans are waiting than can be sent$`, w.warned[0])
	})
}

// TestWithoutADestination checks that without a destination spans are free.
func TestWithoutADestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		require.False(t, w.Tracing())
		w.Begin(0)
		w.done("a")
		synctest.Wait()
		require.Zero(t, w.reads)
		require.Empty(t, w.queue)
		require.Empty(t, w.work.tasks)
		w.Close()
		require.Empty(t, w.warned)
	})
}

// TestTheFirstReadingLooksBack checks that metrics computed from the log are complete from the
// first reading.
func TestTheFirstReadingLooksBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.add(events.TaskCreated, `{"task":"old"}`)
		w.behind = 1
		w.add(events.TaskCreated, `{"task":"a"}`)
		<-time.After(time.Minute) // the bubble's
		w.happen(events.TaskCreated, `{"task":"b"}`)
		require.Equal(t, "60", w.figure("queue_age_seconds"))
		require.Equal(t, "1", w.figure("sessions"))
		w.happen(events.TaskDone, `{"task":"a"}`)
		w.happen(events.SessionClosed, `{"session_id":"kitchen"}`)
		require.Equal(t, "0", w.figure("queue_age_seconds"))
		require.Equal(t, "0", w.figure("sessions"))
		w.Close()
	})
}

// TestAReaderDoesNotWaitForTheRecord checks that a log that does not answer does not delay a
// reader for long.
func TestAReaderDoesNotWaitForTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.block = make(chan struct{})
		began := time.Now()
		require.Empty(t, w.figure("queue_age_seconds"))
		require.Equal(t, "0", w.figure("questions"))
		require.Equal(t, 2*patience, time.Since(began))
		close(w.block)
		synctest.Wait()
		require.Equal(t, "0", w.figure("queue_age_seconds"))
		w.Close()
	})
}

// TestWhatWaits checks that a task waits for an agent as long as it is not assigned and has no
// other obstacle.
func TestWhatWaits(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	const a, b = `{"task":"a"}`, `{"task":"b"}`
	for name, c := range map[string]struct {
		facts []string // a kind and a payload each
		since int      // seconds; -1: no task waits
	}{
		"nothing":    {nil, -1},
		"created":    {[]string{events.TaskCreated, a}, 0},
		"assigned":   {[]string{events.TaskCreated, a, events.TaskAssigned, a}, -1},
		"requeued":   {[]string{events.TaskCreated, a, events.TaskAssigned, a, events.TaskRequeued, a}, 2},
		"done":       {[]string{events.TaskCreated, a, events.TaskDone, a}, -1},
		"cancelled":  {[]string{events.TaskCreated, a, events.TaskCreated, b, events.TaskCancelled, a}, 1},
		"the oldest": {[]string{events.TaskCreated, a, events.TaskCreated, b}, 0},
		"blocked": {[]string{
			events.TaskCreated, b, events.TaskAssigned, b,
			events.TaskCreated, `{"task":"a","dependencies":[{"depends_on_task_id":"b","dependency_type":"blocks"}]}`,
		}, -1},
		"related": {[]string{
			events.TaskCreated, b, events.TaskAssigned, b,
			events.TaskCreated, `{"task":"a","dependencies":[{"depends_on_task_id":"b","dependency_type":"related"}]}`,
		}, 2},
		"after what is done": {[]string{
			events.TaskCreated, `{"task":"a","dependencies":[{"depends_on_task_id":"gone","dependency_type":"blocks"}]}`,
		}, 0},
		"hopeless": {[]string{events.TaskCreated, a, events.TaskBlocked, a}, -1},
		"blocked later": {[]string{
			events.TaskCreated, b, events.TaskAssigned, b, events.TaskCreated, a,
			events.DependencyAdded, `{"task":"a","dependency":{"depends_on_task_id":"b","dependency_type":"blocks"}}`,
		}, -1},
		"unblocked": {[]string{
			events.TaskCreated, b, events.TaskAssigned, b,
			events.TaskCreated, `{"task":"a","dependencies":[{"depends_on_task_id":"b","dependency_type":"blocks"}]}`,
			events.TaskDone, b, events.TaskUnblocked, a,
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var w openWork
			w.reset()
			for i := 0; i < len(c.facts); i += 2 {
				n := i / 2
				w.learn(&wire.Record{Seq: int64(n + 1), At: at.Add(time.Duration(n) * time.Second), Kind: c.facts[i], Payload: []byte(c.facts[i+1])})
			}
			want := time.Time{}
			if c.since >= 0 {
				want = at.Add(time.Duration(c.since) * time.Second)
			}
			require.Equal(t, want, w.summary().waiting)
		})
	}
}

const (
	trace1 = "4bf92f3577b34da6a3ce929d0e0e4736"
	span1  = "00f067aa0ba902b7"
)

// TestWhereASpanIs checks that the parent of a span is the task that it comes from, or a span of
// another program.
func TestWhereASpanIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.Begin(0)
		for _, payload := range []string{
			`{"task":"root"}`,
			`{"task":"child","parent":"root"}`,
			`{"task":"grandchild","parent":"child"}`,
			`{"task":"far","trace_id":"` + trace1 + `","span_id":"` + span1 + `"}`,
			`{"task":"below far","parent":"far"}`,
			`{"task":"far child","parent":"root","trace_id":"` + trace1 + `","span_id":"` + span1 + `"}`,
			`{"task":"trace alone","trace_id":"` + trace1 + `"}`,
			`{"task":"same trace","parent":"far","trace_id":"` + trace1 + `"}`,
			`{"task":"nonsense","trace_id":"ABC","span_id":"0000000000000000"}`,
			`{"task":"of a stranger","parent":"stranger"}`,
		} {
			w.happen(events.TaskCreated, payload)
		}
		for _, id := range []string{"root", "far"} { // before their children
			w.happen(events.TaskDone, fmt.Sprintf(`{"task":%q}`, id))
		}
		w.happen(events.TaskCreated, `{"task":"late","parent":"root"}`)
		for _, id := range []string{"child", "grandchild", "below far", "far child", "trace alone", "same trace", "nonsense", "of a stranger", "late"} {
			w.happen(events.TaskFailed, fmt.Sprintf(`{"task":%q,"error":"no"}`, id))
		}
		w.Close()
		root := traceOf("root")
		for id, want := range map[string][2]string{
			"root": {root, ""}, "child": {root, spanOf("root")}, "grandchild": {root, spanOf("child")}, "late": {root, spanOf("root")},
			"far": {trace1, span1}, "below far": {trace1, spanOf("far")}, "far child": {trace1, span1},
			"trace alone": {trace1, ""}, "same trace": {trace1, spanOf("far")}, "nonsense": {traceOf("nonsense"), ""},
			"of a stranger": {traceOf("stranger"), spanOf("stranger")},
		} {
			s := w.span(id)
			require.NotNil(t, s, id)
			require.Equal(t, want, [2]string{hex.EncodeToString(s.GetTraceId()), hex.EncodeToString(s.GetParentSpanId())}, id)
			require.Equal(t, id != "root" && id != "far", s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, id)
		}
	})
}

// TestLineageIsBounded checks that the number of remembered ended tasks is bounded.
func TestLineageIsBounded(t *testing.T) {
	var l lineage
	for i := range remembered + 10 {
		l.add(fmt.Sprint(i), place{trace: fmt.Sprint(i)})
	}
	require.Len(t, l.places, remembered)
	require.NotContains(t, l.places, "9")
	require.Equal(t, fmt.Sprint(remembered+9), l.places[fmt.Sprint(remembered+9)].trace)
}

// TestALifeAfterAnother checks that tasks that ended in an earlier process are not sent again,
// and that open ones continue.
func TestALifeAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.add(events.TaskCreated, `{"task":"over"}`)
		w.add(events.TaskDone, `{"task":"over"}`)
		began := w.add(events.TaskCreated, `{"task":"open"}`).At
		w.add(events.TaskAssigned, `{"task":"open","agent":"a","run":"r","attempt":1}`)
		w.Begin(4)
		<-time.After(time.Second) // the bubble's
		w.Recorded([]wire.Record{
			w.add(events.TaskRequeued, `{"task":"open","agent":"a","why":"it died"}`), w.add(events.OrchestratorStarted, `{}`),
			w.add(events.TaskAssigned, `{"task":"open","agent":"b","run":"s","attempt":2}`),
		}, time.Now(), 0)
		w.happen(events.TaskDone, `{"task":"open"}`)
		w.Close()
		require.Nil(t, w.span("over"))
		require.EqualValues(t, began.UnixNano(), w.span("open").GetStartTimeUnixNano())
		require.Equal(t, "it died", w.span("open 1").GetStatus().GetMessage())
		require.Equal(t, w.span("open").GetSpanId(), w.span("open 2").GetParentSpanId())
		require.Equal(t, tracepb.Status_STATUS_CODE_UNSET, w.span("open 2").GetStatus().GetCode())
		require.Equal(t, map[string]string{"record": "2", "task": "1", "assignment": "2"}, w.names())
	})
}

// names returns the number of spans by name.
func (w *world) names() map[string]string {
	n := make(map[string]int)
	for _, s := range w.spans {
		n[s.GetName()]++
	}
	text := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(n)) {
		text[name] = fmt.Sprint(n[name])
	}
	return text
}
