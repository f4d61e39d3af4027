package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire/identity"
)

// knock sends the head of a request and, after a pause, its body. It requires that both are
// accepted and that the whole response arrives.
func knock(t *testing.T, network, address, head string, size int, pause time.Duration) int {
	t.Helper()
	conn, err := net.Dial(network, address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(conn, head)
	require.NoError(t, err)
	<-time.After(pause)
	const piece = 64 << 10
	for sent := 0; sent < size; {
		n, err := conn.Write(make([]byte, min(piece, size-sent)))
		require.NoError(t, err, "after %d bytes", sent)
		sent += n
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.ContentLength > 0 {
		require.Len(t, text, int(response.ContentLength))
	}
	return response.StatusCode
}

// TestRefusalsArriveWhole checks that a refusal is a complete response, however much of the
// request was not read.
func TestRefusalsArriveWhole(t *testing.T) {
	h := build(t, nil, TCP{})
	tcp := strings.TrimPrefix(h.tcp.URL(), "http://")
	for name, c := range map[string]struct {
		network, first, more string
		status               int
	}{
		"who are you":    {"tcp", "POST /api/v1/operations/poll-messages", "", http.StatusUnauthorized},
		"wrong host":     {"tcp", "POST /api/v1/operations/poll-messages", "Host: evil.example\r\n", http.StatusForbidden},
		"no such route":  {"unix", "POST /api/v1/nothing", "", http.StatusNotFound},
		"wrong method":   {"unix", "DELETE /api/v1/tasks", "", http.StatusMethodNotAllowed},
		"too large":      {"unix", "POST /api/v1/operations/poll-messages", "Content-Type: application/json\r\n", http.StatusRequestEntityTooLarge},
		"no JSON":        {"unix", "POST /api/v1/operations/poll-messages", "Content-Type: text/plain\r\n", http.StatusUnsupportedMediaType},
		"two hosts":      {"tcp", "POST /api/v1/operations/poll-messages", "Host: a\r\nHost: b\r\n", http.StatusBadRequest},
		"an expectation": {"unix", "POST /api/v1/operations/poll-messages", "Expect: the-best\r\n", http.StatusExpectationFailed},
		"an encoding":    {"unix", "POST /api/v1/operations/poll-messages", "Transfer-Encoding: gzip\r\n", http.StatusNotImplemented},
		"a large head":   {"unix", "POST /api/v1/operations/poll-messages", "X: " + strings.Repeat("x", 80<<10) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			address := h.socket
			if c.network == "tcp" {
				address = tcp
			}
			host := "Host: " + tcp + "\r\n"
			if strings.Contains(c.more, "Host:") {
				host = ""
			}
			for _, close := range []string{"Connection: close\r\n", ""} {
				for size, tries := range map[int]int{2 << 10: 100, 100 << 10: 25, 2 << 20: 10} {
					for n := range tries {
						length := fmt.Sprintf("Content-Length: %d\r\n", size)
						head := c.first + " HTTP/1.1\r\n" + host + close + length + c.more + "\r\n"
						pause := time.Duration(n%2) * 3 * time.Millisecond
						require.Equal(t, c.status, knock(t, c.network, address, head, size, pause), "%d bytes, %q, try %d", size, close, n)
					}
				}
			}
		})
	}
}

// TestRefusalDoesNotWait checks that a refusal does not wait for a missing body.
func TestRefusalDoesNotWait(t *testing.T) {
	h := build(t, nil, TCP{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.tcp.URL(), "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /api/v1/operations/poll-messages HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n", conn.RemoteAddr())
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second))) // net/http would wait for a minute
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

// TestNothingAfterAnUnreadBody checks that the rest of an unread body is not taken for a
// request. A response that does not wait for the body closes its connection.
func TestNothingAfterAnUnreadBody(t *testing.T) {
	h := build(t, nil, TCP{})
	for path, status := range map[string]int{
		"/api/v1/events": http.StatusOK, "/none": http.StatusNotFound,
	} {
		conn, err := net.Dial("unix", h.socket)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: orchestrator\r\nContent-Length: 100\r\n\r\n", path)
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, status, response.StatusCode, path)
		require.True(t, response.Close, path)
		require.NoError(t, conn.Close())
	}
}

