package session

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/trace"
)

// A collector receives spans as OTLP over HTTP in protobuf.
type collector struct {
	t *testing.T
	*httptest.Server

	mu       sync.Mutex
	spans    []aSpan
	requests []*http.Request
	resource map[string]string
}

// aSpan is a span that the collector received.
type aSpan struct {
	trace, id, parent, name string
	began, ended            time.Time
	failed                  bool
	why                     string
	attributes              map[string]string
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	var all tracepb.TracesData // has the encoding of the request, see supervisor/telemetry
	if err == nil {
		err = proto.Unmarshal(text, &all)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	for _, of := range all.GetResourceSpans() {
		c.resource = make(map[string]string)
		for _, a := range of.GetResource().GetAttributes() {
			c.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(s))
			}
		}
	}
}

func spanOf(s *tracepb.Span) aSpan {
	found := aSpan{
		trace: hex.EncodeToString(s.GetTraceId()), id: hex.EncodeToString(s.GetSpanId()), parent: hex.EncodeToString(s.GetParentSpanId()),
		name: s.GetName(), failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, why: s.GetStatus().GetMessage(),
		began:      time.Unix(0, int64(s.GetStartTimeUnixNano())), //nolint:gosec // it fits until 2262
		ended:      time.Unix(0, int64(s.GetEndTimeUnixNano())),   //nolint:gosec // as above
		attributes: make(map[string]string),
	}
	for _, a := range s.GetAttributes() {
		text := a.GetValue().GetStringValue()
		if text == "" {
			text = fmt.Sprint(float64(a.GetValue().GetIntValue()) + a.GetValue().GetDoubleValue())
		}
		found.attributes[a.GetKey()] = text
	}
	return found
}

// all returns the spans received so far that fit.
func (c *collector) all(fits func(*aSpan) bool) (found []aSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.spans {
		if fits(&c.spans[i]) {
			found = append(found, c.spans[i])
		}
	}
	return found
}

// one waits for the only span that fits.
func (c *collector) one(what string, fits func(*aSpan) bool) aSpan {
	c.t.Helper()
	stage.WaitFor(c.t, "span of "+what, func() bool { return len(c.all(fits)) > 0 })
	found := c.all(fits)
	require.Len(c.t, found, 1, what)
	return found[0]
}

// task waits for the span of a task.
func (c *collector) task(id string) aSpan {
	c.t.Helper()
	return c.one("task "+id, func(s *aSpan) bool { return s.id == trace.SpanIDOf([]byte(id)) })
}

// hop waits for the span of the first assignment of a task.
func (c *collector) hop(task string) aSpan {
	c.t.Helper()
	return c.one("assignment of "+task, func(s *aSpan) bool {
		return s.name == "assignment" && s.attributes["task.id"] == task && s.attributes["task.attempt"] == "1"
	})
}

// toCollector returns an environment that sends spans to a collector with little delay.
func toCollector(url string) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_BSP_SCHEDULE_DELAY=20"}
}

