package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// figures are the metrics read from /metrics.
type figures map[string]*dto.MetricFamily

// scrape reads the metrics as Prometheus does.
func (s *stage) scrape() figures {
	s.t.Helper()
	status, text := s.fetch(s.door(), "http://orchestrator/metrics", nil)
	require.Equal(s.t, http.StatusOK, status, "%s", text)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(s.t, err, "%s", text)
	return families
}

func (s *stage) fetch(client *http.Client, url string, header http.Header) (status int, text []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	require.NoError(s.t, err)
	maps.Copy(r.Header, header)
	answer, err := client.Do(r)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return answer.StatusCode, text
}

// of returns the value of a metric with some label pairs, or -1. For a histogram it returns the
// count.
func (f figures) of(name string, labels ...string) float64 {
	want := make(map[string]string)
	for i := 0; i < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
next:
	for _, m := range f[name].GetMetric() {
		for _, l := range m.GetLabel() {
			if text, asked := want[l.GetName()]; asked && text != l.GetValue() {
				continue next
			}
		}
		switch {
		case m.Counter != nil:
			return m.GetCounter().GetValue()
		case m.Histogram != nil:
			return float64(m.GetHistogram().GetSampleCount())
		default:
			return m.GetGauge().GetValue()
		}
	}
	return -1
}

// Each metric of the program has a value after its event has happened.
func TestMetrics(t *testing.T) {
	t.Parallel()
	h := troupe(t, quick+able("boss", "planner", "plan")+able("worker", "worker", "go"), "boss", "worker")
	all := h.cast("boss", "worker")
	boss, worker := all[0], all[1]

	done := boss.submit(`{"type":"t","name":"done","requiredCapabilities":["go"]}`)
	worker.assigned(done.ID)
	worker.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, done.ID))
	worker.say(telling("u-1", "usage", fmt.Sprintf(`{"taskId":%q,"turn":1,"model":"m-1","input":300,"output":60,"cacheRead":30,"cost":0.25,"currency":"USD"}`, done.ID)) + "\n")
	worker.say(telling("u-2", "limited", fmt.Sprintf(`{"until":%q}`, object.Timestamp(time.Now().Add(time.Hour)))) + "\n")
	worker.quiet()
	f := h.scrape()
	for kind, want := range map[string]float64{"input": 300, "output": 60, "cache_read": 30, "cache_write": 0, "reasoning": 0} {
		require.InDelta(t, want, f.of("orchestrator_agent_tokens_total", "agent", "worker", "model", "m-1", "kind", kind), 0, kind)
	}
	require.InDelta(t, 0.25, f.of("orchestrator_agent_cost_total", "agent", "worker", "model", "m-1", "currency", "USD"), 0)
	require.InDelta(t, 1, f.of("orchestrator_agent_turns_total", "agent", "worker"), 0)
	require.InDelta(t, 1, f.of("orchestrator_agent_limited", "agent", "worker"), 0)
	require.InDelta(t, -1, f.of("orchestrator_agent_turns_total", "agent", "boss"), 0, "it has reported nothing")
	require.InDelta(t, 1, f.of("orchestrator_messages_total", "kind", "event:usage"), 0)
	worker.say(telling("u-3", "limited", `{"until":"2026-01-01T00:00:00Z"}`) + "\n")
	worker.quiet()
	held := boss.submit(`{"type":"t","name":"held","requiredCapabilities":["go"]}`)
	worker.assigned(held.ID)
	boss.submit(fmt.Sprintf(`{"type":"t","name":"blocked","requiredCapabilities":["cobol"],"dependencies":[%q]}`, held.ID))
	f = h.scrape()
	require.Zero(t, f.of("orchestrator_queue_age_seconds"), "the one that waits waits for another")
	boss.submit(`{"type":"t","name":"waits","requiredCapabilities":["cobol"]}`)
	boss.refused("NOT_FOUND", "get-task", `{"taskId":"nobody"}`)
	boss.refused("INVALID_MESSAGE_TYPE", "made-up-1", `{}`)
	boss.refused("INVALID_MESSAGE_TYPE", "made-up-2", `{}`)

	f = h.scrape()
	for state, want := range map[string]float64{"done": 1, "running": 1, "blocked": 1, "pending": 1, "failed": 0} {
		require.InDelta(t, want, f.of("orchestrator_tasks", "state", state), 0, state)
	}
	require.InDelta(t, 2, f.of("orchestrator_agents", "state", "running"), 0)
	require.InDelta(t, 0, f.of("orchestrator_agents", "state", "failed"), 0)
	require.InDelta(t, 4, f.of("orchestrator_messages_total", "door", "stdio", "kind", "request:submit-task"), 0)
	require.InDelta(t, 1, f.of("orchestrator_messages_total", "door", "stdio", "kind", "request:complete-task"), 0)
	require.InDelta(t, 2, f.of("orchestrator_messages_total", "kind", "other"), 0, "what somebody makes up has no figure of its own")
	require.InDelta(t, 1, f.of("orchestrator_refused_total", "door", "stdio", "code", "not_found"), 0)
	require.InDelta(t, 2, f.of("orchestrator_refused_total", "door", "stdio", "code", "unknown_type"), 0)
	require.InDelta(t, 4, f.of("orchestrator_facts_total", "kind", events.TaskCreated), 0)
	require.InDelta(t, 0, f.of("orchestrator_agent_mailbox_messages", "agent", "worker"), 0)
	require.InDelta(t, 0, f.of("orchestrator_agent_restarts_total", "agent", "worker"), 0)
	require.InDelta(t, 0, f.of("orchestrator_sessions"), 0)
	require.InDelta(t, 0, f.of("orchestrator_questions"), 0)
	require.InDelta(t, 1, f.of("orchestrator_build_info", "version", cli.Version), 0)
	require.Greater(t, f.of("orchestrator_queue_age_seconds"), 0.0)
	require.Positive(t, f.of("orchestrator_record_commit_seconds"))
	require.InDelta(t, f.of("orchestrator_record_commit_seconds"), f.of("orchestrator_record_batch_facts"), 0)
	require.InDelta(t, f.of("orchestrator_record_commit_seconds"), f.of("orchestrator_record_batch_bytes"), 0)
	require.Positive(t, f.of("process_open_fds"))
	require.NotContains(t, f, "orchestrator_spans_total", "nobody wants spans")

	worker.die()
	h.enter("worker")
	waitForThat(t, "a restart", func() bool { return h.scrape().of("orchestrator_agent_restarts_total", "agent", "worker") == 1 })
	h.operated(nil, "query-tasks", "{}")
	require.InDelta(t, 1, h.scrape().of("orchestrator_messages_total", "door", "http", "kind", "request:query-tasks"), 0)
	require.Positive(t, h.scrape().of("orchestrator_queue_age_seconds"))
	h.stop()
}

