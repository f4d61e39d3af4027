package home

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// far returns a state directory with a path that is too long for a socket.
func far(t *testing.T) (stateDir, runDir string) {
	t.Helper()
	runDir, err := os.MkdirTemp("", "run") // shorter than t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(runDir)) })
	t.Setenv("XDG_RUNTIME_DIR", runDir)
	return filepath.Join(t.TempDir(), strings.Repeat("x", maxSocketPath)), runDir
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

// TestSocketDirOfAStranger checks that no level of the folder may be one that another user could
// have made.
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

// TestSocketDirIsTheStateDir checks that a socket in the state directory needs no folder and
// removes none.
func TestSocketDirIsTheStateDir(t *testing.T) {
	stateDir := t.TempDir()
	require.NoError(t, os.Chmod(stateDir, 0o700))
	socket := filepath.Join(stateDir, "api.sock")
	require.NoError(t, MakeSocketDir(socket, stateDir))
	RemoveSocketDir(socket, stateDir)
	require.DirExists(t, stateDir)
}

// indexOfPaths returns a git index.
func indexOfPaths(paths ...string) []byte {
	index := append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00"), byte(len(paths)))
	for _, path := range paths {
		entry := append(make([]byte, 62), path...)
		index = append(append(index, entry...), make([]byte, 8-len(entry)%8)...)
	}
	return index
}

// TestTracked checks that a folder is tracked if a path begins with its name, and not if the
// name only occurs within a path. A truncated index does not panic.
//
// Rows: S-08.
func TestTracked(t *testing.T) {
	t.Parallel()
	text := indexOfPaths("a", "src/state/a.go", "state.go", "state/jwt.key", "states/b")
	for inside, want := range map[string]bool{"state": true, "src": true, "src/state": true, "states": true, "stat": false, "tate": false, "b": false} {
		require.Equal(t, want, indexHas(text, 20, inside+"/"), inside)
	}
	for n := range text {
		indexHas(text[:n], 20, "none/")
		indexHas(text[:n], 32, "none/")
	}
}

// TestHomeOfAStranger checks that a file in the way of a state directory, or in it, is not
// touched if no orchestrator made it.
//
// Rows: S-08.
func TestHomeOfAStranger(t *testing.T) {
	index := indexOfPaths("a/state/jwt.key", "states/jwt.key")
	for name, test := range map[string]struct {
		make func(t *testing.T, dir, precious string)
		why  string
	}{
		"a link": {why: "is a link", make: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Symlink(t.TempDir(), dir))
		}},
		"a lock that is a link": {why: "is a link", make: func(t *testing.T, dir, precious string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Symlink(precious, filepath.Join(dir, "lock")))
		}},
		"a log that is a link": {why: "is a link", make: func(t *testing.T, dir, precious string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Symlink(precious, filepath.Join(dir, "orchestrator.log")))
		}},
		"a lock with two names": {why: "has a second name", make: func(t *testing.T, dir, precious string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Link(precious, filepath.Join(dir, "lock")))
		}},
		"a lock that is a pipe": {why: "is not a regular file", make: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "lock"), 0o600))
		}},
		"logs elsewhere": {why: "is a link", make: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "logs")))
		}},
		"an open record": {why: "is open to other users", make: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "events.db"), nil, 0o644))
		}},
		"a key that came with a repository": {why: "may have come with the repository", make: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(dir), ".git"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), ".git", "index"), index, 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "jwt.key"), nil, 0o600))
		}},
		"sign-ins that came with a repository": {why: "may have come with the repository", make: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(dir), ".git"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), ".git", "index"), index, 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "sign-ins.json"), nil, 0o600))
		}},
		"tracked": {why: "is tracked by git", make: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(dir), ".git"), 0o755))
			text := indexOfPaths("a", "b", filepath.Base(dir)+"/jwt.key", "z")
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), ".git", "index"), text, 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "jwt.key"), nil, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, precious := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "precious")
			require.NoError(t, os.WriteFile(precious, []byte("mine"), 0o640))
			test.make(t, dir, precious)
			before, err := os.Stat(dir)
			require.NoError(t, err)
			_, err = Open(dir)
			require.ErrorContains(t, err, test.why)
			after, err := os.Stat(dir)
			require.NoError(t, err)
			require.Equal(t, before.Mode(), after.Mode())
			text, err := os.ReadFile(precious)
			require.NoError(t, err)
			require.Equal(t, "mine", string(text))
			names, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.LessOrEqual(t, len(names), 2, "nothing was made")
		})
	}
}

// TestHomeWithUnfinishedKey checks the second name of a key that an orchestrator left when it
// was killed.
func TestHomeWithUnfinishedKey(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".key-1"), []byte("key"), 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, ".key-1"), filepath.Join(dir, "jwt.key")))
	h, err := Open(dir)
	require.NoError(t, err)
	defer h.Close()
	require.NoFileExists(t, filepath.Join(dir, ".key-1"))
	require.FileExists(t, filepath.Join(dir, "jwt.key"))
}

// TestHomeThatVanishes checks that a deleted state directory stays locked until its orchestrator
// has ended.
func TestHomeThatVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	h, err := Open(dir)
	require.NoError(t, err)
	name, open := h.Lock()
	now, err := os.Stat(name)
	require.NoError(t, err)
	require.True(t, os.SameFile(open, now))
	require.NoError(t, os.RemoveAll(dir))
	_, err = Open(dir)
	if runtime.GOOS == "linux" {
		var busy *BusyError
		require.ErrorAs(t, err, &busy)
		require.Equal(t, os.Getpid(), busy.PID)
	}
	h.Close()
	h, err = Open(dir)
	require.NoError(t, err)
	h.Close()
}

// Other users can enter the folder for their agents, without a right to change it.
func TestUserDir(t *testing.T) {
	t.Parallel()
	h, err := Open(t.TempDir())
	require.NoError(t, err)
	defer h.Close()
	dir, err := h.UserDir()
	require.NoError(t, err)
	require.Equal(t, UserDir(h.Dir), dir)
	require.NotEqual(t, dir, UserDir(h.Dir+"x"))
	again, err := h.UserDir()
	require.NoError(t, err)
	require.Equal(t, dir, again)
	for _, path := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o711), info.Mode().Perm(), path)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "left"), nil, 0o600))
	h.Close()
	require.DirExists(t, dir, "a folder in use stays")
	require.NoError(t, os.Chmod(dir, 0o777))
	h, err = Open(h.Dir)
	require.NoError(t, err)
	defer h.Close()
	_, err = h.UserDir()
	require.ErrorContains(t, err, "may be written by others")
	h.ClearUserDir()
	require.DirExists(t, dir, "it may be of another user")
	require.NoError(t, os.Chmod(dir, 0o711))
	h.ClearUserDir()
	require.NoDirExists(t, dir)
	_, err = h.UserDir()
	require.NoError(t, err)
	h.Close()
	require.NoDirExists(t, dir)
}