// A tree of tasks gives a tree of spans, with the work of the agents below.
func TestSpansOfATree(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	h := stage.NewTeam(t, stage.QuickStop+stage.ScriptedWith("boss", "planner", "plan")+stage.ScriptedWith("worker", "worker", "go"), "boss", "worker")
	h.UpWith(append(toCollector(c.URL), "OTEL_EXPORTER_OTLP_HEADERS=x-tenant=a%20b", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_RESOURCE_ATTRIBUTES=deployment=test")...)
	boss, worker := h.NextRun("boss"), h.NextRun("worker")

	var root wire.TaskReply
	h.Operated(&root, "submit-task", `{"type":"plan","name":"the whole","requiredCapabilities":["plan"]}`)
	top := root.Task.ID
	atWork(h, boss, top)
	child := boss.Submit(`{"type":"code","name":"a part","requiredCapabilities":["go"]}`)
	atWork(h, worker, child.ID)
	worker.Granted(nil, "fail-task", fmt.Sprintf(`{"taskId":%q,"error":"it does not compile"}`, child.ID))
	again := boss.Submit(`{"type":"code","name":"another part","requiredCapabilities":["go"]}`)
	atWork(h, worker, again.ID)
	usage := stage.Event("u", "usage", fmt.Sprintf(`{"taskId":%q,"turn":1,"model":"m","input":300,"output":60,"cost":0.25,"currency":"USD"}`, again.ID)) + "\n"
	worker.Say(usage)
	worker.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, again.ID))
	worker.Say(usage) // for the rest of the turn after the task ended
	worker.Refused("NOT_FOUND", "get-task", `{"taskId":"nobody"}`)
	boss.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, top))

	trace := trace.IDOf([]byte(top))
	whole := c.task(top)
	require.Equal(t, trace, whole.trace)
	require.Empty(t, whole.parent)
	require.Equal(t, "task plan", whole.name)
	require.False(t, whole.failed)
	require.Equal(t, map[string]string{
		"task.id": top, "task.name": "the whole", "task.type": "plan", "task.submitted_by": "operator", "task.agent": "boss", "task.state": "done",
	}, whole.attributes)
	require.Equal(t, root.Task.CreatedAt, object.Timestamp(whole.began.UTC()))

	for id, why := range map[string]string{child.ID: "it does not compile", again.ID: ""} {
		part, hop := c.task(id), c.hop(id)
		require.Equal(t, trace, part.trace)
		require.Equal(t, whole.id, part.parent)
		require.Equal(t, why, part.why)
		require.Equal(t, why != "", part.failed)
		require.Equal(t, "agent:boss", part.attributes["task.submitted_by"])
		used := map[string]string{"task.tokens.input": "600", "task.tokens.output": "120", "task.turns": "1", "task.cost": "0.5", "task.currency": "USD"}
		for name, want := range used {
			if id != again.ID {
				want = ""
			}
			require.Equal(t, want, part.attributes[name], name)
		}
		require.Equal(t, trace, hop.trace)
		require.Equal(t, part.id, hop.parent)
		require.Equal(t, "worker", hop.attributes["agent.name"])
		require.Equal(t, worker.Run, hop.attributes["agent.run"])
		require.Equal(t, why != "", hop.failed)
		require.False(t, hop.began.Before(part.began) || hop.ended.After(part.ended))
	}
	require.Equal(t, whole.id, c.hop(top).parent)

	for name, below := range map[string]string{
		"request complete-task": c.hop(again.ID).id, "request fail-task": c.hop(child.ID).id,
	} {
		asked := c.one(name, func(s *aSpan) bool { return s.name == name && s.attributes["request.actor"] == "agent:worker" })
		require.Equal(t, trace, asked.trace)
		require.Equal(t, below, asked.parent)
		require.Equal(t, "granted", asked.attributes["request.outcome"])
	}
	person := c.one("what a person asked", func(s *aSpan) bool {
		return s.attributes["request.actor"] == "operator" && s.name == "request submit-task"
	})
	require.Empty(t, person.parent)
	lost := c.one("what was refused", func(s *aSpan) bool { return s.attributes["request.outcome"] == "not_found" })
	require.True(t, lost.failed)
	require.Empty(t, lost.parent, "its agent held nothing by then")

	h.Stop()
	batches := c.all(func(s *aSpan) bool { return s.name == "record" })
	slices.SortFunc(batches, func(a, b aSpan) int { return a.began.Compare(b.began) })
	next := 1
	for _, b := range batches {
		require.Equal(t, fmt.Sprint(next), b.attributes["record.first"], "none is left out")
		facts := 0
		_, err := fmt.Sscan(b.attributes["record.facts"], &facts)
		require.NoError(t, err)
		next += facts
	}
	require.Greater(t, next, 10)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, "orchestrator", c.resource["service.name"])
	require.Equal(t, build.Version, c.resource["service.version"])
	require.Equal(t, "test", c.resource["deployment"])
	for _, r := range c.requests {
		require.Equal(t, "/v1/traces", r.URL.Path)
		require.Equal(t, "application/x-protobuf", r.Header.Get("Content-Type"))
		require.Equal(t, "a b", r.Header.Get("X-Tenant"))
	}
}

