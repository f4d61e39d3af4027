package bus_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"orchestrator/agents/bus"
	"orchestrator/wire"
	"orchestrator/wire/mail"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A visit is a client and its bus. They talk over real HTTP, but with fake time.
type visit struct {
	*testing.T
	*house
	client *bus.Client
	pipes  *pipes
}

func visiting(t *testing.T, about func(t *visit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &visit{T: t, house: newHouse(), pipes: newPipes()}
		server := &http.Server{Handler: v.house}
		done := make(chan error, 1)
		go func() { done <- server.Serve(v.pipes) }()
		transport := &http.Transport{DialContext: v.pipes.dial}
		v.client = v.newClient(&http.Client{Transport: transport})
		defer func() { // also if the test fails: no goroutine may stay in the bubble
			transport.CloseIdleConnections()
			require.NoError(t, server.Close())
			require.ErrorIs(t, <-done, http.ErrServerClosed)
		}()
		about(v)
	})
}

// newClient returns a fresh client, for example after a crash.
func (v *visit) newClient(over *http.Client) *bus.Client {
	return &bus.Client{
		Actor: "HO:h1", URL: "http://localhost", Token: "secret", HTTP: over, PollOnly: true,
		Incidents: filepath.Join(v.TempDir(), "incidents.jsonl"),
		Trouble:   func(err error) { v.say("trouble: %v", err) },
	}
}

// sending calls Send in the background and returns the channel of its outcome.
func (v *visit) sending(ctx context.Context, mail wire.SendMessage) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		sent, err := v.client.Send(ctx, mail)
		done <- outcome{sent, err}
	}()
	return done
}

type outcome struct {
	sent mail.Sent
	err  error
}

// receiving calls Receive for a while and waits for its end.
func (v *visit) receiving(long time.Duration, handlers bus.Handlers) {
	v.Helper()
	ctx, stop := context.WithTimeout(v.Context(), long)
	defer stop()
	require.ErrorIs(v, v.client.Receive(ctx, handlers), context.DeadlineExceeded)
}

// onUnix serves a bus on a unix socket, with real time.
func onUnix(t *testing.T, h http.Handler) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(h)
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return socket
}
