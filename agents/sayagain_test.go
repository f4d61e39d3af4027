package agents_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

var (
	tooMuch = &wire.Error{Code: wire.CodeLimited, Message: "too many messages"}
	crowded = &wire.Error{
		Code: wire.CodeTimeout, Message: "coder has not taken 1000 messages yet: send it again when it has",
		Details: map[string]any{"to_agent": "coder", "waiting": 1000},
	}
)

// asks makes the agent send a status query to another one, in the background.
func (t *talk) asks(s *agents.Session, whom session.Agent, task string) <-chan *agents.Sent {
	done := make(chan *agents.Sent, 1)
	go func() {
		sent, err := s.AskStatus(context.WithoutCancel(t.Context()), whom, agents.StatusQuery{TaskID: task})
		if err != nil {
			t.Error(err)
		}
		done <- sent
	}()
	synctest.Wait()
	return done
}

// queried expects a status query and returns it with its task.
func (t *talk) queried() (said *agents.Said, task string) {
	t.Helper()
	var about agents.StatusQuery
	said = t.hears(session.TypeStatusQuery, &about)
	return said, about.TaskID
}

// requireAfter requires that at least wait has passed, and not much more.
func requireAfter(t *talk, since time.Time, wait time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, time.Since(since), wait)
	require.LessOrEqual(t, time.Since(since), wait+wait/4)
}

// requireNoMore requires that the agent sends nothing in the next hour.
func requireNoMore(t *talk) {
	t.Helper()
	<-time.After(time.Hour)
	requireSilence(t)
}

// TestSaidAgain checks that a message over the rate limit is repeated as the same line. Later
// messages wait, and the caller gets no error.
func TestSaidAgain(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(lead)
		sent := t.asks(s, coder, "a")
		first, _ := t.queried()
		since := time.Now()
		t.undeliver(first, tooMuch)
		t.undeliver(first, tooMuch) // a duplicate refusal
		after := t.asks(s, judge, "b")
		for _, wait := range []time.Duration{1, 2, 4} {
			again, _ := t.queried()
			requireAfter(t, since, wait*time.Second)
			require.Equal(t, string(first.Document), string(again.Document))
			since = time.Now()
			if wait < 4 {
				t.undeliver(again, tooMuch)
			}
		}
		last, task := t.queried()
		requireAfter(t, since, time.Second)
		require.Equal(t, []any{"b", first.SequenceNumber + 1}, []any{task, last.SequenceNumber})
		require.NoError(t, (<-sent).Err())
		require.NoError(t, (<-after).Err())
		requireNoMore(t)
	})
}

// TestSaidAgainInOrder checks that refused messages are repeated in their original order, and
// fewer at a time if too many are refused.
func TestSaidAgainInOrder(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(lead)
		const all = 100
		var first []*agents.Said
		for n := range all {
			t.asks(s, coder, fmt.Sprint(n))
			said, _ := t.queried()
			first = append(first, said)
		}
		for n := range all {
			t.undeliver(first[(n+all/2)%all], tooMuch)
		}
		rounds := make(map[time.Time]int)
		for n := range 64 {
			again, task := t.queried()
			require.Equal(t, fmt.Sprint(n), task)
			rounds[time.Now()]++
			if n >= 10 { // these are accepted
				t.undeliver(again, tooMuch)
			}
		}
		require.Len(t, rounds, 1)
		for n := 10; n < all; n++ {
			_, task := t.queried()
			require.Equal(t, fmt.Sprint(n), task)
			rounds[time.Now()]++
		}
		require.Len(t, rounds, 3, "64, then 32, then the rest")
		requireNoMore(t)
	})
}

// TestSaidOftenEnough checks that the refusal is reported when the message is given up.
func TestSaidOftenEnough(t *testing.T) {
	for name, why := range map[string]*wire.Error{"too much": tooMuch, "a crowd": crowded} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				begun, done := time.Now(), t.asks(t.as(lead), coder, "a")
				for range 11 {
					said, _ := t.queried()
					t.undeliver(said, why)
				}
				sent := <-done
				<-sent.Refused()
				require.ErrorContains(t, sent.Err(), why.Message)
				require.Less(t, time.Since(begun), 3*time.Minute)
				requireNoMore(t)
			})
		})
	}
}

