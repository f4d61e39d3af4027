package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// A fakeCommand requests the list that its command line names, and prints it.
type fakeCommand struct {
	arrived chan<- bool     // gets each command that begins; nil: nobody waits
	held    <-chan struct{} // no command goes on before it is closed; nil: each does
}

func (f fakeCommand) Run(ctx context.Context, text []byte, again http.RoundTripper, begin func() (io.Writer, error)) *wire.Error {
	if string(text) == "refuse" {
		return &wire.Error{Code: wire.CodeConflict, Message: "another program"}
	}
	to, err := begin()
	if err != nil {
		return nil
	}
	if f.held != nil {
		f.arrived <- true
		<-f.held
	}
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://x"+apiPath+string(text), nil)
	response, err := again.RoundTrip(request)
	if err != nil {
		return nil
	}
	if _, err = io.Copy(to, response.Body); err != nil {
		_, _ = io.WriteString(to, err.Error())
	}
	return nil
}

// TestCommands checks that commands are run for the operator at its socket alone, and that their requests have the same
// caller. A request that panics ends that command only.
func TestCommands(t *testing.T) {
	h := build(t, func(api *API) {
		api.Commands = fakeCommand{}
		api.Lists["panic"] = func(context.Context, url.Values, func(any) error) error { panic("a bug") }
		api.Lists["abort"] = func(context.Context, url.Values, func(any) error) error { panic(http.ErrAbortHandler) }
	}, TCP{})
	own := asks{client: over(h.socket)}
	status, text := own.post(t, "command", "events")
	require.Equal(t, http.StatusOK, status)
	_, direct := own.do(t, http.MethodGet, "/api/v1/events", "")
	require.Equal(t, direct, text, "the same caller")
	status, _ = own.post(t, "command", "refuse")
	require.Equal(t, http.StatusConflict, status)
	for _, list := range []string{"panic", "abort"} {
		status, text = own.post(t, "command", list)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "unexpected EOF", text)
	}
	status, _ = own.post(t, "command", "events")
	require.Equal(t, http.StatusOK, status, "the server goes on")

	env, _ := h.run(t, "r1")
	for name, other := range map[string]asks{
		"run":      {client: over(env[EnvSocket])},
		"token":    {client: over(""), url: h.tcp.URL(), header: http.Header{"Authorization": {"Bearer " + h.token(t, wire.PersonAdmin)}}},
		"at own":   {client: over(h.socket), header: http.Header{"Authorization": {"Bearer " + h.token(t, wire.PersonAdmin)}}},
		"agent":    {client: over(""), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {"orc_coder"}}},
		"stranger": {client: over(""), url: h.tcp.URL()},
	} {
		status, _ := other.post(t, "command", "events")
		require.Contains(t, []int{http.StatusForbidden, http.StatusUnauthorized}, status, name)
	}
}

// TestCommandsAreBounded checks that a command beyond maxCommands is left to its program, and that the next one is run
// when others have ended.
func TestCommandsAreBounded(t *testing.T) {
	arrived, held := make(chan bool, maxCommands), make(chan struct{})
	h := build(t, func(api *API) { api.Commands = fakeCommand{arrived: arrived, held: held} }, TCP{})
	own := asks{client: over(h.socket)}
	var running sync.WaitGroup
	for range maxCommands {
		running.Go(func() {
			status, _ := own.post(t, "command", "events")
			if status != http.StatusOK {
				t.Errorf("a command was answered with %d", status)
			}
		})
	}
	for range maxCommands {
		<-arrived
	}
	status, _ := own.post(t, "command", "events")
	require.Equal(t, http.StatusConflict, status)
	close(held)
	running.Wait()
	status, _ = own.post(t, "command", "events")
	require.Equal(t, http.StatusOK, status)
}
