package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestProcessWithoutMainThreadIsAlive checks a process without its main thread. It looks like a
// zombie, cannot be reaped, and only its threads have an environment.
func TestProcessWithoutMainThreadIsAlive(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		for name, script := range map[string]string{
			"orphan":          `CHILD_TEST_PART=headless setsid "$0" & echo $!; read end`,
			"below an orphan": `setsid sh -c 'CHILD_TEST_PART=headless "$0" & echo $!; wait' "$0" & read end`,
		} {
			t.Run(name, func(t *testing.T) {
				c := start(t, h, withSelf(script))
				pid := c.firstPID(t)
				waitForThat(t, func() bool {
					text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
					return err == nil && strings.Contains(string(text), ") Z ")
				})
				c.CloseStdin()
				_, ending := c.end(t)
				require.True(t, slices.ContainsFunc(ending.LeftOver, func(p Process) bool { return p.PID == pid }))
				require.Empty(t, ending.Survivors)
				require.False(t, alive(pid))
			})
		}
	})
}

func TestOrphansAreReapedWhileTheChildLives(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, sh("for i in $(seq 300); do (sleep 0.01 &); done; echo done; exec sleep 1000"))
		c.firstWords(t)
		waitForThat(t, func() bool {
			children, err := childrenOf(os.Getpid())
			return err == nil && slices.Equal(children, []int{c.PID()})
		})
		c.Kill()
		c.end(t)
	})
}

// TestForeignProcessesAreSpared checks that a process that was below ours before the host was
// made is spared, with its later children.
func TestForeignProcessesAreSpared(t *testing.T) {
	for name, document := range map[string]bool{"in our group": false, "in its own session": true} {
		t.Run(name, func(t *testing.T) {
			foreign := exec.Command("/bin/sh", "-c", "sleep 1000 & echo $!; read go; sleep 1000 & echo $!; read end")
			foreign.SysProcAttr = &syscall.SysProcAttr{Setsid: document}
			stdin, err := foreign.StdinPipe()
			require.NoError(t, err)
			stdout, err := foreign.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, foreign.Start())
			said := bufio.NewReader(stdout)
			pid := func() int {
				line, err := said.ReadString('\n')
				require.NoError(t, err)
				n, err := strconv.Atoi(strings.TrimSpace(line))
				require.NoError(t, err)
				return n
			}
			first := pid()
			h, err := NewHost(Options{Home: t.TempDir()})
			require.NoError(t, err)
			_, err = stdin.Write([]byte("\n"))
			require.NoError(t, err)
			second := pid()
			start(t, h, sh("exit 0")).end(t) // scans once before the two are orphans
			require.NoError(t, stdin.Close())
			for _, orphan := range []int{first, second} {
				waitForThat(t, func() bool {
					s, err := readStat(orphan)
					return err == nil && s.parent == os.Getpid()
				})
			}
			_, ending := start(t, h, sh("exit 0")).end(t)
			require.Empty(t, ending.LeftOver)
			require.Empty(t, h.Close())
			for _, orphan := range []int{first, second} {
				require.True(t, alive(orphan), "a foreign process was ended")
				require.NoError(t, syscall.Kill(orphan, syscall.SIGKILL))
				_, _ = syscall.Wait4(orphan, nil, 0, nil)
			}
			_ = foreign.Wait() // the host may have reaped it
		})
	}
}

// TestHangingProgramHoldsUpNobody checks a program that cannot be read, as on a mount that
// hangs. It delays neither the end of another child nor the garbage collector. A lease makes the
// kernel wait in the same place.
func TestHangingProgramHoldsUpNobody(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir()})
	require.NoError(t, err)
	defer h.Close()
	path := filepath.Join(t.TempDir(), "hanging")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho ran\n"), 0o700))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	waits := make(chan os.Signal, 1) // the kernel's signal that a process wants the file
	signal.Notify(waits, syscall.SIGIO)
	defer signal.Stop(waits)
	_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	require.NoError(t, err)

	hanging := make(chan *told, 1)
	go func() { hanging <- start(t, h, Spec{Command: []string{path}}) }()
	receive(t, waits)
	_, ending := start(t, h, sh("sleep 1000 & exit 0")).end(t)
	require.Len(t, ending.LeftOver, 1)
	runtime.GC()

	_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	require.NoError(t, err)
	c := receive(t, hanging)
	c.end(t)
	require.Equal(t, "ran\n", c.out.String())
}

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
	theirs, err := other.leafs.leaf("run", Limits{})
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

// TestInheritedDescriptors checks that a child does not get descriptors that this program has
// inherited.
func TestInheritedDescriptors(t *testing.T) {
	fd, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0) // without O_CLOEXEC, as an inherited one
	require.NoError(t, err)
	defer syscall.Close(fd)
	h, err := NewHost(Options{Home: t.TempDir()})
	require.NoError(t, err)
	defer h.Close()
	exit, _ := start(t, h, sh(fmt.Sprintf("[ ! -e /proc/self/fd/%d ]", fd))).end(t)
	require.Zero(t, exit.Code)
}

// TestLooksKeepTheirDistance checks that there is a time between two looks, in which children that end join the next
// one.
func TestLooksKeepTheirDistance(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		const looks = 10
		began := time.Now()
		for range looks {
			_, err := h.orphans()
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, time.Since(began), (looks-1)*betweenLooks)
	})
}
