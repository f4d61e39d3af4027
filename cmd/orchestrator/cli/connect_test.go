package cli

import (
	"context"
	"io/fs"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/api"
)

// A client does not talk to an orchestrator of another user.
func TestStrangerIsDenied(t *testing.T) {
	a := New(Env{})
	d := a.NewClient(client.Target{Socket: "/tmp/s"})
	f := FailureOf(d.Failed(t.Context(), &url.Error{Op: "Get", Err: &api.StrangerError{UID: 1001}}))
	require.Equal(t, ExitDenied, f.Exit)
	require.Contains(t, f.Message, "/tmp/s belongs to another user (1001)")
}

// The error is made here, since the tests may run as root, which can connect to every socket.
func TestASocketOfSomebodyElse(t *testing.T) {
	d := New(Env{}).NewClient(client.Target{Socket: "/s", Subject: "shop"})
	f := FailureOf(d.Failed(context.Background(), &fs.PathError{Op: "dial", Path: "/s", Err: fs.ErrPermission}))
	require.Equal(t, ExitDenied, f.Exit)
}