// TestBodyThatFallsSilent checks that a body ends when no byte comes for a while, and that the answer is complete.
func TestBodyThatFallsSilent(t *testing.T) {
	d := &API{Operations: map[string]Operation{"echo": Do(func(context.Context, struct{}) (any, error) { return "done", nil })}}
	visitAsOperator(t, d, func(t *testing.T, _ *http.Client, p *pipes) {
		conn, err := p.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		began := time.Now()
		in := bufio.NewReader(conn)
		_, err = io.WriteString(conn, "POST /api/v1/operations/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		require.NoError(t, err)
		<-time.After(bodySilence - time.Second)
		_, err = io.WriteString(conn, " ")
		require.NoError(t, err)
		response, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.Equal(t, 2*bodySilence-time.Second, time.Since(began))
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Contains(t, string(text), "no data arrived for 10s")
	})
}

// pipes is a listener with in-memory connections, so that time can be fake.
type pipes struct {
	*Inside
	door listenerInfo
}

func newPipes(c identity.Caller) *pipes {
	return &pipes{Inside: NewInside(), door: listenerInfo{caller: c}}
}

func (p *pipes) entrance() *listenerInfo { return &p.door }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }

// visitAs serves an API to a client in a synctest bubble. The client is the given caller.
func visitAs(t *testing.T, c identity.Caller, d *API, do func(*testing.T, *http.Client, *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		d.MaxBody, d.Log = 1<<20, hclog.NewNullLogger()
		p := newPipes(c)
		shut := serve(d, p)
		transport := &http.Transport{DialContext: p.dial}
		do(t, &http.Client{Transport: transport}, p)
		transport.CloseIdleConnections()
		shut()
	})
}

func visitAsOperator(t *testing.T, d *API, do func(*testing.T, *http.Client, *pipes)) {
	visitAs(t, identity.Caller{Kind: identity.Operator, Wide: true}, d, do)
}

// TestStreamIsSilentForLong checks that a stream that was silent for long ends normally, and so
// does the next request of its connection.
func TestStreamIsSilentForLong(t *testing.T) {
	d := &API{
		Lists: map[string]List{"slow": func(_ context.Context, _ url.Values, send func(any) error) error {
			if err := send(1); err != nil {
				return err
			}
			<-time.After(10 * patience)
			return nil
		}},
		Operations: map[string]Operation{"slow": Do(func(context.Context, struct{}) (any, error) {
			<-time.After(10 * patience)
			return "done", nil
		})},
	}
	visitAsOperator(t, d, func(t *testing.T, c *http.Client, _ *pipes) {
		response, err := c.Get("http://x/api/v1/slow")
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err, "the end of the stream did not arrive")
		require.Equal(t, "1\n", string(text))
		<-time.After(2 * patience)
		for range 2 {
			status, answer := ask(t, c, "slow", "{}")
			require.Equal(t, 200, status)
			require.Equal(t, `"done"`, answer)
			<-time.After(2 * patience)
		}
	})
}

// TestCallerThatTakesNothing checks that a caller that does not read is cut off, even if the
// response is not a stream.
func TestCallerThatTakesNothing(t *testing.T) {
	d := &API{Operations: map[string]Operation{"big": Do(func(context.Context, struct{}) (any, error) {
		return strings.Repeat("x", 1<<20), nil
	})}}
	visitAsOperator(t, d, func(t *testing.T, _ *http.Client, p *pipes) {
		conn, err := p.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST /api/v1/operations/big HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		require.NoError(t, err)
		<-time.After(2 * patience)
		text, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Less(t, len(text), 1<<20, "it was still being written")
	})
}

// TestStreamThatFailsIsCut checks that a failed stream does not look like a complete one.
func TestStreamThatFailsIsCut(t *testing.T) {
	d := &API{Lists: map[string]List{"broken": func(_ context.Context, _ url.Values, send func(any) error) error {
		if err := send(1); err != nil {
			return err
		}
		return io.ErrClosedPipe
	}}}
	visitAsOperator(t, d, func(t *testing.T, c *http.Client, _ *pipes) {
		response, err := c.Get("http://x/api/v1/broken")
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "1\n", string(text))
	})
}

func TestStranger(t *testing.T) {
	for _, test := range []struct {
		uid, self int
		want      bool
	}{{1000, 1000, false}, {0, 1000, false}, {0, 0, false}, {1001, 1000, true}, {1000, 0, true}} {
		require.Equal(t, test.want, stranger(test.uid, test.self), "%+v", test)
	}
}

func TestDial(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	_, err := Dial(t.Context(), socket)
	require.ErrorIs(t, err, fs.ErrNotExist)
	listener, err := Listen(socket)
	require.NoError(t, err)
	defer listener.Close()
	conn, err := Dial(t.Context(), socket)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
