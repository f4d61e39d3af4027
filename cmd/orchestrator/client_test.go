package main

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/api"
)

// An orchestrator of somebody else is not spoken to.
func TestStrangerIsDenied(t *testing.T) {
	a := testApp()
	d := a.doorOf(target{socket: "/tmp/s"})
	f := failureOf(d.failed(t.Context(), &url.Error{Op: "Get", Err: &api.StrangerError{UID: 1001}}))
	require.Equal(t, exitDenied, f.exit)
	require.Contains(t, f.message, "/tmp/s belongs to another user (1001)")
}