// TestCrowds checks that only messages to an agent with a full mailbox wait.
func TestCrowds(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(lead)
		t.asks(s, coder, "a")
		first, _ := t.queried()
		t.undeliver(first, crowded)
		t.asks(s, coder, "b")
		t.asks(s, judge, "c")
		for _, want := range []string{"c", "a", "b"} {
			_, task := t.queried()
			require.Equal(t, want, task)
		}
		t.asks(s, coder, "d")
		said, _ := t.queried()
		t.undeliver(said, &wire.Error{Code: wire.CodeTimeout, Message: "it does not run", Details: map[string]any{"to_agent": "coder"}})
		requireNoMore(t)
	})
}

// TestWhoeverWaitsMayStop checks that a context ends the wait behind repeated messages.
func TestWhoeverWaitsMayStop(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(lead)
		t.asks(s, coder, "a")
		said, _ := t.queried()
		t.undeliver(said, tooMuch)
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		_, err := s.AskStatus(ctx, coder, agents.StatusQuery{TaskID: "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, task := t.queried()
		require.Equal(t, "a", task)
		requireNoMore(t)
	})
}

// TestSaidAgainAtTheEnd checks that an agent repeats refused messages before it exits and before
// its connection closes.
func TestSaidAgainAtTheEnd(t *testing.T) {
	for name, ends := range map[string]func(t *talk){
		"shutdown": func(t *talk) { require.NoError(t, t.peer.Notify(agents.Shutdown, nil)) },
		"the end":  func(t *talk) { t.peer.End() },
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done := t.developing(agents.Developer{Do: func(context.Context, *agents.Assigned) (agents.Completion, error) {
					return agents.Completion{Summary: "it boils"}, nil
				}})
				t.assigned("msg-1", "kettle")
				completion := t.hears(session.TypeTaskCompletion, nil)
				t.undeliver(completion, tooMuch)
				since := time.Now()
				ends(t)
				synctest.Wait()
				again := t.hears(session.TypeTaskCompletion, nil)
				require.LessOrEqual(t, time.Since(since), 1250*time.Millisecond)
				require.Equal(t, completion.MessageID, again.MessageID)
				require.NoError(t, <-done)
			})
		})
	}
	converse(t, func(t *talk) { // an agent without a role
		t.asks(t.as(lead), coder, "a")
		said, _ := t.queried()
		t.undeliver(said, tooMuch)
		t.peer.End()
		gone := doing(t.agent.Wait)
		_, task := t.queried()
		require.Equal(t, "a", task)
		require.NoError(t, <-gone)
	})
	converse(t, func(t *talk) { // an agent with a closed output
		t.asks(t.as(lead), coder, "a")
		said, _ := t.queried()
		t.undeliver(said, tooMuch)
		t.peer.Close()
		require.NoError(t, t.agent.Wait())
	})
}

// TestLinesThatAreGone checks that lines beyond the memory limit are not kept for repetition.
func TestLinesThatAreGone(t *testing.T) {
	converse(t, func(t *talk) {
		s, long := t.as(lead), strings.Repeat("long ", 5<<20/5)
		var first *agents.Said
		var sent *agents.Sent
		for n := range 2 {
			done := doing(func() (err error) {
				var now *agents.Sent
				now, err = s.GiveFeedback(t.Context(), coder, agents.Feedback{Type: session.FeedbackGuidance, Content: long})
				if n == 0 {
					sent = now
				}
				return err
			})
			said := t.hears(session.TypeFeedback, nil)
			require.NoError(t, <-done)
			if n == 0 {
				first = said
			}
		}
		t.undeliver(first, tooMuch)
		<-sent.Refused()
		require.ErrorContains(t, sent.Err(), "too many messages")
	})
}

// TestDevelopersSayItInTheSession checks that a developer reports every outcome as a session
// message and sends no request.
func TestDevelopersSayItInTheSession(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.developing(agents.Developer{Do: func(_ context.Context, task *agents.Assigned) (agents.Completion, error) {
			switch task.Task.TaskID {
			case "fails":
				return agents.Completion{}, io.ErrUnexpectedEOF
			case "panics":
				panic("oh no")
			}
			return agents.Completion{}, nil
		}})
		for _, task := range []string{"goes well", "fails", "panics"} {
			t.say(spoken{from: lead, to: coder, kind: session.TypeTaskAssignment, payload: boil(task)}.line())
			t.notify(agents.TaskAssigned, task) // meant for workers with tasks from the queue
			for completed := false; !completed; {
				line, message, err := t.peer.Hear()
				require.NoError(t, err)
				_, asks := message.(*wire.Request)
				require.False(t, asks, line)
				said, ok := message.(*wire.Session)
				completed = ok && said.Message.MessageType == session.TypeTaskCompletion
			}
		}
		require.NoError(t, t.shutDown(done))
	})
}
