package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A scene is the surroundings of the attacker.
type scene struct {
	Dir          string
	Orchestrator int // processes
	Victim       int
	Listening    string // a TCP address with a port that is closed to the attacker
	Open         string // one with an open port
	Abstract     string // an abstract socket
}

// attacks are the attempts of a confined child, by name. A nil error is success.
var attacks = map[string]func(s *scene) error{
	// its purpose
	"work: create":       func(s *scene) error { return os.WriteFile(s.at("work/new"), []byte("x"), 0o600) },
	"work: replace":      func(s *scene) error { return replace(s.at("work/plain")) },
	"work: move between": func(s *scene) error { return os.Rename(s.at("work/a/file"), s.at("work/b/file")) },
	"work: folder":       func(s *scene) error { return errors.Join(os.Mkdir(s.at("work/c"), 0o700), os.Remove(s.at("work/c"))) },
	"temporary file":     func(s *scene) error { return os.WriteFile(os.TempDir()+"/x", nil, 0o600) },
	"/dev/null":          func(s *scene) error { return os.WriteFile("/dev/null", []byte("x"), 0) },
	"read outside":       func(s *scene) error { return read(s.at("outside/file")) },
	"list above hidden":  func(s *scene) error { _, err := os.ReadDir(s.Dir); return err },
	"own socket":         func(s *scene) error { return dial("unix", s.at("state/r1.sock")) },
	"own child: signal":  func(s *scene) error { return signalOwn() },
	"open port":          func(s *scene) error { return dial("tcp", s.Open) },
	"open port: UDP":     func(s *scene) error { return dial("udp", "127.0.0.1:53") },
	"unix socket in its folder": func(s *scene) error {
		l, err := net.Listen("unix", s.at("work/own.sock"))
		if err == nil {
			err = l.Close()
		}
		return err
	},

	// files
	"state: read":              func(s *scene) error { return read(s.at("state/jwt.key")) },
	"state: write":             func(s *scene) error { return os.WriteFile(s.at("state/jwt.key"), nil, 0o600) },
	"state: create":            func(s *scene) error { return os.WriteFile(s.at("state/new"), nil, 0o600) },
	"state: remove socket":     func(s *scene) error { return os.Remove(s.at("state/r1.sock")) },
	"state: other TMPDIR":      func(s *scene) error { return os.WriteFile(s.at("state/tmp/x"), nil, 0o600) },
	"hidden: read":             func(s *scene) error { return read(s.at("home/.ssh/id")) },
	"hidden: read in work":     func(s *scene) error { return read(s.at("work2/secret")) },
	"hidden: by symlink":       func(s *scene) error { return read(s.at("work/link/id")) },
	"hidden: by new symlink":   func(s *scene) error { return byLink(s.at("work/planted"), s.at("home/.ssh/id")) },
	"hidden: by /proc":         func(s *scene) error { return read("/proc/self/root" + s.at("home/.ssh/id")) },
	"hidden: hard link":        func(s *scene) error { return os.Link(s.at("home/.ssh/id"), s.at("work/id")) },
	"hidden: move":             func(s *scene) error { return os.Rename(s.at("home/.ssh/id"), s.at("work/id")) },
	"hidden: move folder":      func(s *scene) error { return os.Rename(s.at("home/.ssh"), s.at("work/ssh")) },
	"hidden: move work folder": func(s *scene) error { return os.Rename(s.at("work2"), s.at("work/moved")) },
	"hidden: replaced link":    func(s *scene) error { return os.Remove(s.at("work2/keys")) },
	"outside: write":           func(s *scene) error { return os.WriteFile(s.at("outside/file"), []byte("x"), 0o600) },
	"outside: truncate":        func(s *scene) error { return os.Truncate(s.at("outside/file"), 0) },
	"outside: create":          func(s *scene) error { return os.WriteFile(s.at("outside/new"), nil, 0o600) },
	"outside: folder":          func(s *scene) error { return os.Mkdir(s.at("outside/new"), 0o700) },
	"outside: remove":          func(s *scene) error { return os.Remove(s.at("outside/file")) },
	"outside: move to":         func(s *scene) error { return os.Rename(s.at("work/plain"), s.at("outside/plain")) },
	"outside: move from":       func(s *scene) error { return os.Rename(s.at("outside/file"), s.at("work/file")) },
	"outside: hard link":       func(s *scene) error { return os.Link(s.at("outside/file"), s.at("work/hard")) },
	"outside: by symlink":      func(s *scene) error { return os.WriteFile(s.at("work/out"), []byte("x"), 0o600) },
	"kept: write":              func(s *scene) error { return os.WriteFile(s.at("work2/orchestrator.hcl"), nil, 0o600) },
	"kept: replace":            func(s *scene) error { return replace(s.at("work2/orchestrator.hcl")) },
	"kept: remove":             func(s *scene) error { return os.Remove(s.at("work2/orchestrator.hcl")) },
	"kept: read":               func(s *scene) error { return read(s.at("work2/orchestrator.hcl")) },
	"beside kept: write":       func(s *scene) error { return os.WriteFile(s.at("work2/beside"), []byte("x"), 0o600) },
	"beside kept: create":      func(s *scene) error { return os.WriteFile(s.at("work2/new"), nil, 0o600) },
	"device: make":             func(s *scene) error { return unix.Mknod(s.at("work/disk"), unix.S_IFBLK|0o600, 7<<8) },
	"device: read":             func(s *scene) error { return readDevices() },
	"device: terminal":         func(s *scene) error { return open("/dev/tty") },
	"device: new terminal":     func(s *scene) error { return open("/dev/ptmx") },
	"device: shared memory":    func(s *scene) error { return createAndRemove("/dev/shm/" + filepath.Base(filepath.Dir(s.Dir))) },

	// other processes
	"victim: signal":           func(s *scene) error { return unix.Kill(s.Victim, 0) },
	"orchestrator: signal":     func(s *scene) error { return unix.Kill(s.Orchestrator, 0) },
	"victim: environment":      func(s *scene) error { return read(fmt.Sprintf("/proc/%d/environ", s.Victim)) },
	"orchestrator: descriptor": func(s *scene) error { _, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/1", s.Orchestrator)); return err },
	"victim: folder":           func(s *scene) error { return read(fmt.Sprintf("/proc/%d/root/etc/passwd", s.Victim)) },
	"victim: memory":           func(s *scene) error { return read(fmt.Sprintf("/proc/%d/mem", s.Victim)) },
	"abstract socket":          func(s *scene) error { return dial("unix", s.Abstract) },

	// the network
	"closed port":            func(s *scene) error { return dial("tcp", s.Listening) },
	"closed port: listen":    func(s *scene) error { return listen() },
	"closed port: fast open": func(s *scene) error { return fastOpenTo(s.Listening) },
	"closed port: MPTCP":     func(s *scene) error { return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP) },
	"closed port: SCTP":      func(s *scene) error { return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP) },
	"raw socket":             func(s *scene) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"packet socket":          func(s *scene) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },

	// system calls
	"ptrace":              func(s *scene) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(s.Victim)) },
	"process_vm_readv":    func(s *scene) error { return call(unix.SYS_PROCESS_VM_READV, uintptr(s.Victim)) },
	"process_vm_writev":   func(s *scene) error { return call(unix.SYS_PROCESS_VM_WRITEV, uintptr(s.Victim)) },
	"io_uring_setup":      func(s *scene) error { return call(unix.SYS_IO_URING_SETUP, 1) },
	"keyctl":              func(s *scene) error { return call(unix.SYS_KEYCTL, 0) },
	"add_key":             func(s *scene) error { return call(unix.SYS_ADD_KEY) },
	"request_key":         func(s *scene) error { return call(unix.SYS_REQUEST_KEY) },
	"bpf":                 func(s *scene) error { return call(unix.SYS_BPF) },
	"userfaultfd":         func(s *scene) error { return call(unix.SYS_USERFAULTFD, 1) },
	"kexec_load":          func(s *scene) error { return call(unix.SYS_KEXEC_LOAD) },
	"mount":               func(s *scene) error { return unix.Mount("none", s.at("work"), "tmpfs", 0, "") },
	"orchestrator: limit": func(s *scene) error { return unix.Prlimit(s.Orchestrator, unix.RLIMIT_NPROC, nil, &unix.Rlimit{}) },
	"own limit":           func(s *scene) error { return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) },
	"snapshot":            func(s *scene) error { return call(unix.SYS_IOCTL, 0, 0x50009417) },
	"TIOCSTI":             func(s *scene) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI) },
}

