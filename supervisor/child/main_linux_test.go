package child

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// modeEnv makes the test binary play a part instead of running tests.
const modeEnv = "CHILD_TEST_PART"

func TestMain(m *testing.M) {
	Shim()
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise race builds end a second late
	if part := os.Getenv(modeEnv); part != "" {
		play(part)
		return
	}
	goleak.VerifyTestMain(m)
}

// play runs the test binary as a child: the parts that a shell cannot play.
func play(part string) {
	name, arg, _ := strings.Cut(part, " ")
	switch name {
	case "deaf-to-term":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("ready")
		select {}
	case "cat": // stdin to stdout, line by line
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			fmt.Print(line)
			if err != nil {
				return
			}
		}
	case "limits":
		var files, memory syscall.Rlimit
		_ = syscall.Getrlimit(unix.RLIMIT_NOFILE, &files)
		_ = syscall.Getrlimit(unix.RLIMIT_AS, &memory)
		fmt.Printf("files=%d memory=%d\n", files.Cur, memory.Cur)
	case "unhurried": // needs a while to end, and prints how often it was asked to
		asked := make(chan os.Signal, 8)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println("asked")
		for saved := time.After(2 * lull); ; {
			select {
			case <-asked:
				fmt.Println("asked again")
			case <-saved:
				fmt.Println("saved")
				return
			}
		}
	case "headless": // ends its main thread and lives on
		go endMainThread()
		select {}
	case "orchestrator": // starts a child that leaves its mark behind; arg is home
		h, err := NewHost(Options{Home: arg})
		if err == nil {
			_, err = h.Start(Spec{
				Command: []string{"/bin/sh", "-c", "env -i setsid sleep 1000 & echo $!; exec sleep 1000"},
				Dir:     "/", Env: os.Environ(), Run: uuid.NewString(),
				Listener: printer{},
			})
		}
		if err != nil {
			fmt.Println(err)
		}
		select {}
	case "watched-orchestrator": // has a watchdog and a child; arg is how its tree is found, and its home
		kind, home, _ := strings.Cut(arg, " ")
		h, err := NewHost(Options{Home: home, Watchdog: true, NoCgroup: strings.HasPrefix(kind, "marks")})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(h.watchdog.pid)
		ready := make(chan struct{})
		c, err := h.Start(Spec{
			Command: []string{"/bin/sh", "-c", offspring}, Dir: "/", Env: os.Environ(), Run: uuid.NewString(),
			Listener: printer{ready: ready},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.PID())
		<-ready
		if h.leafs == nil {
			h.trace()
		}
		if strings.HasSuffix(kind, "-limited") {
			h.EndAt(SinceBoot() + time.Hour)
			h.EndAt(SinceBoot() + time.Second)
		}
		fmt.Println("looked")
		if strings.HasSuffix(kind, "-replaced") {
			replaceByNothing(h, c)
		}
		select {}
	case "upgraded": // becomes itself again and again; arg is home
		LendMainThread(func() {
			upgraded(arg)
			os.Exit(0)
		})
	case "confiner": // confines a child that attacks; arg is a folder
		confine(arg)
	case "without-landlock": // confines children on a kernel that cannot; arg is home
		withoutLandlock(arg)
	case "attacker": // tries to get out of its confinement; arg is the scene
		attack(arg)
	default:
		fmt.Fprintln(os.Stderr, "no such part:", part)
		os.Exit(99)
	}
}

// endMainThread takes threads until it has the main one, and ends only that one.
func endMainThread() {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
	go endMainThread()
	select {}
}

// hosts maps the two ways to find a tree; every torture test runs with both. Without a delegated
// cgroup the first equals the second.
var hosts = map[string]Options{
	"cgroup": {},
	"marks":  {NoCgroup: true},
}

// onHosts runs test with each kind of host.
func onHosts(t *testing.T, test func(t *testing.T, h *Host)) {
	for name, options := range hosts {
		t.Run(name, func(t *testing.T) {
			options.Home = t.TempDir()
			h, err := NewHost(options)
			require.NoError(t, err)
			defer func() { require.Empty(t, h.Close(), "processes left below the test") }()
			test(t, h)
		})
	}
}

