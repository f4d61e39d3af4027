package child

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// The test binary as a program that is upgraded. Each generation starts two more children, one of
// them in a terminal, and tells all of them a line. Handover is a variable that names the state.

// generations is how many programs follow each other.
const generations = 4

var _ = keepMainThread()

// keepMainThread keeps the main goroutine on the main thread, as in the real program.
func keepMainThread() bool {
	kept := strings.HasPrefix(os.Getenv(modeEnv), "upgraded ")
	if kept {
		runtime.LockOSThread()
	}
	return kept
}

// echoer answers each line, and ends its process with code 7 at the end of its input. In a
// terminal it ends at the word "end".
const echoer = `while read -r line; do echo "heard $line"; [ "$line" = end ] && break; done; exit 7`

// A generation is one of the programs.
type generation struct {
	Number int      `json:"number"`
	From   Handover `json:"from"`
	Pty    map[string]bool
	host   *Host
	said   map[string]chan string
	ended  chan string
	kids   map[string]*Child
}

// upgraded is the part of a generation. home is the folder of the host.
func upgraded(home string) {
	g := &generation{Pty: make(map[string]bool), said: make(map[string]chan string), ended: make(chan string, 100), kids: make(map[string]*Child)}
	options := Options{Home: home, Watchdog: true}
	if state := os.Getenv("HANDOVER"); state != "" {
		succeed(json.Unmarshal([]byte(state), g))
		options.Upgraded = &g.From
	}
	var err error
	g.host, err = NewHost(options)
	succeed(err)
	for _, from := range g.From.Children {
		g.kids[from.Run], err = g.host.Adopt(g.spec(from.Run), from)
		succeed(err)
	}
	g.host.requireOneWatchdog()
	if n := g.host.Unclaimed(); n != 0 {
		succeed(fmt.Errorf("%d children are not adopted", n))
	}
	for _, pty := range []bool{false, true} {
		run := uuid.NewString()
		g.Pty[run] = pty
		g.kids[run], err = g.host.Start(g.spec(run))
		succeed(err)
	}
	g.tell(fmt.Sprintf("generation %d", g.Number))
	if g.Number++; g.Number == generations {
		g.tell("end")
		for range g.kids {
			fmt.Println("ended", <-g.ended)
		}
		fmt.Println("left", len(g.host.Close()))
		return
	}
	g.handOver(home)
}

// requireOneWatchdog ends the program unless the watchdog of the program before has ended.
func (h *Host) requireOneWatchdog() {
	pids, err := childrenOf(os.Getpid())
	succeed(err)
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(text), watchdogName) && pid != h.watchdog.pid {
			succeed(fmt.Errorf("%d is a second watchdog", pid))
		}
	}
}

// handOver becomes the next generation. Before that it tries to become a program that does not
// exist, and must survive the attempt.
func (g *generation) handOver(string) {
	for _, program := range []string{"/no/such/program", self()} {
		for _, c := range g.kids {
			succeed(c.Hold(10 * time.Second))
		}
		for _, c := range g.kids { // it stays in the pipe
			_, err := c.Stdin().Write([]byte("between\n"))
			succeed(err)
		}
		var err error
		g.From, err = g.host.Handover()
		succeed(err)
		state, err := json.Marshal(g)
		succeed(err)
		files := g.From.Files()
		succeed(os.Setenv("HANDOVER", string(state)))
		err = g.host.Exec(program, []string{program}, os.Environ(), files)
		fmt.Println("not replaced:", err)
		for _, c := range g.kids {
			c.Resume()
		}
		g.await("between")
	}
}

func (g *generation) spec(run string) Spec {
	said := make(chan string, 100)
	g.said[run] = said
	return Spec{
		Command: []string{"/bin/sh", "-c", echoer}, Dir: "/", Env: os.Environ(), Run: run, Pty: g.Pty[run],
		Listener: &sayings{said: said, ended: g.ended},
	}
}

// sayings passes on the lines of a child, and its exit code.
type sayings struct {
	Nobody
	rest  string
	said  chan<- string
	ended chan<- string
}

func (s *sayings) Output(_ Stream, chunk []byte) {
	lines := strings.SplitAfter(s.rest+string(chunk), "\n")
	for _, line := range lines[:len(lines)-1] {
		s.said <- strings.TrimSpace(line)
	}
	s.rest = lines[len(lines)-1]
}

func (s *sayings) Exited(e Exit) { s.ended <- fmt.Sprint(e.Code) }

// tell sends a line to all children, and waits until they have answered it.
func (g *generation) tell(line string) {
	for _, c := range g.kids {
		_, err := c.Stdin().Write([]byte(line + "\n"))
		succeed(err)
	}
	g.await(line)
}

// await waits until all children have answered a line.
func (g *generation) await(line string) {
	for run := range g.kids {
		for said := ""; said != "heard "+line; {
			select {
			case said = <-g.said[run]:
				fmt.Println(g.Number, said)
			case <-time.After(20 * time.Second):
				succeed(fmt.Errorf("generation %d: %s does not answer %q", g.Number, run, line))
			}
		}
	}
}

func succeed(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func TestHandover(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	program := exec.Command(self())
	program.Env = append(os.Environ(), modeEnv+"=upgraded "+home)
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text := string(out)
	require.Equal(t, 2*generations, strings.Count(text, "ended 7\n"), text)
	require.Equal(t, generations-1, strings.Count(text, "not replaced: no such file or directory"), text)
	require.Contains(t, text, "left 0\n", text)
	between := 0 // two for each handover: one that fails, and one that does not
	for n := range generations - 1 {
		between += 2 * 2 * (n + 1)
	}
	require.Equal(t, between, strings.Count(text, "heard between\n"), text)
}

// replaceByNothing becomes a program that ends before it adopts the child.
func replaceByNothing(h *Host, c *Child) {
	succeed(c.Hold(10 * time.Second))
	o, err := h.Handover()
	succeed(err)
	succeed(h.Exec("/bin/sh", []string{"sh", "-c", "exit 7"}, nil, o.Files()))
}

// TestNothingOutlivesAFailedTakeover checks that no process of a child's tree outlives a program that
// ends before it has adopted the child.
func TestNothingOutlivesAFailedTakeover(t *testing.T) {
	for _, options := range []string{"cgroup-replaced", "marks-replaced"} {
		t.Run(options, func(t *testing.T) {
			p := hunted(t, options, nil)
			_ = p.Wait()
			require.Equal(t, 7, p.ProcessState.ExitCode())
			waitForThat(t, func() bool { return !slices.ContainsFunc(p.pids, alive) })
		})
	}
}
