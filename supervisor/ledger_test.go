package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
)

// ledger is a log in memory whose appends a test can delay or fail.
type ledger struct {
	*eventlog.Memory

	mu      sync.Mutex
	before  func(batch []wire.Record) error // called before an append, which fails with its error
	batches [][]wire.Record                 // attempted
	keeps   []int64                         // numbers of the states to keep
	forgets bool                            // keeps no states

	beforeKeep func()          // called before a state is kept
	gate       <-chan struct{} // closed when the log can be read; nil: it can
}

func newLedger() *ledger { return &ledger{Memory: eventlog.NewMemory()} }

// Append implements Record.
func (l *ledger) Append(ctx context.Context, last int64, batch []wire.Record) error {
	l.mu.Lock()
	before := l.before
	l.batches = append(l.batches, append([]wire.Record(nil), batch...))
	l.mu.Unlock()
	if before != nil {
		if err := before(batch); err != nil {
			return err
		}
	}
	return l.Memory.Append(ctx, last, batch)
}

// Keep implements Record.
func (l *ledger) Keep(ctx context.Context, seq int64, state io.Reader) error {
	l.mu.Lock()
	forgets, before := l.forgets, l.beforeKeep
	l.mu.Unlock()
	if before != nil {
		before()
	}
	if last := l.Last(); seq > last {
		panic(fmt.Sprintf("a state of fact %d is to be kept, and %d are recorded", seq, last))
	}
	l.mu.Lock()
	l.keeps = append(l.keeps, seq)
	l.mu.Unlock()
	if forgets {
		return nil
	}
	return l.Memory.Keep(ctx, seq, state)
}

// Records implements Record.
func (l *ledger) Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error] {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return l.Memory.Records(ctx, after)
}

// readAfter blocks reads until gate is closed.
func (l *ledger) readAfter(gate <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate = gate
}

// meddle sets a function that is called before each append.
func (l *ledger) meddle(before func([]wire.Record) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = before
}

// hold blocks the next appends until release is called.
func (l *ledger) hold() (release func()) {
	gate := make(chan struct{})
	l.meddle(func([]wire.Record) error {
		<-gate
		return nil
	})
	return func() {
		l.meddle(nil)
		close(gate)
	}
}

func (l *ledger) tried() [][]wire.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([][]wire.Record(nil), l.batches...)
}

// facts returns all recorded facts.
func (l *ledger) facts(t *testing.T) (found []wire.Record) {
	for r, err := range l.Records(t.Context(), 0) {
		require.NoError(t, err)
		found = append(found, r)
	}
	return found
}

// kinds returns the kinds of the facts that begin with word.
func kinds(facts []wire.Record, word string) (found []string) {
	for _, r := range facts {
		if strings.HasPrefix(r.Kind, word) {
			found = append(found, r.Kind)
		}
	}
	return found
}

// talker is an agent that prints the lines of the test, and records its input.
type talker struct {
	t    *testing.T
	name string

	mu    sync.Mutex
	run   *player
	heard []string
	exit  chan int
	stop  chan struct{} // while it is not nil, the agent does not read
}

// talkers returns agents with their parts, and a talker for each.
func talkers(t *testing.T, agents ...settings.Agent) (list []settings.Agent, parts map[string]part, all []*talker) {
	parts = make(map[string]part)
	for _, a := range agents {
		one := &talker{t: t, name: a.Name, exit: make(chan int)}
		all, parts[a.Name] = append(all, one), one.play
	}
	return agents, parts, all
}

func (t *talker) play(r *player) int {
	t.mu.Lock()
	t.run, t.heard = r, nil
	t.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			t.mu.Lock()
			stop := t.stop
			t.mu.Unlock()
			if stop != nil {
				<-stop
			}
			line := r.read()
			if line == "" {
				return
			}
			t.mu.Lock()
			t.heard = append(t.heard, line)
			t.mu.Unlock()
		}
	}()
	select {
	case code := <-t.exit:
		return code
	case <-ended:
		return 0
	case <-r.killed:
		return 0
	}
}

