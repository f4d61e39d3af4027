package child

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestExitsAreExact(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		for script, want := range map[string]string{
			"exit 0":        "exit 0",
			"exit 7":        "exit 7",
			"kill -9 $$":    "killed by SIGKILL",
			"kill -USR1 $$": "killed by SIGUSR1",
		} {
			exit, ending := start(t, h, sh(script)).end(t)
			require.Equal(t, want, exit.String())
			require.Empty(t, ending.LeftOver)
		}
	})
}

func TestChildIsMarked(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, sh("echo $ORC_RUN_ID $ORC_STATE_DIR"))
		c.end(t)
		require.Equal(t, c.spec.Run+" "+h.home+"\n", c.out.String())
	})
}

// TestStartedChildForgetsItsEnvironment checks that a child does not keep its environment, of which its process has a
// copy.
func TestStartedChildForgetsItsEnvironment(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		spec := sh("read end")
		spec.Env = append(os.Environ(), "MORE=yes")
		kept := weak.Make(&spec.Env[0])
		c := start(t, h, spec)
		spec = Spec{}
		waitForThat(t, func() bool {
			runtime.GC()
			return kept.Value() == nil
		})
		require.True(t, c.CloseStdin())
		c.end(t)
	})
}

// TestUnterminatedLastLineIsHeard is torture row 1: the last line has no newline.
func TestUnterminatedLastLineIsHeard(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, sh("printf last; printf words >&2"))
		c.end(t)
		require.Equal(t, "last", c.out.String())
		require.Equal(t, "words", c.err.String())
	})
}

// TestExitIsSeenWhileOutputIsHeldOpen is torture row 4: the leader is dead, and a grandchild
// holds stdout. The exit is reported while the grandchild lives, and the grandchild is named.
func TestExitIsSeenWhileOutputIsHeldOpen(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, sh("trap '' TERM; sleep 1000 & echo $!; exit 1"))
		exit := receive(t, c.exited)
		require.Equal(t, 1, exit.Code)
		select {
		case <-c.ended:
			require.Fail(t, "the end came before the left-over had its lull")
		default:
		}
		ending := receive(t, c.ended)
		pid, err := strconv.Atoi(strings.TrimSpace(c.out.String()))
		require.NoError(t, err)
		require.Len(t, ending.LeftOver, 1)
		require.Equal(t, pid, ending.LeftOver[0].PID)
		require.Equal(t, "sleep", ending.LeftOver[0].Program)
		require.True(t, ending.LeftOver[0].Held)
		require.False(t, alive(pid))
	})
}

// TestTreeIsEmptyAfterwards is torture rows 5 and 6: no process of a tree survives a stop, a
// crash or a kill.
func TestTreeIsEmptyAfterwards(t *testing.T) {
	const deaf = `trap "" TERM INT HUP; while :; do sleep 1; done`
	trees := map[string]string{
		"group member ignores TERM": `sh -c '` + deaf + `' & echo $! >>pids`,
		"setsid":                    `setsid sh -c 'echo $$ >>pids; ` + deaf + `' &`,
		"double fork":               `(setsid sh -c '(sh -c "echo \$\$ >>pids; sleep 1000" &)' &)`,
		"cleared stdio":             `setsid sh -c 'echo $$ >>pids; ` + deaf + `' </dev/null >/dev/null 2>&1 &`,
		"below a setsid child":      `setsid sh -c 'setsid sh -c "echo \$\$ >>pids; sleep 1000" & wait' &`,
		"cleared environment":       `env -i setsid sh -c 'echo $$ >>pids; ` + deaf + `' &`,
	}
	ways := map[string]struct {
		leader string
		do     func(c *told)
	}{
		"crash":     {"exit 3", func(*told) {}},
		"terminate": {"while :; do sleep 1; done", func(c *told) { c.Signal(syscall.SIGTERM) }},
		"kill":      {"while :; do sleep 1; done", func(c *told) { c.Kill() }},
	}
	onHosts(t, func(t *testing.T, h *Host) {
		for tree, script := range trees {
			for way, w := range ways {
				t.Run(tree+"/"+way, func(t *testing.T) {
					wait := `while [ ! -s pids ]; do sleep 0.01; done; echo ready; `
					c := start(t, h, sh(script+"\n"+wait+w.leader))
					c.firstWords(t)
					w.do(c)
					receive(t, c.exited)
					if way == "terminate" {
						c.Kill() // processes that were asked to stop have until then
					}
					ending := receive(t, c.ended)
					require.Empty(t, ending.Survivors)
					require.False(t, ending.Unverified)
					if tree == "cleared environment" && h.leafs == nil {
						h.clearStrays() // known to be out of reach: see the package comment
					}
					text, err := os.ReadFile(filepath.Join(c.spec.Dir, "pids"))
					require.NoError(t, err)
					for _, word := range strings.Fields(string(text)) {
						pid, err := strconv.Atoi(word)
						require.NoError(t, err)
						require.False(t, alive(pid), "process %d of the tree survived", pid)
					}
				})
			}
		}
	})
}

