package supervisor

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
)

// boxOf is a mailbox of a stream whose other end is returned.
func boxOf(t *testing.T, bounds Bounds) (*mailbox, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return &mailbox{
		bounds: bounds, timeout: time.Second, to: ours, close: func() { _ = ours.Close() },
		stalled: func(bool) {}, broken: func(error) {},
	}, theirs
}

// Who waits for room is let go by each end that there is: the agent may be dead,
// be stopped, or have closed its stdin.
func TestWaitingForRoomEnds(t *testing.T) {
	for name, end := range map[string]func(*mailbox, net.Conn){
		"dead":     func(m *mailbox, _ net.Conn) { m.setFree() },
		"gone":     func(m *mailbox, _ net.Conn) { m.drop() },
		"stopping": func(m *mailbox, _ net.Conn) { m.end() },
		"closed":   func(_ *mailbox, theirs net.Conn) { _ = theirs.Close() },
		"reading":  func(_ *mailbox, theirs net.Conn) { _, _ = io.CopyN(io.Discard, theirs, 10) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, theirs := boxOf(t, Bounds{Messages: 4, Bytes: 100})
				for range 5 {
					_, err := m.put(entry{text: []byte("x\n"), lines: 1, answers: 1})
					require.NoError(t, err)
				}
				through := make(chan struct{})
				go func() {
					defer close(through)
					m.await()
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

// Answers are always taken; what is owed counts as if it were there.
//
// Rows: B-21.
func TestAnswersAreAlwaysTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, theirs := boxOf(t, Bounds{Messages: 4, Bytes: 10})
		text := []byte(strings.Repeat("x", 99) + "\n")
		for range 10 {
			_, err := m.put(entry{text: text, lines: 1, answers: 1})
			require.NoError(t, err)
		}
		_, err := m.put(oneLine(text))
		require.ErrorIs(t, err, ErrMailboxFull)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		synctest.Wait()
		m.owe(3)
		through := make(chan struct{})
		go func() {
			defer close(through)
			m.await()
		}()
		synctest.Wait()
		require.Empty(t, through)
		_, err = m.put(entry{text: text, lines: 2, answers: 2})
		require.NoError(t, err)
		<-through
		m.owe(1)
		m.owe(-2)
		require.Zero(t, m.owed)
		messages, bytes, refused := m.waiting()
		require.Zero(t, messages)
		require.Zero(t, bytes)
		require.EqualValues(t, 1, refused)
		_ = theirs.Close()
	})
}

// haltingStdin takes some bytes at once and others only when they are waited
// for, as a pipe does that is nearly full.
type haltingStdin struct {
	net.Conn
	room  int // that TryWrite has
	wrong error
}

// TryWrite takes what there is room for.
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

// A write that is taken in part is finished before anything else, in place or
// not: every line is whole.
//
// Rows: B-73, T-58.
func TestPartialWritesInPlace(t *testing.T) {
	for room := range 40 {
		synctest.Test(t, func(t *testing.T) {
			m, theirs := boxOf(t, Bounds{Messages: 1000, Bytes: 1 << 20})
			m.to = &haltingStdin{Conn: m.to.(net.Conn), room: room}
			heard := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(theirs)
				heard <- string(text)
			}()
			want := ""
			for n := range 10 {
				line := fmt.Sprintf("line %d\n", n)
				want += line
				_, err := m.put(oneLine([]byte(line)))
				require.NoError(t, err)
			}
			m.end()
			require.Equal(t, want, <-heard)
		})
	}
}

// A stream that breaks is said once, and who asked about what was in hand hears
// that it was not written.
func TestBrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, theirs := boxOf(t, Bounds{Messages: 10, Bytes: 1 << 20})
		broken, told := make(chan error, 10), make(chan bool, 10)
		m.broken = func(err error) { broken <- err }
		m.to = &haltingStdin{Conn: m.to.(net.Conn), wrong: errors.New("broken pipe")}
		_, err := m.put(entry{text: []byte("a\n"), lines: 1, told: func(written bool) { told <- written }})
		require.NoError(t, err)
		require.False(t, <-told)
		require.EqualError(t, <-broken, "broken pipe")
		_, err = m.put(oneLine([]byte("b\n")))
		require.ErrorIs(t, err, ErrNoStdin)
		m.drop()
		m.end()
		require.Empty(t, broken)
		require.NotErrorIs(t, err, os.ErrClosed)
		_ = theirs.Close()
	})
}
