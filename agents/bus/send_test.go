package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"orchestrator/agents/bus"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

const delicate = `{"n":12345678901234567890,"f":1.10,"html":"<a&b>","esc":"\u003c","idempotency_key":"theirs"}`

var hello = wire.SendMessage{To: "GO", Topic: mail.TopicDirect, Payload: wire.Raw(delicate)}

func TestSend(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(func(_ http.ResponseWriter, r *http.Request, _ string) bool {
			if got := r.Header.Get("Authorization"); got != "Bearer secret" {
				t.Errorf("the credential is %q", got)
			}
			return false
		})
		sent, err := t.client.Send(t.Context(), wire.SendMessage{To: "GO", Topic: "task.completed", Payload: wire.Raw(delicate), ReplyTo: 7, Key: "k"})
		require.NoError(t, err)
		seven := int64(7)
		require.Equal(t, mail.Sent{Message: mail.Message{
			Seq: 10, From: "HO:h1", To: "GO", Topic: "task.completed", Payload: wire.Raw(delicate), ReplyTo: &seven,
			CreatedAt: "2000-01-01T00:00:00.000Z",
		}}, sent)
		require.Equal(t, "k", t.bodies[0]["idempotency_key"])
		require.EqualValues(t, 7, t.bodies[0]["reply_to"])

		sent, err = t.client.Send(t.Context(), wire.SendMessage{From: "W:1", To: "GO", Topic: "task.progress"})
		require.NoError(t, err)
		require.Equal(t, "W:1", sent.From, "whether that may be is for the bus to say")
		require.Equal(t, "{}", string(sent.Payload))
		require.NotContains(t, t.bodies[1], "reply_to")
	})
}

// Rows: E-57, E-58, E-59, E-60, K-11, T-39.
func TestAttempts(t *testing.T) {
	for name, each := range map[string]struct {
		trouble func(t *visit)
		at      []string
	}{
		"503": {
			trouble: func(t *visit) { t.instead(refusing("send", http.StatusServiceUnavailable)) },
			at:      []string{"0s send", "2s send", "12s send", "1m12s send"},
		},
		"500": {
			trouble: func(t *visit) { t.instead(refusing("send", http.StatusInternalServerError)) },
			at:      []string{"0s send", "2s send", "12s send", "1m12s send"},
		},
		"the connection breaks": {
			trouble: func(t *visit) {
				t.instead(breaking)
			},
			at: []string{"0s send", "2s send", "12s send", "1m12s send"},
		},
		"nobody listens": {
			trouble: func(t *visit) { t.pipes.cut(errors.New("refused")) },
			at:      []string{},
		},
		"it says nothing": { // 30 seconds for each attempt
			trouble: func(t *visit) {
				t.instead(silent)
			},
			at: []string{"0s send", "32s send", "1m12s send", "2m42s send"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			visiting(t, func(t *visit) {
				each.trouble(t)
				_, err := t.client.Send(t.Context(), hello)
				require.ErrorContains(t, err, "sending message.direct to GO: given up after attempt 4, see "+t.client.Incidents)
				if name == "nobody listens" {
					require.Equal(t, 72*time.Second, time.Since(t.began))
					require.ErrorContains(t, err, "the bus cannot be reached at http://localhost: refused")
				}
				<-time.After(time.Hour)
				require.Equal(t, each.at, t.told("send"), "there is no fifth attempt")
				require.Len(t, incidents(t), 1)
			})
		})
	}
}

// Rows: E-60.
func TestEachAttemptHasTheSameKey(t *testing.T) {
	for _, given := range []string{"", "mine"} {
		visiting(t, func(t *visit) {
			t.lost = 1
			mail := hello
			mail.Key = given
			sent, err := t.client.Send(t.Context(), mail)
			require.NoError(t, err)
			require.True(t, sent.Duplicate)
			require.Len(t, t.letters("GO", 0), 1)
			require.Len(t, t.bodies, 2)
			require.Equal(t, t.bodies[0], t.bodies[1])
			if given == "" {
				require.NoError(t, uuid.Validate(fmt.Sprint(t.bodies[0]["idempotency_key"])))
				_, err = t.client.Send(t.Context(), hello)
				require.NoError(t, err)
				require.NotEqual(t, t.bodies[0], t.bodies[2], "other mail has another key")
			} else {
				require.Equal(t, given, t.bodies[0]["idempotency_key"])
			}
		})
	}
}

// Rows: E-57.
func TestRefusalsAreNotTriedAgain(t *testing.T) {
	for _, status := range []int{302, 307, 400, 401, 403, 404, 408, 409, 413, 422, 429} {
		visiting(t, func(t *visit) {
			t.instead(refusing("send", status))
			_, err := t.client.Send(t.Context(), hello)
			var refused *bus.Refusal
			require.ErrorAs(t, err, &refused)
			require.Equal(t, &bus.Refusal{Status: status, Code: "A_CODE", Message: "not now", Details: wire.Raw(`{"pointer":"/x"}`)}, refused)
			require.EqualError(t, err, fmt.Sprintf("sending message.direct to GO: not now (A_CODE, HTTP %d)", status))
			require.Equal(t, []string{"0s send"}, t.told("send"))
			require.Empty(t, incidents(t))

			t.instead(nil)
			_, err = t.client.Send(t.Context(), hello)
			require.NoError(t, err, "the circuit is closed")
		})
	}
}

