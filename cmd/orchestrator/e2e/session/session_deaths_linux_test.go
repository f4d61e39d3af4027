package session

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// soon restarts an agent without delay.
const soon = `  restart {
    policy = "on-failure"
    delay  = "10ms"
    factor = 1
    jitter = 0
  }`

// afterDeath runs a session of one task with a developer that dies, and returns the ended session.
func afterDeath(t *testing.T, code int, developer string, more ...string) (*stage.Orchestrator, *proceedings) {
	t.Helper()
	sessionID := sessionOf("loop", "require_review = true", three...)
	s := newSession(t, playing(t, "lead", "architect -tasks 1 -developers ann -reviewers rex -scope src/**", once)+
		playing(t, "ann", developer, more...)+playing(t, "rex", "reviewer")+sessionID).Up("--json", "--exit-when-idle")
	require.Equal(t, code, s.Await())
	s.Write("orchestrator.hcl", stage.QuickStop+quietTeam()+sessionID)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "rex")
	return s, proceedingsOf(s, "loop")
}

// A developer that crashes during a task gets it again with the earlier attempts, and completes
// it. The architect does not notice.
//
// Rows: C-78, C-92, C-96, T-57.
func TestSessionDeveloperDies(t *testing.T) {
	t.Parallel()
	s, p := afterDeath(t, cli.ExitOK, "developer -slow 30ms -die-at task-1 -once died", soon)
	require.FileExists(t, s.Path("died"))
	require.Equal(t, []string{
		"lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress",
		"lead>ann task_assignment",
		"ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_completion completed",
		"lead>rex review_request", "rex>lead review_result approved",
	}, types(p.said))
	again := &p.said[5]
	require.Equal(t, p.said[0].Chain, again.Chain)
	require.Equal(t, p.said[0].MessageID, again.ReplyTo)
	require.Equal(t, "exception", again.body.Task.Context.Attempts[0].Outcome)
	require.Contains(t, again.body.Task.Context.Attempts[0].Feedback, "exit 3")
	require.Equal(t, again.MessageID, p.said[10].ReplyTo)
	require.Equal(t, "attempt 2", p.said[10].body.Summary)

	task := p.task(t, "task-1")
	require.Equal(t, []string{session.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
	require.Equal(t, 2, task.Tries)
	require.Equal(t, 1, task.Iteration, "a death is no review")
	require.NotNil(t, task.Error)
	require.Equal(t, []string{session.ExecutionException, session.SuggestRetry}, []string{task.Error.ErrorType, task.Error.SuggestedAction})
	require.True(t, task.Error.Recoverable)
	s.Stop()
}

// After the second crash, the architect gets a failed completion in the developer's name. A
// developer that is not restarted gets no second attempt.
//
// Rows: C-78, C-92, C-96, T-57.
func TestSessionDeveloperDiesAgain(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]string{"twice": soon, "for good": once} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := afterDeath(t, cli.ExitNo, "developer -die-at task-1", restart)
			last := p.one(t, session.TypeTaskCompletion, "lead")
			require.Equal(t, []string{"ann", "failed"}, []string{last.From.AgentID, last.body.Status})
			require.Equal(t, p.said[0].Chain, last.Chain)
			heard := tapped(s, "lead.heard")
			require.JSONEq(t, last.text, logEntry(t, last.text, heard[len(heard)-1].text), "the architect has it")
			task := p.task(t, "task-1")
			require.Equal(t, []string{session.PhaseOver, string(wire.TaskFailed)}, []string{task.Phase, string(task.State)})
			require.NotNil(t, task.Error)
			require.False(t, task.Error.Recoverable)
			if name == "twice" {
				require.Equal(t, 2, task.Tries)
				require.Equal(t, session.SuggestAbort, task.Error.SuggestedAction)
				require.Equal(t, []string{
					"lead>ann task_assignment", "ann>lead acknowledgment", "lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_completion failed",
				}, types(p.said))
			} else {
				require.Equal(t, session.SuggestReassign, task.Error.SuggestedAction)
			}
			require.Contains(t, s.Ask("session", "show", "loop"), "error exception: ")
			s.Stop()
		})
	}
}

