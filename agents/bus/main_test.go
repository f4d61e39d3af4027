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

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// visit is a client and the bus that it speaks to, over HTTP as it is, but in a
// time of its own.
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
		defer func() { // also when the test fails: nobody may stay in the bubble
			transport.CloseIdleConnections()
			require.NoError(t, server.Close())
			require.ErrorIs(t, <-done, http.ErrServerClosed)
		}()
		about(v)
	})
}

// newClient is a client as it begins, after a crash for instance.
func (t *visit) newClient(over *http.Client) *bus.Client {
	return &bus.Client{
		Actor: "HO:h1", URL: "http://localhost", Token: "secret", HTTP: over, PollOnly: true,
		Incidents: filepath.Join(t.TempDir(), "incidents.jsonl"),
		Trouble:   func(err error) { t.say("trouble: %v", err) },
	}
}

// sending sends in the background and returns where the outcome goes.
func (t *visit) sending(ctx context.Context, mail wire.SendMessage) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		sent, err := t.client.Send(ctx, mail)
		done <- outcome{sent, err}
	}()
	return done
}

type outcome struct {
	sent wire.Sent
	err  error
}

// receiving receives for a while, and then until everybody waits.
func (t *visit) receiving(long time.Duration, handlers bus.Handlers) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	require.ErrorIs(t, t.client.Receive(ctx, handlers), context.DeadlineExceeded)
}

// onUnix serves a bus at a socket, in the time that everybody has.
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