// held are the outcomes of attacks that are not refused with EACCES or EPERM. The first group is
// needed by a child.
var held = map[string]string{
	"work: create": "done", "work: replace": "done", "work: move between": "done", "work: folder": "done",
	"temporary file": "done", "/dev/null": "done", "read outside": "done", "list above hidden": "done",
	"own socket": "done", "own child: signal": "done", "open port": "done", "open port: UDP": "done",
	"unix socket in its folder": "done", "kept: read": "done", "own limit": "done", "beside kept: write": "done",
}

func (s *scene) at(name string) string { return filepath.Join(s.Dir, name) }

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Read(make([]byte, 1))
	return err
}

// open opens a file that could make a reader wait.
func open(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// readDevices succeeds if a device can be opened that a confined child does not need.
func readDevices() error {
	found, err := os.ReadDir("/dev")
	if err != nil {
		return err
	}
	for _, entry := range found {
		path := "/dev/" + entry.Name()
		if entry.Type()&os.ModeDevice == 0 || slices.Contains(devices, path) {
			continue
		}
		if open(path) == nil {
			return nil
		}
	}
	return unix.EACCES
}

func replace(path string) error {
	return errors.Join(os.WriteFile(path+".part", []byte("x"), 0o600), os.Rename(path+".part", path))
}

func createAndRemove(path string) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Remove(path))
}

