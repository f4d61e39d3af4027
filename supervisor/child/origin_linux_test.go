package child

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrigin checks that every process of a tree has the origin of its run, however it was started,
// and that this process, its parent and a foreign process have none.
//
// Rows: S-01.
func TestOrigin(t *testing.T) {
	trees := map[string]string{
		"leader":      `echo $$; cat`,
		"child":       `sh -c 'echo $$; cat'`,
		"grandchild":  `sh -c 'sh -c "echo \$\$; cat"; true'; true`,
		"setsid":      `setsid sh -c 'echo $$; cat' <&0; true`,
		"double fork": `(setsid sh -c '(sh -c "echo \$\$; exec sleep 1000" &)' &); cat`,
	}
	onHosts(t, func(t *testing.T, h *Host) {
		for name, script := range trees {
			t.Run(name, func(t *testing.T) {
				c := start(t, h, sh(script))
				pid := c.firstPID(t)
				var o Origin
				waitForThat(t, func() bool { // during exec a process has no mark
					var err error
					o, err = h.Origin(pid)
					require.NoError(t, err)
					return o.Run == c.spec.Run
				})
				require.Equal(t, pid, o.PID)
				require.True(t, o.Below)
				require.NotEmpty(t, o.Program)
				c.Kill()
				c.end(t)
			})
		}
		t.Run("no mark", func(t *testing.T) {
			c := start(t, h, sh(`(env -i setsid sh -c '(sh -c "echo \$\$; exec sleep 1000" &)' &); cat`))
			pid := c.firstPID(t)
			waitForThat(t, func() bool { o, err := h.Origin(pid); return err == nil && o.Run == "" })
			o, err := h.Origin(pid)
			require.NoError(t, err)
			require.True(t, o.Below, "it cannot leave the tree")
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			c.Kill()
			c.end(t)
		})
		for name, pid := range map[string]int{"this process": os.Getpid(), "its parent": os.Getppid(), "init": 1} {
			o, err := h.Origin(pid)
			require.NoError(t, err)
			require.False(t, o.Below, name)
		}
		_, err := h.Origin(1 << 30)
		require.Error(t, err)
	})
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
