package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// serve serves an API until shut is called.
func serve(d *API, listeners ...net.Listener) (shut func()) {
	ctx, cancel := context.WithCancel(context.Background())
	server := NewServer(d.Handler(), d.Log)
	if d.Runs != nil {
		d.Runs.Answer = server.Await
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(ctx, listeners...)
	}()
	return func() {
		cancel()
		<-done
	}
}

// served serves an API on a socket and returns a client for it.
func served(t *testing.T, d *API) *http.Client {
	t.Helper()
	if d.MaxBody == 0 {
		d.MaxBody = 1 << 20
	}
	d.Log = hclog.NewNullLogger()
	socket := filepath.Join(t.TempDir(), "api.sock")
	listener, err := Listen(socket)
	require.NoError(t, err)
	t.Cleanup(serve(d, listener))
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// ask posts a request and returns status and body.
func ask(t *testing.T, c *http.Client, operation, body string) (int, string) {
	t.Helper()
	response, err := c.Post("http://x/api/v1/operations/"+operation, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, strings.TrimSpace(string(text))
}

func TestOperations(t *testing.T) {
	refuse := func(err error) Operation {
		return Do(func(context.Context, struct{}) (any, error) { return nil, err })
	}
	c := served(t, &API{MaxBody: 100, Operations: map[string]Operation{
		"echo":     Do(func(_ context.Context, r control.AgentsRequest) (any, error) { return r, nil }),
		"missing":  refuse(&wire.Error{Code: wire.CodeNotFound, Message: "no such thing", Hint: "look elsewhere"}),
		"conflict": refuse(&wire.Error{Code: wire.CodeConflict, Message: "not now"}),
		"denied":   refuse(&wire.Error{Code: wire.CodeDenied, Message: "not you"}),
		"late":     refuse(&wire.Error{Code: wire.CodeTimeout, Message: "too late"}),
		"broken":   refuse(errors.New("the password is hunter2")),
	}})
	for _, test := range []struct {
		operation, body string
		status          int
		want            string
	}{
		{"echo", `{"agents":["a"]}`, 200, `{"agents":["a"]}`},
		{"echo", ``, 200, `{"agents":[]}`},
		{"echo", `{"agents":1}`, 400, `"code":"invalid"`},
		{"echo", `{`, 400, `"code":"invalid"`},
		{"echo", `{"agents":["` + strings.Repeat("x", 100) + `"]}`, 413, "larger than 100 bytes"},
		{"late", strings.Repeat(" ", 101), 413, `"code":"too_large"`},
		{"missing", `{}`, 404, `{"format_version":"1.0","error":{"code":"not_found","message":"no such thing","hint":"look elsewhere"}}`},
		{"conflict", `{}`, 409, "not now"},
		{"denied", `{}`, 403, "not you"},
		{"late", `{}`, 504, "too late"},
		{"broken", `{}`, 500, `"code":"internal"`},
		{"nothing", `{}`, 404, "no route matches POST /api/v1/operations/nothing"},
	} {
		status, text := ask(t, c, test.operation, test.body)
		require.Equal(t, test.status, status, test.operation)
		require.Contains(t, text, test.want)
		require.NotContains(t, text, "hunter2", "what is not for the other side stays here")
	}
}

func TestLines(t *testing.T) {
	gate := make(chan struct{})
	c := served(t, &API{
		Lists: map[string]List{
			"numbers": func(_ context.Context, q url.Values, send func(any) error) error {
				if q.Get("bad") != "" {
					return &wire.Error{Code: wire.CodeInvalid, Message: "a bad query"}
				}
				require.NoError(t, send(1))
				<-gate
				return send(2)
			},
			"none": func(context.Context, url.Values, func(any) error) error { return nil },
		},
		Streams: map[string]Stream{"count": DoLines(func(_ context.Context, r control.AgentsRequest, send func(any) error) error {
			return send(len(r.Agents))
		})},
	})
	response, err := c.Get("http://x/api/v1/numbers")
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	require.True(t, lines.Scan(), "a line leaves as soon as it is there")
	require.Equal(t, "1", lines.Text())
	close(gate)
	require.True(t, lines.Scan())
	require.Equal(t, "2", lines.Text())
	require.False(t, lines.Scan())

	bad, err := c.Get("http://x/api/v1/numbers?bad=1")
	require.NoError(t, err)
	require.Equal(t, 400, bad.StatusCode)
	require.NoError(t, bad.Body.Close())
	none, err := c.Get("http://x/api/v1/none")
	require.NoError(t, err)
	require.Equal(t, 200, none.StatusCode)
	require.NoError(t, none.Body.Close())
	status, text := ask(t, c, "count", `{"agents":["a","b"]}`)
	require.Equal(t, 200, status)
	require.Equal(t, "2", text)
}

func TestCallerThatLeavesEndsTheStream(t *testing.T) {
	ended := make(chan struct{})
	c := served(t, &API{Lists: map[string]List{"wait": func(ctx context.Context, _ url.Values, send func(any) error) error {
		require.NoError(t, send(1))
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}}})
	response, err := c.Get("http://x/api/v1/wait")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	<-ended
}

func TestListen(t *testing.T) {
	t.Parallel() // it waits for an answer
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Listen(file)
	require.ErrorContains(t, err, "is not a socket")

	socket := filepath.Join(dir, "s")
	first, err := Listen(socket)
	require.NoError(t, err)
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = Listen(socket)
	require.ErrorContains(t, err, "another program answers there")

	first.Listener.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, first.Close())
	second, err := Listen(socket)
	require.NoError(t, err, "a socket that nobody answers is replaced")
	require.NoError(t, second.Close())
}

// A killed program closes connections without an answer until its listener is closed as well.
func TestAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	_, err := Answers(socket, Answering)
	require.ErrorIs(t, err, fs.ErrNotExist)
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		for range 3 {
			conn, err := listener.Accept()
			if err != nil {
				ended <- err
				return
			}
			_ = conn.Close()
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		ended <- listener.Close()
	}()
	require.False(t, AnswersNow(socket, Answering))
	there, err := Answers(socket, Answering)
	require.NoError(t, err)
	require.False(t, there)
	require.NoError(t, <-ended)

	second, err := Listen(socket)
	require.NoError(t, err)
	go func() { ended <- http.Serve(second, http.NotFoundHandler()) }()
	require.True(t, AnswersNow(socket, Answering))
	there, err = Answers(socket, Answering)
	require.NoError(t, err)
	require.True(t, there)
	require.NoError(t, second.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

func TestPeer(t *testing.T) {
	listener, err := Listen(filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		conn, err := net.Dial("unix", listener.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
	}()
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	uid, err := userOf(conn)
	require.NoError(t, err)
	require.Equal(t, os.Geteuid(), uid)
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	_, err = userOf(near)
	require.Error(t, err)
}

// TestReadOnly checks that a read-only API serves exactly the declared operations that read, and its
// own.
func TestReadOnly(t *testing.T) {
	d := everything()
	all := patterns(d)
	d.ReadOnly = true
	reading := patterns(d)
	require.Less(t, len(reading), len(all))
	for _, o := range wire.Operations {
		require.Contains(t, all, "POST "+operationsPath+o.Name)
		require.Equal(t, !o.Writes, slices.Contains(reading, "POST "+operationsPath+o.Name), o.Name)
	}
	require.Contains(t, reading, "POST "+operationsPath+"status")
}

// TestCutOff checks that a request that an upgrade cuts off is no error in the log.
func TestCutOff(t *testing.T) {
	for cause, level := range map[error]string{net.ErrClosed: "[DEBUG]", io.ErrUnexpectedEOF: "[ERROR]"} {
		var said bytes.Buffer
		api := &API{Log: hclog.New(&hclog.LoggerOptions{Output: &said, Level: hclog.Debug})}
		api.refuse(httptest.NewRecorder(), httptest.NewRequest("POST", "/api/v1/operations/health", nil), cause)
		require.Contains(t, said.String(), level+" a request failed")
	}
}
