package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// TestMailThatIsInterrupted checks that an interrupted message is not acknowledged and that the
// next one is not begun.
func TestMailThatIsInterrupted(t *testing.T) {
	for name, end := range map[string]func(t *talk){
		"shutdown":  func(t *talk) { require.NoError(t, t.peer.Notify(agents.Shutdown, nil)) },
		"no stream": func(t *talk) { t.peer.End() },
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done := t.reading(func(ctx context.Context, mail wire.Mail) error {
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
		done := t.reading(func(ctx context.Context, _ wire.Mail) error {
			return t.agent.Ask(context.WithoutCancel(ctx), "query-tasks", nil, nil)
		})
		t.post(message(5, "a"))
		t.request("query-tasks")
		t.leaves(done) // there will be no answer, which is not an error of the message
	})
}

// TestMailThatIsDoneAtTheEnd checks that acknowledgments are still sent during a shutdown, when
// stdin is closed and no answer can arrive.
func TestMailThatIsDoneAtTheEnd(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.reading(func(ctx context.Context, _ wire.Mail) error {
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
		done := t.reading(func(ctx context.Context, _ wire.Mail) error {
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
			done <- t.agent.WorkAs(ctx, agents.Worker{Mail: func(ctx context.Context, _ wire.Mail) error {
				<-ctx.Done()
				return ctx.Err()
			}})
		}()
		t.beats()
		t.post(message(5, "a"), message(6, "a"))
		stop()
		require.ErrorIs(t, <-done, context.Canceled)

		again := t.workingAs(agents.Worker{Mail: func(context.Context, wire.Mail) error { return nil }, Beat: time.Hour})
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
		err := conn.WorkAs(t.Context(), agents.Worker{Mail: func(context.Context, wire.Mail) error { return nil }})
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
			done := t.workingAs(agents.Worker{Do: summary, Mail: func(context.Context, wire.Mail) error { return nil }, Beat: beat})
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
		done := t.workingAs(agents.Worker{Mail: func(context.Context, wire.Mail) error { return nil }})
		for n := range 4 {
			t.answer(t.settled("heartbeat", `{}`), wire.Beat{Actor: "HO:h1", LastSeen: object.Timestamp(time.Now()), Every: 5000})
			require.Equal(t, time.Duration(n)*5*time.Second, time.Since(began))
		}
		t.leaves(done)
	})
}

func TestHeartbeatsThatAreRefused(t *testing.T) {
	converse(t, func(t *talk) {
		began := time.Now()
		done := t.workingAs(agents.Worker{Mail: func(context.Context, wire.Mail) error { return nil }})
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
