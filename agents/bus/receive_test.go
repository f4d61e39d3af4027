package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents/bus"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// noting returns a handler that logs each message and returns the error of result.
func (v *visit) noting(result func(mail.Message) error) bus.Handler {
	return func(_ context.Context, received mail.Message) error {
		v.say("handled %d", received.Seq)
		if result == nil {
			return nil
		}
		return result(received)
	}
}

// Rows: E-40.
func TestReceive(t *testing.T) {
	visiting(t, func(t *visit) {
		for range 3 {
			t.has("task.assigned", delicate)
		}
		t.acked = 10
		t.receiving(time.Second, bus.Handlers{"task.assigned": t.noting(func(received mail.Message) error {
			require.Equal(t, t.letters("HO:h1", received.Seq-1)[0], received, "as it is kept")
			return nil
		})})
		require.Equal(t, []string{
			"0s heartbeat", "0s poll", "0s handled 20", "0s ack 20", "0s handled 30", "0s ack 30", "0s poll",
		}, t.sorted())
	})
}

// sorted returns the logged events with heartbeats first, because heartbeats are sent
// concurrently.
func (v *visit) sorted() []string {
	story := v.told("")
	slices.SortStableFunc(story, func(a, b string) int {
		return strings.Count(b, "heartbeat") - strings.Count(a, "heartbeat")
	})
	return story
}

// TestReceiveInOrder checks that messages are handled in order, because acknowledging one
// acknowledges all before it.
func TestReceiveInOrder(t *testing.T) {
	visiting(t, func(t *visit) {
		for range 250 {
			t.has("task.assigned", "{}")
		}
		slices.Reverse(t.mail[:50])
		var got []int64
		t.receiving(time.Second, bus.Handlers{"task.assigned": func(_ context.Context, received mail.Message) error {
			got = append(got, received.Seq)
			return nil
		}})
		require.Len(t, got, 250)
		require.True(t, slices.IsSorted(got))
		require.Len(t, t.told("poll"), 4, "page by page, without a pause")
	})
}

// Rows: E-56.
func TestTopicsWithoutAHandler(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("news.of.tomorrow", `{}`)
		t.has("task.assigned", `{}`)
		t.receiving(time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		require.Equal(t, []string{"0s heartbeat", "0s poll", "0s ack 10", "0s handled 20", "0s ack 20", "0s poll"}, t.sorted())
	})
}

// TestACrash checks that a message that was handled but not acknowledged is handled again by the
// next client, and not by the same one.
//
// Rows: E-40, T-34.
func TestACrash(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.has("task.assigned", `{}`)
		t.instead(refusing("ack", http.StatusServiceUnavailable))
		t.receiving(25*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		require.Equal(t, []string{"0s handled 10"}, t.told("handled"), "what was done is not done again because the bus was away")

		t.instead(nil)
		t.client = t.newClient(t.client.HTTP)
		t.receiving(time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		require.Equal(t, []string{"25s handled 10", "25s handled 20"}, t.told("handled"))
		require.EqualValues(t, 20, t.acked)
	})
}

func TestAnAckIsRepeatedUntilItIsHeard(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.has("task.assigned", `{}`)
		t.instead(refusing("ack", http.StatusServiceUnavailable))
		time.AfterFunc(15*time.Second, func() { t.instead(nil) })
		t.receiving(25*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		require.Equal(t, []string{
			"0s heartbeat", "0s poll", "0s handled 10", "0s ack 10",
			"0s trouble: message 10 is handled: /api/bus/ack: not now (A_CODE, HTTP 503)",
			"10s ack 10", "10s trouble: message 10 is handled: /api/bus/ack: not now (A_CODE, HTTP 503)",
			"20s ack 10", "20s poll", "20s handled 20", "20s ack 20", "20s poll",
		}, t.sorted())
	})
}

func TestAnErrorHoldsUpWhatIsBehind(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.has("task.assigned", `{}`)
		times := 0
		t.receiving(25*time.Second, bus.Handlers{"task.assigned": t.noting(func(mail.Message) error {
			if times++; times < 3 {
				return &bus.Refusal{Status: 403, Message: "of something else"}
			}
			return nil
		})})
		require.Equal(t, []string{
			"0s heartbeat", "0s poll", "0s handled 10", "0s trouble: message 10 on task.assigned is tried again: of something else (HTTP 403)",
			"10s poll", "10s handled 10", "10s trouble: message 10 on task.assigned is tried again: of something else (HTTP 403)",
			"20s poll", "20s handled 10", "20s ack 10", "20s handled 20", "20s ack 20", "20s poll",
		}, t.sorted())
	})
}

