package stdin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// boxOf returns a mailbox of a stream, and the other end of the stream.
func boxOf(t *testing.T, bounds Limits) (*Mailbox, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return New(Options{
		Limits: bounds, Timeout: time.Second, To: ours, Shut: func() { _ = ours.Close() },
		Listener: newListener(),
	}), theirs
}

// A listener keeps the calls of a mailbox.
type listener struct {
	received chan receipted
	broken   chan error
}

func newListener() *listener {
	return &listener{received: make(chan receipted, 100), broken: make(chan error, 10)}
}

func (l *listener) Received(receipts []wire.Delivered, written bool) {
	one := receipted{Written: written}
	for _, r := range receipts {
		one.Said = append(one.Said, r.Said)
	}
	l.received <- one
}

func (l *listener) StdinStalled(bool)     {}
func (l *listener) StdinBroken(err error) { l.broken <- err }

// TestWaitingForRoomEnds checks that a wait for room ends when there is room. It also ends when
// the agent is dead, is stopped, or has closed its stdin.
func TestWaitingForRoomEnds(t *testing.T) {
	for name, end := range map[string]func(*Mailbox, net.Conn){
		"dead":     func(m *Mailbox, _ net.Conn) { m.EndWaits() },
		"gone":     func(m *Mailbox, _ net.Conn) { m.Drop() },
		"stopping": func(m *Mailbox, _ net.Conn) { m.CloseWhenEmpty() },
		"closed":   func(_ *Mailbox, theirs net.Conn) { _ = theirs.Close() },
		"reading":  func(_ *Mailbox, theirs net.Conn) { _, _ = io.CopyN(io.Discard, theirs, 10) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, theirs := boxOf(t, Limits{Messages: 4, Bytes: 100})
				for range 5 {
					_, err := m.Put(Entry{Text: []byte("x\n"), Lines: 1, Answers: 1})
					require.NoError(t, err)
				}
				through := make(chan struct{})
				go func() {
					defer close(through)
					m.Await()
				}()
				synctest.Wait()
				select {
				case <-through:
					require.Fail(t, "there is no room")
				default:
				}
				end(m, theirs)
				<-through
				_ = theirs.Close()
			})
		})
	}
}

// TestAnswersAreAlwaysTaken checks that replies are always accepted, and that owed replies count
// as present.
//
// Rows: B-21.
func TestAnswersAreAlwaysTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, theirs := boxOf(t, Limits{Messages: 4, Bytes: 10})
		text := []byte(strings.Repeat("x", 99) + "\n")
		for range 10 {
			_, err := m.Put(Entry{Text: text, Lines: 1, Answers: 1})
			require.NoError(t, err)
		}
		_, err := m.Put(OneLine(text))
		require.ErrorIs(t, err, ErrFull)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		synctest.Wait()
		m.Reserve(3)
		through := make(chan struct{})
		go func() {
			defer close(through)
			m.Await()
		}()
		synctest.Wait()
		require.Empty(t, through)
		_, err = m.Put(Entry{Text: text, Lines: 2, Answers: 2})
		require.NoError(t, err)
		<-through
		m.Reserve(1)
		m.Reserve(-2)
		require.Zero(t, m.reserved)
		messages, bytes, refused := m.Waiting()
		require.Zero(t, messages)
		require.Zero(t, bytes)
		require.EqualValues(t, 1, refused)
		_ = theirs.Close()
	})
}

// haltingStdin accepts some bytes at once and others only after a wait, as a pipe that is nearly
// full.
type haltingStdin struct {
	net.Conn
	room  int // for TryWrite
	wrong error
}

// TryWrite writes as much as there is room for.
func (h *haltingStdin) TryWrite(text []byte) (int, error) {
	n := min(h.room, len(text))
	h.room -= n
	if h.wrong != nil {
		return 0, h.wrong
	}
	if n > 0 {
		return h.Conn.Write(text[:n])
	}
	return 0, nil
}