func TestStoppedProcessIsWoken(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, sh(`echo ready; kill -STOP $$; sleep 1000`))
		c.firstWords(t)
		c.Signal(syscall.SIGTERM)
		exit, _ := c.end(t)
		require.Equal(t, syscall.SIGTERM, exit.Signal)
	})
}

func TestDeafProcessIsKilled(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, part("deaf-to-term"))
		c.firstWords(t)
		c.Signal(syscall.SIGTERM)
		c.Kill()
		exit, _ := c.end(t)
		require.Equal(t, syscall.SIGKILL, exit.Signal)
	})
}

// TestManyShortChildren is torture row 16: exit statuses are exact, and no zombie and no
// descriptor is left.
func TestManyShortChildren(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		start(t, h, sh("exit 0")).end(t)
		before := openFiles(t, h)
		var group sync.WaitGroup
		const workers, each = 8, 125
		for w := range workers {
			group.Go(func() {
				for i := range each {
					want := (w*each + i) % 256
					exit, ending := start(t, h, sh("exit "+strconv.Itoa(want))).end(t)
					if exit.Code != want || len(ending.LeftOver) > 0 {
						t.Errorf("child %d: %v, left over %v", want, exit, ending.LeftOver)
					}
				}
			})
		}
		group.Wait()
		left, err := childrenOf(os.Getpid())
		require.NoError(t, err)
		require.Empty(t, left, "zombies or left-overs")
		require.LessOrEqual(t, openFiles(t, h), before+2, "descriptors leaked")
	})
}

// openFiles counts the open files between two scans for orphans.
func openFiles(t *testing.T, h *Host) int {
	h.census.Lock()
	defer h.census.Unlock()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// TestEarlierLifeIsCleared is torture row 7: the orphans of a killed orchestrator are found by
// their mark.
func TestEarlierLifeIsCleared(t *testing.T) {
	home := t.TempDir()
	h, err := NewHost(Options{Home: home, NoCgroup: true})
	require.NoError(t, err)
	defer h.Close()
	c := start(t, h, sh(`setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' & sleep 1000`))
	c.firstWords(t)
	second := start(t, h, Spec{Command: []string{"sleep", "1000"}})
	other := &Host{home: home + "-other"}
	ended, _ := other.ClearEarlier()
	require.Empty(t, ended, "they are not of that home")
	ended, survivors := h.ClearEarlier() // as a later host with the same home would
	require.Empty(t, survivors)
	require.GreaterOrEqual(t, len(ended), 3)
	c.end(t)
	second.end(t)
}

func TestStdin(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, part("cat"))
		_, err := io.WriteString(c.Stdin(), "a\nb\n")
		require.NoError(t, err)
		require.True(t, c.CloseStdin())
		c.end(t)
		require.Equal(t, "a\nb\n", c.out.String())

		c = start(t, h, Spec{Command: []string{"cat"}, NoStdin: true})
		require.Nil(t, c.Stdin())
		exit, _ := c.end(t)
		require.Equal(t, 0, exit.Code)
	})
}