// Rows: E-39.
func TestPollsAreFewerWhenThereIsNoMail(t *testing.T) {
	visiting(t, func(t *visit) {
		time.AfterFunc(185*time.Second, func() { t.has("task.assigned", `{}`) })
		t.receiving(330*time.Second, nil)
		require.Equal(t, []string{
			"0s poll", "10s poll", "20s poll", "30s poll", "40s poll", "50s poll", // there may be recent mail
			"1m0s poll", "2m0s poll", "3m0s poll",
			"4m0s poll", "4m0s poll", "4m10s poll", "4m20s poll", "4m30s poll", "4m40s poll", "4m50s poll", // after new mail
			"5m0s poll",
		}, t.told("poll"))
	})
	visiting(t, func(t *visit) {
		t.client.PollActive, t.client.PollIdle = time.Second, 3*time.Second
		t.receiving(10*time.Second, nil)
		require.Equal(t, []string{"0s poll", "1s poll", "2s poll", "3s poll", "6s poll", "9s poll"}, t.told("poll"))
	})
}

func TestReceiveOutlivesTrouble(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.pipes.cut(errors.New("refused"))
		time.AfterFunc(15*time.Second, func() {
			t.instead(refusing("poll", http.StatusTooManyRequests))
			t.pipes.cut(nil)
		})
		time.AfterFunc(25*time.Second, func() { t.instead(nil) })
		t.receiving(35*time.Second, nil)
		require.Equal(t, []string{
			"0s trouble: /api/bus/heartbeat: the bus cannot be reached at http://localhost: refused",
			"0s trouble: /api/bus/poll: the bus cannot be reached at http://localhost: refused",
			"10s trouble: /api/bus/poll: the bus cannot be reached at http://localhost: refused",
			"20s poll", "20s trouble: /api/bus/poll: not now (A_CODE, HTTP 429)",
			"30s poll", "30s ack 10", "30s poll",
		}, t.sorted())
	})
}

func TestReceiveEndsWhenItIsNotWanted(t *testing.T) {
	for _, what := range []string{"poll", "ack"} {
		visiting(t, func(t *visit) {
			t.has("task.assigned", `{}`)
			t.instead(refusing(what, http.StatusUnauthorized))
			err := t.client.Receive(t.Context(), nil)
			var refused *bus.Refusal
			require.ErrorAs(t, err, &refused)
			require.Equal(t, http.StatusUnauthorized, refused.Status)
			require.Zero(t, time.Since(t.began))
		})
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.has("task.assigned", `{}`)
		why := errors.New("enough")
		for _, each := range []struct {
			result error
			acked  int64
		}{{errors.New("interrupted"), 0}, {nil, 10}} {
			ctx, stop := context.WithCancelCause(t.Context())
			err := t.client.Receive(ctx, bus.Handlers{"task.assigned": func(ctx context.Context, _ mail.Message) error {
				stop(why)
				<-ctx.Done()
				return each.result
			}})
			require.ErrorIs(t, err, why)
			require.Equal(t, each.acked, t.acked, "what is done is done")
		}
		require.Empty(t, t.told("trouble"))
	})
}

// Rows: E-61.
func TestFatal(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.has("task.assigned", `{}`)
		t.receiving(time.Second, bus.Handlers{"task.assigned": t.noting(func(received mail.Message) error {
			if received.Seq == 20 {
				return nil
			}
			return fmt.Errorf("shop: %w", bus.Fatal("NO_REPO", errors.New("there is no \xff repository")))
		})})
		require.Equal(t, []string{
			"0s heartbeat", "0s poll", "0s handled 10", "0s send", "0s ack 10", "0s handled 20", "0s ack 20", "0s poll",
		}, t.sorted())
		letters := t.letters(mail.Global, 0)
		require.Len(t, letters, 1)
		require.Equal(t, "HO:h1", letters[0].From)
		require.Equal(t, mail.TopicTaskFailed, letters[0].Topic)
		require.EqualValues(t, 10, *letters[0].ReplyTo)
		require.JSONEq(t, `{"error_code":"NO_REPO","error":"shop: there is no `+"\ufffd"+` repository","topic":"task.assigned"}`, string(letters[0].Payload))
		require.Len(t, t.letters("HO:h1", 0), 2, "what failed is still there")
	})
}