// The names follow the conventions of Prometheus.
func TestMetricsAreWellNamed(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").up("--json")
	s.waitForEvents(1, events.AgentStarted, "a")
	_, text := s.fetch(s.door(), "http://orchestrator/metrics", nil)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	s.stop()
}

// Waiting times are correct after a restart, from the first scrape on.
func TestMetricsAfterARestart(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+"agent \"a\" {\n  command = [\"cat\"]\n}\n").up("--json")
	s.waitForEvents(1, events.AgentStarted, "a")
	var reply wire.TaskReply
	s.operated(&reply, "submit-task", `{"type":"t","name":"waits","requiredCapabilities":["cobol"]}`)
	created, err := time.Parse(time.RFC3339Nano, reply.Task.CreatedAt)
	require.NoError(t, err)
	s.stop()
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "a")
	before := time.Since(created).Seconds()
	require.GreaterOrEqual(t, s.scrape().of("orchestrator_queue_age_seconds"), before-0.001)
	s.operated(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, reply.Task.ID))
	waitForThat(t, "nothing that waits", func() bool { return s.scrape().of("orchestrator_queue_age_seconds") == 0 })
	s.stop()
}

// Metrics name agents, so only callers that may see the status can read them.
func TestMetricsAreNotForStrangers(t *testing.T) {
	t.Parallel()
	s := newStage(t, "http {\n  listen = [\"127.0.0.1:0\"]\n}\nagent \"a\" {\n  command = [\"cat\"]\n}\n").up()
	url := s.listening()
	waitForThat(t, "the agent", func() bool { return s.agent("a").State == control.StateRunning })
	viewer := strings.TrimSpace(s.ask("token", "issue", "--sub", "ann", "--role", wire.PersonViewer))
	var key wire.IssuedKey
	s.operated(&key, "issue-key", `{"agent":"a"}`)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	for credential, want := range map[string]int{"": http.StatusUnauthorized, viewer: http.StatusOK, key.Key: http.StatusForbidden, "orc_wrong": http.StatusUnauthorized} {
		header := http.Header{}
		if credential != "" {
			header.Set("Authorization", "Bearer "+credential)
		}
		status, text := s.fetch(client, url+"/metrics", header)
		require.Equal(t, want, status, "%s", text)
		require.Equal(t, want == http.StatusOK, bytes.Contains(text, []byte("orchestrator_agents")), "%s", text)
		known, _ := knock(t, url, "status", credential)
		require.Equal(t, want, known, "the status is for the same")
	}
	s.stop()
}
