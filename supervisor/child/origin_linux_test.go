package child

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestOrigin checks that every process of a tree has the origin of its run, however it was started,
// and that this process, its parent and a foreign process have none. A process without living
// parents is always below, and its run is known in a leaf.
//
// Rows: S-01.
func TestOrigin(t *testing.T) {
	trees := map[string]string{
		"leader":      `echo $$; cat`,
		"child":       `sh -c 'echo $$; cat'`,
		"grandchild":  `sh -c 'sh -c "echo \$\$; cat"; true'; true`,
		"setsid":      `setsid sh -c 'echo $$; cat' <&0; true`,
		"double fork": `(setsid sh -c '(sh -c "echo \$\$; exec sleep 1000" &)' &); cat`,
		"no mark":     `(env -i setsid sh -c '(sh -c "echo \$\$; exec sleep 1000" &)' &); cat`,
	}
	onHosts(t, func(t *testing.T, h *Host) {
		for name, script := range trees {
			t.Run(name, func(t *testing.T) {
				c := start(t, h, sh(script))
				pid := c.firstPID(t)
				orphan := strings.HasPrefix(script, "(")
				var o Origin
				waitForThat(t, func() bool {
					var err error
					o, err = h.Origin(pid)
					require.NoError(t, err)
					return o.Orphan == orphan
				})
				require.Equal(t, pid, o.PID)
				require.True(t, o.Below)
				require.NotEmpty(t, o.Program)
				if !orphan || h.leafs != nil {
					require.Equal(t, c.spec.Run, o.Run)
				}
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
				c.Kill()
				c.end(t)
			})
		}
		for name, pid := range map[string]int{"this process": os.Getpid(), "its parent": os.Getppid(), "init": 1} {
			o, err := h.Origin(pid)
			require.NoError(t, err)
			require.False(t, o.Below, name)
		}
		_, err := h.Origin(1 << 30)
		require.Error(t, err)
	})
}

// TestOriginOfOrphan checks that the run of an orphan is the one that it was seen below, whatever
// its environment names, and that an orphan that was not seen belongs to none.
//
// Rows: S-01.
func TestOriginOfOrphan(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		victim := start(t, h, sh("exec sleep 1000"))
		forger := start(t, h, Spec{
			Command: []string{"/bin/sh", "-c", `setsid sh -c 'sh -c "echo \$\$; ORC_RUN_ID=$VICTIM exec sleep 1000" & read end' <&0; exec sleep 1000`},
			Env:     append(os.Environ(), "VICTIM="+victim.spec.Run),
		})
		pid := forger.firstPID(t)
		if h.leafs == nil {
			waitForThat(t, func() bool { return slices.ContainsFunc(forger.traced(), func(p Process) bool { return p.PID == pid }) })
		}
		forger.CloseStdin()
		forged := Origin{PID: pid, Program: "sleep", Below: true, Orphan: true, Run: forger.spec.Run, Claim: victim.spec.Run}
		waitForThat(t, func() bool { o, err := h.Origin(pid); return err == nil && o == forged })
		if h.leafs == nil {
			known := forger.traced()
			forger.forget(nil)
			forged.Run = ""
			require.Equal(t, forged, originOf(t, h, pid), "it was not seen")
			i := slices.IndexFunc(known, func(p Process) bool { return p.PID == pid })
			known[i].born++
			forger.forget(known)
			require.Equal(t, forged, originOf(t, h, pid), "an earlier process had its pid")
		}
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		for _, c := range []*told{victim, forger} {
			c.Kill()
			c.end(t)
		}
	})
}

// TestHostsAreRemembered checks that a program is known as a Host, or as none, until it calls exec.
func TestHostsAreRemembered(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		named := filepath.Join(t.TempDir(), watchdogName)
		require.NoError(t, os.Symlink("/bin/sleep", named))
		c := start(t, h, Spec{
			Command: []string{"/bin/sh", "-c", `echo $$; read go; exec sh -c '"$0" 1000 & read end; kill $!; wait' "$DOG"`},
			Env:     append(os.Environ(), "DOG="+named),
		})
		pid := c.firstPID(t)
		require.False(t, h.hosts.has(pid))
		require.False(t, h.hosts.has(pid))
		require.False(t, h.belowOther([]int{pid}))
		_, err := c.Stdin().Write([]byte("go\n"))
		require.NoError(t, err)
		waitForThat(t, func() bool { return hasWatchdog(pid) })
		require.True(t, h.hosts.has(pid), "it has called exec")
		require.True(t, h.belowOther([]int{1, pid}))
		require.False(t, h.belowOther([]int{os.Getpid()}))
		c.CloseStdin()
		c.Kill()
		c.end(t)
	})
}

// TestOriginBySession checks that an orphan in the session of a child in a terminal belongs to it.
func TestOriginBySession(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, Spec{Command: []string{"/bin/sh", "-c", `(sh -c '(sh -c "echo \$\$; exec sleep 1000" &)' &); cat`}, Pty: true})
		pid := c.firstPID(t)
		waitForThat(t, func() bool { o := originOf(t, h, pid); return o.Orphan && o.Run == c.spec.Run })
		c.Kill()
		c.end(t)
	})
}

// forget replaces the observations of the child, while tracing rests.
func (c *told) forget(known []Process) {
	c.host.census.Lock()
	defer c.host.census.Unlock()
	c.setTraced(known)
}

func originOf(t *testing.T, h *Host, pid int) Origin {
	t.Helper()
	o, err := h.Origin(pid)
	require.NoError(t, err)
	return o
}

// TestOriginWhileParentsEnd checks that a process that forks and ends all the time is always found
// below its run.
func TestOriginWhileParentsEnd(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, sh(`echo $$; n=0; while [ $n -lt 300 ]; do (sh -c '(sh -c "exec sleep 0.05" &)' &); n=$((n+1)); done; cat`))
		c.firstPID(t)
		seen := 0
		for seen < 100 {
			entries, err := os.ReadDir("/proc")
			require.NoError(t, err)
			for _, entry := range entries {
				pid, err := strconv.Atoi(entry.Name())
				if err != nil {
					continue
				}
				if _, run, err := marks(pid); err != nil || run != c.spec.Run {
					continue
				}
				if o, err := h.Origin(pid); err == nil {
					require.True(t, o.Below)
					seen++
				}
			}
		}
		c.Kill()
		c.end(t)
	})
}

// TestHostIsConcealed checks that other processes of the user cannot read the memory of a host. Its own
// children stay readable.
func TestHostIsConcealed(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		require.NoError(t, err)
		require.Zero(t, dumpable)
		c := start(t, h, sh("echo ready; exec sleep 1000"))
		c.firstWords(t)
		waitForThat(t, func() bool { // the program may be calling exec
			_, run, err := marks(c.PID())
			return err == nil && run == c.spec.Run
		})
		c.Kill()
		c.end(t)
	})
}