func byLink(link, target string) error {
	if err := os.Symlink(target, link); err != nil {
		return fmt.Errorf("the link itself: %v", err)
	}
	return read(link)
}

func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err == nil {
		err = conn.Close()
	}
	return err
}

func listen() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = l.Close()
	}
	return err
}

func socket(domain, kind, protocol int) error {
	fd, err := unix.Socket(domain, kind, protocol)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func fastOpenTo(address string) error {
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer closeAll(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
}

func signalOwn() error {
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		return err
	}
	err := c.Process.Kill()
	_ = c.Wait()
	return err
}

func call(number uintptr, arguments ...uintptr) error {
	var a [6]uintptr
	copy(a[:], arguments)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// attack tries all attacks and prints their outcomes as JSON.
func attack(text string) {
	var s scene
	outcomes := make(map[string]string)
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		outcomes["scene"] = err.Error()
	}
	for name, try := range attacks {
		outcomes[name] = outcome(try(&s))
	}
	_ = json.NewEncoder(os.Stdout).Encode(outcomes)
}

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// confinement returns the confinement of the attacker.
func (s *scene) confinement() *Confinement {
	return &Confinement{
		Write: []string{s.at("work"), s.at("work2")}, Read: []string{"/"}, Keep: []string{s.at("work2/orchestrator.hcl")},
		Hide: []string{s.at("home/.ssh"), s.at("work2/secret"), s.at("work2/keys")},
	}
}

// confine makes a scene below a folder, and starts the attacker in it. It prints the attacker's
// output.
func confine(dir string) {
	dir, free := strings.CutSuffix(dir, " free")
	s := &scene{Dir: dir, Orchestrator: os.Getpid(), Abstract: "@" + uuid.NewString()}
	for _, name := range []string{"state", "work/a", "work/b", "work2", "outside", "home/.ssh"} {
		must(os.MkdirAll(s.at(name), 0o700))
	}
	for _, name := range []string{
		"state/jwt.key", "work/plain", "work/a/file", "work2/secret", "work2/orchestrator.hcl", "work2/beside", "outside/file", "home/.ssh/id",
	} {
		must(os.WriteFile(s.at(name), []byte("text"), 0o600))
	}
	must(os.Symlink(s.at("home/.ssh"), s.at("work/link")))
	must(os.Symlink(s.at("outside/file"), s.at("work/out")))
	must(os.Symlink(s.at("home/.ssh"), s.at("work2/keys")))
	var ports []int
	for _, address := range []*string{&s.Listening, &s.Open} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(err)
		defer l.Close()
		*address = l.Addr().String()
		ports = []int{l.Addr().(*net.TCPAddr).Port}
	}
	for _, address := range []string{s.at("state/r1.sock"), s.Abstract} {
		l, err := net.Listen("unix", address)
		must(err)
		defer l.Close()
	}
	must(os.Unsetenv(modeEnv))
	h, err := NewHost(Options{Home: s.at("state"), NoCgroup: true})
	must(err)
	run := func(spec Spec, m *merged) *Child {
		spec.Run, spec.Listener = uuid.NewString(), m
		c, err := h.Start(spec)
		must(err)
		return c
	}
	attacks, victims := newMerged(), newMerged()
	victim := run(Spec{Command: []string{"sleep", "600"}, Dir: s.at("work"), Env: append(os.Environ(), "SECRET=1")}, victims)
	s.Victim = victim.PID()
	text, err := json.Marshal(s)
	must(err)
	c := s.confinement()
	c.Limited, c.Ports = true, ports
	if free {
		c = nil
	}
	run(Spec{
		Command: []string{self()}, Dir: s.at("work"), Env: append(os.Environ(), modeEnv+"=attacker "+string(text)),
		Confine: c,
	}, attacks)
	<-attacks.ended
	victim.Kill()
	<-victims.ended
	h.Close()
	if left, _ := os.ReadDir(s.at("state/tmp")); len(left) > 0 {
		fmt.Println("temporary files are left")
	}
	fmt.Print(attacks.out.String())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// users runs test as the users that the test may be: an ordinary one, and root.
func users(t *testing.T, test func(t *testing.T, dir string, command func(part string) *exec.Cmd)) {
	ids := map[string]int{"user": ordinary()}
	if os.Geteuid() == 0 {
		ids["root"] = 0
	}
	for name, id := range ids {
		t.Run(name, func(t *testing.T) { as(t, id, test) })
	}
}

// ordinary returns the id of an ordinary user.
func ordinary() int {
	if id := os.Geteuid(); id != 0 {
		return id
	}
	return 65534
}

// as runs test with a command that plays parts of this test binary as a user, in a folder of it.
func as(t *testing.T, id int, test func(t *testing.T, dir string, command func(part string) *exec.Cmd)) {
	// A folder of t.TempDir is closed to other users.
	top, err := os.MkdirTemp("", "orc")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(top)) })
	program, err := os.ReadFile(self())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(top+"/program", program, 0o755))
	dir := top + "/scene"
	require.NoError(t, errors.Join(os.Mkdir(dir, 0o700), os.Chmod(top, 0o755), os.Chown(dir, id, id)))
	test(t, dir, func(part string) *exec.Cmd {
		c := exec.Command(top + "/program")
		c.Env = append(os.Environ(), modeEnv+"="+part, "HOME="+dir)
		c.Dir = top
		if os.Geteuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
		}
		return c
	})
}