func TestFatalIsWhatItIsAbout(t *testing.T) {
	why := errors.New("why")
	require.ErrorIs(t, bus.Fatal("X", why), why)
	require.EqualError(t, bus.Fatal("X", why), "why")
}

// TestFatalIsToldOnce checks that a failure is reported once, even if a crash between the report
// and the acknowledgment makes the message fail again.
func TestFatalIsToldOnce(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.has("task.assigned", `{}`)
		fatal := bus.Handlers{"task.assigned": func(context.Context, mail.Message) error { return bus.Fatal("X", nil) }}
		t.instead(refusing("ack", http.StatusServiceUnavailable))
		t.receiving(time.Second, fatal)
		t.instead(nil)
		t.client = t.newClient(t.client.HTTP)
		t.receiving(time.Second, fatal)
		require.Len(t, t.bodies, 3)
		require.Equal(t, t.bodies[0], t.bodies[1])
		letters := t.letters(mail.Global, 0)
		require.Len(t, letters, 2)
		require.EqualValues(t, 10, *letters[0].ReplyTo)
		require.EqualValues(t, 20, *letters[1].ReplyTo)
		require.Contains(t, string(letters[0].Payload), "it failed without a word")
		require.EqualValues(t, 20, t.acked)
	})
}

// TestFatalWhileTheBusIsAway checks that the report is sent when the bus is back, and that the
// handler is not called again.
func TestFatalWhileTheBusIsAway(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.instead(refusing("send", http.StatusServiceUnavailable))
		time.AfterFunc(200*time.Second, func() { t.instead(nil) })
		t.receiving(5*time.Minute, bus.Handlers{"task.assigned": t.noting(func(mail.Message) error { return bus.Fatal("X", nil) })})
		require.Len(t, incidents(t), 1)
		require.Len(t, t.letters(mail.Global, 0), 1)
		require.EqualValues(t, 10, t.acked)
		require.Equal(t, []string{"0s handled 10"}, t.told("handled"))
	})
}

func TestFatalThatNobodyWants(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.instead(refusing("send", http.StatusForbidden))
		err := t.client.Receive(t.Context(), bus.Handlers{"task.assigned": func(context.Context, mail.Message) error { return bus.Fatal("X", nil) }})
		require.ErrorContains(t, err, "message 10 failed: sending task.failed to GO: not now (A_CODE, HTTP 403)")
		require.Zero(t, t.acked)
	})
}

// TestAFailureThatFails checks that no report is sent about a task.failed, because the report
// could fail in turn.
func TestAFailureThatFails(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has(mail.TopicTaskFailed, `{}`)
		t.receiving(time.Second, bus.Handlers{mail.TopicTaskFailed: func(context.Context, mail.Message) error { return bus.Fatal("X", nil) }})
		require.Equal(t, []string{
			"0s heartbeat", "0s poll", "0s trouble: message 10 on task.failed is given up: it failed without a word (X)", "0s ack 10", "0s poll",
		}, t.sorted())
	})
}

// TestAlertsThatFail checks the same for alert.fired, since the bus turns a task.failed into
// one.
func TestAlertsThatFail(t *testing.T) {
	visiting(t, func(t *visit) {
		t.keep(wire.SendMessage{From: mail.Bus, To: "HO:h1", Topic: mail.TopicAlertFired, Payload: wire.Raw(`{}`)})
		t.receiving(time.Second, bus.Handlers{mail.TopicAlertFired: func(context.Context, mail.Message) error { return bus.Fatal("X", nil) }})
		require.Equal(t, []string{"0s trouble: message 10 on alert.fired is given up: it failed without a word (X)"}, t.told("trouble"))
		require.EqualValues(t, 10, t.acked)
	})
}

func TestAHandlerThatPanics(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.receiving(time.Second, bus.Handlers{"task.assigned": func(context.Context, mail.Message) error { panic(strings.Repeat("oh ", 5000)) }})
		require.EqualValues(t, 10, t.acked)
		letter := string(t.letters(mail.Global, 0)[0].Payload)
		require.Contains(t, letter, `{"error_code":"PANIC","error":"the handler panicked: oh oh`)
		require.Less(t, len(letter), 9<<10)
		require.Contains(t, strings.Join(t.told("trouble"), ""), "receive_test.go", "it says where")
	})
}