// A printer prints output.
type printer struct {
	Nobody
	ready chan struct{} // closed when the child prints "ready"
}

func (p printer) Output(_ Stream, chunk []byte) {
	os.Stdout.Write(chunk)
	if p.ready != nil && bytes.Contains(chunk, []byte("ready")) {
		close(p.ready)
	}
}

// told records the calls of a child's listener.
type told struct {
	*Child
	out, err lockedText
	lines    atomic.Int64
	exited   chan Exit
	ended    chan Ending
	heard    chan int // the size of each chunk, as long as there is room
	stopped  chan bool
	lost     []Ending
	gate     chan struct{} // closed when output is taken; nil: at once
}

// lockedText is text that a test may read while a child is still writing it.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(chunk []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(chunk)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newTold() *told {
	return &told{exited: make(chan Exit, 1), ended: make(chan Ending, 1), heard: make(chan int, 1024), stopped: make(chan bool, 16)}
}

func (c *told) Output(s Stream, chunk []byte) {
	if c.gate != nil {
		<-c.gate
	}
	if s == Stdout {
		c.out.Write(chunk)
	} else {
		c.err.Write(chunk)
	}
	c.lines.Add(int64(bytes.Count(chunk, []byte("\n"))))
	select {
	case c.heard <- len(chunk):
	default:
	}
}

func (c *told) Exited(e Exit)    { c.exited <- e }
func (c *told) Stopped(yes bool) { c.stopped <- yes }
func (c *told) Lost(e Ending)    { c.lost = append(c.lost, e) }
func (c *told) Ended(e Ending)   { c.ended <- e }

// start runs a command and records everything about it.
func start(t *testing.T, h *Host, spec Spec) *told {
	t.Helper()
	c := newTold()
	c.start(t, h, spec)
	return c
}

// start runs a command.
func (c *told) start(t *testing.T, h *Host, spec Spec) {
	t.Helper()
	spec.Run = uuid.NewString()
	spec.Dir = t.TempDir()
	if spec.Env == nil {
		spec.Env = os.Environ()
	}
	spec.Listener = c
	var err error
	c.Child, err = h.Start(spec)
	require.NoError(t, err)
}

// merged records both streams of a child in one text, and its end.
type merged struct {
	Nobody
	out   lockedText
	exit  Exit
	ended chan Ending
}

func newMerged() *merged { return &merged{ended: make(chan Ending, 1)} }

func (m *merged) Output(_ Stream, chunk []byte) { m.out.Write(chunk) }

func (m *merged) Exited(e Exit)  { m.exit = e }
func (m *merged) Ended(e Ending) { m.ended <- e }

// part returns the command that plays a part of this test binary.
func part(name string) Spec {
	return Spec{Command: []string{self()}, Env: append(os.Environ(), modeEnv+"="+name)}
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func sh(script string) Spec { return Spec{Command: []string{"/bin/sh", "-c", script}} }

// withSelf returns a shell command that can start parts of this test binary as $0.
func withSelf(script string) Spec {
	return Spec{Command: []string{"/bin/sh", "-c", script, self()}, Env: os.Environ()}
}

// firstPID returns the process id that the child prints first.
func (c *told) firstPID(t *testing.T) int {
	t.Helper()
	c.firstWords(t)
	pid, err := strconv.Atoi(strings.TrimSpace(c.out.String()))
	require.NoError(t, err)
	return pid
}

// end waits until no process of the child is left.
func (c *told) end(t *testing.T) (Exit, Ending) {
	t.Helper()
	return receive(t, c.exited), receive(t, c.ended)
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		require.Fail(t, "nothing came")
		panic("unreachable")
	}
}

// firstWords waits for the child's first output.
func (c *told) firstWords(t *testing.T) { receive(t, c.heard) }

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	s, err := readStat(pid)
	return err == nil && !s.dead()
}

// waitForThat polls until holds returns true, for conditions without a notification.
func waitForThat(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "it never came")
	}
}
