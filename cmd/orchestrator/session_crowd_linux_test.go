package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// An architect assigns a hundred tasks to ten developers, and each is reviewed twice. The rate
// limits are the defaults, so messages are repeated. Each task is one complete chain, and the
// record has no gaps.
//
// Rows: C-79, C-83, C-99, C-100.
func TestSessionCrowd(t *testing.T) {
	t.Parallel()
	const tasks, developers = 100, 10
	var names []string
	members, hcl := []string{"lead=architect", "rex=reviewer", "rita=reviewer"}, ""
	for n := range developers {
		name := fmt.Sprint("dev", n)
		names, members = append(names, name), append(members, name+"=developer")
		hcl += untapped(t, name, "developer -capacity 3")
	}
	sessionID := sessionOf("crowd", "require_review = true", members...)
	s := newStage(t, quick+hcl+untapped(t, "rex", "reviewer -request-changes 1")+untapped(t, "rita", "reviewer -request-changes 1")+
		untapped(t, "lead", fmt.Sprintf("architect -tasks %d -developers %s -reviewers rex,rita -scope src/**", tasks, strings.Join(names, ",")), once)+sessionID)
	begun := time.Now()
	s.up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.await())
	t.Logf("%d tasks in %s", tasks, time.Since(begun).Round(time.Millisecond))
	require.Contains(t, s.lines("lead", control.StreamOut), fmt.Sprintf("all %d tasks are approved", tasks))

	s.write("orchestrator.hcl", quick+listening(append(names, "lead", "rex", "rita")...)+sessionID)
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "lead")
	p := s.proceedings("crowd")
	require.Len(t, p.Tasks, tasks)
	require.Len(t, p.Reviews, 2*tasks)
	chains, busy := make(map[string]string), make(map[string]int)
	for _, task := range p.Tasks {
		require.Equal(t, []string{
			"task_assignment", "acknowledgment", "task_completion completed", "review_request", "review_result changes_requested",
			"task_assignment", "acknowledgment", "task_completion completed", "review_request", "review_result approved",
		}, p.inChain(task.CorrelationID), task.TaskID)
		require.Empty(t, chains[task.CorrelationID], "a chain is of one task")
		chains[task.CorrelationID] = task.TaskID
		require.Equal(t, []string{wire.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
		require.Equal(t, 2, task.Iteration)
		busy[task.Developer]++
	}
	for _, name := range names {
		require.Equal(t, tasks/developers, busy[name])
	}
	require.Len(t, p.said, 10*tasks, "and nothing else")
	for _, m := range p.Standing {
		require.Zero(t, m.Waiting+m.Working, m.AgentID)
	}
	s.stop()
	s.requireWholeRecord()
}

// inChain returns the types of the messages of a chain, with their verdicts and statuses.
func (p *proceedings) inChain(chain string) (all []string) {
	for i := range p.said {
		if u := &p.said[i]; u.Chain == chain {
			all = append(all, strings.TrimSpace(u.Type+" "+u.body.Verdict+u.body.Status))
		}
	}
	return all
}

// requireWholeRecord requires that the record, read from outside, has no gaps.
func (s *stage) requireWholeRecord() {
	s.t.Helper()
	log, err := eventlog.Open(context.Background(), eventlog.Options{Path: filepath.Join(s.state(), "events.db"), ReadOnly: true})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, log.Close()) }()
	var last int64
	for r, err := range log.Records(context.Background(), 0) {
		require.NoError(s.t, err)
		require.Equal(s.t, last+1, r.Seq)
		last = r.Seq
	}
	require.Equal(s.t, log.Last(), last)
}
