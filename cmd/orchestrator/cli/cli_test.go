package cli

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/api"
)

// A client does not talk to an orchestrator of another user.
func TestStrangerIsDenied(t *testing.T) {
	a := New(Env{})
	d := a.NewClient(client.Target{Socket: "/tmp/s"})
	f := FailureOf(d.Failed(t.Context(), &url.Error{Op: "Get", Err: &api.StrangerError{UID: 1001}}))
	require.Equal(t, ExitDenied, f.Exit)
	require.Contains(t, f.Message, "/tmp/s belongs to another user (1001)")
}

// The error is made here, since the tests may run as root, which can connect to every socket.
func TestASocketOfSomebodyElse(t *testing.T) {
	d := New(Env{}).NewClient(client.Target{Socket: "/s", Subject: "shop"})
	f := FailureOf(d.Failed(context.Background(), &fs.PathError{Op: "dial", Path: "/s", Err: fs.ErrPermission}))
	require.Equal(t, ExitDenied, f.Exit)
}

// A killed orchestrator closes connections before it answers, some with requests that it has not
// read. The request is not sent again.
func TestOrchestratorThatEndsBeforeItAnswers(t *testing.T) {
	for _, reads := range []int{0, 1 << 10} {
		socket := filepath.Join(t.TempDir(), "s")
		listener, err := net.Listen("unix", socket)
		require.NoError(t, err)
		requests := make(chan int, 1)
		go func() {
			n := 0
			for {
				conn, err := listener.Accept()
				if err != nil {
					requests <- n
					return
				}
				first := make([]byte, 1)
				if _, err := conn.Read(first); err == nil && first[0] == 'P' { // POST, unlike the question whether it lives
					n++
				}
				_, _ = conn.Read(make([]byte, reads))
				_ = conn.Close()
			}
		}()
		d := New(Env{}).NewClient(client.Target{Socket: socket, Subject: "shop"})
		_, err = d.Ask(t.Context(), "status", struct{}{})
		f := FailureOf(err)
		require.Equal(t, ExitNotRunning, f.Exit)
		require.Equal(t, "no orchestrator is running for shop", f.Message)
		require.Equal(t, "Start it: orchestrator up", f.Hint)
		require.Contains(t, f.Because[0], "It ended before it answered.")
		require.NoError(t, listener.Close())
		require.Equal(t, 1, <-requests)
	}
}

// An orchestrator that cuts a connection and still answers is not reported as ended.
func TestOrchestratorThatCutsAConnection(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			panic(http.ErrAbortHandler)
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	d := New(Env{}).NewClient(client.Target{Socket: socket, Subject: "shop"})
	_, err = d.Ask(t.Context(), "status", struct{}{})
	f := FailureOf(err)
	require.Equal(t, ExitNo, f.Exit)
	require.Equal(t, "the orchestrator for shop is running but closed the connection before the answer was complete", f.Message)
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-ended, http.ErrServerClosed)
}

func TestNearest(t *testing.T) {
	verbs := []string{"status", "start", "stop", "restart", "down"}
	for wrong, want := range map[string]string{"stauts": "status", "strat": "start", "reboot": "", "dwon": "down", "x": "", "": ""} {
		require.Equal(t, want, Nearest(wrong, verbs), wrong)
	}
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"10m":                  now.Add(-10 * time.Minute),
		"14:33":                time.Date(2026, 11, 20, 14, 33, 0, 0, time.UTC),
		"14:33:07":             time.Date(2026, 11, 20, 14, 33, 7, 0, time.UTC),
		"2026-11-19":           time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC),
		"2026-11-19 14:33":     time.Date(2026, 11, 19, 14, 33, 0, 0, time.UTC),
		"2026-11-19T14:33:00Z": time.Date(2026, 11, 19, 14, 33, 0, 0, time.UTC),
	} {
		at, err := ParseTime("since", text, now)
		require.NoError(t, err)
		require.True(t, want.Equal(at), "%s: %s", text, at)
	}
	_, err := ParseTime("since", "soon", now)
	require.Equal(t, ExitUsage, FailureOf(err).Exit)
}

// A failure escapes text from the file and from agents, and indents further lines.
func TestFailuresAreSafeToShow(t *testing.T) {
	var b strings.Builder
	f := &Failure{Message: "no \x1b[2J\nsecond", Because: []string{"it \u202e is"}, Hint: "try\x07"}
	f.Print(&b, false)
	require.Equal(t, "Error: no \\x1b[2J\n    second\n  = it \\u202e is\n  = try\\x07\n", b.String())
}
