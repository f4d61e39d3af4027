package main

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

// afterDeath runs a session of one task whose developer dies, and returns the ended session.
func afterDeath(t *testing.T, code int, developer string, more ...string) (*stage, *proceedings) {
	t.Helper()
	sessionID := sessionOf("loop", "require_review = true", three...)
	s := newSession(t, playing(t, "lead", "architect -tasks 1 -developers ann -reviewers rex -scope src/**", once)+
		playing(t, "ann", developer, more...)+playing(t, "rex", "reviewer")+sessionID).up("--json", "--exit-when-idle")
	require.Equal(t, code, s.await())
	s.write("orchestrator.hcl", quick+quietTeam()+sessionID)
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "rex")
	return s, s.proceedings("loop")
}

// A developer that crashes during a task gets it again with the earlier attempts, and completes
// it. The architect does not notice.
//
// Rows: C-78, C-92, C-96, T-57.
func TestSessionDeveloperDies(t *testing.T) {
	t.Parallel()
	s, p := afterDeath(t, cli.ExitOK, "developer -slow 30ms -die-at task-1 -once died", soon)
	require.FileExists(t, s.path("died"))
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
	s.stop()
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
			heard := s.tapped("lead.heard")
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
			require.Contains(t, s.ask("session", "show", "loop"), "error exception: ")
			s.stop()
		})
	}
}

// A developer that has not acknowledged an assignment gets it again, unchanged, in its next run.
// A completion without acknowledgment is accepted.
//
// Rows: C-16, C-73, C-74.
func TestSessionLostAcknowledgment(t *testing.T) {
	t.Parallel()
	h := troupeOf(t, puppetAgents("ada", "dev")+untapped(t, "rex", "reviewer")+checkout(""), "ada", "dev")
	actors := h.cast("ada", "dev")
	ada, dev := actors[0], actors[1]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	first := dev.nth(1, session.TypeTaskAssignment)
	dev.die()
	dev = h.enter("dev")
	require.Equal(t, first.text, dev.nth(1, session.TypeTaskAssignment).text, "letter for letter")
	require.Equal(t, session.PhaseAssigned, h.proceedings("checkout").task(t, "t").Phase)
	require.Equal(t, 1, h.proceedings("checkout").task(t, "t").Tries, "it had not begun")
	dev.utter("msg-2", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
	ada.nth(1, session.TypeTaskCompletion)
	task := h.proceedings("checkout").task(t, "t")
	require.Equal(t, []string{session.PhaseCompleted, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
	require.Empty(t, ada.spoken(session.TypeAcknowledgment), "nobody invents one")
	dev.die()
	dev = h.enter("dev")
	dev.quiet()
	require.Empty(t, dev.spoken(""), "what is done is not assigned again")
	h.stop()
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
	require.Len(t, s.tapped("ann.said"), 10)
	require.Len(t, s.tapped("lead.heard"), 6)
	s.requireHeard(p, "lead", "ann", "rex")
	s.stop()
}

// An architect that crashes before it has read a completion gets it in its next run, also if the
// orchestrator was killed.
//
// Rows: C-02, C-91, T-57.
func TestSessionArchitectDies(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(h *theatre, ada *actor){
		"by itself": func(_ *theatre, ada *actor) { ada.die() },
		"with the orchestrator": func(h *theatre, _ *actor) {
			h.signal(syscall.SIGKILL)
			<-h.ended
			h.up("--json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := troupeOf(t, puppetAgents("ada", "dev")+untapped(t, "rex", "reviewer")+checkout(""), "ada", "dev")
			actors := h.cast("ada", "dev")
			ada, dev := actors[0], actors[1]
			ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
			dev.nth(1, session.TypeTaskAssignment)
			dev.utter("msg-2", "ada", session.TypeTaskCompletion, completing("t", "src/a"))
			first := ada.nth(1, session.TypeTaskCompletion)
			kill(h, ada)
			again := h.enter("ada").nth(1, session.TypeTaskCompletion)
			require.Equal(t, first.text, again.text, "letter for letter")
			h.stop()
		})
	}
}

// A chief is an architect that survives its runs. It remembers all messages, and repeats its own
// in each run.
type chief struct {
	*theatre
	*actor
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
	_, _ = io.WriteString(c.conn, line) // the connection may be closed
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
	late := time.After(patience)
	for seen := 0; ; {
		c.actor.mu.Lock()
		lines, changed, ended := c.actor.heard[seen:len(c.actor.heard):len(c.actor.heard)], c.actor.changed, c.actor.ended
		c.actor.mu.Unlock()
		for _, line := range lines {
			var u utterance
			if json.Unmarshal([]byte(line), &u) == nil && u.Type != "" {
				c.heed(readUtterance(c.actor.t, line))
			}
		}
		if seen += len(lines); ended || seen >= enough || len(c.approved) == c.tasks {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.Fail(c.theatre.t, "nothing goes on", "%s", c.ask("session", "show", "checkout", "--all"))
		}
	}
}

// begin starts a new run: it repeats all its messages and reads what it may have missed.
func (c *chief) begin() {
	c.actor = c.enter("ada")
	for _, line := range slices.Clone(c.said) {
		c.say(line)
	}
	if len(c.said) == 0 {
		for n := range c.tasks {
			c.assign(fmt.Sprint("t", n+1), 1)
		}
	}
	for more := true; more; {
		m := c.granted(nil, "get-session", fmt.Sprintf(`{"to":"ada","after":%d,"limit":7}`, c.last))
		p := readProceedings(c.actor.t, string(m.Payload))
		for _, u := range p.said {
			require.Equal(c.actor.t, "ada", u.To.AgentID)
			require.Greater(c.actor.t, u.LogSeq, c.last)
			c.last = u.LogSeq
			c.heed(u)
		}
		more = p.More
	}
}

// The orchestrator is killed repeatedly during a session. All tasks end; nothing is lost or done
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
	h := troupeOf(t, crowded+hcl+puppetAgents("ada")+untapped(t, "rex", "reviewer -request-changes 1")+sessionOf("checkout", "require_review = true", members...), "ada")
	c := &chief{theatre: h, tasks: 24, known: make(map[string]string), approved: make(map[string]bool), requested: make(map[string]int)}
	for range rounds(t, 4) {
		h.up("--json")
		c.begin()
		c.lead(1 + random.IntN(3*c.tasks))
		h.signal(syscall.SIGKILL)
		<-h.ended
		c.lead(1 << 30) // the remaining messages
	}
	h.up("--json")
	c.begin()
	c.lead(1 << 30)
	require.Len(t, c.approved, c.tasks)
	c.quiet()
	waitForThat(t, "receipts", func() bool {
		return !slices.ContainsFunc(h.proceedings("checkout").Standing, func(m session.MemberView) bool { return m.Waiting > 0 })
	})
	c.checkAll(h.proceedings("checkout"))
	h.stop()
	h.requireWholeRecord()
}

// checkAll compares the session with the messages that the chief has sent and received.
func (c *chief) checkAll(p *proceedings) {
	t := c.actor.t
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
