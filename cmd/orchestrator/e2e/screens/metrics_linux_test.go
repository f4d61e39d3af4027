package screens

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Each metric of the program has a value after its event has happened.
func TestMetrics(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+stage.ScriptedWith("boss", "planner", "plan")+stage.ScriptedWith("worker", "worker", "go"), "boss", "worker")
	all := h.StartAll("boss", "worker")
	boss, worker := all[0], all[1]

	done := boss.Submit(`{"type":"t","name":"done","requiredCapabilities":["go"]}`)
	worker.Assigned(done.ID)
	worker.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, done.ID))
	worker.Say(stage.Event("u-1", "usage", fmt.Sprintf(`{"taskId":%q,"turn":1,"model":"m-1","input":300,"output":60,"cacheRead":30,"cost":0.25,"currency":"USD"}`, done.ID)) + "\n")
	worker.Say(stage.Event("u-2", "limited", fmt.Sprintf(`{"until":%q}`, object.Timestamp(time.Now().Add(time.Hour)))) + "\n")
	worker.Settle()
	f := h.Scrape()
	for kind, want := range map[string]float64{"input": 300, "output": 60, "cache_read": 30, "cache_write": 0, "reasoning": 0} {
		require.InDelta(t, want, f.Of("orchestrator_agent_tokens_total", "agent", "worker", "model", "m-1", "kind", kind), 0, kind)
	}
	require.InDelta(t, 0.25, f.Of("orchestrator_agent_cost_total", "agent", "worker", "model", "m-1", "currency", "USD"), 0)
	require.InDelta(t, 1, f.Of("orchestrator_agent_turns_total", "agent", "worker"), 0)
	require.InDelta(t, 1, f.Of("orchestrator_agent_limited", "agent", "worker"), 0)
	require.InDelta(t, -1, f.Of("orchestrator_agent_turns_total", "agent", "boss"), 0, "it has reported nothing")
	require.InDelta(t, 1, f.Of("orchestrator_messages_total", "kind", "event:usage"), 0)
	worker.Say(stage.Event("u-3", "limited", `{"until":"2026-01-01T00:00:00Z"}`) + "\n")
	worker.Settle()
	held := boss.Submit(`{"type":"t","name":"held","requiredCapabilities":["go"]}`)
	worker.Assigned(held.ID)
	boss.Submit(fmt.Sprintf(`{"type":"t","name":"blocked","requiredCapabilities":["cobol"],"dependencies":[%q]}`, held.ID))
	f = h.Scrape()
	require.Zero(t, f.Of("orchestrator_queue_age_seconds"), "the one that waits waits for another")
	boss.Submit(`{"type":"t","name":"waits","requiredCapabilities":["cobol"]}`)
	boss.Refused("NOT_FOUND", "get-task", `{"taskId":"nobody"}`)
	boss.Refused("INVALID_MESSAGE_TYPE", "made-up-1", `{}`)
	boss.Refused("INVALID_MESSAGE_TYPE", "made-up-2", `{}`)

	f = h.Scrape()
	for state, want := range map[string]float64{"done": 1, "running": 1, "blocked": 1, "pending": 1, "failed": 0} {
		require.InDelta(t, want, f.Of("orchestrator_tasks", "state", state), 0, state)
	}
	require.InDelta(t, 2, f.Of("orchestrator_agents", "state", "running"), 0)
	require.InDelta(t, 0, f.Of("orchestrator_agents", "state", "failed"), 0)
	require.InDelta(t, 4, f.Of("orchestrator_messages_total", "door", "stdio", "kind", "request:submit-task"), 0)
	require.InDelta(t, 1, f.Of("orchestrator_messages_total", "door", "stdio", "kind", "request:complete-task"), 0)
	require.InDelta(t, 2, f.Of("orchestrator_messages_total", "kind", "other"), 0, "what somebody makes up has no figure of its own")
	require.InDelta(t, 1, f.Of("orchestrator_refused_total", "door", "stdio", "code", "not_found"), 0)
	require.InDelta(t, 2, f.Of("orchestrator_refused_total", "door", "stdio", "code", "unknown_type"), 0)
	require.InDelta(t, 4, f.Of("orchestrator_facts_total", "kind", events.TaskCreated), 0)
	require.InDelta(t, 0, f.Of("orchestrator_agent_mailbox_messages", "agent", "worker"), 0)
	require.InDelta(t, 0, f.Of("orchestrator_agent_restarts_total", "agent", "worker"), 0)
	require.InDelta(t, 0, f.Of("orchestrator_sessions"), 0)
	require.InDelta(t, 0, f.Of("orchestrator_questions"), 0)
	require.InDelta(t, 1, f.Of("orchestrator_build_info", "version", build.Version), 0)
	require.Greater(t, f.Of("orchestrator_queue_age_seconds"), 0.0)
	require.Positive(t, f.Of("orchestrator_record_commit_seconds"))
	require.InDelta(t, f.Of("orchestrator_record_commit_seconds"), f.Of("orchestrator_record_batch_facts"), 0)
	require.InDelta(t, f.Of("orchestrator_record_commit_seconds"), f.Of("orchestrator_record_batch_bytes"), 0)
	require.Positive(t, f.Of("process_open_fds"))
	require.NotContains(t, f, "orchestrator_spans_total", "nobody wants spans")

	worker.Kill()
	h.NextRun("worker")
	stage.WaitFor(t, "a restart", func() bool { return h.Scrape().Of("orchestrator_agent_restarts_total", "agent", "worker") == 1 })
	h.Operated(nil, "query-tasks", "{}")
	require.InDelta(t, 1, h.Scrape().Of("orchestrator_messages_total", "door", "http", "kind", "request:query-tasks"), 0)
	require.Positive(t, h.Scrape().Of("orchestrator_queue_age_seconds"))
	h.Stop()
}