// A developer that has not acknowledged an assignment gets it again, unchanged, in its next run.
// A completion without acknowledgment is accepted.
//
// Rows: C-16, C-73, C-74.
func TestSessionLostAcknowledgment(t *testing.T) {
	t.Parallel()
	h := stage.NewQuickTeam(t, stage.ScriptedAgents("ada", "dev")+untapped(t, "rex", "reviewer")+checkout(""), "ada", "dev")
	actors := h.StartAll("ada", "dev")
	ada, dev := actors[0], actors[1]
	utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	first := nth(dev, 1, session.TypeTaskAssignment)
	dev.Kill()
	dev = h.NextRun("dev")
	require.Equal(t, first.text, nth(dev, 1, session.TypeTaskAssignment).text, "letter for letter")
	require.Equal(t, session.PhaseAssigned, proceedingsOf(h.Orchestrator, "checkout").task(t, "t").Phase)
	require.Equal(t, 1, proceedingsOf(h.Orchestrator, "checkout").task(t, "t").Tries, "it had not begun")
	utter(dev, "msg-2", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
	nth(ada, 1, session.TypeTaskCompletion)
	task := proceedingsOf(h.Orchestrator, "checkout").task(t, "t")
	require.Equal(t, []string{session.PhaseCompleted, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
	require.Empty(t, spoken(ada, session.TypeAcknowledgment), "nobody invents one")
	dev.Kill()
	dev = h.NextRun("dev")
	dev.Settle()
	require.Empty(t, spoken(dev, ""), "what is done is not assigned again")
	h.Stop()
}

// Duplicate messages have no effect and no error.
//
// Rows: C-02, T-26.
func TestSessionSaidTwice(t *testing.T) {
	t.Parallel()
	s, p := afterDeath(t, cli.ExitOK, "developer -slow 30ms -double")
	require.Equal(t, []string{
		"lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress",
		"ann>lead task_completion completed", "lead>rex review_request", "rex>lead review_result approved",
	}, types(p.said))
	require.Len(t, tapped(s, "ann.said"), 10)
	require.Len(t, tapped(s, "lead.heard"), 6)
	requireHeard(s, p, "lead", "ann", "rex")
	s.Stop()
}

// An architect that crashes before it has read a completion gets it in its next run, also if the
// orchestrator was killed.
//
// Rows: C-02, C-91, T-57.
func TestSessionArchitectDies(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(h *stage.Team, ada *stage.Agent){
		"by itself": func(_ *stage.Team, ada *stage.Agent) { ada.Kill() },
		"with the orchestrator": func(h *stage.Team, _ *stage.Agent) {
			h.Signal(syscall.SIGKILL)
			<-h.Ended
			h.Up("--json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := stage.NewQuickTeam(t, stage.ScriptedAgents("ada", "dev")+untapped(t, "rex", "reviewer")+checkout(""), "ada", "dev")
			actors := h.StartAll("ada", "dev")
			ada, dev := actors[0], actors[1]
			utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
			nth(dev, 1, session.TypeTaskAssignment)
			utter(dev, "msg-2", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
			first := nth(ada, 1, session.TypeTaskCompletion)
			kill(h, ada)
			again := nth(h.NextRun("ada"), 1, session.TypeTaskCompletion)
			require.Equal(t, first.text, again.text, "letter for letter")
			h.Stop()
		})
	}
}

// A chief is an architect that survives its runs. It remembers all messages, and repeats its own
// in each run.
type chief struct {
	*stage.Team
	*stage.Agent
	tasks     int
	said      []string          // sent lines, in order
	known     map[string]string // messages received or read in the log, by message_id
	last      int64             // the last log entry that it has read
	approved  map[string]bool
	requested map[string]int // reviews, by task
}

const developers = 3

// order sends a message and remembers it. Its id is the same in each run.
func (c *chief) order(id, to, kind, payload string) {
	line := strings.Replace(speech(id, "ada", to, kind, payload), `"agent_type":""`, `"agent_type":"developer"`, 1) + "\n"
	c.said = append(c.said, line)
	_, _ = io.WriteString(c.Conn, line) // the connection may be closed
}

func (c *chief) assign(task string, attempt int) {
	var n int
	_, _ = fmt.Sscanf(task, "t%d", &n)
	c.order(fmt.Sprintf("msg-%d-a%d", n, attempt), fmt.Sprint("dev", n%developers), session.TypeTaskAssignment, assigning(task))
}

// heed reacts to a message that it has not seen before.
func (c *chief) heed(u utterance) {
	if _, there := c.known[u.MessageID]; there || u.To.AgentID != "ada" || u.Refused != "" {
		return
	}
	c.known[u.MessageID] = u.text
	task := u.task()
	switch n := strings.TrimPrefix(task, "t"); {
	case u.Type == session.TypeTaskCompletion:
		before := c.requested[task]
		c.requested[task]++
		c.order(fmt.Sprintf("msg-%s-r%d", n, before+1), "rex", session.TypeReviewRequest, reviewing(fmt.Sprintf("r-%s-%d", n, before+1), task, before))
	case u.body.Verdict == session.VerdictApproved:
		c.approved[task] = true
	case u.body.Verdict == session.VerdictChangesRequested:
		c.assign(task, 2)
	}
}

// lead reads messages until all tasks are approved, enough were read, or the run ends.
func (c *chief) lead(enough int) {
	late := time.After(stage.Patience)
	for seen := 0; ; {
		c.Agent.Mu.Lock()
		lines, changed, ended := c.Agent.Heard[seen:len(c.Agent.Heard):len(c.Agent.Heard)], c.Agent.Changed, c.Agent.Ended
		c.Agent.Mu.Unlock()
		for _, line := range lines {
			var u utterance
			if json.Unmarshal([]byte(line), &u) == nil && u.Type != "" {
				c.heed(readUtterance(c.Agent.T, line))
			}
		}
		if seen += len(lines); ended || seen >= enough || len(c.approved) == c.tasks {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.Fail(c.Team.T, "nothing goes on", "%s", c.Ask("session", "show", "checkout", "--all"))
		}
	}
}

// begin starts a new run: it repeats all its messages and reads messages that it may have missed.
func (c *chief) begin() {
	c.Agent = c.NextRun("ada")
	for _, line := range slices.Clone(c.said) {
		c.Say(line)
	}
	if len(c.said) == 0 {
		for n := range c.tasks {
			c.assign(fmt.Sprint("t", n+1), 1)
		}
	}
	for more := true; more; {
		m := c.Granted(nil, "get-session", fmt.Sprintf(`{"to":"ada","after":%d,"limit":7}`, c.last))
		p := readProceedings(c.Agent.T, string(m.Payload))
		for _, u := range p.said {
			require.Equal(c.Agent.T, "ada", u.To.AgentID)
			require.Greater(c.Agent.T, u.LogSeq, c.last)
			c.last = u.LogSeq
			c.heed(u)
		}
		more = p.More
	}
}

// The orchestrator is killed repeatedly during a session. All tasks end; no task is lost or done
// twice, and repeated messages have no effect.
//
// Rows: C-02, C-05, C-10, C-22, C-52, C-78, C-99, T-26, T-57.
func TestSessionKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	members, hcl := []string{"ada=architect", "rex=reviewer"}, ""
	for n := range developers {
		name := fmt.Sprint("dev", n)
		members = append(members, name+"=developer")
		hcl += untapped(t, name, "developer -slow 30ms -capacity 2", soon)
	}
	h := stage.NewQuickTeam(t, stage.Unlimited+hcl+stage.ScriptedAgents("ada")+untapped(t, "rex", "reviewer -request-changes 1")+sessionOf("checkout", "require_review = true", members...), "ada")
	c := &chief{Team: h, tasks: 24, known: make(map[string]string), approved: make(map[string]bool), requested: make(map[string]int)}
	for range stage.Rounds(t, 4) {
		h.Up("--json")
		c.begin()
		c.lead(1 + random.IntN(3*c.tasks))
		h.Signal(syscall.SIGKILL)
		<-h.Ended
		c.lead(1 << 30) // the remaining messages
	}
	h.Up("--json")
	c.begin()
	c.lead(1 << 30)
	require.Len(t, c.approved, c.tasks)
	c.Settle()
	stage.WaitFor(t, "receipts", func() bool {
		return !slices.ContainsFunc(proceedingsOf(h.Orchestrator, "checkout").Standing, func(m session.MemberView) bool { return m.Waiting > 0 })
	})
	c.checkAll(proceedingsOf(h.Orchestrator, "checkout"))
	h.Stop()
	requireWholeRecord(h.Orchestrator)
}

// checkAll compares the session with the messages that the chief has sent and received.
func (c *chief) checkAll(p *proceedings) {
	t := c.Agent.T
	t.Helper()
	ids, counts := make(map[string]bool), make(map[string]int)
	for _, u := range p.said {
		require.Empty(t, u.Refused, u.text)
		require.False(t, ids[u.MessageID], "%s is there twice", u.MessageID)
		ids[u.MessageID] = true
		counts[u.task()+" "+u.Type]++
		if u.To.AgentID == "ada" {
			require.NotEmpty(t, c.known[u.MessageID], "%s was not heard", u)
			require.JSONEq(t, u.text, logEntry(t, u.text, c.known[u.MessageID]))
		}
	}
	for id := range c.known {
		require.True(t, ids[id], "%s was heard, and nobody has said it", id)
	}
	for _, line := range c.said {
		require.True(t, ids[readUtterance(t, line).MessageID], line)
	}
	require.Len(t, p.Tasks, c.tasks)
	for _, task := range p.Tasks {
		require.Equal(t, []string{session.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
		require.Equal(t, 2, task.Iteration)
		for _, kind := range []string{session.TypeTaskCompletion, session.TypeReviewRequest, session.TypeReviewResult} {
			require.Equal(t, 2, counts[task.TaskID+" "+kind], "%s of %s", kind, task.TaskID)
		}
		require.GreaterOrEqual(t, counts[task.TaskID+" "+session.TypeTaskAssignment], 2)
	}
	for _, m := range p.Standing {
		require.Zero(t, m.Waiting+m.Working, m.AgentID)
	}
}
