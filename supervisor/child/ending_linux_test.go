package child

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// wrapped maps names to programs that need a while to end, below a shell that ends at once.
var wrapped = map[string]string{
	"in the group":       `CHILD_TEST_PART=unhurried "$0" & `,
	"in its own session": `CHILD_TEST_PART=unhurried setsid "$0" & `,
}

func TestOrderedEndWaitsForWhatIsWrapped(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		for name, script := range wrapped {
			t.Run(name, func(t *testing.T) {
				c := start(t, h, withSelf(script+"wait"))
				c.firstWords(t)
				c.Signal(syscall.SIGTERM)
				exit, ending := c.end(t)
				require.Equal(t, syscall.SIGTERM, exit.Signal)
				require.Len(t, ending.LeftOver, 1)
				require.Equal(t, "ready\nasked\nsaved\n", c.out.String())
			})
		}
	})
}

// TestOrderAfterTheExit checks a stop that comes when the leader is dead and its left-overs were
// already asked. They get time, and no process is asked twice.
func TestOrderAfterTheExit(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		for name, script := range wrapped {
			t.Run(name, func(t *testing.T) {
				c := start(t, h, withSelf(script+"read end"))
				c.firstWords(t)
				c.CloseStdin()
				receive(t, c.exited)
				c.Signal(syscall.SIGTERM)
				receive(t, c.ended)
				require.Equal(t, "ready\nasked\nsaved\n", c.out.String())
			})
		}
	})
}

func TestOrderedEndIsEndedByKill(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, withSelf(`CHILD_TEST_PART=deaf-to-term setsid "$0" & wait`))
		c.firstWords(t)
		c.Signal(syscall.SIGTERM)
		receive(t, c.exited)
		select {
		case <-c.ended:
			require.Fail(t, "the end came before the kill")
		case <-time.After(3 * lull):
		}
		c.Kill()
		ending := receive(t, c.ended)
		require.Len(t, ending.LeftOver, 1)
		require.Empty(t, ending.Survivors)
	})
}

// TestKillBeforeTheFirstLook checks that left-overs are reported that Kill ends before they were listed, as on a
// machine where a look takes long.
func TestKillBeforeTheFirstLook(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		for name, script := range map[string]string{
			"in the group":       `CHILD_TEST_PART=deaf-to-term "$0" & wait`,
			"in its own session": `CHILD_TEST_PART=deaf-to-term setsid "$0" & wait`,
		} {
			t.Run(name, func(t *testing.T) {
				c := start(t, h, withSelf(script))
				c.firstWords(t)
				pids, err := childrenOf(c.PID())
				require.NoError(t, err)
				require.Len(t, pids, 1)
				h.census.RLock() // no look ends
				c.Signal(syscall.SIGTERM)
				receive(t, c.exited)
				c.Kill()
				select {
				case <-c.ended:
				case <-time.After(lull):
				}
				listed := alive(pids[0])
				h.census.RUnlock()
				require.True(t, listed, "it is listed before it is killed")
				require.Len(t, receive(t, c.ended).LeftOver, 1)
				require.False(t, alive(pids[0]))
			})
		}
	})
}

func TestEndOfInputOnTerminalThatTakesLines(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		spec := sh("stty icanon; echo ready; cat; echo over")
		spec.Pty = true
		c := start(t, h, spec)
		c.firstWords(t)
		_, err := io.WriteString(c.Stdin(), "line\n")
		require.NoError(t, err)
		require.True(t, c.CloseStdin())
		exit, _ := c.end(t)
		require.Equal(t, "exit 0", exit.String())
		require.Equal(t, "ready\nline\nover\n", c.out.String())
		require.False(t, c.CloseStdin(), "the terminal is gone")
	})
}

// noDescriptors prevents opening files until lift is called.
func noDescriptors(t *testing.T) (lift func()) {
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit))
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}, nil))
	lift = func() { _ = unix.Prlimit(0, unix.RLIMIT_NOFILE, &limit, nil) }
	t.Cleanup(lift)
	return lift
}

// TestTreeIsNotEmptyForWantOfDescriptors checks that a tree that cannot be scanned does not
// count as empty.
func TestTreeIsNotEmptyForWantOfDescriptors(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		// It prints once it has left the group, which gets a signal without a look.
		c := start(t, h, sh("setsid sh -c 'echo $$; exec sleep 1000' & read end"))
		pid := c.firstPID(t)
		lift := noDescriptors(t)
		c.CloseStdin()
		receive(t, c.exited)
		select {
		case <-c.ended:
			require.Fail(t, "the tree was taken for empty")
		case <-time.After(2 * lull):
		}
		lift()
		ending := receive(t, c.ended)
		require.False(t, ending.Unverified)
		require.Len(t, ending.LeftOver, 1)
		require.Equal(t, pid, ending.LeftOver[0].PID)
		require.False(t, alive(pid))
	})
}

func TestTreeThatCannotBeLookedAtIsUnverified(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir(), NoCgroup: true})
	require.NoError(t, err)
	defer h.Close()
	c := start(t, h, sh("setsid sleep 1000 & echo $!; read end"))
	c.firstWords(t)
	lift := noDescriptors(t)
	c.CloseStdin()
	_, ending := c.end(t)
	lift()
	require.True(t, ending.Unverified)
}
