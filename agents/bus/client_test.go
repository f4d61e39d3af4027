package bus_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents/bus"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// alone clears the environment variables that a client reads.
func alone(t *testing.T) {
	for _, name := range []string{"ORC_ACTOR", "ORC_SOCKET", "ORC_URL", "ORC_TOKEN"} {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
}

func TestAClientAtASocket(t *testing.T) {
	alone(t)
	h := newHouse()
	h.instead(func(_ http.ResponseWriter, r *http.Request, _ string) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("a socket knows who speaks")
		}
		return false
	})
	socket := onUnix(t, h)
	t.Setenv("ORC_ACTOR", "W:1")
	t.Setenv("ORC_TOKEN", "secret")
	t.Setenv("ORC_URL", "https://elsewhere.example")
	for _, spelled := range []string{socket, "unix://" + socket} {
		t.Setenv("ORC_SOCKET", spelled)
		client, err := bus.FromEnv()
		require.NoError(t, err)
		sent, err := client.Send(t.Context(), wire.SendMessage{To: "GO", Topic: mail.TopicTaskProgress})
		require.NoError(t, err)
		require.Equal(t, "W:1", sent.From)
	}
}

func TestAClientAtAnAddress(t *testing.T) {
	alone(t)
	server := httptest.NewServer(http.StripPrefix("/prefix", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/bus/heartbeat" || r.Header.Get("Authorization") != "Bearer secret" {
			refuse(w, http.StatusUnauthorized, r.URL.Path)
			return
		}
		answer(w, mail.Beat{Actor: "W:1"})
	})))
	defer server.Close()
	t.Setenv("ORC_ACTOR", "W:1")
	t.Setenv("ORC_TOKEN", "secret\n")
	t.Setenv("ORC_URL", server.URL+"/prefix/")
	client, err := bus.FromEnv()
	require.NoError(t, err)
	beat, err := client.Heartbeat(t.Context())
	require.NoError(t, err)
	require.Equal(t, "W:1", beat.Actor)
}

func TestAClientThatMakesNoSense(t *testing.T) {
	alone(t)
	for url, about := range map[string]string{
		"":                        "it is not said where the bus is",
		"ftp://bus.example":       "neither the address of a bus",
		"https://":                "neither the address of a bus",
		"https://a:b@bus.example": "neither the address of a bus",
		"https://bus.example/?x":  "neither the address of a bus",
		"http://bus.example":      "it must be https://",
		"http://192.0.2.1:80":     "it must be https://",
	} {
		client := &bus.Client{Actor: "W:1", URL: url, Token: "secret"}
		_, err := client.Heartbeat(t.Context())
		require.ErrorContains(t, err, about, url)
		require.ErrorContains(t, client.Beat(t.Context()), about)
		require.ErrorContains(t, client.Receive(t.Context(), nil), about)
		_, err = client.Send(t.Context(), hello)
		require.ErrorContains(t, err, about)
	}
	for _, actor := range []string{"", "me", "Bus", "broadcast", "W:"} {
		_, err := (&bus.Client{Actor: actor, URL: "/s"}).Poll(t.Context(), wire.PollMessages{})
		require.ErrorContains(t, err, "the actor must", actor)
	}
	_, err := bus.FromEnv()
	require.ErrorContains(t, err, "$ORC_ACTOR")
}

// TestAClientIsNotSentOn checks that a client follows no redirects.
func TestAClientIsNotSentOn(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	defer server.Close()
	client := &bus.Client{Actor: "W:1", URL: server.URL, Token: "secret"}
	_, err := client.Send(t.Context(), hello)
	require.ErrorContains(t, err, "Temporary Redirect (HTTP 307)")
}

func TestAClientSpeaksNoOldTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(newHouse())
	server.TLS = &tls.Config{MaxVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := (&bus.Client{Actor: "W:1", URL: server.URL}).Heartbeat(t.Context())
	require.ErrorContains(t, err, "protocol version")
}

