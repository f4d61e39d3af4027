package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

const upgrade = "Connection: keep-alive, Upgrade\r\nUpgrade: orchestrator-pipe\r\n"

// piped serves a pipe on a socket and returns a function to call it, with headers and with data
// sent right after them.
func piped(t *testing.T, pipe Pipe) func(query, headers, behind string) (*net.UnixConn, *http.Response, *bufio.Reader) {
	listener, err := Listen(filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	known := func(key string) (name string, ok bool) { return "a", key == "orc_a" }
	t.Cleanup(serve(&API{MaxBody: 1 << 20, Log: hclog.NewNullLogger(), Pipes: map[string]Pipe{"pipe": pipe}, Callers: &fakeCallers{agent: known}}, listener))
	return func(query, headers, behind string) (*net.UnixConn, *http.Response, *bufio.Reader) {
		conn, err := Dial(t.Context(), listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST /api/v1/pipe%s HTTP/1.1\r\nHost: x\r\n%s\r\n%s", query, headers, behind)
		require.NoError(t, err)
		in := bufio.NewReader(conn)
		response, err := http.ReadResponse(in, &http.Request{Method: http.MethodPost})
		require.NoError(t, err)
		return conn.(*net.UnixConn), response, in
	}
}

func TestPipe(t *testing.T) {
	type end struct {
		said string
		err  error
	}
	ends, gone := make(chan end), make(chan struct{})
	call := piped(t, func(_ context.Context, query url.Values, accept func() (*Conn, error)) error {
		if query.Get("as") == "" {
			return &wire.Error{Code: wire.CodeConflict, Message: "not now"}
		}
		conn, err := accept()
		if err != nil {
			return err
		}
		_, _ = io.WriteString(conn, "welcome\n")
		text, err := io.ReadAll(conn)
		ends <- end{string(text), err}
		if err == nil {
			_, _ = io.WriteString(conn, "goodbye\n")
			conn.Gone()
			gone <- struct{}{}
		}
		return errors.New("the end")
	})

	conn, response, in := call("?as=me", upgrade, "sent at once, ")
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	require.Equal(t, PipeProtocol, response.Header.Get("Upgrade"))
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "welcome\n", line)
	_, err = io.WriteString(conn, "and later")
	require.NoError(t, err)
	require.NoError(t, conn.CloseWrite())
	require.Equal(t, end{said: "sent at once, and later"}, <-ends)
	line, err = in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "goodbye\n", line)
	require.NoError(t, conn.Close())
	<-gone

	conn, _, in = call("?as=me", upgrade, "")
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	_, err = io.WriteString(conn, "cut ")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Equal(t, end{said: "cut ", err: io.ErrUnexpectedEOF}, <-ends, "one that is gone has not merely ended what it says")

	_, response, _ = call("", upgrade, "")
	require.Equal(t, http.StatusConflict, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "not now")
}

// TestNoPipe checks that an invalid request for a pipe, or one of a caller without access, does
// not reach the pipe.
func TestNoPipe(t *testing.T) {
	call := piped(t, func(context.Context, url.Values, func() (*Conn, error)) error {
		t.Error("it was taken for one")
		return nil
	})
	for headers, status := range map[string]int{
		"":                        http.StatusBadRequest,
		"Connection: Upgrade\r\n": http.StatusBadRequest,
		"Connection: Upgrade\r\nUpgrade: websocket\r\n": http.StatusBadRequest,
		"Upgrade: orchestrator-pipe\r\n":                http.StatusBadRequest,
		upgrade + "X-API-Key: orc_a\r\n":                http.StatusForbidden,
		upgrade + "X-API-Key: orc_x\r\n":                http.StatusUnauthorized,
	} {
		_, response, _ := call("?as=me", headers, "")
		require.Equal(t, status, response.StatusCode, headers)
	}
	_, response, _ := call("?as=me", upgrade+"Content-Length: 4\r\n", "body")
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
}

// TestPipeOfAnySize checks that a pipe limits neither the amount of data nor the length of a
// line.
func TestPipeOfAnySize(t *testing.T) {
	call := piped(t, func(_ context.Context, _ url.Values, accept func() (*Conn, error)) error {
		conn, err := accept()
		if err == nil {
			_, err = io.Copy(conn, conn)
		}
		return err
	})
	conn, _, in := call("", upgrade, "")
	line := strings.Repeat("x", 16<<20) + "\n"
	go func() {
		_, _ = io.WriteString(conn, line)
		_ = conn.CloseWrite()
	}()
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, line, string(text))
}
