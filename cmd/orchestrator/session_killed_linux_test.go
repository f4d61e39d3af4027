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

	"orchestrator/wire"
	"orchestrator/wire/session"
)

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
		return !slices.ContainsFunc(h.proceedings("checkout").Standing, func(m wire.MemberView) bool { return m.Waiting > 0 })
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
		require.Equal(t, []string{wire.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
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
