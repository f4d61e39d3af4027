package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// far is a state directory whose path is too long for a socket.
func far(t *testing.T) (stateDir, runDir string) {
	t.Helper()
	runDir, err := os.MkdirTemp("", "run") // shorter than t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(runDir)) })
	t.Setenv("XDG_RUNTIME_DIR", runDir)
	return filepath.Join(t.TempDir(), strings.Repeat("x", longestSocket)), runDir
}

func TestSocketDir(t *testing.T) {
	stateDir, runDir := far(t)
	socket := SocketPath(stateDir)
	upper := filepath.Join(runDir, "orchestrator")
	require.Equal(t, upper, filepath.Dir(filepath.Dir(socket)))
	for range 2 { // it may be there already
		require.NoError(t, MakeSocketDir(socket, stateDir))
		for _, dir := range []string{upper, filepath.Dir(socket)} {
			info, err := os.Stat(dir)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		}
	}
	require.NoError(t, os.WriteFile(socket, nil, 0o600))
	RemoveSocketDir(socket, stateDir)
	require.FileExists(t, socket, "a folder in use stays")
	require.NoError(t, os.Remove(socket))
	RemoveSocketDir(socket, stateDir)
	require.NoDirExists(t, filepath.Dir(socket))
	require.DirExists(t, upper, "others of ours are in it")
}

// No level of it may be anything that a stranger could have made.
func TestSocketDirOfAStranger(t *testing.T) {
	for name, test := range map[string]struct {
		make func(t *testing.T, upper, lower string)
		why  string
	}{
		"upper open": {why: "may be written by others", make: func(t *testing.T, upper, lower string) {
			require.NoError(t, os.MkdirAll(lower, 0o700))
			require.NoError(t, os.Chmod(upper, 0o777))
		}},
		"upper open to the group": {why: "may be written by others", make: func(t *testing.T, upper, _ string) {
			require.NoError(t, os.Mkdir(upper, 0o700))
			require.NoError(t, os.Chmod(upper, 0o770))
		}},
		"lower open": {why: "may be written by others", make: func(t *testing.T, _, lower string) {
			require.NoError(t, os.MkdirAll(lower, 0o700))
			require.NoError(t, os.Chmod(lower, 0o707))
		}},
		"upper a link": {why: "is no folder", make: func(t *testing.T, upper, _ string) {
			require.NoError(t, os.Symlink(t.TempDir(), upper))
		}},
		"lower a link": {why: "is no folder", make: func(t *testing.T, upper, lower string) {
			require.NoError(t, os.Mkdir(upper, 0o700))
			require.NoError(t, os.Symlink(t.TempDir(), lower))
		}},
		"a file": {why: "is no folder", make: func(t *testing.T, upper, _ string) {
			require.NoError(t, os.WriteFile(upper, nil, 0o600))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stateDir, runDir := far(t)
			socket := SocketPath(stateDir)
			test.make(t, filepath.Join(runDir, "orchestrator"), filepath.Dir(socket))
			require.ErrorContains(t, MakeSocketDir(socket, stateDir), test.why)
		})
	}
}

// A socket in the state directory needs no folder, and takes none away.
func TestSocketDirIsTheStateDir(t *testing.T) {
	stateDir := t.TempDir()
	require.NoError(t, os.Chmod(stateDir, 0o700))
	socket := filepath.Join(stateDir, "api.sock")
	require.NoError(t, MakeSocketDir(socket, stateDir))
	RemoveSocketDir(socket, stateDir)
	require.DirExists(t, stateDir)
}
