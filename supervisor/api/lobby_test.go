package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// A conversation is a connection to a TCP listener that a test writes to.
type conversation struct {
	net.Conn
	in *bufio.Reader
}

func converse(t *testing.T, h *house) *conversation {
	t.Helper()
	conn, err := net.Dial("tcp", h.tcp.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &conversation{Conn: conn, in: bufio.NewReader(conn)}
}

// asks sends a request for an operation and returns the status.
func (c *conversation) asks(t *testing.T, credential string) (status int, text string) {
	t.Helper()
	_, err := io.WriteString(c, "POST /api/v1/operations/query-tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n"+credential+"Content-Length: 0\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// TestConnectionsThatDoNothingMakeRoom opens many more connections without a request than there may be. A person
// with a token is answered all the time.
func TestConnectionsThatDoNothingMakeRoom(t *testing.T) {
	h := build(t, nil, TCP{})
	bearer := "Authorization: Bearer " + h.token(t, wire.PersonOperator) + "\r\n"
	first := converse(t, h)
	kept := converse(t, h)
	status, _ := kept.asks(t, bearer)
	require.Equal(t, http.StatusOK, status)
	for n := range 3 * maxStrangersOfSource {
		c := converse(t, h)
		_, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: loc")
		require.NoError(t, err)
		if n%10 == 0 {
			status, text := converse(t, h).asks(t, bearer)
			require.Equal(t, http.StatusOK, status, text)
		}
	}
	response, err := http.ReadResponse(first.in, nil)
	require.NoError(t, err, "the oldest one was turned away")
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	status, _ = kept.asks(t, bearer)
	require.Equal(t, http.StatusOK, status, "with a credential it is not one of them")
	require.LessOrEqual(t, strangersOf(h), maxStrangersOfSource)
}

func strangersOf(h *house) int {
	h.tcp.lobby.mu.Lock()
	defer h.tcp.lobby.mu.Unlock()
	return len(h.tcp.lobby.strangers)
}

// TestRequestsWithoutCredentialAreBounded checks that connections with a request in progress do not make room, and that
// the next one gets a refusal with the reason.
func TestRequestsWithoutCredentialAreBounded(t *testing.T) {
	busy, done := make(chan struct{}), make(chan struct{})
	h := build(t, func(d *API) {
		d.SignIns = new(SignIns)
		d.Pages = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			busy <- struct{}{}
			<-done
		})
	}, TCP{})
	for range maxStrangersOfSource {
		c := converse(t, h)
		_, err := io.WriteString(c, "GET /ui/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		require.NoError(t, err)
		<-busy
	}
	response, err := http.ReadResponse(converse(t, h).in, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Contains(t, string(text), "64 connections without a credential are open from here")
	close(done)
}

// TestConnectionsOfACaller checks the bound of one caller, whatever its credentials and addresses. Other callers are
// not affected.
func TestConnectionsOfACaller(t *testing.T) {
	h := build(t, nil, TCP{})
	ann := "Authorization: Bearer " + h.token(t, wire.PersonOperator) + "\r\n"
	var held []*conversation
	for range maxOfCaller {
		c := converse(t, h)
		status, text := c.asks(t, ann)
		require.Equal(t, http.StatusOK, status, text)
		held = append(held, c)
	}
	more := converse(t, h)
	status, text := more.asks(t, ann)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, text, "operator ann has 64 connections open, which is the limit")
	_, err := more.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "it ends")
	coder := converse(t, h)
	status, text = coder.asks(t, "X-API-Key: orc_coder\r\n")
	require.Equal(t, http.StatusOK, status, text)
	status, text = held[0].asks(t, "X-API-Key: orc_coder\r\n") // a proxy
	require.Equal(t, http.StatusOK, status, text)
	status, text = converse(t, h).asks(t, ann)
	require.Equal(t, http.StatusOK, status, text)
}

// TestStreamsOfACaller checks the bound of streams of lines over TCP.
func TestStreamsOfACaller(t *testing.T) {
	h := build(t, func(d *API) { d.Lists["logs"] = linesOf(make(chan string)) }, TCP{})
	ann := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"Authorization": {"Bearer " + h.token(t, wire.PersonViewer)}}}
	for range maxStreams {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ann.url+"/api/v1/logs?follow=true", nil)
		require.NoError(t, err)
		r.Header = ann.header
		response, err := ann.client.Do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		defer response.Body.Close()
	}
	response, text := ann.do(t, http.MethodGet, "/api/v1/logs?follow=true", "")
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Contains(t, text, "operator ann has 32 streams open")
	response, text = ann.do(t, http.MethodGet, "/api/v1/events", "")
	require.Equal(t, http.StatusOK, response.StatusCode, text)
}

// TestLobbyInAll checks the bounds of all sources together, and that those with a credential have a reserve.
func TestLobbyInAll(t *testing.T) {
	l := &lobby{connLimiter: connLimiter{encrypted: true}}
	enter := func(source string) (*lingering, bool) {
		here, there := net.Pipe()
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		c := &lingering{stream: halfPipe{there}}
		return c, l.enter(source, c)
	}
	var last *lingering
	for n := range maxStrangersInAll { // none of them is idle
		c, ok := enter(string(rune('a' + n)))
		require.True(t, ok)
		last = c
	}
	_, ok := enter("x")
	require.False(t, ok)
	require.Nil(t, last.visitor.seat(identity.Caller{Kind: identity.Agent, Name: "b"}))
	c, ok := enter("x")
	require.True(t, ok, "one has a credential now")
	c.phase.Store(calm)
	d, ok := enter("y")
	require.True(t, ok, "one is idle")
	require.True(t, c.visitor.gone)
	l.all = maxInAll
	_, ok = enter("z")
	require.False(t, ok)
	l.all = maxStrangersInAll + 1
	d.visitor.leave()
	d.visitor.leave()
	last.visitor.leave()
	require.Equal(t, maxStrangersInAll-1, l.all)
	require.Empty(t, l.callers)
}

// halfPipe makes a pipe a stream.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }
func (halfPipe) SyscallConn() (syscall.RawConn, error) {
	return nil, errors.New("a pipe has no file")
}

// TestBodiesThatAreTooLongAreNotRead checks that a body of a declared length beyond the limit is refused before it
// comes, and one that falls silent after some time, on each socket.
func TestBodiesThatAreTooLongAreNotRead(t *testing.T) {
	h := build(t, nil, TCP{})
	env, _ := h.run(t, "r-1")
	token := "Authorization: Bearer " + h.token(t, wire.PersonOperator) + "\r\n"
	for at, to := range map[string][3]string{
		"the operators' socket": {"unix", h.socket, ""},
		"the socket of a run":   {"unix", env[EnvSocket], ""},
		"TCP":                   {"tcp", h.tcp.Addr().String(), token},
	} {
		var dialer net.Dialer
		conn, err := dialer.DialContext(context.Background(), to[0], to[1])
		require.NoError(t, err)
		c := &conversation{Conn: conn, in: bufio.NewReader(conn)}
		_, err = io.WriteString(c, "POST /api/v1/operations/query-tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n"+to[2]+"Content-Length: 5000000\r\n\r\n{")
		require.NoError(t, err)
		response, err := http.ReadResponse(c.in, nil)
		require.NoError(t, err, at)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err, at)
		require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode, at)
		require.True(t, response.Close, at)
		require.Contains(t, string(text), "larger than 1024 bytes", at)
		require.True(t, strings.HasSuffix(string(text), "}\n"), at)
		_ = conn.Close()
	}
}
