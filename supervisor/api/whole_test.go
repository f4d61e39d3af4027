package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		"who are you":    {"tcp", "POST /api/v1/operations/look", "", http.StatusUnauthorized},
		"wrong host":     {"tcp", "POST /api/v1/operations/look", "Host: evil.example\r\n", http.StatusForbidden},
		"no such route":  {"unix", "POST /api/v1/nothing", "", http.StatusNotFound},
		"wrong method":   {"unix", "DELETE /api/v1/tasks", "", http.StatusMethodNotAllowed},
		"too large":      {"unix", "POST /api/v1/operations/look", "Content-Type: application/json\r\n", http.StatusRequestEntityTooLarge},
		"no JSON":        {"unix", "POST /api/v1/operations/look", "Content-Type: text/plain\r\n", http.StatusUnsupportedMediaType},
		"two hosts":      {"tcp", "POST /api/v1/operations/look", "Host: a\r\nHost: b\r\n", http.StatusBadRequest},
		"an expectation": {"unix", "POST /api/v1/operations/look", "Expect: the-best\r\n", http.StatusExpectationFailed},
		"an encoding":    {"unix", "POST /api/v1/operations/look", "Transfer-Encoding: gzip\r\n", http.StatusNotImplemented},
		"a large head":   {"unix", "POST /api/v1/operations/look", "X: " + strings.Repeat("x", 80<<10) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
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
	_, err = fmt.Fprintf(conn, "POST /api/v1/operations/look HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n", conn.RemoteAddr())
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
