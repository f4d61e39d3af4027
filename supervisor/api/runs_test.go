package api

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// TestRunThatHasEnded checks that an ended run has no access, whatever it left open, and that
// the next run of its agent is not affected.
//
// Rows: A-161, K-18.
func TestRunThatHasEnded(t *testing.T) {
	h := build(t, nil, TCP{})
	first, endFirst := h.run(t, "run-1")
	second, _ := h.run(t, "run-2")
	require.NotEqual(t, first[EnvSocket], second[EnvSocket])
	require.NotEqual(t, first[EnvToken], second[EnvToken])

	idle, err := Dial(t.Context(), first[EnvSocket])
	require.NoError(t, err)
	defer idle.Close()
	in := bufio.NewReader(idle)
	ask := func() {
		_, err := io.WriteString(idle, "POST /api/v1/operations/poll-messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		require.NoError(t, err)
	}
	ask()
	response, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "run-1")

	endFirst()
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF, "a connection that was open is cut")
	_, err = Dial(t.Context(), first[EnvSocket])
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, a := range []asks{
		{client: over(h.socket)}, {client: over(second[EnvSocket])}, {client: over(""), url: h.tcp.URL()},
	} {
		a.header = http.Header{"X-Api-Key": {first[EnvToken]}}
		status, _ := a.post(t, "operations/poll-messages", "")
		require.Equal(t, http.StatusUnauthorized, status)
	}
	for range 2 {
		_, text := asks{client: over(second[EnvSocket])}.post(t, "operations/poll-messages", "")
		require.Equal(t, `"2/coder/run-2//false"`, text)
		endFirst() // a second call has no effect
	}
}

// TestRequestsEndWithTheirRun checks that the requests of a run end with it, on every listener.
func TestRequestsEndWithTheirRun(t *testing.T) {
	asked := make(chan struct{})
	h := build(t, func(d *API) {
		d.Operations = map[string]Operation{"poll-messages": Do(func(ctx context.Context, _ struct{}) (any, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})}
		d.Streams = map[string]Stream{"add-note": DoLines(func(ctx context.Context, _ struct{}, send func(any) error) error {
			_ = send("one")
			asked <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})}
	}, TCP{})
	for _, operation := range []string{"poll-messages", "add-note"} {
		for _, way := range []string{"socket", "token"} {
			env, end := h.run(t, "run-"+way)
			a := asks{client: over(env[EnvSocket])}
			if way == "token" {
				a = asks{client: over(""), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {env[EnvToken]}}}
			}
			cut := make(chan error, 1)
			go func() { cut <- a.cut(operation) }()
			<-asked
			end()
			require.Error(t, <-cut, "%s by %s: the answer looked whole", operation, way)
		}
	}
}

// cut makes a request and returns the error that cut off the response.
func (a asks) cut(operation string) error {
	base := a.url
	if base == "" {
		base = "http://x"
	}
	request, err := http.NewRequest(http.MethodPost, base+"/api/v1/operations/"+operation, nil)
	if err != nil {
		return err
	}
	request.Header = a.header
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.ReadAll(response.Body)
	return err
}

func TestEnvironmentOfARun(t *testing.T) {
	h := build(t, nil, TCP{})
	env, end := h.run(t, "run-1")
	require.Equal(t, h.tcp.URL(), env[EnvURL])
	require.Equal(t, filepath.Dir(h.socket), filepath.Dir(env[EnvSocket]), "beside the operators' socket")
	require.LessOrEqual(t, len(filepath.Base(env[EnvSocket])), len(filepath.Base(h.socket))+len("zzz"))
	info, err := os.Stat(env[EnvSocket])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	secret, ok := strings.CutPrefix(env[EnvToken], KeyPrefix)
	require.True(t, ok)
	require.True(t, isKey(env[EnvToken]))
	require.GreaterOrEqual(t, len(secret), 22)
	_, err = base64.RawURLEncoding.DecodeString(secret)
	require.NoError(t, err)
	end()
	require.Empty(t, h.door.Runs.visits)
}

// TestRunWithoutASocket checks that a run without a socket, because it could not be opened, has its
// token, and that the error names the reason.
func TestRunWithoutASocket(t *testing.T) {
	h := build(t, nil, TCP{})
	h.door.Runs.dir = filepath.Join(h.door.Runs.dir, strings.Repeat("long", 30))
	env, end, err := h.door.Runs.Open("coder", "run-1", 0)
	require.ErrorContains(t, err, "opening its socket")
	require.Len(t, env, 2)
	token, ok := strings.CutPrefix(env[0], EnvToken+"=")
	require.True(t, ok)
	a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {token}}}
	status, _ := a.post(t, "operations/poll-messages", "")
	require.Equal(t, http.StatusOK, status)
	end()
	status, _ = a.post(t, "operations/poll-messages", "")
	require.Equal(t, http.StatusUnauthorized, status)

	_, end, err = (&Runs{visits: h.door.Runs.visits}).Open("coder", "run-2", 0)
	require.ErrorIs(t, err, errNobodyAnswers)
	end()
}

// TestSocketsLeftBehind checks that only the sockets of a killed orchestrator are removed.
func TestSocketsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	operators, err := Listen(filepath.Join(dir, "api.sock"))
	require.NoError(t, err)
	defer operators.Close()
	for _, name := range []string{"r1.sock", "rz9.sock", "other.sock"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		require.NoError(t, err)
		socket, ok := l.(*net.UnixListener)
		require.True(t, ok)
		socket.SetUnlinkOnClose(false)
		require.NoError(t, l.Close())
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "r2.sock"), nil, 0o600))
	NewRuns(operators)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	require.Equal(t, []string{"api.sock", "other.sock", "r2.sock"}, names)
}

// TestServerThatIsOver checks that all sockets end with the server, and that one opened later
// does not stay open.
func TestServerThatIsOver(t *testing.T) {
	dir := t.TempDir()
	operators, err := Listen(filepath.Join(dir, "api.sock"))
	require.NoError(t, err)
	d := &API{MaxBody: 1 << 10, Log: hclog.NewNullLogger(), Runs: NewRuns(operators)}
	shut := serve(d, operators)
	for i := range 100 {
		_, _, err := d.Runs.Open(fmt.Sprint("agent-", i), "run", 0)
		require.NoError(t, err)
	}
	shut()
	_, end, err := d.Runs.Open("late", "run", 0)
	require.NoError(t, err)
	end()
	left, err := filepath.Glob(filepath.Join(dir, "r*.sock"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestListenerThatFails checks that a closed listener does not affect the other listeners.
func TestListenerThatFails(t *testing.T) {
	h := build(t, nil, TCP{})
	require.NoError(t, h.tcp.Close())
	status, _ := asks{client: over(h.socket)}.post(t, "operations/poll-messages", "")
	require.Equal(t, http.StatusOK, status)
	response, _ := asks{client: over(h.socket)}.do(t, http.MethodGet, "/api/v1/events", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
}
