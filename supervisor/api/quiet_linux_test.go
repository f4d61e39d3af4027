package api

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuietSocketsCostNoGoroutine checks that the socket of a run is served from its first connection on, and that a
// run whose agent never connects costs no goroutine.
func TestQuietSocketsCostNoGoroutine(t *testing.T) {
	h := build(t, nil, TCP{})
	var sockets []string
	var ends []func()
	before := runtime.NumGoroutine()
	for i := range 100 {
		env, end := h.run(t, fmt.Sprint("run-", i))
		sockets, ends = append(sockets, env[EnvSocket]), append(ends, end)
	}
	require.Less(t, runtime.NumGoroutine(), before+10)
	for range 2 { // the second connection comes to a socket that is served
		for i, socket := range sockets[:10] {
			status, text := asks{client: over(socket)}.post(t, "operations/poll-messages", "")
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, text, fmt.Sprintf("/run-%d/", i))
		}
	}
	for _, end := range ends {
		end()
	}
	for _, socket := range sockets {
		_, err := net.Dial("unix", socket)
		require.Error(t, err, "an ended run takes no connection")
	}
}

// TestQuietListenerThatEnds checks that nothing of a closed listener is kept, and that the next one with its file
// descriptor is its own.
func TestQuietListenerThatEnds(t *testing.T) {
	w := newQuietWatch()
	require.NotNil(t, w)
	answered := make(chan net.Listener)
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.run(func(l net.Listener) { answered <- l })
	}()
	path := filepath.Join(t.TempDir(), "s")
	var forgets []func()
	for range 10 {
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		forgets = append(forgets, w.add(l))
		require.NoError(t, l.Close())
	}
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer w.add(l)()
	for _, forget := range forgets {
		forget()
	}
	require.Equal(t, 1, w.count())
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, l, <-answered)
	require.Zero(t, w.count())

	waits, err := net.Listen("unix", path+"2")
	require.NoError(t, err)
	require.NotNil(t, w.add(waits))
	w.close()
	<-over
	_, err = net.Dial("unix", path+"2")
	require.Error(t, err, "it was closed with the watch")
	require.Nil(t, w.add(l))
}

func (w *quietWatch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
