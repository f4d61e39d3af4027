package child

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLeavesOfEarlierLifeAreCleared checks that a process with a cleared environment is found by
// its cgroup leaf. Without leaves it cannot be found, and is left alone.
func TestLeavesOfEarlierLifeAreCleared(t *testing.T) {
	home := t.TempDir()
	earlier := exec.Command(self())
	earlier.Env = append(os.Environ(), modeEnv+"=orchestrator "+home)
	stdout, err := earlier.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, earlier.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	leader, err := readStat(pid)
	require.NoError(t, err)
	require.NoError(t, earlier.Process.Kill())
	_ = earlier.Wait()
	// The leader dies with its host. Until then its child may become an orphan of the next host.
	waitForThat(t, func() bool { return !alive(leader.parent) })
	require.True(t, alive(pid))

	other, err := NewHost(Options{Home: home + "-other"})
	require.NoError(t, err)
	theirs, err := other.leafs.leaf("run", 0)
	require.NoError(t, err)
	defer theirs.remove()
	require.Empty(t, other.Close())

	h, err := NewHost(Options{Home: home})
	require.NoError(t, err)
	defer h.Close()
	before := len(h.leafs.leaves())
	ended, survivors := h.ClearEarlier()
	require.Empty(t, survivors)
	found := slices.ContainsFunc(ended, func(p Process) bool { return p.PID == pid })
	if h.leafs == nil {
		require.False(t, found)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		return
	}
	require.True(t, found, "%v", ended)
	require.False(t, alive(pid))
	require.Equal(t, 1, before)
	require.Empty(t, h.leafs.leaves(), "an empty leaf stayed")
	require.DirExists(t, theirs.dir)
}
