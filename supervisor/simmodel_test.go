package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A model has the promises of the orchestrator of a world to its agents and operators.
type model struct {
	mu       sync.Mutex
	broken   []string // promises that were not kept
	tasks    map[string]*simTask
	order    []string            // of tasks
	requests []*simRequest       // of the boss
	mail     map[string]*simMail // by agent
	live     map[*actor]bool
	counts   map[string]int // observations, by kind
}

// A simTask is a task that an agent or an operator knows.
type simTask struct {
	end  string // its status, if that is final
	life int    // of the end
}

// A simRequest is a request of the boss. It is repeated until it is answered, in later lives too.
type simRequest struct {
	id, to   string // to is the actor of a letter, "" for a task
	answered string // the task or the number of the letter
}

// A simMail is the mail of one agent.
type simMail struct {
	sent  map[int64]bool // letters with an answer to their sender
	read  map[int64]bool
	acked int64 // as answered
}

func newModel() *model {
	m := &model{tasks: make(map[string]*simTask), mail: make(map[string]*simMail), counts: make(map[string]int)}
	for _, name := range []string{"one", "two"} {
		m.mail[name] = &simMail{sent: make(map[int64]bool), read: make(map[int64]bool)}
	}
	return m
}

// begin begins a life without runs.
func (m *model) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = make(map[*actor]bool)
	m.counts["life"]++
}

// breach notes a promise that was not kept.
func (m *model) breach(format string, args ...any) {
	if len(m.broken) < 20 {
		m.broken = append(m.broken, fmt.Sprintf("life %d: ", m.counts["life"])+fmt.Sprintf(format, args...))
	}
}

// submitted notes a task. id is the id of the boss's request, or "".
func (m *model) submitted(id, task string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.submit(id, task)
}

func (m *model) submit(id, task string) {
	if m.tasks[task] == nil {
		m.tasks[task] = &simTask{}
		m.order = append(m.order, task)
		m.counts["task"]++
	} else if id == "" {
		m.breach("task %s was made twice", task)
	}
}

// ended notes the end of a task.
func (m *model) ended(task, status string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finish(task, status)
}

func (m *model) finish(task, status string) {
	m.counts[status]++
	t := m.tasks[task]
	if t == nil { // its submitter has no answer
		t = &simTask{}
		m.tasks[task] = t
		m.order = append(m.order, task)
	}
	if t.end != "" && t.end != status {
		m.breach("task %s is %s, and was %s", task, status, t.end)
	}
	t.end, t.life = status, m.counts["life"]
}

// end returns the final status of a task, or "".
func (m *model) end(task string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks[task].end
}

// anyTask returns one of the tasks, more often a new one.
func (m *model) anyTask(random *dice) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.order) == 0 {
		return ""
	}
	from := 0
	if random.below(3) > 0 {
		from = max(0, len(m.order)-8)
	}
	return m.order[from+random.below(len(m.order)-from)]
}

func (m *model) enter(a *actor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[a] = true
}

func (m *model) leave(a *actor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, a)
	m.counts["run"]++
}

// unanswered returns a request of the boss: one without an answer, or a new one.
func (m *model) unanswered(calm bool, random *dice) (id, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []*simRequest
	for _, r := range m.requests[max(0, len(m.requests)-40):] { // the orchestrator remembers 128
		if r.answered == "" {
			open = append(open, r)
		}
	}
	if len(open) > 0 && (calm || random.below(3) == 0) {
		r := open[random.below(len(open))]
		return r.id, r.to
	}
	if calm {
		return "", ""
	}
	r := &simRequest{id: fmt.Sprint("boss ", len(m.requests))}
	if random.below(3) == 0 {
		r.to = []string{"PO:one", "PO:two"}[random.below(2)]
	}
	m.requests = append(m.requests, r)
	return r.id, r.to
}

// says counts a request line.
func (m *model) says(a *actor, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.said[id]++
}

// next takes a task and the latest letter from an actor.
func (m *model) next(a *actor) (task string, letter int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(a.tasks) > 0 {
		task, a.tasks = a.tasks[0], a.tasks[1:]
	}
	return task, a.letter
}