// TestPartialWritesInPlace checks that a partial write is finished before anything else, in
// place or not: every line is whole.
//
// Rows: B-73, T-58.
func TestPartialWritesInPlace(t *testing.T) {
	for room := range 40 {
		synctest.Test(t, func(t *testing.T) {
			m, theirs := boxOf(t, Limits{Messages: 1000, Bytes: 1 << 20})
			m.options.To = &haltingStdin{Conn: m.options.To.(net.Conn), room: room}
			heard := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(theirs)
				heard <- string(text)
			}()
			want := ""
			for n := range 10 {
				line := fmt.Sprintf("line %d\n", n)
				want += line
				_, err := m.Put(OneLine([]byte(line)))
				require.NoError(t, err)
			}
			m.CloseWhenEmpty()
			require.Equal(t, want, <-heard)
		})
	}
}

// TestBrokenStream checks that a broken stream is reported once, and that the receipts of
// unwritten messages say so.
func TestBrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, theirs := boxOf(t, Limits{Messages: 10, Bytes: 1 << 20})
		broken, told := m.options.Listener.(*listener).broken, make(chan bool, 10)
		m.options.To = &haltingStdin{Conn: m.options.To.(net.Conn), wrong: errors.New("broken pipe")}
		_, err := m.Put(Entry{Text: []byte("a\n"), Lines: 1, Told: func(written bool) { told <- written }})
		require.NoError(t, err)
		require.False(t, <-told)
		require.EqualError(t, <-broken, "broken pipe")
		_, err = m.Put(OneLine([]byte("b\n")))
		require.ErrorIs(t, err, ErrNoStdin)
		m.Drop()
		m.CloseWhenEmpty()
		require.Empty(t, broken)
		require.NotErrorIs(t, err, os.ErrClosed)
		_ = theirs.Close()
	})
}

// receipted is a report of receipts.
type receipted struct {
	Said    []int64
	Written bool
}

// receiptsOf returns a channel of the receipts of a mailbox.
func receiptsOf(m *Mailbox) <-chan receipted { return m.options.Listener.(*listener).received }

// asked returns an entry with receipts.
func asked(said ...int64) Entry {
	e := Entry{Lines: len(said)}
	for _, n := range said {
		e.Text = fmt.Appendf(e.Text, "line %d\n", n)
		e.Receipts = append(e.Receipts, wire.Delivered{Said: n})
	}
	return e
}

// TestReceiptsComeTogether checks that entries written or lost together have one report, however
// many receipts they have.
//
// Rows: B-08, C-91.
func TestReceiptsComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, theirs := boxOf(t, Limits{Messages: 1000, Bytes: 1 << 20})
		heard := receiptsOf(m)
		put := func(from, until int64) (all []int64) {
			for n := from; n < until; n++ {
				_, err := m.Put(asked(n))
				require.NoError(t, err)
				all = append(all, n)
			}
			return all
		}
		put(0, 1) // this one is being written
		synctest.Wait()
		all := put(1, 101)
		require.Empty(t, heard)
		_, err := io.CopyN(io.Discard, theirs, int64(len("line 0\n")))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, receipted{Said: []int64{0}, Written: true}, <-heard)
		last := put(101, 103) // after those being written
		require.Empty(t, heard)
		_, err = io.CopyN(io.Discard, theirs, int64(9*len("line 1\n")+90*len("line 10\n")+len("line 100\n")))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, receipted{Said: all, Written: true}, <-heard)
		last = append(last, put(103, 104)...)
		m.Drop()
		require.Equal(t, receipted{Said: last}, <-heard)
		require.Empty(t, heard)
	})
}

