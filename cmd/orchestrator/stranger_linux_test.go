package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
)

// A stranger runs the program without the permissions of the test's user. If the test is root,
// which ignores file modes, it uses another user.
type stranger struct {
	t            *testing.T
	dir, program string
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	program, err := shipped()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "orc")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) // the other user must reach the program
	mine := filepath.Join(dir, "orchestrator")
	// cp writes the copy: a file written by this process may be busy, because forks of other
	// tests inherit its descriptor.
	require.NoError(t, exec.Command("cp", program, mine).Run())
	return &stranger{t: t, dir: dir, program: mine}
}

func (s *stranger) call(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, cried bytes.Buffer
	cmd := exec.Command(s.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &cried
	cmd.Env = []string{"HOME=" + s.dir, "PATH=/bin:/usr/bin"}
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	err := cmd.Run()
	failed, ok := errors.AsType[*exec.ExitError](err)
	require.True(s.t, ok, "it was let in: %v", err)
	return out.String(), cried.String(), failed.ExitCode()
}

// The error names the file, folder or socket for which a permission is missing.
func TestStrangerIsToldWhatIsClosed(t *testing.T) {
	t.Parallel()
	s := newStranger(t)
	file := filepath.Join(s.dir, "orchestrator.hcl")
	require.NoError(t, os.WriteFile(file, []byte("agent \"a\" {\n  command = [\"true\"]\n}\n"), 0o000))
	out, cried, code := s.call("up")
	require.Equal(t, cli.ExitNo, code, cried)
	require.Empty(t, out)
	require.Contains(t, cried, file+": permission denied.")
	require.Contains(t, cried, "1 error. Nothing was started.")

	require.NoError(t, os.Chmod(file, 0o644))
	closed := filepath.Join(s.dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0o500))
	out, cried, code = s.call("up", "--state-dir", filepath.Join(closed, "state"))
	require.Equal(t, cli.ExitNo, code, cried)
	require.Empty(t, out)
	require.Contains(t, cried, "Error: cannot start in "+filepath.Join(closed, "state")+": making the state directory: ")
	require.Contains(t, cried, "permission denied")
	require.Contains(t, cried, "Nothing was started.")
	require.Contains(t, cried, "Keep the state elsewhere: --state-dir DIR")

	owner := newStage(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").up("--json")
	owner.waitForEvents(1, "agent.started", "a")
	socket := filepath.Join(owner.state(), "api.sock")
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(socket, 0o000))
	}
	out, cried, code = s.call("status", "--host", socket)
	require.Equal(t, cli.ExitDenied, code, cried)
	require.Empty(t, out)
	require.Contains(t, cried, "Error: not allowed to speak to the orchestrator at "+socket+"\n")
	require.Contains(t, cried, "It belongs to another user: only the one who started it may")
	out, cried, code = s.call("status", "--host", socket, "--json")
	require.Equal(t, cli.ExitDenied, code)
	require.Empty(t, cried)
	require.Contains(t, out, `"code":"denied"`)
	require.NoError(t, os.Chmod(socket, 0o600))
	owner.stop()
}