// The names follow the conventions of Prometheus.
func TestMetricsAreWellNamed(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	_, text := s.Fetch(s.Door(), "http://orchestrator/metrics", nil)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	s.Stop()
}

// Waiting times are correct after a restart, from the first scrape on.
func TestMetricsAfterARestart(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+"agent \"a\" {\n  command = [\"cat\"]\n}\n").Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	var reply wire.TaskReply
	s.Operated(&reply, "submit-task", `{"type":"t","name":"waits","requiredCapabilities":["cobol"]}`)
	created, err := time.Parse(time.RFC3339Nano, reply.Task.CreatedAt)
	require.NoError(t, err)
	s.Stop()
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	before := time.Since(created).Seconds()
	require.GreaterOrEqual(t, s.Scrape().Of("orchestrator_queue_age_seconds"), before-0.001)
	s.Operated(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, reply.Task.ID))
	stage.WaitFor(t, "nothing that waits", func() bool { return s.Scrape().Of("orchestrator_queue_age_seconds") == 0 })
	s.Stop()
}

// Metrics name agents, so only callers that may see the status can read them.
func TestMetricsAreNotForStrangers(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "http {\n  listen = [\"127.0.0.1:0\"]\n}\nagent \"a\" {\n  command = [\"cat\"]\n}\n").Up()
	url := s.Address()
	stage.WaitFor(t, "the agent", func() bool { return s.Agent("a").State == control.StateRunning })
	viewer := strings.TrimSpace(s.Ask("token", "issue", "--sub", "ann", "--role", wire.PersonViewer))
	var key wire.IssuedKey
	s.Operated(&key, "issue-key", `{"agent":"a"}`)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	for credential, want := range map[string]int{"": http.StatusUnauthorized, viewer: http.StatusOK, key.Key: http.StatusForbidden, "orc_wrong": http.StatusUnauthorized} {
		header := http.Header{}
		if credential != "" {
			header.Set("Authorization", "Bearer "+credential)
		}
		status, text := s.Fetch(client, url+"/metrics", header)
		require.Equal(t, want, status, "%s", text)
		require.Equal(t, want == http.StatusOK, bytes.Contains(text, []byte("orchestrator_agents")), "%s", text)
		known, _ := stage.Knock(t, url, "status", credential)
		require.Equal(t, want, known, "the status is for the same")
	}
	s.Stop()
}
