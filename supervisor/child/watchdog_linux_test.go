package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// offspring makes processes that a shell can leave behind, and prints their ids. One process is in
// its group, one in another session, and one has lost its parent and its environment. All ignore
// SIGTERM. The last one is a sleep before its id is printed.
const offspring = `trap "" TERM
sleep 1000 & echo $!
setsid sleep 1001 & echo $!
env -i /usr/bin/setsid /bin/sh -c 'trap "" TERM; sleep 1002 & until read c </proc/$!/comm && [ $c = sleep ]; do :; done; echo $!'
echo ready; exec sleep 1003`

// prey is a part of the test binary with such a child.
type prey struct {
	*exec.Cmd
	pids []int
	home string
}

// hunted starts a host with a watchdog in another process. It waits until all processes of its
// child exist and were scanned.
func hunted(t *testing.T, options string, as *syscall.Credential) *prey {
	t.Helper()
	dir, err := os.MkdirTemp("", "dog")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "part")
	text, err := os.ReadFile(self())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, text, 0o755))
	if as != nil {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	home := filepath.Join(dir, "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	if as != nil {
		require.NoError(t, os.Chown(home, int(as.Uid), int(as.Gid)))
	}
	p := &prey{Cmd: exec.Command(program), home: home}
	p.Env = append(os.Environ(), modeEnv+"=watched-orchestrator "+options+" "+home)
	p.Dir = "/"
	p.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if pid, err := strconv.Atoi(lines.Text()); err == nil {
			p.pids = append(p.pids, pid)
		}
		if lines.Text() == "looked" {
			break
		}
	}
	require.Len(t, p.pids, 5, "the watchdog, the leader and three others")
	return p
}

func (p *prey) dog() int { return p.pids[0] }

// TestNothingOutlivesAKilledHost checks that no process of a child's tree outlives a killed host
// by more than five seconds, and that the watchdog ends too.
func TestNothingOutlivesAKilledHost(t *testing.T) {
	users := map[string]*syscall.Credential{"as myself": nil}
	if os.Geteuid() == 0 {
		users["as an ordinary user"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for user, credential := range users {
		for _, options := range []string{"cgroup", "marks"} {
			t.Run(user+", "+options, func(t *testing.T) {
				p := hunted(t, options, credential)
				require.NoError(t, p.Process.Kill())
				began := time.Now()
				_ = p.Wait()
				waitForThat(t, func() bool {
					for _, pid := range p.pids {
						if alive(pid) {
							return false
						}
					}
					return true
				})
				require.Less(t, time.Since(began), 5*time.Second, "a promise, and not a speed")
				text, err := os.ReadFile(filepath.Join(p.home, sweptName))
				require.NoError(t, err)
				require.Contains(t, string(text), fmt.Sprintf("%d sleep", p.pids[len(p.pids)-1]))
			})
		}
	}
}

// TestNothingOutlivesTheLimit checks that a watchdog ends all children of a host that hangs when the time has
// come that the host has set.
func TestNothingOutlivesTheLimit(t *testing.T) {
	for _, options := range []string{"cgroup-limited", "marks-limited"} {
		t.Run(options, func(t *testing.T) {
			p := hunted(t, options, nil)
			require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
			waitForThat(t, func() bool {
				return !slices.ContainsFunc(p.pids[1:], func(pid int) bool {
					_, living, _ := readLiving(pid)
					return living
				})
			})
			require.True(t, alive(p.dog()), "the host may go on")
			require.NoFileExists(t, filepath.Join(p.home, sweptName), "the host reports the ends itself")
		})
	}
}

// TestWatchdogIsReplaced checks that a killed watchdog is replaced, and that the new one knows
// the same processes.
func TestWatchdogIsReplaced(t *testing.T) {
	p := hunted(t, "marks", nil)
	require.NoError(t, syscall.Kill(p.dog(), syscall.SIGKILL))
	fresh := 0
	waitForThat(t, func() bool {
		pids, _ := childrenOf(p.Process.Pid)
		for _, pid := range pids {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(text), watchdogName) && pid != p.dog() && alive(pid) {
				fresh = pid
			}
		}
		return fresh != 0
	})
	require.NoError(t, p.Process.Kill())
	_ = p.Wait()
	waitForThat(t, func() bool {
		for _, pid := range append(p.pids, fresh) {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// TestWatchdogEndsWithItsHost checks that a host that ends normally also ends its watchdog.
func TestWatchdogEndsWithItsHost(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir(), Watchdog: true})
	require.NoError(t, err)
	dog := h.watchdog.pid
	require.True(t, alive(dog))
	c := start(t, h, sh("sleep 1000"))
	c.Kill()
	c.end(t)
	require.Empty(t, h.Close())
	require.False(t, alive(dog))
	require.Empty(t, h.Swept())
}

// TestStoppedWatchdog checks that a host does not wait for a watchdog that a signal has stopped.
func TestStoppedWatchdog(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir(), Watchdog: true})
	require.NoError(t, err)
	dog := h.watchdog.pid
	require.NoError(t, syscall.Kill(dog, syscall.SIGSTOP))
	require.Empty(t, h.Close())
	require.False(t, alive(dog))
}

// TestCrashesPileNothingUp checks that processes that leave session, parent and environment do
// not accumulate over crashes of a leader, once a scan has seen them. Their parent lives as
// long as the leader, so that a scan can see them.
func TestCrashesPileNothingUp(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir(), NoCgroup: true})
	require.NoError(t, err)
	other := start(t, h, sh("exec sleep 1000"))
	for range 3 {
		c := start(t, h, sh(`exec 3<&0; env -i /usr/bin/setsid /bin/sh -c '(sleep 1002 & echo $!; read -r wait <&3)' & read -r wait`))
		pid := c.firstPID(t)
		waitForThat(t, func() bool {
			for _, p := range c.traced() {
				if p.PID == pid {
					return true
				}
			}
			return false
		})
		c.closeStdin()
		c.end(t)
		require.False(t, alive(pid))
	}
	other.Kill()
	other.end(t)
	require.Empty(t, h.Close())
}