// TestAnAnswerThatBreaks checks that an incomplete answer counts as none.
//
// Rows: E-57.
func TestAnAnswerThatBreaks(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"seq":`)
			return true
		})
		time.AfterFunc(time.Second, func() { t.instead(nil) })
		_, err := t.client.Send(t.Context(), hello)
		require.NoError(t, err)
		require.Equal(t, []string{"0s send", "2s send"}, t.told("send"))
	})
}

func TestWhatStandsBetweenAnswersInItsOwnWay(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			http.Error(w, "<h1>no</h1>", http.StatusForbidden)
			return true
		})
		_, err := t.client.Send(t.Context(), hello)
		require.ErrorContains(t, err, "refused, without a word that could be understood: Forbidden (HTTP 403)")
		t.instead(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			fmt.Fprint(w, "<h1>welcome</h1>")
			return true
		})
		_, err = t.client.Send(t.Context(), hello)
		require.ErrorContains(t, err, "understanding the answer of the bus")
		require.Equal(t, []string{"0s send", "0s send"}, t.told("send"))
	})
}

func TestSendGetsThroughInTheEnd(t *testing.T) {
	visiting(t, func(t *visit) {
		t.pipes.cut(errors.New("refused"))
		time.AfterFunc(11*time.Second, func() { t.pipes.cut(nil) })
		_, err := t.client.Send(t.Context(), hello)
		require.NoError(t, err)
		require.Equal(t, []string{"12s send"}, t.told("send"))
		require.Empty(t, incidents(t))
	})
}

func TestSendGivesUpWithItsContext(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("send", http.StatusServiceUnavailable))
		why := errors.New("lost interest")
		ctx, giveUp := context.WithCancelCause(t.Context())
		first, second := t.sending(ctx, hello), t.sending(ctx, hello)
		time.AfterFunc(5*time.Second, func() { giveUp(why) })
		for _, done := range []<-chan outcome{first, second} {
			require.ErrorIs(t, (<-done).err, why)
		}
		require.Equal(t, 5*time.Second, time.Since(t.began), "in the middle of a pause")
		require.ErrorIs(t, (<-t.sending(ctx, hello)).err, why)
		require.Equal(t, []string{"0s send", "2s send"}, t.told("send"))
		require.Empty(t, incidents(t), "nothing was given up but by its sender")

		t.instead(silent)
		ctx, giveUp = context.WithCancelCause(t.Context())
		done := t.sending(ctx, hello)
		synctest.Wait()
		giveUp(why)
		require.ErrorIs(t, (<-done).err, why, "in the middle of an attempt")
		synctest.Wait()
	})
}

// Rows: E-28.
func TestSendersTakeTurns(t *testing.T) {
	visiting(t, func(t *visit) {
		t.pipes.cut(errors.New("refused"))
		time.AfterFunc(5*time.Second, func() { t.pipes.cut(nil) })
		var done []<-chan outcome
		for n := range 20 {
			mail := hello
			mail.Payload = wire.Raw(fmt.Sprintf(`{"n":%d}`, n))
			done = append(done, t.sending(t.Context(), mail))
			synctest.Wait()
		}
		for n, each := range done {
			o := <-each
			require.NoError(t, o.err)
			require.EqualValues(t, 10*(n+1), o.sent.Seq)
			require.Equal(t, fmt.Sprintf(`{"n":%d}`, n), string(o.sent.Payload))
		}
	})
}

func TestWhatCannotBeSpelled(t *testing.T) {
	visiting(t, func(t *visit) {
		mail := hello
		mail.Payload = wire.Raw(`{"torn":`)
		_, err := t.client.Send(t.Context(), mail)
		require.ErrorContains(t, err, "sending message.direct to GO")
		mail.Payload = wire.Raw(`[]`)
		_, err = t.client.Send(t.Context(), mail)
		require.ErrorContains(t, err, "HTTP 400")
		require.Len(t, t.told("send"), 1)
	})
}

// incidents returns the lines of the incident file.
func incidents(t *visit) []string {
	t.Helper()
	text, err := os.ReadFile(t.client.Incidents)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(text), "\n"))
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Rows: E-59.
func TestAnIncident(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("send", http.StatusServiceUnavailable))
		require.NoError(t, os.WriteFile(t.client.Incidents, []byte("{\"time\":\"before\"}\n"), 0o600))
		_, err := t.client.Send(t.Context(), wire.SendMessage{
			To: "GO", Topic: "task.failed", Payload: wire.Raw("{\n  \"n\": 1.10,\n  \"s\": \"\\u003c\"\n}"), ReplyTo: 7, Key: "k",
		})
		require.Error(t, err)
		lines := incidents(t)
		require.Len(t, lines, 2)
		require.Equal(t, `{"time":"2000-01-01T00:01:12.000Z","actor":"HO:h1","to":"GO","topic":"task.failed","payload":{"n":1.10,"s":"\u003c"},`+
			`"reply_to":7,"key":"k","attempts":4,"error":"not now (A_CODE, HTTP 503)"}`, lines[1])
	})
}

func TestTheIncidentFileIsForItsOwnerAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	visiting(t, func(t *visit) {
		t.instead(refusing("send", http.StatusServiceUnavailable))
		t.client.Incidents = ""
		_, err := t.client.Send(t.Context(), hello)
		require.ErrorContains(t, err, "see bus-incidents.jsonl: ")
		file, err := os.Stat("bus-incidents.jsonl")
		require.NoError(t, err)
		require.EqualValues(t, 0o600, file.Mode())
	})
}

func TestAnIncidentThatCannotBeNoted(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("send", http.StatusServiceUnavailable))
		t.client.Incidents = filepath.Join(t.TempDir(), "nowhere", "f")
		_, err := t.client.Send(t.Context(), hello)
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, "not now (A_CODE, HTTP 503); and that cannot be noted: ")
		_, err = t.client.Send(t.Context(), hello)
		require.ErrorIs(t, err, bus.ErrOpen, "it is given up all the same")
	})
}

// Rows: E-59.
func TestTheCircuit(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("send", http.StatusServiceUnavailable))
		waits := t.sending(t.Context(), hello)
		synctest.Wait()
		behind := t.sending(t.Context(), hello)
		require.NotErrorIs(t, (<-waits).err, bus.ErrOpen)
		require.ErrorIs(t, (<-behind).err, bus.ErrOpen, "whoever waited for its turn need not try")
		require.Equal(t, 72*time.Second, time.Since(t.began))
		t.told("")

		_, err := t.client.Send(t.Context(), hello)
		require.EqualError(t, err, "sending message.direct to GO: the circuit is open, and nothing is sent until 2000-01-01T00:02:12.000Z: "+
			"mail was given up at 2000-01-01T00:01:12.000Z, see "+t.client.Incidents)
		_, err = t.client.Heartbeat(t.Context())
		require.NoError(t, err)
		<-time.After(time.Minute - 1)
		_, err = t.client.Send(t.Context(), hello)
		require.ErrorIs(t, err, bus.ErrOpen, "a heartbeat closes nothing")
		require.Equal(t, []string{"1m12s heartbeat"}, t.told(""))
		require.Len(t, incidents(t), 1)

		<-time.After(1)
		_, err = t.client.Send(t.Context(), hello)
		require.ErrorContains(t, err, "given up after attempt 1")
		_, err = t.client.Send(t.Context(), hello)
		require.ErrorIs(t, err, bus.ErrOpen)
		require.Equal(t, []string{"2m12s send"}, t.told(""), "one is let through, once")
		require.Len(t, incidents(t), 2)

		<-time.After(time.Minute)
		t.instead(nil)
		_, err = t.client.Send(t.Context(), hello)
		require.NoError(t, err)
		t.instead(refusing("send", http.StatusServiceUnavailable))
		t.told("")
		_, err = t.client.Send(t.Context(), hello)
		require.Error(t, err)
		require.Len(t, t.told("send"), 4, "it was closed")
		require.Len(t, incidents(t), 3)
	})
}

func TestARefusalClosesTheCircuit(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("send", http.StatusServiceUnavailable))
		_, err := t.client.Send(t.Context(), hello)
		require.Error(t, err)
		<-time.After(time.Minute)
		t.instead(refusing("send", http.StatusTooManyRequests))
		_, err = t.client.Send(t.Context(), hello)
		require.ErrorContains(t, err, "HTTP 429")
		t.instead(refusing("send", http.StatusServiceUnavailable))
		t.told("")
		_, err = t.client.Send(t.Context(), hello)
		require.Error(t, err)
		require.Len(t, t.told("send"), 4)
	})
}

func TestMailThatIsGivenUpAgainIsNotedOnce(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("send", http.StatusServiceUnavailable))
		for _, key := range []string{"a", "a", "b", "a"} {
			mail := hello
			mail.Key = key
			_, err := t.client.Send(t.Context(), mail)
			require.ErrorContains(t, err, "given up")
			<-time.After(time.Minute)
		}
		var keys strings.Builder
		for _, line := range incidents(t) {
			var said struct{ Key string }
			require.NoError(t, json.Unmarshal([]byte(line), &said))
			keys.WriteString(said.Key)
		}
		require.Equal(t, "aba", keys.String())
	})
}
