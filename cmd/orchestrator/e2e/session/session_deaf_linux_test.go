package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// deafFor is an agent that does not read until a file named go exists.
const deafFor = `
agent "dev" {
  command = ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; exec cat >dev.ear"]
  limits {
    mailbox = 4
  }
}
`

// An agent that does not read delays only its own messages. Their sender is notified of each retry
// and its time. When the agent reads again, it gets all messages in order.
//
// Rows: C-16, C-90, C-91, T-04.
func TestSessionDeafMember(t *testing.T) {
	t.Parallel()
	const many = 30
	h := stage.NewQuickTeam(t, stage.Unlimited+deafFor+stage.ScriptedAgents("ada", "rex")+checkout(""), "ada", "rex")
	actors := h.StartAll("ada", "rex")
	ada, rex := actors[0], actors[1]
	for n := range many {
		utter(ada, fmt.Sprintf("msg-%d", n+1), "dev", session.TypeFeedback, remark(strings.Repeat("long ", 2000)))
		utter(ada, fmt.Sprintf("msg-%d", 100+n), "rex", session.TypeFeedback, remark("short"))
	}
	for n := range many {
		require.Equal(t, fmt.Sprintf("msg-%d", 100+n), nth(rex, n+1, session.TypeFeedback).MessageID, "nobody else waits")
	}
	require.Equal(t, many, len(spoken(rex, "")))

	// the sender of each undelivered message hears of every attempt
	retries := func(count int) (ids []string) {
		for _, m := range ada.All() {
			if m.Error == nil {
				continue
			}
			u := undeliveredIn(&m, t)
			require.Equal(t, []any{"timeout", 3, "dev"}, []any{u.Type, u.Most, u.To})
			require.Regexp(t, stage.TimePattern, u.Next)
			require.Less(t, m.Timestamp, u.Next)
			if u.Retries == count {
				ids = append(ids, u.ID)
			}
		}
		return ids
	}
	stage.WaitFor(t, "word of a retry", func() bool {
		lost := retries(0)
		return len(lost) > 0 && slices.Contains(retries(1), lost[0])
	})
	lost, again := retries(0), retries(1)
	waits := func(id string) bool { return !slices.Contains(lost, id) }
	require.True(t, slices.ContainsFunc(again, waits), "what waits in the mailbox counts as well")
	tried := slices.DeleteFunc(slices.Clone(again), waits)
	require.Equal(t, lost[:len(tried)], tried, "the first is tried first")
	p := proceedingsOf(h.Orchestrator, "checkout")
	require.Positive(t, p.Standing[1].Waiting)
	require.Zero(t, p.Standing[2].Waiting)
	require.Equal(t, 2*many, len(p.said), "all is in the log at once")
	utter(ada, fmt.Sprintf("msg-%d", many+1), "dev", session.TypeFeedback, remark("late"))

	h.Write("go", "")
	var heard []string
	stage.WaitFor(t, "everything in order", func() bool {
		text, _ := os.ReadFile(h.Path("dev.ear"))
		heard = nil
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"message_type"`) && strings.HasSuffix(line, "\n") {
				heard = append(heard, readUtterance(t, line).MessageID)
			}
		}
		return len(heard) > many
	})
	for n, id := range heard {
		require.Equal(t, fmt.Sprintf("msg-%d", n+1), id)
	}
	stage.WaitFor(t, "an empty mailbox", func() bool { return proceedingsOf(h.Orchestrator, "checkout").Standing[1].Waiting == 0 })
	require.Equal(t, many+1, len(heard))
	h.Stop()
}

// A run with a small mailbox gets the messages of the previous run again. New messages still
// arrive, and their sender is not flooded with notices of retries.
//
// Rows: C-16, C-91.
func TestSessionSmallMailboxAfterRestart(t *testing.T) {
	t.Parallel()
	const tasks = 10
	h := stage.NewQuickTeam(t, stage.Unlimited+`
agent "dev" {
  command = ["sh", "-c", "echo start >>dev.ear; exec cat >>dev.ear"]
  limits {
    mailbox = 4
  }
}
`+stage.ScriptedAgents("ada", "rex")+checkout(""), "ada", "rex")
	ada := h.StartAll("ada", "rex")[0]
	heard := func() (ids []string) {
		text, _ := os.ReadFile(h.Path("dev.ear"))
		_, after, _ := strings.Cut(string(text[strings.LastIndex("\n"+string(text), "\nstart"):]), "\n")
		for line := range strings.Lines(after) {
			if strings.Contains(line, `"message_type"`) && strings.HasSuffix(line, "\n") {
				ids = append(ids, readUtterance(t, line).MessageID)
			}
		}
		return ids
	}
	utter(ada, "msg-1", "dev", session.TypeFeedback, remark("first"))
	for n := range tasks {
		utter(ada, fmt.Sprintf("msg-%d", n+2), "dev", session.TypeTaskAssignment, assigning(fmt.Sprintf("t-%d", n)))
		stage.WaitFor(t, "the task", func() bool { return len(heard()) == n+2 })
	}
	utter(ada, "msg-50", "dev", session.TypeFeedback, remark("last"))
	stage.WaitFor(t, "the last", func() bool { return len(heard()) == tasks+2 })
	h.Ask("agent", "restart", "dev")
	utter(ada, "msg-60", "dev", session.TypeFeedback, remark("later"))
	stage.WaitFor(t, "all of it again, and the later message", func() bool {
		again := heard()
		slices.Sort(again)
		return len(slices.Compact(again)) == tasks+3
	})
	errors := 0
	for _, m := range ada.All() {
		if m.Error != nil {
			errors++
		}
	}
	require.Less(t, errors, 3*tasks)
	h.Stop()
}

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
	s := stage.New(t, stage.QuickStop+hcl+untapped(t, "rex", "reviewer -request-changes 1")+untapped(t, "rita", "reviewer -request-changes 1")+
		untapped(t, "lead", fmt.Sprintf("architect -tasks %d -developers %s -reviewers rex,rita -scope src/**", tasks, strings.Join(names, ",")), once)+sessionID)
	begun := time.Now()
	s.Up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.Await())
	t.Logf("%d tasks in %s", tasks, time.Since(begun).Round(time.Millisecond))
	require.Contains(t, s.Lines("lead", control.StreamOut), fmt.Sprintf("all %d tasks are approved", tasks))

	s.Write("orchestrator.hcl", stage.QuickStop+stage.Readers(append(names, "lead", "rex", "rita")...)+sessionID)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "lead")
	p := proceedingsOf(s, "crowd")
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
		require.Equal(t, []string{session.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
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
	s.Stop()
	requireWholeRecord(s)
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
func requireWholeRecord(s *stage.Orchestrator) {
	s.T.Helper()
	log, err := eventlog.Open(context.Background(), eventlog.Options{Path: filepath.Join(s.State(), "events.db"), ReadOnly: true})
	require.NoError(s.T, err)
	defer func() { require.NoError(s.T, log.Close()) }()
	var last int64
	for r, err := range log.Records(context.Background(), 0) {
		require.NoError(s.T, err)
		require.Equal(s.T, last+1, r.Seq)
		last = r.Seq
	}
	require.Equal(s.T, log.Last(), last)
}
