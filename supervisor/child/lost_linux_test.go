package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// printed returns the process ids that the child has printed, once there are n.
func (c *told) printed(t *testing.T, n int) []int {
	t.Helper()
	for c.lines.Load() < int64(n) {
		c.firstWords(t)
	}
	var pids []int
	for word := range strings.FieldsSeq(c.out.String()) {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	require.Len(t, pids, n)
	return pids
}

// becomesOrphan waits until a process is a child of this one.
func becomesOrphan(t *testing.T, pid int) {
	t.Helper()
	waitForThat(t, func() bool {
		s, err := readStat(pid)
		return err == nil && s.parent == os.Getpid()
	})
}

// TestEndLost checks that a command without its parent is ended, however it was started, and no other process: the
// leader, its living child, an orphan of before or after, and an orphan of another run.
func TestEndLost(t *testing.T) {
	commands := map[string]string{
		"setsid":      `setsid sh -c 'sh -c "echo \$\$; exec sleep 1000" & wait'`,
		"timeout":     `timeout 1000 sh -c 'echo $$; sleep 1000; true'`,
		"double fork": `(sh -c '(sh -c "echo \$\$; exec sleep 1000" &)' &)`,
		"own session": `(setsid sh -c '(sh -c "echo \$\$; exec sleep 1000" &)' &)`,
		"group":       `sh -c 'echo $$; exec sleep 1000'`,
		"deaf":        `setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done'`,
	}
	onHosts(t, func(t *testing.T, h *Host) {
		for name, command := range commands {
			t.Run(name, func(t *testing.T) {
				script := fmt.Sprintf(`
					(sh -c 'echo $$; exec sleep 1000' &)
					read more
					sh -c 'echo $$; exec sleep 1000' &
					read begin
					sh -c '%s' & shell=$!
					read cut
					kill -9 $shell 2>/dev/null
					read later
					(sh -c 'echo $$; exec sleep 1000' &)
					cat`, strings.ReplaceAll(command, "'", `'\''`))
				c, other := start(t, h, sh(script)), start(t, h, sh(`(setsid sh -c 'echo $$; exec sleep 1000' &); cat`))
				say := func() {
					_, err := c.Stdin().Write([]byte("go\n"))
					require.NoError(t, err)
				}
				becomesOrphan(t, c.printed(t, 1)[0])
				say()
				before := c.printed(t, 2)
				since := nextTick(t)
				say()
				command := c.printed(t, 3)[2]
				foreign := other.firstPID(t)
				if h.leafs == nil {
					h.trace() // as it does four times a second
				}
				say()
				waitForThat(t, func() bool { return isBelow(h, command) })
				until := SinceBoot()
				nextTick(t)
				say()
				after := c.printed(t, 4)[3]
				becomesOrphan(t, after)

				c.EndLost(since, until)
				require.False(t, alive(command))
				require.Len(t, c.lost, 1)
				require.NotEmpty(t, c.lost[0].LeftOver)
				require.Empty(t, c.lost[0].Survivors)
				for _, spared := range append(before, after, foreign, c.PID()) {
					require.True(t, alive(spared))
					for _, p := range c.lost[0].LeftOver {
						require.NotEqual(t, spared, p.PID)
					}
				}
				c.EndLost(since, until)
				require.Len(t, c.lost, 1, "nothing was left")

				for _, c := range []*told{c, other} {
					c.Kill()
					c.end(t)
				}
				c.EndLost(0, SinceBoot())
				require.Len(t, c.lost, 1, "its tree was ended with it")
			})
		}
	})
}

// nextTick waits until later processes have a later start time, and returns the time.
func nextTick(t *testing.T) time.Duration {
	t.Helper()
	began := ticks(SinceBoot())
	waitForThat(t, func() bool { return ticks(SinceBoot()) > began })
	return SinceBoot()
}

// isBelow reports whether a process descends from an orphan.
func isBelow(h *Host, pid int) bool {
	o, err := h.Origin(pid)
	return err == nil && o.Orphan
}
