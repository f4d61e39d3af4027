package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// reading calls WorkAs with a Mail function in the background, expects the first heartbeat, and
// returns the channel of the error.
func (t *talk) reading(received func(context.Context, mail.Message) error) <-chan error {
	t.Helper()
	done := t.workingAs(agents.Worker{Do: summary, Mail: received, Beat: 1000 * time.Hour})
	t.beats()
	return done
}

// beats expects a heartbeat.
func (t *talk) beats() {
	t.Helper()
	t.answer(t.settled("heartbeat", `{}`), mail.Beat{Actor: "HO:h1", LastSeen: object.Timestamp(time.Now())})
}

// message returns mail to the agent.
func message(seq int64, topic string) mail.Message {
	return mail.Message{Seq: seq, From: "GO", To: "HO:h1", Topic: topic, Payload: wire.Raw("{}"), CreatedAt: "2026-03-30T09:15:00.123Z"}
}

// post delivers mail to the agent and waits until the agent is idle.
func (t *talk) post(received ...mail.Message) {
	t.Helper()
	for _, each := range received {
		require.NoError(t, t.peer.Notify(agents.Message, each))
	}
	synctest.Wait()
}

// acks expects the acknowledgment of a message.
func (t *talk) acks(seq int64) {
	t.Helper()
	t.answer(t.settled("ack-messages", fmt.Sprintf(`{"seq":%d}`, seq)), mail.Acked{Actor: "HO:h1", Cursor: seq})
}

// fails expects the agent to report that it could not handle a message, and returns the
// idempotency key of the report.
func (t *talk) fails(seq int64, payload string) (key string) {
	t.Helper()
	request := t.request("send-message")
	body, wrong := readRequest("send-message", request.Payload)
	require.Nil(t, wrong)
	letter, ok := body.(*wire.SendMessage)
	require.True(t, ok)
	require.Equal(t, mail.Global, letter.To)
	require.Empty(t, letter.From, "the orchestrator knows who it is")
	require.Equal(t, mail.TopicTaskFailed, letter.Topic)
	require.Equal(t, seq, letter.ReplyTo)
	require.JSONEq(t, payload, string(letter.Payload))
	require.NotEmpty(t, letter.Key)
	t.answer(request, mail.Sent{Message: message(seq+100, letter.Topic)})
	return letter.Key
}

// leaves closes the connection and checks that the agent sends nothing more.
func (t *talk) leaves(done <-chan error) {
	t.Helper()
	t.peer.End()
	require.NoError(t, <-done)
	requireSilence(t)
}

func TestMail(t *testing.T) {
	converse(t, func(t *talk) {
		got := make(chan mail.Message, 1)
		done := t.reading(func(_ context.Context, received mail.Message) error {
			got <- received
			return nil
		})
		t.post(letter)
		t.acks(42)
		require.Equal(t, letter, <-got, "as it is kept")
		t.leaves(done)
	})
}

// TestMailGoesOneAfterTheOther checks that messages are handled one by one in order, because
// acknowledging one acknowledges all before it.
func TestMailGoesOneAfterTheOther(t *testing.T) {
	converse(t, func(t *talk) {
		begun, finish := make(chan int64, 10), make(chan struct{})
		done := t.reading(func(_ context.Context, received mail.Message) error {
			begun <- received.Seq
			<-finish
			return nil
		})
		t.post(message(5, "a"), message(9, "b"), message(7, "c"))
		for _, seq := range []int64{5, 7, 9} {
			require.Equal(t, seq, <-begun)
			finish <- struct{}{}
			synctest.Wait()
			require.Empty(t, begun, "the next one waits until it is acknowledged")
			t.acks(seq)
		}
		t.leaves(done)
	})
}

// TestSlowMailHoldsUpNothing checks that a slow Mail function delays neither tasks nor notices.
func TestSlowMailHoldsUpNothing(t *testing.T) {
	converse(t, func(t *talk) {
		const many = 1000
		finish := make(chan struct{})
		done := t.reading(func(_ context.Context, received mail.Message) error {
			<-finish
			return nil
		})
		for seq := range int64(many) {
			require.NoError(t, t.peer.Notify(agents.Message, message(seq+1, "a")))
		}
		t.assign("x")
		t.answer(t.request("complete-task"), taskNamed("x"))
		close(finish)
		for seq := range int64(many) {
			t.acks(seq + 1)
		}
		t.leaves(done)
	})
}

