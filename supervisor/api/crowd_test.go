package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire/identity"
)

// TestHog checks that idle connections, as many as one source may have, hinder neither operators
// nor other sources. The next one gets a refusal with the reason.
//
// Rows: S-04, S-13.
func TestHog(t *testing.T) {
	var told bytes.Buffer
	server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }), hclog.New(&hclog.LoggerOptions{Output: &told}))
	operators, err := Listen(filepath.Join(t.TempDir(), "api.sock"))
	require.NoError(t, err)
	runs := NewRuns(operators)
	runs.Answer = server.Await
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(ctx, operators)
	}()
	socketOf := func(agent string) string {
		env, shut, err := runs.Open(agent, agent+"-run", 0)
		require.NoError(t, err)
		t.Cleanup(shut)
		return strings.TrimPrefix(env[len(env)-1], EnvSocket+"=")
	}
	one, two := socketOf("one"), socketOf("two")
	for _, hog := range []struct {
		network, address string
		most             int
	}{{"unix", one, MostOfRun}} {
		var held []net.Conn
		for range hog.most {
			conn, err := net.Dial(hog.network, hog.address)
			require.NoError(t, err)
			held = append(held, conn)
		}
		require.Equal(t, "fine", answerAt(t, "unix", operators.Addr().String()), "the operator")
		require.Equal(t, "fine", answerAt(t, "unix", two), "another agent")
		require.Equal(t, fmt.Sprintf(`429 {"format_version":"1.0","error":{"code":"LIMITED","message":"%d connections from here are open, which is the limit"}}`, hog.most),
			answerAt(t, hog.network, hog.address))
		require.NoError(t, held[0].Close())
		for answerAt(t, hog.network, hog.address) != "fine" { // it takes a moment until the end of a connection is known
		}
		for _, conn := range held[1:] {
			_ = conn.Close()
		}
	}
	stop()
	<-served
	require.Contains(t, told.String(), "connections were refused")
}

// answerAt asks at an address over a new connection. It returns the body, after the status if that is not 200.
func answerAt(t *testing.T, network, address string) string {
	conn, err := net.Dial(network, address)
	require.NoError(t, err)
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") // the answer may be there before
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode != http.StatusOK {
		return response.Status[:4] + strings.TrimSpace(string(body))
	}
	return string(body)
}

// TestCrowdInAll checks the limit of all sources together.
//
// Rows: S-04.
func TestCrowdInAll(t *testing.T) {
	c := &connLimiter{most: func() (each, all int) { return 2, 3 }, encrypted: true}
	here, there := net.Pipe()
	defer here.Close()
	leave := c.enter("a", there)
	require.NotNil(t, leave)
	require.NotNil(t, c.enter("b", there))
	require.NotNil(t, c.enter("c", there))
	require.Nil(t, c.enter("d", there))
	leave()
	leave()
	require.NotNil(t, c.enter("d", there), "one has left")
	require.Nil(t, c.enter("e", there))
}

// TestReservedFiles checks that connections of agents cannot take the last file descriptors, and connections of
// operators can.
//
// Rows: S-04.
func TestReservedFiles(t *testing.T) {
	server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }), hclog.NewNullLogger())
	operators, err := Listen(filepath.Join(t.TempDir(), "api.sock"))
	require.NoError(t, err)
	runs := NewRuns(operators)
	runs.Answer = server.Await
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(ctx, operators)
	}()
	env, shut, err := runs.Open("one", "one-run", 0)
	require.NoError(t, err)
	t.Cleanup(shut)
	own := strings.TrimPrefix(env[len(env)-1], EnvSocket+"=")
	require.Equal(t, "fine", answerAt(t, "unix", own))

	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	few := before
	few.Cur = 4 * reservedFiles
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) }()
	var held []*os.File
	for last := uint64(0); last < few.Cur-reservedFiles; {
		file, err := os.Open(os.DevNull)
		require.NoError(t, err)
		held, last = append(held, file), uint64(file.Fd())
	}
	for range 40 { // more than would be answered at once
		conn, err := net.Dial("unix", own)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, "it is closed without an answer, which would hold a descriptor")
	}
	require.Equal(t, "fine", answerAt(t, "unix", operators.Addr().String()), "the operator")
	for _, f := range held {
		require.NoError(t, f.Close())
	}
	require.Equal(t, "fine", answerAt(t, "unix", own), "there is room again")
	stop()
	<-served
}

// TestConnectionsOfAgents checks that the limit of an agent is the one in its configuration.
func TestConnectionsOfAgents(t *testing.T) {
	most := 1
	r := &Runs{Connections: func(agent string) int {
		require.Equal(t, "one", agent)
		return most
	}, Answer: func(net.Listener) func() { return func() {} }}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "r1.sock"))
	require.NoError(t, err)
	defer listener.Close()
	v := &runSocket{caller: identity.Caller{Kind: identity.Agent, Name: "one"}}
	require.NoError(t, r.answer(listener, "r1.sock", v))
	crowd := v.listener.(*ownSocket).connLimiter
	_, there := net.Pipe()
	require.NotNil(t, crowd.enter("", there))
	require.Nil(t, crowd.enter("", there))
	most = 2
	require.NotNil(t, crowd.enter("", there), "it was changed while the run is there")
}
