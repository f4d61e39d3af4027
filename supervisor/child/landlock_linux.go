package child

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of the kernel's Landlock, by their use. Character and block devices are never made: root could reach any disk
// through one.
const (
	mayRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE

	mayChange = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	mayUseDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	handledFiles = mayRead | mayChange | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK

	// ofFile are the rights that a rule for a file may have; the other rights are for folders.
	ofFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	handledPorts = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
)

// Versions of Landlock with new rights, and the Linux that has them.
const (
	withRefer    = 2 // 5.19
	withTruncate = 3 // 6.2: without it, files outside of Write could be emptied
	withPorts    = 4 // 6.7
	withDevices  = 5 // 6.10
	withScopes   = 6 // 6.12: signals and abstract sockets stay among the child's processes
)

// landlockVersion returns the version of Landlock of this kernel. It returns 0 and the reason
// without one.
func landlockVersion() (version int, why string) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(n), ""
	case unix.EOPNOTSUPP:
		return 0, "Landlock is disabled in this kernel (boot option lsm=)"
	default:
		return 0, fmt.Sprintf("this kernel has no Landlock, which came with Linux 5.13 (%v)", errno)
	}
}

// impossible returns why this kernel cannot do all that c asks for, or "".
func (c *Confinement) impossible() string {
	version, why := landlockVersion()
	switch {
	case version == 0:
		return why
	case version < withTruncate:
		return fmt.Sprintf("Landlock %d of this kernel cannot keep files from being emptied, which came with Linux 6.2", version)
	case c.Limited && version < withPorts:
		return fmt.Sprintf("Landlock %d of this kernel cannot limit the network, which came with Linux 6.7", version)
	}
	if _, ok := auditArch[runtime.GOARCH]; !ok {
		return "no list of system calls exists for " + runtime.GOARCH
	}
	return ""
}

// A ruleset is a set of Landlock rules that is being made.
type ruleset struct {
	fd    int
	files uint64 // the rights that the kernel knows
}

func newRuleset(version int, limited bool) (*ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledFiles}
	if version < withDevices {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version < withTruncate {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < withRefer {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if limited && version >= withPorts {
		attr.Handled_access_net = handledPorts
	}
	if version >= withScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return &ruleset{fd: int(fd), files: attr.Handled_access_fs}, nil
}

// allow gives rights to an open file, and to everything below a folder.
func (r *ruleset) allow(fd int, folder bool, rights uint64) error {
	if rights &= r.files; !folder {
		rights &= ofFile
	}
	if rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 && errno != unix.EBADFD { // a file of the kernel itself, which takes no rules
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}

// allowPort lets TCP connect to a port, and listen at it.
func (r *ruleset) allowPort(port int) error {
	rule := struct{ rights, port uint64 }{handledPorts, uint64(port)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), landlockNetPort,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}

// landlockNetPort is LANDLOCK_RULE_NET_PORT, which package unix does not have.
const landlockNetPort = 2

// apply confines this thread for good, and makes it run as a user. The caller must not leave the
// thread before it executes the program: the restrictions belong to the thread. The rules are made
// with the rights of root. They only restrict, so the user can reach no more by them.
func (c *Confinement) apply(u *User) error {
	if why := c.impossible(); why != "" {
		if !c.BestEffort {
			return errors.New(why)
		}
		fmt.Fprintf(os.Stderr, "orchestrator: this agent is confined only in part, or not at all: %s\n", why)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	var rules *ruleset
	version, _ := landlockVersion()
	if version > 0 {
		var err error
		if rules, err = c.rules(version); err != nil {
			return err
		}
	}
	if err := u.giveUp(); err != nil {
		return err
	}
	if rules != nil {
		if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules.fd), 0, 0); errno != 0 {
			return os.NewSyscallError("landlock_restrict_self", errno)
		}
		closeAll(rules.fd)
	}
	if err := refuseCalls(c.filter(), unix.EPERM, 0); err != nil && !c.BestEffort {
		return err
	}
	return nil
}

// privileges are the capabilities that would let root leave its confinement: by the memory of
// other processes, raw disks, file handles, mounts, routes or the kernel itself.
var privileges = []uint{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_BPF, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO,
	unix.CAP_SYS_BOOT, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_NET_ADMIN,
}

// dropCapabilities gives up privileges. No new ones can be gained later (no_new_privs).
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for _, p := range privileges {
		word, bit := &data[p/32], uint32(1)<<(p%32)
		word.Effective &^= bit
		word.Permitted &^= bit
		word.Inheritable &^= bit
	}
	return os.NewSyscallError("capset", unix.Capset(&header, &data[0]))
}