// After a kill and a restart, the orchestrator completes the open trees and sends no span twice.
func TestSpansAfterARestart(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	h := stage.NewTeam(t, stage.QuickStop+stage.ScriptedWith("boss", "planner", "plan"), "boss")
	h.UpWith(toCollector(c.URL)...)
	boss := h.NextRun("boss")
	var before, root wire.TaskReply
	h.Operated(&before, "submit-task", `{"type":"t","name":"over","requiredCapabilities":["plan"]}`)
	boss.Assigned(before.Task.ID)
	boss.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, before.Task.ID))
	h.Operated(&root, "submit-task", `{"type":"t","name":"the whole","requiredCapabilities":["plan"]}`)
	atWork(h, boss, root.Task.ID)
	child := boss.Submit(`{"type":"t","name":"a part","requiredCapabilities":["cobol"]}`)
	c.task(before.Task.ID)
	require.NoError(t, h.Process.Process.Kill())
	h.Await()

	h.UpWith(append(toCollector(c.URL), "OTEL_SERVICE_NAME=again")...)
	again := h.NextRun("boss")
	atWork(h, again, root.Task.ID)
	h.Operated(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q,"reason":"enough"}`, child.ID))
	part := c.task(child.ID)
	again.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, root.Task.ID))
	whole := c.task(root.Task.ID)
	require.Equal(t, trace.IDOf([]byte(root.Task.ID)), whole.trace)
	require.Equal(t, whole.trace, part.trace)
	require.Equal(t, whole.id, part.parent)
	require.True(t, part.failed)
	require.Equal(t, "enough", part.why)
	require.Equal(t, root.Task.CreatedAt, object.Timestamp(whole.began.UTC()), "it began in the life before")
	first := c.one("the assignment of the life before", func(s *aSpan) bool {
		return s.parent == whole.id && s.attributes["agent.run"] == boss.Run
	})
	require.True(t, first.failed)
	c.task(before.Task.ID) // once
	c.mu.Lock()
	require.Equal(t, "again", c.resource["service.name"])
	c.mu.Unlock()
	h.Stop()
}

// atWork waits until a scripted agent is known to work on a task. Only then its submissions are children
// of the task.
func atWork(t *stage.Team, a *stage.Agent, id string) {
	t.T.Helper()
	a.Assigned(id)
	stage.WaitFor(t.T, "task at work", func() bool { return t.TaskState(id) == wire.TaskRunning })
}

// Without a collector all work continues, and lost spans are counted.
func TestSpansWithoutACollector(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.Close()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	h.UpWith(append(toCollector(c.URL), "OTEL_BSP_EXPORT_TIMEOUT=50")...)
	a := h.NextRun("a")
	var reply wire.TaskReply
	h.Operated(&reply, "submit-task", `{"type":"t","name":"n","requiredRole":"worker"}`)
	a.Assigned(reply.Task.ID)
	a.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, reply.Task.ID))
	stage.WaitFor(t, "spans that failed", func() bool { return h.Scrape().Of("orchestrator_spans_total", "outcome", "failed") > 0 })
	require.Zero(t, h.Scrape().Of("orchestrator_spans_total", "outcome", "sent"))
	h.Stop()
	require.Contains(t, h.Stderr.All(), "spans are lost")
}

// Spans are sent only if the endpoint is set and no other variable disables them.
func TestSpansAreNotSentUnasked(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	for _, env := range [][]string{
		{"OTEL_SERVICE_NAME=x", "OTEL_EXPORTER_OTLP_HEADERS=a=b"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_SDK_DISABLED=true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_TRACES_EXPORTER=none"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
	} {
		s := stage.New(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").UpWith(env...)
		s.WaitForEvents(1, events.AgentStarted, "a")
		s.Operated(nil, "submit-task", `{"type":"t","name":"n","requiredCapabilities":["cobol"]}`)
		require.NotContains(t, s.Scrape(), "orchestrator_spans_total")
		s.Stop()
	}
	require.Empty(t, c.requests)
}