// hears notes a line of the orchestrator.
func (m *model) hears(a *actor, line *heardLine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.dead() || !m.live[a] {
		return
	}
	var payload struct {
		TaskID string
		Seq    int64
		Task   struct{ ID, Status string }
	}
	_ = json.Unmarshal(line.Payload, &payload)
	switch line.Type {
	case "notify:task-assigned":
		m.assign(a, payload.TaskID)
	case "notify:task-cancelled":
		a.tasks = slices.DeleteFunc(a.tasks, func(id string) bool { return id == payload.TaskID })
	case "notify:message":
		m.letter(a, payload.Seq)
	case "response:success":
		if m.count(a, line.CorrelationID); a.name == "boss" {
			m.settle(line.CorrelationID, payload.Task.ID, payload.Seq)
		} else {
			m.granted(a, line.CorrelationID)
		}
	case "response:error":
		m.count(a, line.CorrelationID)
		m.counts["refusal"]++
	}
}

// count counts an answer.
func (m *model) count(a *actor, id string) {
	if a.heard[id]++; a.heard[id] > a.said[id] {
		m.breach("%s got %d answers to %d requests %q", a.name, a.heard[id], a.said[id], id)
	}
}

// assign notes that an actor has a task.
func (m *model) assign(a *actor, task string) {
	m.counts["assigned"]++
	t := m.tasks[task]
	if t != nil && (t.end == "completed" || t.end != "" && t.life < m.counts["life"]) {
		m.breach("task %s, which is %s, was assigned to %s", task, t.end, a.name)
	}
	for other := range m.live {
		if other != a && !other.dead() && slices.Contains(other.tasks, task) {
			m.breach("task %s was assigned to %s and to %s", task, other.name, a.name)
		}
	}
	if slices.Contains(a.tasks, task) {
		m.breach("task %s was assigned to %s twice", task, a.name)
	}
	a.tasks = append(a.tasks, task)
}

// letter notes that an actor has read a letter.
func (m *model) letter(a *actor, seq int64) {
	m.counts["letter"]++
	box := m.mail[a.name]
	if seq <= a.letter {
		m.breach("%s got letter %d after letter %d", a.name, seq, a.letter)
	}
	if seq <= box.acked {
		m.breach("%s got letter %d again, which it has acknowledged", a.name, seq)
	}
	a.letter = seq
	box.read[seq] = true
}

// settle notes the answer to a request of the boss.
func (m *model) settle(id, task string, seq int64) {
	i := slices.IndexFunc(m.requests, func(r *simRequest) bool { return r.id == id })
	r := m.requests[i]
	answer := task
	if r.to != "" {
		answer = fmt.Sprint(seq)
		m.mail[strings.TrimPrefix(r.to, "PO:")].sent[seq] = true
	} else {
		m.submit(id, task)
	}
	if r.answered != "" && r.answered != answer {
		m.breach("request %q had two effects: %s and %s", id, r.answered, answer)
	}
	r.answered = answer
}

// granted notes the answer to a request of a worker.
func (m *model) granted(a *actor, id string) {
	kind, rest, _ := strings.Cut(id, " ")
	switch kind {
	case "complete":
		m.finish(rest, "completed")
	case "ack":
		var seq int64
		_, _ = fmt.Sscan(rest, &seq)
		m.mail[a.name].acked = max(m.mail[a.name].acked, seq)
		m.counts["ack"]++
	}
}

// requireKept checks all promises at the end, when the orchestrator has had an hour without faults.
func (m *model) requireKept(t *testing.T, status func(task string) string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.order {
		now, want := status(id), m.tasks[id].end
		if now == "" || want != "" && now != want {
			m.breach("task %s was %q and is %q", id, want, now)
		}
		if !slices.Contains([]string{"completed", "failed", "cancelled"}, now) {
			m.breach("task %s is still %s", id, now)
		}
	}
	for name, box := range m.mail {
		for seq := range box.sent {
			if !box.read[seq] {
				m.breach("%s never got letter %d", name, seq)
			}
		}
	}
	for a := range m.live {
		for id, n := range a.said {
			if a.heard[id] != n {
				m.breach("%s got %d answers to %d requests %q", a.name, a.heard[id], n, id)
			}
		}
	}
	require.Empty(t, m.broken)
}

// requirePlenty checks that the world was a busy one.
func (m *model) requirePlenty(t *testing.T) {
	t.Log(m.counts)
	for _, kind := range []string{"task", "completed", "cancelled", "assigned", "letter", "ack", "run"} {
		require.Positive(t, m.counts[kind], kind)
	}
}

// dice are random numbers for several goroutines.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// fork returns a generator for one goroutine.
func (d *dice) fork() *rand.Rand { return rand.New(rand.NewPCG(uint64(d.below(1<<62)), 0)) }

// within returns a duration of at most a given one.
func (d *dice) within(most time.Duration) time.Duration { return time.Duration(d.below(int(most)) + 1) }

// pause waits for a while, or until ctx is done.
func (d *dice) pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d.within(most)):
	}
}
