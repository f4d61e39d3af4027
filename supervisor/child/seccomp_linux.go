package child

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// auditArch maps the architectures with a filter to their numbers in the kernel. All are
// little-endian, which the filter relies on.
var auditArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
}

// refusedCalls are the system calls that no confined child may make: they reach into other processes, go around the
// checks of Landlock, or change the machine.
var refusedCalls = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
}

// A refusal refuses a system call if all its conditions hold.
type refusal struct {
	call uintptr
	when []condition
}

// A condition compares the lower half of an argument, after a mask, with words. It holds if the
// argument is one of them, or, with other, if it is not.
type condition struct {
	argument int
	mask     uint32
	words    []uint32
	other    bool
}

const all = ^uint32(0)

// refusedUses are uses of system calls that are harmless otherwise.
var refusedUses = []refusal{
	// Requests that put text into the input of a terminal.
	{call: unix.SYS_IOCTL, when: []condition{{argument: 1, mask: all, words: []uint32{unix.TIOCSTI, unix.TIOCLINUX}}}},
	// Snapshots of a volume of btrfs and bcachefs, which would show hidden files under another name. The mask leaves out
	// the size and the direction of the argument.
	{call: unix.SYS_IOCTL, when: []condition{{argument: 1, mask: 0xffff, words: []uint32{
		0x9401, 0x940e, 0x940f, 0x9417, 0x9418, 0x943f, 0xbc10, 0xbc11,
	}}}},
	// Limits of another process: a limit on its time would kill it.
	{call: unix.SYS_PRLIMIT64, when: []condition{{argument: 0, mask: all, words: []uint32{0}, other: true}}},
}

// Parts of the arguments of socket.
const (
	socketKind = 0xf        // without the flags in the upper bits
	fastOpen   = 0x20000000 // MSG_FASTOPEN: connects without the check of Landlock
)

// filter returns the refusals of the filter of c. With a limited network, a child gets only sockets of the kernel and
// of this machine and, if there are ports, TCP and UDP. Other kinds would reach the network without the check of
// Landlock.
func (c *Confinement) filter() []refusal {
	list := slices.Clone(refusedUses)
	for _, call := range refusedCalls {
		list = append(list, refusal{call: call})
	}
	if !c.Limited {
		return list
	}
	families := []uint32{unix.AF_UNIX, unix.AF_NETLINK}
	internet := []uint32{unix.AF_INET, unix.AF_INET6}
	if len(c.Ports) > 0 {
		families = append(families, internet...)
		of := condition{argument: 0, mask: all, words: internet}
		list = append(list,
			refusal{call: unix.SYS_SOCKET, when: []condition{of,
				{argument: 1, mask: socketKind, words: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, other: true}}},
			refusal{call: unix.SYS_SOCKET, when: []condition{of,
				{argument: 2, mask: all, words: []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP}, other: true}}},
		)
	}
	fast := func(argument int) []condition {
		return []condition{{argument: argument, mask: fastOpen, words: []uint32{fastOpen}}}
	}
	return append(list,
		refusal{call: unix.SYS_SOCKET, when: []condition{{argument: 0, mask: all, words: families, other: true}}},
		refusal{call: unix.SYS_SENDTO, when: fast(3)},
		refusal{call: unix.SYS_SENDMSG, when: fast(2)},
		refusal{call: unix.SYS_SENDMMSG, when: fast(3)},
	)
}

// Offsets in the data that the kernel gives a filter, and the bit of calls of x32, which have
// other numbers on amd64.
const (
	atCall     = 0
	atArch     = 4
	atArgument = 16
	x32        = 0x40000000
)

// compile returns the filter's program. Calls of another architecture are refused, because their
// numbers differ.
func compile(list []refusal, refused syscall.Errno) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	back := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	jump := func(kind uint16, k uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | kind | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: k}
	}
	refuse := back(unix.SECCOMP_RET_ERRNO | uint32(refused))
	program := []unix.SockFilter{
		load(atArch), jump(unix.BPF_JEQ, auditArch[runtime.GOARCH], 1, 0), refuse,
		load(atCall), jump(unix.BPF_JGE, x32, 0, 1), refuse,
	}
	for _, r := range list {
		var body []unix.SockFilter // the rest of this refusal, made from its end
		body = append(body, refuse)
		for i := len(r.when) - 1; i >= 0; i-- {
			c := r.when[i]
			test := []unix.SockFilter{
				load(atArgument + 8*uint32(c.argument)),
				{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask},
			}
			skip := len(body) // over the rest
			for j, w := range c.words {
				left := len(c.words) - 1 - j
				switch {
				case !c.other && left == 0:
					test = append(test, jump(unix.BPF_JEQ, w, 0, skip))
				case !c.other:
					test = append(test, jump(unix.BPF_JEQ, w, left, 0))
				default:
					test = append(test, jump(unix.BPF_JEQ, w, left+skip, 0))
				}
			}
			body = append(test, body...)
		}
		program = append(program, load(atCall), jump(unix.BPF_JEQ, uint32(r.call), 0, len(body)))
		program = append(program, body...)
	}
	return append(program, back(unix.SECCOMP_RET_ALLOW))
}

// refuseCalls installs a filter for this thread, and for the programs that it executes.
func refuseCalls(list []refusal, refused syscall.Errno, flags uintptr) error {
	if _, ok := auditArch[runtime.GOARCH]; !ok {
		return errors.New("no list of system calls exists for " + runtime.GOARCH)
	}
	program := compile(list, refused)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