// attackAs returns the outcomes of the attacks in a scene of a user.
func attackAs(t *testing.T, c *exec.Cmd) map[string]string {
	t.Helper()
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var outcomes map[string]string
	require.NoError(t, json.Unmarshal(out, &outcomes), "%s", out)
	require.Len(t, outcomes, len(attacks))
	return outcomes
}

// Each attack on closed places is refused, and the needs of a child work.
func TestConfinement(t *testing.T) {
	users(t, func(t *testing.T, dir string, command func(string) *exec.Cmd) {
		outcomes := attackAs(t, command("confiner "+dir))
		for name := range attacks {
			if want, ok := held[name]; ok {
				require.Equal(t, want, outcomes[name], name)
				continue
			}
			require.Contains(t, []string{"EACCES", "EPERM", "EXDEV"}, outcomes[name], name)
		}
		foretold(t, dir, outcomes)
	})
}

// foretold compares the answers of the kernel with MayRead and MayChange.
func foretold(t *testing.T, dir string, outcomes map[string]string) {
	s := &scene{Dir: dir}
	c := s.confinement()
	c.Hide = append(c.Hide, s.at("state")) // as the Host does
	for attack, path := range map[string]string{
		"read outside": "outside/file", "state: read": "state/jwt.key", "hidden: read": "home/.ssh/id", "hidden: read in work": "work2/secret",
		"hidden: by symlink": "work/link/id", "kept: read": "work2/orchestrator.hcl",
	} {
		require.Equal(t, outcomes[attack] == "done", c.MayRead(s.at(path)), attack)
	}
	for attack, path := range map[string]string{
		"work: create": "work/new", "work: replace": "work/plain", "state: write": "state/jwt.key", "state: create": "state/new",
		"outside: write": "outside/file", "outside: create": "outside/new", "outside: by symlink": "work/out", "kept: write": "work2/orchestrator.hcl",
		"kept: replace": "work2/orchestrator.hcl", "beside kept: write": "work2/beside", "hidden: replaced link": "work2/keys",
	} {
		require.Equal(t, outcomes[attack] == "done", c.MayChange(s.at(path)), attack)
	}
	require.True(t, c.MayRead(dir) && c.MayChange(dir), "something in it")
	require.False(t, c.MayChange(s.at("outside")) || c.MayChange(s.at("home")))
	c = nil
	require.True(t, c.MayRead(dir) && c.MayChange(dir))
}

// The attacks would succeed without a confinement, as far as they need no privileges.
func TestAttacksAreReal(t *testing.T) {
	privileged := regexp.MustCompile(`^(device|raw socket|packet socket|victim: memory|orchestrator: descriptor|[a-z_]+$|TIOCSTI)`)
	as(t, ordinary(), func(t *testing.T, dir string, command func(string) *exec.Cmd) {
		for name, got := range attackAs(t, command("confiner "+dir+" free")) {
			if !privileged.MatchString(name) {
				require.NotContains(t, []string{"EACCES", "EPERM", "EXDEV"}, got, name)
			}
		}
	})
}