// deafen stops an agent's reading.
func (p *play) deafen(a *talker) (again func()) {
	again = a.readsNothing()
	require.NoError(p.t, p.Tell(p.t.Context(), a.name, []byte("{}\n"))) // ends the pending read
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = a.heard[:len(a.heard)-1]
	return again
}

// readsNothing stops the reading of an agent that does not run yet.
func (t *talker) readsNothing() (again func()) {
	stop := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop = stop
	return func() {
		t.mu.Lock()
		t.stop = nil
		t.mu.Unlock()
		close(stop)
		synctest.Wait()
	}
}

// says prints lines in one write.
func (t *talker) says(lines ...string) {
	t.mu.Lock()
	r := t.run
	t.mu.Unlock()
	r.say(strings.Join(lines, "\n"))
}

// goesOn prints many lines, one after the other, and does not wait. said returns the number of
// printed lines so far.
func (t *talker) goesOn(many int, line func(n int) string) (said func() int) {
	var done atomic.Int64
	go func() {
		for n := range many {
			t.says(line(n))
			done.Add(1)
		}
	}()
	return func() int {
		synctest.Wait()
		return int(done.Load())
	}
}

const noon = "2026-11-21T14:00:00Z"

func request(id, operation, payload string) string {
	return fmt.Sprintf(`{"type":"request:%s","id":%q,"timestamp":%q,"payload":%s}`, operation, id, noon, payload)
}

func event(id, name, payload string) string {
	return fmt.Sprintf(`{"type":"event:%s","id":%q,"timestamp":%q,"payload":%s}`, name, id, noon, payload)
}

// heardLine is a line of the orchestrator.
type heardLine struct {
	Type          string          `json:"type"`
	CorrelationID string          `json:"correlationId"`
	Payload       json.RawMessage `json:"payload"`
	Error         *struct {
		Code, Message string
		Details       map[string]any
	} `json:"error"`
}

// told returns the lines written to the agent's run so far.
func (t *talker) told() (lines []heardLine) {
	t.t.Helper()
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range t.heard {
		var line heardLine
		require.NoError(t.t, json.Unmarshal([]byte(text), &line), text)
		lines = append(lines, line)
	}
	return lines
}

// gist returns told in short: the outcome of each reply, or the notice.
func (t *talker) gist() (words []string) {
	t.t.Helper()
	for _, line := range t.told() {
		switch {
		case line.Error != nil:
			words = append(words, line.CorrelationID+" "+line.Error.Code)
		case line.Type == "response:success":
			words = append(words, line.CorrelationID+" granted")
		default:
			words = append(words, line.Type)
		}
	}
	return words
}

// task returns the task in the reply to a request.
func (t *talker) task(id string) (task struct{ ID, Status, AssignedTo, Error string }) {
	t.t.Helper()
	for _, line := range t.told() {
		if line.CorrelationID == id {
			reply := struct{ Task any }{&task}
			require.NoError(t.t, json.Unmarshal(line.Payload, &reply))
		}
	}
	return task
}

// submit returns a request to submit a task that requires a capability, or none.
func submit(id, capability string) string {
	if capability == "" {
		return request(id, "submit-task", `{"type":"t","name":"n"}`)
	}
	return request(id, "submit-task", fmt.Sprintf(`{"type":"t","name":"n","requiredCapabilities":[%q]}`, capability))
}

// freely is a rate limit for plays with many messages.
var freely = dispatch.Protocol{Rate: 1_000_000, Burst: 1_000_000}

// worker returns an agent that can be assigned tasks.
func worker(name string, capacity int) settings.Agent {
	return settings.Agent{Name: name, Role: wire.RoleWorker, Offers: []string{name}, Capacity: capacity, OnExit: "auto"}
}

// spelledState returns the snapshot of a State.
func spelledState(t *testing.T, s *handlers.State) string {
	t.Helper()
	text, err := s.Snapshot().Text()
	require.NoError(t, err)
	return string(text)
}
