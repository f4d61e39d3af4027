package child

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// canBecome reports whether a child can run as another user on this system.
const canBecome = true

// Do calls f on a thread that has the file rights of the user and none of root. f must not start a goroutine for work
// that needs these rights.
func (u *User) Do(f func() error) error {
	if u == nil {
		return f()
	}
	done := make(chan error, 1)
	go onThread(func() error {
		if err := u.borrow(); err != nil {
			return err
		}
		return f()
	}, done)
	return <-done
}

// onThread calls f on a thread that ends afterwards: it could not get all its rights back. The main
// thread cannot end, so it is left to another goroutine.
func onThread(f func() error, done chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		done <- f()
		return // the thread ends with its goroutine, which is still locked to it
	}
	other := make(chan error, 1)
	go onThread(f, other)
	done <- <-other
	runtime.UnlockOSThread()
}

// borrow gives this thread the file rights of the user, and takes all capabilities from it.
func (u *User) borrow() error {
	if err := unix.Setgroups(u.Groups); err != nil { // of this thread only, unlike the function of package syscall
		return os.NewSyscallError("setgroups", err)
	}
	_, _ = unix.SetfsgidRetGid(u.GID) // it returns no errors: the groups are compared
	_, _ = unix.SetfsuidRetUid(u.UID)
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if uid != u.UID || gid != u.GID {
		return fmt.Errorf("taking the rights of user %q: %w", u.Name, os.ErrPermission)
	}
	return dropAllCapabilities()
}

// dropAllCapabilities gives up all capabilities of this thread.
func dropAllCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}

// access returns nil if the thread may access a file in a mode. It must run on the thread of Do.
func (u *User) access(path string, mode uint32) error {
	if u == nil {
		return nil // the kernel decides when the file is used
	}
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
}

// MayReplace reports whether the user may change a file or a folder, or put another in its place. The
// user may do the latter if one of the folders around it can be changed.
func (u *User) MayReplace(path string) bool {
	ways, linked := []string{path}, true // with the links on them followed one by one, by root
	for linked && len(ways) <= maxLinks {
		if path, linked = followLink(path); linked {
			ways = append(ways, path)
		}
	}
	may := linked // a circle of links has no place
	err := u.Do(func() error {
		may = may || slices.ContainsFunc(ways, u.mayReplace)
		return nil
	})
	return may || err != nil
}

// maxLinks is how many links the kernel follows on the way to a file.
const maxLinks = 40

// followLink returns a path with the first link on it replaced by its target, and whether there is one.
func followLink(path string) (string, bool) {
	path = filepath.Clean(path)
	for at := 1; at <= len(path); at++ {
		if at < len(path) && path[at] != '/' {
			continue
		}
		target, err := os.Readlink(path[:at])
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path[:at]), target)
		}
		return filepath.Join(target, path[at:]), true
	}
	return path, false
}

// mayReplace is MayReplace for a path, without following its links.
func (u *User) mayReplace(path string) bool {
	absent := true // a file that does not exist would be the user's own
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		var s unix.Stat_t
		switch err := unix.Lstat(at, &s); {
		case err == nil && int(s.Uid) == u.UID:
			return true
		case err == nil && s.Mode&unix.S_IFMT != unix.S_IFLNK && u.access(at, toWrite) == nil:
			if at == path || absent || s.Mode&unix.S_ISVTX == 0 {
				return true
			}
			absent = false
		default:
			absent = absent && err == unix.ENOENT
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// become makes this process run as the user, for good. The capabilities are gone afterwards.
func (u *User) become() error {
	if u == nil {
		return nil
	}
	// A program cannot get back a right outside of this set, even if its file grants it. A container may have no right to
	// change it; the program cannot gain rights anyway.
	for c := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) == nil; c++ {
	}
	if err := syscall.Setgroups(u.Groups); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := syscall.Setresgid(u.GID, u.GID, u.GID); err != nil {
		return os.NewSyscallError("setresgid", err)
	}
	if err := syscall.Setresuid(u.UID, u.UID, u.UID); err != nil {
		return os.NewSyscallError("setresuid", err)
	}
	return dropAllCapabilities()
}

// giveUp makes this thread run as the user, and keeps it from gaining rights. The signal at the death
// of the parent belongs to a thread, and a change of the user takes it away.
func (u *User) giveUp() error {
	if err := u.become(); err != nil {
		return fmt.Errorf("running as user %q: %w", u.Name, err)
	}
	if u != nil {
		// The keys of root stay in the ring that is left. A kernel without rings has no keys.
		_, _, _ = unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// own makes a file that is open here the user's.
func (u *User) own(fd int) error {
	if u == nil {
		return nil
	}
	return os.NewSyscallError("fchown", unix.Fchown(fd, u.UID, u.GID))
}