func TestUnreadStdinIsCounted(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := start(t, h, sh("echo ready; exec sleep 1000"))
		c.firstWords(t)
		_, err := io.WriteString(c.Stdin(), strings.Repeat("x", 54))
		require.NoError(t, err)
		require.EqualValues(t, 54, c.Unread())
		c.Kill()
		c.end(t)
	})
}

// TestPty is torture row 13: a terminal that is raw before the child gets it.
func TestPty(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		spec := part("cat")
		spec.Pty = true
		c := start(t, h, spec)
		long := strings.Repeat("y", 100_000) + "\n"
		go func() { _, _ = io.WriteString(c.Stdin(), long) }()
		require.False(t, c.CloseStdin(), "a terminal has no end of input")
		for total := 0; total < len(long); {
			total += receive(t, c.heard)
		}
		c.Signal(syscall.SIGTERM)
		exit, ending := c.end(t)
		require.Equal(t, syscall.SIGTERM, exit.Signal)
		require.False(t, ending.HeldOpen)
		require.Equal(t, long, c.out.String(), "cut, echoed or changed")
	})
}

func TestPtyKeepsStderrApartAndIsResized(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		spec := sh("trap 'stty size; exit 0' WINCH; echo apart >&2; stty size; while :; do sleep 0.1; done")
		spec.Pty = true
		c := start(t, h, spec)
		for c.lines.Load() < 2 {
			c.firstWords(t)
		}
		require.NoError(t, c.Resize(50, 132))
		c.end(t)
		require.Equal(t, "24 80\n50 132\n", strings.ReplaceAll(c.out.String(), "\r", ""))
		require.Equal(t, "apart\n", c.err.String())
	})
}

func TestLimits(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		spec := part("limits")
		spec.Limits = Limits{OpenFiles: 77, Memory: 4 << 30}
		c := start(t, h, spec)
		c.end(t)
		require.Contains(t, c.out.String(), "files=77 ", c.err.String())
		if !c.leaf.boundsMemory() {
			require.Contains(t, c.out.String(), "memory=4294967296")
		}
	})
}

// Limits that need a cgroup hold, or the child does not start.
func TestCgroupLimits(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		for bound, limits := range map[string]Limits{"pids": {Processes: 77}, "cpu": {CPU: 1.5}} {
			spec := sh("cat $(awk -F: '/^0:/ {print \"" + cgroupMount() + "\" $3}' /proc/self/cgroup)/" + bound + ".max")
			spec.Limits = limits
			if h.leafs.has(bound) {
				c := start(t, h, spec)
				c.end(t)
				require.Equal(t, map[string]string{"pids": "77\n", "cpu": "150000 100000\n"}[bound], c.out.String())
				continue
			}
			spec.Dir = t.TempDir()
			_, err := h.Start(spec)
			require.ErrorContains(t, err, "needs a cgroup (v2) with the controller "+bound)
		}
	})
}