// Rows: E-64.
func TestPlainCalls(t *testing.T) {
	visiting(t, func(t *visit) {
		for range 3 {
			t.has("task.assigned", delicate)
		}
		found, err := t.client.Poll(t.Context(), wire.PollMessages{})
		require.NoError(t, err)
		require.Equal(t, t.letters("HO:h1", 0), found)
		again, err := t.client.Poll(t.Context(), wire.PollMessages{})
		require.NoError(t, err)
		require.Equal(t, found, again)

		acked, err := t.client.Ack(t.Context(), 20)
		require.NoError(t, err)
		require.Equal(t, mail.Acked{Actor: "HO:h1", Cursor: 20}, acked)
		found, err = t.client.Poll(t.Context(), wire.PollMessages{})
		require.NoError(t, err)
		require.Len(t, found, 1)
		var all int64
		found, err = t.client.Poll(t.Context(), wire.PollMessages{Cursor: &all, Limit: 2})
		require.NoError(t, err)
		require.Equal(t, again[:2], found)
		found, err = t.client.Poll(t.Context(), wire.PollMessages{Actor: "broadcast"})
		require.NoError(t, err)
		require.Empty(t, found)

		beat, err := t.client.Heartbeat(t.Context())
		require.NoError(t, err)
		require.Equal(t, mail.Beat{Actor: "HO:h1", LastSeen: "2000-01-01T00:00:00.000Z"}, beat)
	})
}

func TestPlainCallsAreMadeOnce(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("", http.StatusServiceUnavailable))
		_, err := t.client.Poll(t.Context(), wire.PollMessages{})
		require.EqualError(t, err, "/api/bus/poll: not now (A_CODE, HTTP 503)")
		_, err = t.client.Ack(t.Context(), 7)
		require.EqualError(t, err, "/api/bus/ack: not now (A_CODE, HTTP 503)")
		_, err = t.client.Heartbeat(t.Context())
		require.EqualError(t, err, "/api/bus/heartbeat: not now (A_CODE, HTTP 503)")
		require.Equal(t, []string{"0s poll", "0s ack 7", "0s heartbeat"}, t.told(""))

		t.instead(silent)
		_, err = t.client.Heartbeat(t.Context())
		require.EqualError(t, err, "/api/bus/heartbeat: the bus cannot be reached at http://localhost: there was no answer for 30s")
		why := errors.New("lost interest")
		ctx, giveUp := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer giveUp()
		_, err = t.client.Heartbeat(ctx)
		require.ErrorIs(t, err, why)
	})
}

// Rows: E-65.
func TestHeartbeats(t *testing.T) {
	visiting(t, func(t *visit) {
		t.receiving(3*time.Minute+time.Second, nil)
		require.Equal(t, []string{"0s heartbeat", "1m0s heartbeat", "2m0s heartbeat", "3m0s heartbeat"}, t.told("heartbeat"))
	})
	visiting(t, func(t *visit) {
		t.client.BeatEvery = 10 * time.Second
		t.instead(refusing("heartbeat", http.StatusServiceUnavailable))
		ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
		defer stop()
		require.ErrorIs(t, t.client.Beat(ctx), context.DeadlineExceeded)
		require.Equal(t, []string{
			"0s heartbeat", "0s trouble: /api/bus/heartbeat: not now (A_CODE, HTTP 503)",
			"10s heartbeat", "10s trouble: /api/bus/heartbeat: not now (A_CODE, HTTP 503)",
		}, t.told(""))
	})
}

// TestHeartbeatsThatAreNotWanted checks that mail arrives although the bus refuses heartbeats.
func TestHeartbeatsThatAreNotWanted(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.instead(refusing("heartbeat", http.StatusForbidden))
		t.receiving(3*time.Minute, bus.Handlers{"task.assigned": t.noting(nil)})
		require.EqualValues(t, 10, t.acked)
		require.Equal(t, []string{"0s heartbeat", "0s trouble: there are no more heartbeats: /api/bus/heartbeat: not now (A_CODE, HTTP 403)"},
			t.without("poll", "ack", "handled"))
	})
}
