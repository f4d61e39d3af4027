package bus_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"orchestrator/agents/bus"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
)

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
		keys := ""
		for _, line := range incidents(t) {
			var said struct{ Key string }
			require.NoError(t, json.Unmarshal([]byte(line), &said))
			keys += said.Key
		}
		require.Equal(t, "aba", keys)
	})
}
