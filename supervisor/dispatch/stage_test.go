package dispatch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orchestrator/handlers"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/line"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A stage is a Dispatcher without processes, in a bubble of fake time.
type stage struct {
	*Dispatcher
	t     *testing.T
	broke chan error // why the record failed

	mu    sync.Mutex
	shown []wire.Record
}

// begin returns a stage with the given options.
func begin(t *testing.T, o Options) *stage {
	s := &stage{t: t, broke: make(chan error, 1)}
	o.Log = hclog.NewNullLogger()
	o.Audience, o.Owner = s, s
	s.Dispatcher = New(o)
	if o.Record != nil {
		go s.Run()
	}
	return s
}

// Publish implements Audience.
func (s *stage) Publish(records []wire.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = append(s.shown, records...)
}

// NoteMessage implements Audience.
func (s *stage) NoteMessage(string) {}

// SessionClosed implements Owner.
func (s *stage) SessionClosed(*wire.Record) {}

// RecordBroke implements Owner.
func (s *stage) RecordBroke(err error) { s.broke <- err }

// taken returns the records that were shown since its last call.
func (s *stage) taken() []wire.Record {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := s.shown
	s.shown = nil
	return shown
}

// keepEvery makes the State be kept after so many facts. The recorder reads the number without a
// lock, so keepEvery waits until it is idle.
func (s *stage) keepEvery(facts int) {
	synctest.Wait()
	s.snapshots.every, s.snapshots.small = facts, math.MaxInt
}

// A speaker is a run of an agent without a process.
type speaker struct {
	*Channel
	t      *testing.T
	box    *stdin.Mailbox
	theirs net.Conn

	mu    sync.Mutex
	heard []string
}

// enter starts a run of an agent with a mailbox. The run does not read before listen.
func (s *stage) enter(agent string, limits stdin.Limits) *speaker {
	box, theirs := boxOf(s.t, limits, s.Receive)
	one := &speaker{t: s.t, Channel: s.Channel(agent, agent+"-run", func(string, string, int64) {}), box: box, theirs: theirs}
	one.Open(box)
	s.Note(&wire.Event{Kind: events.AgentStarted, Agent: agent, Run: agent + "-run"})
	return one
}

// actor returns the actor of a run.
func (s *speaker) actor() handlers.Actor { return s.Channel.actor }

// listen reads the lines written to the run from now on.
func (s *speaker) listen() {
	go func() {
		in := bufio.NewScanner(s.theirs)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			s.mu.Lock()
			s.heard = append(s.heard, in.Text())
			s.mu.Unlock()
		}
	}()
	synctest.Wait()
}

// lines returns the lines that the run has read.
func (s *speaker) lines() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// says prints lines.
func (s *speaker) says(lines ...string) {
	for _, text := range lines {
		require.True(s.t, s.Take(line.Line{Text: []byte(text), Size: int64(len(text))}, time.Now()), text)
	}
	s.Send(time.Now())
	synctest.Wait()
}

// boxOf returns a mailbox that reports to receipts, and the other end of its stream.
func boxOf(t *testing.T, limits stdin.Limits, receipts func([]wire.Delivered, bool)) (*stdin.Mailbox, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return stdin.New(stdin.Options{
		Limits: limits, Timeout: time.Second, To: ours, Shut: func() { _ = ours.Close() },
		Listener: received(receipts),
	}), theirs
}

// A received function takes the receipts of a mailbox.
type received func(receipts []wire.Delivered, written bool)

func (f received) Received(receipts []wire.Delivered, written bool) { f(receipts, written) }
func (received) StdinStalled(bool)                                  {}
func (received) StdinBroken(error)                                  {}

const noon = "2026-11-21T14:00:00Z"

// ledger is a log in memory whose appends a test can delay or fail.
type ledger struct {
	*eventlog.Memory

	mu     sync.Mutex
	before func() error // called before an append, which fails with its error
	keeps  []int64      // numbers of the states to keep

	onKeep func() // called before a state is kept
}

func newLedger() *ledger { return &ledger{Memory: eventlog.NewMemory()} }

// Append implements Record.
func (l *ledger) Append(ctx context.Context, last int64, batch []wire.Record) error {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	return l.Memory.Append(ctx, last, batch)
}

// Keep implements Record.
func (l *ledger) Keep(ctx context.Context, seq int64, state io.Reader) error {
	if last := l.Last(); seq > last {
		panic(fmt.Sprintf("a state of fact %d is to be kept, and %d are recorded", seq, last))
	}
	l.mu.Lock()
	onKeep := l.onKeep
	l.mu.Unlock()
	if onKeep != nil {
		onKeep()
	}
	err := l.Memory.Keep(ctx, seq, state)
	if err == nil {
		l.mu.Lock()
		l.keeps = append(l.keeps, seq)
		l.mu.Unlock()
	}
	return err
}

// meddle sets a function that is called before each append.
func (l *ledger) meddle(before func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = before
}

// facts returns the recorded facts of kinds that begin with word.
func (l *ledger) facts(t *testing.T, word string) (found []wire.Record) {
	for r, err := range l.Records(t.Context(), 0) {
		require.NoError(t, err)
		if strings.HasPrefix(r.Kind, word) {
			found = append(found, r)
		}
	}
	return found
}
