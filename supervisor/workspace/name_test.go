package workspace

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Any id names one folder and a part of a branch, and similar ids name different ones.
func TestName(t *testing.T) {
	require.Equal(t, "91c0aa12", Name("91c0aa12-5d3c-4f0e-9d60-0d1f6a1b2c3d"))
	seen := make(map[string]bool)
	for _, id := range []string{"feature-login", "feature-logout", "pay/btn", "pay-btn", "a b", ".", "..", "../../../esc", "pay~^:x", "-x", "x;touch y #", "é", "x.lock", "@{", ""} {
		name := Name(id)
		require.False(t, seen[name], name)
		seen[name] = true
		require.Equal(t, name, filepath.Base(name), id)
		require.NoError(t, exec.Command("git", "check-ref-format", "--branch", "task/"+name).Run(), "%q is %q", id, name)
		require.NoError(t, exec.Command("git", "check-ref-format", "--branch", name).Run(), "%q is %q", id, name)
	}
}
