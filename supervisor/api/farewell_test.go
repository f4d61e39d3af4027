package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// TestBurst checks that each connection of a burst beyond the limit gets a whole refusal, although nobody
// reads its body. A burst of connections without a request displaces its own oldest ones.
func TestBurst(t *testing.T) {
	const burst, size = maxFarewells - 56, 1 << 20
	started, done := make(chan struct{}), make(chan struct{})
	h := build(t, func(d *API) {
		d.SignIns = new(SignIns)
		d.Pages = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			started <- struct{}{}
			<-done
		})
	}, TCP{})
	defer close(done)
	env, _ := h.run(t, "r-1")
	tcp := h.tcp.Addr().String()
	for at, to := range map[string]struct {
		network, address string
		held             int
		says             string // the messages of each of the held ones
		statuses         []int
	}{
		"the socket of a run": {"unix", env[EnvSocket], MostOfRun, "", []int{http.StatusTooManyRequests}},
		"TCP, busy":           {"tcp", tcp, maxStrangersOfSource, "GET /ui/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", []int{http.StatusTooManyRequests}},
		"TCP, idle":           {"tcp", tcp, 0, "", []int{http.StatusTooManyRequests, http.StatusUnauthorized}},
	} {
		t.Run(at, func(t *testing.T) {
			dial := func() net.Conn {
				conn, err := net.Dial(to.network, to.address)
				require.NoError(t, err)
				t.Cleanup(func() { _ = conn.Close() })
				return conn
			}
			for range to.held {
				_, err := io.WriteString(dial(), to.says)
				require.NoError(t, err)
				if to.says != "" {
					<-started
				}
			}
			answers := make(chan error, burst)
			var group sync.WaitGroup
			for range burst {
				conn := dial()
				group.Go(func() { answers <- refusedWhole(conn, size, to.statuses) })
			}
			group.Wait()
			for range burst {
				require.NoError(t, <-answers)
			}
			if to.held > 0 && to.network == "tcp" {
				for range to.held {
					done <- struct{}{}
				}
			}
		})
	}
}

// TestRefusalsThroughHost checks that the refusals of a hub, and of a host that cannot reach it, are whole at the
// sockets of a host.
func TestRefusalsThroughHost(t *testing.T) {
	h := build(t, nil, TCP{})
	env, _ := h.run(t, "r-1")
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for name, c := range map[string]struct {
		hub, token string
		operator   bool
		status     int
	}{
		"too large":   {hub: h.tcp.URL(), token: env[EnvToken], status: http.StatusRequestEntityTooLarge},
		"wrong token": {hub: h.tcp.URL(), token: "none", status: http.StatusUnauthorized},
		"no hub":      {hub: "http://" + gone.Addr().String(), status: http.StatusServiceUnavailable},
		"an operator": {hub: h.tcp.URL(), operator: true, status: http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			address := filepath.Join(t.TempDir(), "api.sock")
			operators, err := Listen(address)
			require.NoError(t, err)
			door := &HostDoor{Host: fakeHost{c.hub, c.token}, Runs: NewRuns(operators), Log: hclog.NewNullLogger()}
			server := NewServer(door.Handler(), hclog.NewNullLogger())
			door.Runs.Answer = server.Await
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan struct{})
			go func() {
				defer close(served)
				server.Serve(ctx, operators)
			}()
			defer func() { stop(); <-served }()
			if !c.operator {
				env, shut, err := door.Runs.Open("coder", "r-1", 0)
				require.NoError(t, err)
				defer shut()
				address = strings.TrimPrefix(env[len(env)-1], EnvSocket+"=")
			}
			for _, size := range []int{2 << 10, 100 << 10, 4 << 20} {
				for range 10 {
					conn, err := net.Dial("unix", address)
					require.NoError(t, err)
					require.NoError(t, refusedWhole(conn, size, []int{c.status}), "%d bytes", size)
					require.NoError(t, conn.Close())
				}
			}
		})
	}
}

// refusedWhole sends a request with a body and returns an error unless it gets one of some statuses and the
// whole refusal.
func refusedWhole(conn net.Conn, size int, statuses []int) error {
	body := strings.Repeat("x", size)
	if _, err := fmt.Fprintf(conn, "POST /api/v1/operations/query-tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", size, body); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	for _, status := range statuses {
		if response.StatusCode == status && strings.HasSuffix(string(text), "}\n") {
			return nil
		}
	}
	return fmt.Errorf("got %s with %q", response.Status, text)
}

// A fakeHost has joined a hub, and has one token for all runs.
type fakeHost struct{ hub, token string }

func (h fakeHost) Hub() string            { return h.hub }
func (h fakeHost) RunToken(string) string { return h.token }