func TestMailThatComesTwice(t *testing.T) {
	converse(t, func(t *talk) {
		var got []int64
		finish := make(chan struct{})
		done := t.reading(func(_ context.Context, received mail.Message) error {
			got = append(got, received.Seq)
			<-finish
			return nil
		})
		t.post(message(5, "a"))
		t.post(message(5, "a"), message(6, "a"), message(6, "a"), message(4, "too late"))
		close(finish)
		t.acks(5)
		t.acks(6)
		t.post(message(6, "a"), message(5, "a"), message(4, "a"), message(7, "a"))
		t.acks(7)
		require.Equal(t, []int64{5, 6, 7}, got)
		t.leaves(done)
	})
}

func TestMailThatMakesNoSense(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.reading(func(_ context.Context, received mail.Message) error { return fmt.Errorf("was given %v", received) })
		for _, payload := range []string{`{}`, `{"seq":0}`, `{"seq":-1}`, `{"seq":"7"}`, `{"seq":7.5}`, `{"topic":"a"}`} {
			t.say(`{"type":"notify:message","payload":` + payload + `}`)
		}
		t.say(`{"type":"notify:message"}`)
		synctest.Wait()
		t.leaves(done)
	})
}

// Rows: E-56.
func TestMailOnTopicsThatNobodyKnows(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.reading(func(_ context.Context, received mail.Message) error {
			switch received.Topic {
			case mail.TopicTaskAssigned:
				return errors.New("not this one")
			}
			return nil
		})
		t.post(message(5, "news.of.tomorrow"), message(6, mail.TopicTaskAssigned))
		t.acks(5)
		t.fails(6, `{"error_code":"FAILED","error":"not this one","topic":"task.assigned"}`)
		t.acks(6)
		t.leaves(done)
	})
}

