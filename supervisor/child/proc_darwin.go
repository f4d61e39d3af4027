package child

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// macOS has no subreaper, no pidfd and no parent-death signal, and does not show the
// environment of other processes. So a child's group is ended before its leader is reaped. The
// members of the group are not listed, children in other sessions are not found, and the
// processes of an earlier host are not cleared.

type delegation struct{ dir string }

type leaf struct{ fd int }

type look struct{}

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	noChar     = 0xff
)

func findDelegation(string) *delegation                    { return nil }
func (h *Host) meetForeign() error                         { return nil }
func (h *Host) tend()                                      {}
func (d *delegation) leaf(string, Limits) (*leaf, error)   { return nil, nil }
func (d *delegation) has(string) bool                      { return false }
func (l *leaf) boundsMemory() bool                         { return false }
func (l *leaf) kill()                                      {}
func (l *leaf) close()                                     {}
func (l *leaf) remove()                                    {}
func adoptOrphans() error                                  { return nil }
func conceal() error                                       { return nil }
func widen(int, int)                                       {}
func (h *Host) clearStrays() []Process                     { return nil }
func (h *Host) ClearEarlier() (ended, survivors []Process) { return nil, nil }
func (c *Child) EndLost(_, _ time.Duration)                {}
func (c *Child) Usage() (cpuMS, rss int64)                 { return 0, 0 }
func (c *Child) Unread() int64                             { return 0 }
func signalGroup(pid int, sig syscall.Signal)              { _ = unix.Kill(-pid, sig) }

// Upgrades need the semantics of Linux: a child belongs to a process, and not to a thread, but its
// orphans are found only there.
var errNoUpgrade = errors.New("a running orchestrator can be upgraded only on Linux")

// An Observed is a process that is not a child of this one.
type Observed struct{}

// Observe returns an error, because its only use is an upgrade.
func Observe(int) (*Observed, error) { return nil, errNoUpgrade }

func (o *Observed) Ended() (how string, ended bool) { return "", false }
func (o *Observed) Close()                          {}

func (h *Host) inherit(*Handover)                                       {}
func (h *Host) Handover() (Handover, error)                             { return Handover{}, errNoUpgrade }
func (h *Host) Exec(path string, argv, env []string, files []int) error { return errNoUpgrade }
func (h *Host) Adopt(spec Spec, from Handed) (*Child, error)            { return nil, errNoUpgrade }
func (h *Host) Unclaimed() int                                          { return 0 }
func (c *Child) Hold(time.Duration) error                               { return errNoUpgrade }
func (c *Child) Resume()                                                {}

func (p *pump) pipeName() string { return "" }
func holders(string) []Process   { return nil }

func cloexecPipe(ends *[2]int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(ends[:]); err != nil {
		return err
	}
	unix.CloseOnExec(ends[0])
	unix.CloseOnExec(ends[1])
	return nil
}

func (c *Child) attributes() *syscall.SysProcAttr {
	if c.spec.Pty {
		return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// A sight watches a leader through a kqueue. Each one needs a thread, because the runtime's
// poller does not support processes.
type sight struct{ fd int }

func (s *sight) open(pid int) error {
	fd, err := unix.Kqueue()
	if err != nil {
		return os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(fd)
	s.fd = fd
	var event unix.Kevent_t
	unix.SetKevent(&event, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	event.Fflags = unix.NOTE_EXIT | noteExitStatus
	_, err = unix.Kevent(fd, []unix.Kevent_t{event}, nil, nil)
	if err == unix.ESRCH {
		return nil // dead already: await finds out at once
	}
	return err
}

// noteExitStatus requests the wait status together with the exit event.
const noteExitStatus = 0x04000000

func (s *sight) await(pid int) Exit {
	events := make([]unix.Kevent_t, 1)
	patience := unix.NsecToTimespec(time.Second.Nanoseconds())
	status := syscall.WaitStatus(0)
	for {
		n, err := unix.Kevent(s.fd, nil, events, &patience)
		if n == 1 {
			status = syscall.WaitStatus(events[0].Data)
			break
		}
		if err != nil && err != unix.EINTR || unix.Kill(pid, 0) == unix.ESRCH {
			break
		}
	}
	exit := Exit{At: time.Now(), Code: status.ExitStatus()}
	if status.Signaled() {
		exit.Code, exit.Signal = -1, status.Signal()
	}
	return exit
}

func (s *sight) signal(pid int, sig syscall.Signal) { _ = unix.Kill(pid, sig) }

func (s *sight) close() { closeAll(s.fd) }

// An exitWatch waits for the end of each leader in a separate goroutine.
type exitWatch struct{}

func newExitWatch() (*exitWatch, error) { return new(exitWatch), nil }

func (*exitWatch) add(c *Child) { go c.attend() }
func (*exitWatch) run()         {}
func (*exitWatch) close()       {}

// clear ends the group. The leader is still a zombie, so its pid cannot be reused. When only zombies are left, the
// group can no longer be signalled, and clear returns.
func (c *Child) clear() Ending {
	for quiet := time.Now().Add(lull); unix.Kill(-c.pid, 0) == nil; {
		ordered, forced := c.orders()
		if forced || !ordered && time.Now().After(quiet) {
			break
		}
		c.askGroup()
		time.Sleep(10 * time.Millisecond)
	}
	signalGroup(c.pid, unix.SIGKILL)
	return Ending{}
}

// parentOf returns the parent of a process, and the name of its program.
func parentOf(pid int) (parent int, program string, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, "", err
	}
	return int(info.Eproc.Ppid), unix.ByteSliceToString(info.Proc.P_comm[:]), nil
}

// A hostMemory is empty, because only Linux has a watchdog.
type hostMemory struct{}

func (*hostMemory) has(int) bool { return false }

// locateOrphan is not needed here, because this process gets no orphans.
func (h *Host) locateOrphan(*Origin, int) {}

// impossible returns why a child cannot be confined here.
func (c *Confinement) impossible() string {
	return "macOS has no Landlock; run the agent as another user, or in a container"
}

// apply starts the child without a confinement, if that is wanted.
func (c *Confinement) apply(*User) error {
	if !c.BestEffort {
		return errors.New(c.impossible())
	}
	fmt.Fprintf(os.Stderr, "orchestrator: this agent is not confined: %s\n", c.impossible())
	return nil
}

// canBecome reports whether a child can run as another user on this system. Files that such an agent names are read
// with its rights, and only Linux can give one thread the rights of another user. So FindUser makes no User here.
const canBecome = false

// Do calls f.
func (u *User) Do(f func() error) error { return f() }

// MayReplace reports whether the user may change a file, or put another in its place.
func (u *User) MayReplace(string) bool { return true }

func (u *User) access(string, uint32) error { return nil }
func (u *User) giveUp() error               { return nil }
func (u *User) own(int) error               { return nil }