// TestAHandlerMaySend checks that a handler can send while it handles a message.
func TestAHandlerMaySend(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.receiving(time.Second, bus.Handlers{"task.assigned": func(ctx context.Context, received mail.Message) error {
			_, err := t.client.Send(ctx, wire.SendMessage{To: received.From, Topic: mail.TopicTaskCompleted, ReplyTo: received.Seq})
			return err
		}})
		require.Len(t, t.letters("GO", 0), 1)
		synctest.Wait()
	})
}

// without returns the logged events except those of some kinds.
func (v *visit) without(kinds ...string) []string {
	return slices.DeleteFunc(v.told(""), func(line string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(line, " "+kind) })
	})
}

func TestTheStreamWakes(t *testing.T) {
	visiting(t, func(t *visit) {
		t.client.PollOnly = false
		time.AfterFunc(65*time.Second, func() { t.streams(": still here\n\n") })
		time.AfterFunc(70*time.Second, func() { t.has("task.assigned", `{}`) })
		t.receiving(75*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		story := t.without("heartbeat")
		require.Contains(t, story[:3], "0s events")
		require.Equal(t, []string{"1m0s poll", "1m10s poll", "1m10s handled 10", "1m10s ack 10", "1m10s poll"}, story[len(story)-5:])
	})
}

// TestAStreamThatEnds checks that a client polls after it has reopened the stream, because it
// may have missed events.
func TestAStreamThatEnds(t *testing.T) {
	visiting(t, func(t *visit) {
		t.client.PollOnly = false
		time.AfterFunc(61*time.Second, func() { t.streams("") })
		time.AfterFunc(62*time.Second, func() { t.has("task.assigned", `{}`) })
		t.receiving(75*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		story := t.without("heartbeat")
		require.Equal(t, []string{"1m11s events", "1m11s poll", "1m11s handled 10", "1m11s ack 10", "1m11s poll"}, story[len(story)-5:])
	})
}

// Rows: E-09, E-39.
func TestPollingGoesOnWithoutTheStream(t *testing.T) {
	for name, other := range map[string]otherwise{
		"trouble": refusing("events", http.StatusInternalServerError),
		"none":    refusing("events", http.StatusNotFound),
		"stranger": only("events", func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			fmt.Fprint(w, "<h1>welcome</h1>")
			return true
		}),
		"silence": only("events", silent),
		"breaks":  only("events", breaking),
	} {
		t.Run(name, func(t *testing.T) {
			visiting(t, func(t *visit) {
				t.client.PollOnly = false
				t.instead(other)
				time.AfterFunc(25*time.Second, func() { t.has("task.assigned", `{}`) })
				t.receiving(45*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
				story := t.told("")
				rest := slices.DeleteFunc(slices.Clone(story), func(line string) bool {
					return strings.Contains(line, " events") || strings.Contains(line, " heartbeat") || strings.Contains(line, " trouble")
				})
				require.Equal(t, []string{"0s poll", "10s poll", "20s poll", "30s poll", "30s handled 10", "30s ack 10", "30s poll", "40s poll"}, rest)
				asked := slices.DeleteFunc(story, func(line string) bool {
					return !strings.Contains(line, " events") && !strings.Contains(line, " trouble")
				})
				switch name {
				case "none":
					require.Equal(t, []string{"0s events", "0s trouble: mail is polled alone: not now (A_CODE, HTTP 404)"}, asked)
				case "stranger":
					require.Equal(t, []string{"0s events", `0s trouble: mail is polled alone: "text/html" is no stream of events (HTTP 200)`}, asked)
				case "silence":
					require.Equal(t, []string{"0s events", "40s events"}, asked)
				default: // net/http itself retries when a reused connection breaks
					require.Equal(t, []string{"0s events", "10s events", "20s events", "30s events", "40s events"}, slices.Compact(asked))
				}
			})
		})
	}
}

// TestALongEvent checks that an event may be as long as mail and span several lines.
func TestALongEvent(t *testing.T) {
	visiting(t, func(t *visit) {
		t.client.PollOnly = false
		time.AfterFunc(65*time.Second, func() {
			t.streams("id: 1\nevent: x\ndata: " + strings.Repeat("x data: ", 1<<17) + "\ndata: y\n\n")
		})
		t.receiving(70*time.Second, nil)
		polls := t.told("poll")
		require.Equal(t, "1m5s poll", polls[len(polls)-1])
	})
}