// TestMailThatFails checks that a failed message is reported to GO, with a key that is the same
// in the next run.
//
// Rows: E-61.
func TestMailThatFails(t *testing.T) {
	why := errors.New("no such repository")
	for name, each := range map[string]struct {
		err  error
		said string
	}{
		"an error":       {why, `{"error_code":"FAILED","error":"no such repository","topic":"a"}`},
		"with a code":    {agents.Fatal("NO_REPO", why), `{"error_code":"NO_REPO","error":"no such repository","topic":"a"}`},
		"a code inside":  {fmt.Errorf("shop: %w", agents.Fatal("NO_REPO", why)), `{"error_code":"NO_REPO","error":"shop: no such repository","topic":"a"}`},
		"no word":        {errors.New(" "), `{"error_code":"FAILED","error":"it failed without a word","topic":"a"}`},
		"nothing at all": {agents.Fatal("X", nil), `{"error_code":"X","error":"it failed without a word","topic":"a"}`},
		"no text":        {errors.New("half \xff"), `{"error_code":"FAILED","error":"half ` + "\ufffd" + `","topic":"a"}`},
		"a book":         {errors.New(strings.Repeat("x", 1<<20)), `{"error_code":"FAILED","error":"` + strings.Repeat("x", 8<<10) + `","topic":"a"}`},
		"a time limit":   {context.DeadlineExceeded, `{"error_code":"FAILED","error":"context deadline exceeded","topic":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			keys := make(map[string]bool)
			for range 2 {
				converse(t, func(t *talk) {
					done := t.reading(func(context.Context, mail.Message) error { return each.err })
					t.post(message(5, "a"))
					keys[t.fails(5, each.said)] = true
					t.acks(5)
					t.leaves(done)
				})
			}
			require.Len(t, keys, 1)
		})
	}
	require.ErrorIs(t, agents.Fatal("X", why), why)
}

func TestMailThatFailsHasAKeyOfItsOwn(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.reading(func(context.Context, mail.Message) error { return errors.New("no") })
		t.post(message(5, "a"), message(6, "a"))
		first := t.fails(5, `{"error_code":"FAILED","error":"no","topic":"a"}`)
		t.acks(5)
		require.NotEqual(t, first, t.fails(6, `{"error_code":"FAILED","error":"no","topic":"a"}`))
		t.acks(6)
		t.leaves(done)
	})
}

func TestMailThatPanics(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.reading(func(_ context.Context, received mail.Message) error {
			if received.Seq == 5 {
				panic("oh no")
			}
			return nil
		})
		t.post(message(5, "a"), message(6, "a"))
		trouble := string(t.report("error").Payload)
		require.Contains(t, trouble, "mail_test.go", "it says where")
		t.fails(5, `{"error_code":"PANIC","error":"the handler panicked: oh no","topic":"a"}`)
		t.acks(5)
		t.acks(6)
		t.leaves(done)
	})
}

// TestFailuresThatFail checks that no task.failed is sent about a task.failed, because the
// report could fail in turn. The same holds for alert.fired, which the bus sends for a
// task.failed.
func TestFailuresThatFail(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.reading(func(context.Context, mail.Message) error { return agents.Fatal("X", errors.New("no")) })
		alert := message(6, mail.TopicAlertFired)
		alert.From, alert.To = mail.Bus, mail.Global
		t.post(message(5, mail.TopicTaskFailed), alert)
		require.Contains(t, string(t.report("log").Payload), "message 5 on task.failed is given up: no (X)")
		t.acks(5)
		require.Contains(t, string(t.report("log").Payload), "message 6 on alert.fired is given up: no (X)")
		t.acks(6)
		t.leaves(done)
	})
}

// TestMailIsAnsweredForPatiently checks that requests over the rate limit are repeated.
func TestMailIsAnsweredForPatiently(t *testing.T) {
	converse(t, func(t *talk) {
		limited := func(operation string) {
			require.NoError(t, t.peer.Refuse(t.request(operation).ID, &wire.Error{Code: wire.CodeLimited, Message: "too many messages"}))
		}
		done := t.workingAs(agents.Worker{Mail: func(context.Context, mail.Message) error { return errors.New("no") }})
		limited("heartbeat")
		t.beats()
		t.post(message(5, "a"))
		limited("send-message")
		t.fails(5, `{"error_code":"FAILED","error":"no","topic":"a"}`)
		limited("ack-messages")
		t.acks(5)
		t.leaves(done)
	})
}

// TestMailThatCannotBeAnsweredFor checks that a message is not acknowledged if its failure could
// not be reported, and that the next one is handled.
func TestMailThatCannotBeAnsweredFor(t *testing.T) {
	converse(t, func(t *talk) {
		denied := &wire.Error{Code: wire.CodeDenied, Message: "not you"}
		done := t.reading(func(_ context.Context, received mail.Message) error {
			if received.Seq == 5 {
				return errors.New("no")
			}
			return nil
		})
		t.post(message(5, "a"), message(6, "b"), message(7, "c"))
		require.NoError(t, t.peer.Refuse(t.request("send-message").ID, denied))
		require.Contains(t, string(t.report("log").Payload), "message 5 on a failed: no; and GO cannot be told: send-message: not you")
		require.NoError(t, t.peer.Refuse(t.request("ack-messages").ID, denied))
		require.Contains(t, string(t.report("log").Payload), "message 6 on b is dealt with: ack-messages: not you")
		t.acks(7)
		t.leaves(done)
	})
}

// TestMailThatIsInterrupted checks that an interrupted message is not acknowledged and that the
// next one is not begun.
func TestMailThatIsInterrupted(t *testing.T) {
	for name, end := range map[string]func(t *talk){
		"shutdown":  func(t *talk) { require.NoError(t, t.peer.Notify(agents.Shutdown, nil)) },
		"no stream": func(t *talk) { t.peer.End() },
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done := t.reading(func(ctx context.Context, mail mail.Message) error {
					if mail.Seq != 5 {
						t.Errorf("was given %v", mail)
					}
					<-ctx.Done()
					<-time.After(time.Second) // the agent waits for a slow handler
					return fmt.Errorf("interrupted: %w", context.Cause(ctx))
				})
				began := time.Now()
				t.post(message(5, "a"), message(6, "a"))
				end(t)
				require.NoError(t, <-done)
				require.Equal(t, time.Second, time.Since(began))
				requireSilence(t)
			})
		})
	}
	converse(t, func(t *talk) {
		done := t.reading(func(ctx context.Context, _ mail.Message) error {
			return t.agent.Ask(context.WithoutCancel(ctx), "query-tasks", nil, nil)
		})
		t.post(message(5, "a"))
		t.request("query-tasks")
		t.leaves(done) // the message will have no answer, without an error
	})
}

// TestMailThatIsDoneAtTheEnd checks that acknowledgments are still sent during a shutdown, when
// stdin is closed and no answer can arrive.
func TestMailThatIsDoneAtTheEnd(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.reading(func(ctx context.Context, _ mail.Message) error {
			<-ctx.Done()
			return nil
		})
		t.post(message(5, "a"), message(6, "a"))
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		t.peer.End()
		t.settled("ack-messages", `{"seq":5}`)
		require.NoError(t, <-done)
		requireSilence(t)
	})
	converse(t, func(t *talk) {
		done := t.reading(func(ctx context.Context, _ mail.Message) error {
			<-ctx.Done()
			return errors.New("too hard")
		})
		t.post(message(5, "a"))
		t.peer.End()
		require.Contains(t, string(t.request("send-message").Payload), "too hard")
		t.settled("ack-messages", `{"seq":5}`)
		require.NoError(t, <-done)
		requireSilence(t)
	})
}

// TestMailThatWasLeftIsNotLost checks that unhandled mail is passed to a later WorkAs, because
// the orchestrator delivers it only once to a run.
func TestMailThatWasLeftIsNotLost(t *testing.T) {
	converse(t, func(t *talk) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- t.agent.WorkAs(ctx, agents.Worker{Mail: func(ctx context.Context, _ mail.Message) error {
				<-ctx.Done()
				return ctx.Err()
			}})
		}()
		t.beats()
		t.post(message(5, "a"), message(6, "a"))
		stop()
		require.ErrorIs(t, <-done, context.Canceled)

		again := t.workingAs(agents.Worker{Mail: func(context.Context, mail.Message) error { return nil }, Beat: time.Hour})
		var asked []string
		for range 3 {
			request, err := t.peer.Request()
			require.NoError(t, err)
			asked = append(asked, request.Operation+string(request.Payload))
			t.answer(request, nil)
		}
		require.ElementsMatch(t, []string{"heartbeat{}", `ack-messages{"seq":5}`, `ack-messages{"seq":6}`}, asked)
		t.leaves(again)
	})
}

func TestMailWithoutAVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, say := io.Pipe()
		broken := errors.New("broken")
		conn := agents.Connect(in, failing{broken})
		err := conn.WorkAs(t.Context(), agents.Worker{Mail: func(context.Context, mail.Message) error { return nil }})
		require.ErrorIs(t, err, broken, "an agent that cannot report must not go on")
		require.NoError(t, say.Close())
		require.NoError(t, conn.Wait())
	})
}

// Rows: E-65.
func TestHeartbeats(t *testing.T) {
	for often, beat := range map[time.Duration]time.Duration{time.Minute: 0, 10 * time.Second: 10 * time.Second} {
		converse(t, func(t *talk) {
			began := time.Now()
			done := t.workingAs(agents.Worker{Do: summary, Mail: func(context.Context, mail.Message) error { return nil }, Beat: beat})
			for n := range 4 {
				t.beats()
				require.Equal(t, time.Duration(n)*often, time.Since(began))
			}
			t.leaves(done)
		})
	}
}

// TestHeartbeatsAsOftenAsWanted checks that the agent uses the interval that the orchestrator
// asks for.
//
// Rows: E-65.
func TestHeartbeatsAsOftenAsWanted(t *testing.T) {
	converse(t, func(t *talk) {
		began := time.Now()
		done := t.workingAs(agents.Worker{Mail: func(context.Context, mail.Message) error { return nil }})
		for n := range 4 {
			t.answer(t.settled("heartbeat", `{}`), mail.Beat{Actor: "HO:h1", LastSeen: object.Timestamp(time.Now()), Every: 5000})
			require.Equal(t, time.Duration(n)*5*time.Second, time.Since(began))
		}
		t.leaves(done)
	})
}

func TestHeartbeatsThatAreRefused(t *testing.T) {
	converse(t, func(t *talk) {
		began := time.Now()
		done := t.workingAs(agents.Worker{Mail: func(context.Context, mail.Message) error { return nil }})
		require.NoError(t, t.peer.Refuse(t.request("heartbeat").ID, &wire.Error{Code: wire.CodeInternal, Message: "not now"}))
		require.Contains(t, string(t.report("log").Payload), "heartbeat: not now")
		t.beats()
		require.Equal(t, time.Minute, time.Since(began))
		t.leaves(done)
	})
}

// TestMailForThoseWhoWantNone checks that an agent without a Mail function ignores notices of
// mail.
func TestMailForThoseWhoWantNone(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.working(t.Context(), untilStopped)
		t.post(message(5, "a"), message(6, "b"))
		<-time.After(time.Hour)
		t.leaves(done)
	})
}