func TestStartRefusals(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	plain := write("plain", "#!/bin/sh\n", 0o644)
	headless := write("headless", "echo no first line\n", 0o755)
	lost := write("lost", "#!/no/such/interpreter\n", 0o755)
	write("local", "#!/bin/sh\n", 0o755)
	windows := write("windows", "#!/bin/sh\r\necho\r\n", 0o755)
	marked := write("marked", "\xef\xbb\xbf#!/bin/sh\n", 0o755)
	empty := write("empty", "", 0o755)
	elsewhere := write("elsewhere", "\x7fELF\x02 of another machine", 0o755)
	python := write("agent.py", "print(1)\n", 0o755)
	h, err := NewHost(Options{Home: dir})
	require.NoError(t, err)
	defer h.Close()
	for name, test := range map[string]struct {
		spec         Spec
		reason, hint string
	}{
		"missing on PATH":  {Spec{Command: []string{"no-such-program"}}, `program not found: "no-such-program" is not on this agent's PATH \(/bin\)`, ""},
		"missing file":     {Spec{Command: []string{"./nothing"}}, `program not found: ".*/nothing" does not exist`, ""},
		"forgot the dot":   {Spec{Command: []string{"local"}}, `not on this agent's PATH`, `did you mean "./local"`},
		"folder":           {Spec{Command: []string{dir}}, `is a folder`, ""},
		"not executable":   {Spec{Command: []string{plain}}, `may not be executed`, "chmod"},
		"no first line":    {Spec{Command: []string{headless}}, `is not a program`, `it begins with "echo no first line"`},
		"lost interpreter": {Spec{Command: []string{lost}}, `interpreter in its first line does not: "/no/such/interpreter"$`, ""},
		"Windows lines":    {Spec{Command: []string{windows}}, `no interpreter is called "/bin/sh\\r": it has Windows line endings`, `sed -i 's/\r$//' ` + windows},
		"byte order mark":  {Spec{Command: []string{marked}}, `it begins with a byte order mark`, "without"},
		"empty":            {Spec{Command: []string{empty}}, `it is empty`, ""},
		"another machine":  {Spec{Command: []string{elsewhere}}, `not a program for this machine`, ""},
		"by its end":       {Spec{Command: []string{python}}, `such as #!/usr/bin/env python3$`, ""},
		"forgot the end":   {Spec{Command: []string{"./agent"}}, `/agent" does not exist`, `did you mean "` + python},
		"one word":         {Spec{Command: []string{"sh -c true"}}, `program not found: "sh -c true"`, `did you mean command = ["sh", "-c", "true"]?`},
		"one word, a path": {Spec{Command: []string{"/bin/sh -c true"}}, `does not exist`, `["/bin/sh", "-c", "true"]`},
		"no folder":        {Spec{Command: []string{"true"}, Dir: dir + "/gone"}, `its folder ".*/gone" does not exist`, ""},
		"folder is a file": {Spec{Command: []string{"true"}, Dir: plain}, `its folder ".*" is a file`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.spec.Dir == "" {
				test.spec.Dir = dir
			}
			test.spec.Env = []string{"PATH=/bin"}
			before := openFiles(t, h)
			_, err := h.Start(test.spec)
			var refused *StartError
			require.ErrorAs(t, err, &refused)
			require.Regexp(t, regexp.MustCompile(test.reason), refused.Reason)
			require.Contains(t, refused.Hint, test.hint)
			require.False(t, refused.Temporary)
			require.Equal(t, before, openFiles(t, h), "descriptors leaked")
		})
	}
}

// TestSlowListenerHearsEverything checks that a slow listener loses no output, even if the child is
// long dead.
func TestSlowListenerHearsEverything(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		c := newTold()
		c.gate = make(chan struct{})
		c.start(t, h, sh("head -c 200000 /dev/zero"))
		receive(t, time.After(2*drain))
		close(c.gate)
		c.end(t)
		require.Equal(t, 200000, len(c.out.String())+len(c.err.String()))
	})
}

// TestOutputHeldOpenFromOutside checks that a process outside the tree that holds the output
// cannot delay the end.
func TestOutputHeldOpenFromOutside(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir(), NoCgroup: true})
	require.NoError(t, err)
	defer h.Close()
	var outside int
	c := start(t, h, sh("echo said; exec sleep 1000"))
	c.firstWords(t)
	fd, err := unix.PidfdOpen(c.pid, 0)
	require.NoError(t, err)
	outside, err = unix.PidfdGetfd(fd, 1, 0)
	require.NoError(t, err)
	closeAll(fd)
	c.Kill()
	_, ending := c.end(t)
	closeAll(outside)
	require.True(t, ending.HeldOpen)
	require.Equal(t, "said\n", c.out.String())
}

// TestStopAndContinueAreTold checks that a leader stopped by a signal is reported, and that it
// continues.
func TestStopAndContinueAreTold(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	c := start(t, h, Spec{Command: []string{"sleep", "1000"}})
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
	require.True(t, <-c.stopped)
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGCONT))
	require.False(t, <-c.stopped)
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
	require.True(t, <-c.stopped)
	c.Kill()
	<-c.ended
}