// TestReceiptsDoNotMakeRoom checks that an entry with receipts needs room like any other, unless
// it is of a kind that is never many.
//
// Rows: B-08, C-91.
func TestReceiptsDoNotMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, theirs := boxOf(t, Limits{Messages: 3, Bytes: 1 << 20})
		heard := receiptsOf(m)
		_, err := m.Put(asked(1, 2, 3, 4))
		require.NoError(t, err)
		_, err = m.Put(asked(5))
		require.ErrorIs(t, err, ErrFull)
		assignment := asked(6)
		assignment.Priority = true
		_, err = m.Put(assignment)
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		synctest.Wait()
		require.Equal(t, receipted{Said: []int64{1, 2, 3, 4}, Written: true}, <-heard)
		require.Equal(t, receipted{Said: []int64{6}, Written: true}, <-heard)
		require.Empty(t, heard, "who was told that there is no room is told nothing more")
		_ = theirs.Close()
	})
}

// TestEachLineIsSeen checks that OnWrite is called for each line that was written together,
// because a terminal echoes them one by one.
func TestEachLineIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, theirs := boxOf(t, Limits{Messages: 10, Bytes: 1 << 20})
		var seen []string
		m.options.OnWrite = func(line []byte) { seen = append(seen, string(line)) }
		receiptsOf(m)
		_, err := m.Put(asked(1, 2))
		require.NoError(t, err)
		require.Equal(t, []string{"line 1\n", "line 2\n"}, seen)
		m.Drop()
		_ = theirs.Close()
	})
}

// TestLateLinesAreGoneOnWith checks that a line that was written in part before the deadline is
// continued, and not started again.
//
// Rows: B-73, T-58.
func TestLateLinesAreGoneOnWith(t *testing.T) {
	for name, patient := range map[string]bool{"what cannot wait": false, "mail": true} {
		t.Run(name, func(t *testing.T) {
			const first, second = "the first line\n", "the second\n"
			for taken := 1; taken < len(first); taken++ {
				synctest.Test(t, func(t *testing.T) {
					m, theirs := boxOf(t, Limits{Messages: 10, Bytes: 1 << 20})
					_, err := m.Put(Entry{Text: []byte(first), Lines: 1, Retriable: patient})
					require.NoError(t, err)
					head := make([]byte, taken)
					_, err = io.ReadFull(theirs, head)
					require.NoError(t, err)
					<-time.After(3 * m.options.Timeout)
					_, err = m.Put(OneLine([]byte(second)))
					require.NoError(t, err)
					m.CloseWhenEmpty()
					rest, err := io.ReadAll(theirs)
					require.NoError(t, err)
					require.Equal(t, first+second, string(head)+string(rest))
				})
			}
		})
	}
}

// TestLimitsChangeWhileItWrites changes the limits of a mailbox in use, as a reload does, for
// the race detector.
func TestLimitsChangeWhileItWrites(t *testing.T) {
	m, theirs := boxOf(t, Limits{Messages: 100, Bytes: 1000})
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			m.Adopt(Limits{Messages: 100 + i, Bytes: 1000}, time.Duration(i+1)*time.Second)
		}
	}()
	for range 100 {
		if _, err := m.Put(OneLine([]byte("x\n"))); err != nil {
			require.ErrorIs(t, err, ErrFull)
		}
	}
	<-done
}

// A notice of a task is unread as long as the unread bytes reach back to it.
func TestTaskUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Limits: Limits{Messages: 10, Bytes: 1 << 20}, To: discarding{}, Listener: newListener()})
		put := func(e Entry) {
			_, err := m.Put(e)
			require.NoError(t, err)
			synctest.Wait() // it is written
		}
		put(OneLine([]byte("before\n")))
		require.False(t, m.TaskUnread(7), "it was told of no task")
		put(Entry{Text: []byte("the task\n"), Lines: 1, Assigns: true})
		require.True(t, m.TaskUnread(9))
		require.True(t, m.TaskUnread(1), "a half of it is unread")
		put(OneLine([]byte("later\n")))
		require.True(t, m.TaskUnread(7))
		require.False(t, m.TaskUnread(6), "only what came later is unread")
	})
}

type discarding struct{}

func (discarding) Write(text []byte) (int, error)   { return len(text), nil }
func (discarding) SetWriteDeadline(time.Time) error { return nil }
