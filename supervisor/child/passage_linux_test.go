package child

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestForksCopyNoFilesOfOthers checks that the thread that forks does not have the files of children, whose number is
// the cost of a fork. It counts the files of that thread before and after.
func TestForksCopyNoFilesOfOthers(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		start(t, h, sh("exit 0")).end(t)
		before := filesOfForker(t)
		var children []*told
		for range 50 {
			children = append(children, start(t, h, sh("exec cat")))
		}
		require.LessOrEqual(t, filesOfForker(t), before+4, "those of one start")
		for _, c := range children {
			c.CloseStdin()
			c.end(t)
		}
	})
}

// filesOfForker returns the fewest files that a thread of this process has.
func filesOfForker(t *testing.T) int {
	t.Helper()
	tables, err := filepath.Glob("/proc/self/task/*/fd")
	require.NoError(t, err)
	fewest := 1 << 20
	for _, table := range tables {
		if entries, err := os.ReadDir(table); err == nil && len(entries) > 0 {
			fewest = min(fewest, len(entries))
		}
	}
	return fewest
}

// TestForkerWithGarbage checks that the runtime works on the thread that forks. A collection that begins there looks at
// the poller.
func TestForkerWithGarbage(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 200 {
				runtime.GC()
			}
		}()
		for range 50 {
			spec := sh("exit 0")
			for i := range 2000 { // StartProcess copies it
				spec.Env = append(spec.Env, fmt.Sprintf("LONG_%d=%0200d", i, i))
			}
			start(t, h, spec).end(t)
		}
		<-done
	})
}

// TestExecThatFailsKeepsNothing checks an upgrade with more files than one message takes, to a program that cannot be
// executed.
func TestExecThatFailsKeepsNothing(t *testing.T) {
	onHosts(t, func(t *testing.T, h *Host) {
		before := filesOfForker(t)
		var files []int
		for range 3 * maxPassed {
			fd, err := null()
			require.NoError(t, err)
			defer unix.Close(fd)
			files = append(files, fd)
		}
		err := h.Exec("/nowhere", []string{"nowhere"}, nil, files)
		require.ErrorIs(t, err, unix.ENOENT)
		require.Equal(t, before, filesOfForker(t))
		exit, _ := start(t, h, sh("exit 3")).end(t)
		require.Equal(t, 3, exit.Code)
	})
}

// TestFilesGetTheirNumbers checks that files for the next program get their numbers, which other ones may have.
func TestFilesGetTheirNumbers(t *testing.T) {
	read, write, err := os.Pipe() // the poller is in use
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	made := make(chan *passage, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // never unlocked: the thread ends
		p := newPassage()
		made <- p
		var fds []int
		for i := range 6 {
			file, err := unix.MemfdCreate(fmt.Sprint(i), unix.MFD_CLOEXEC)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = unix.Write(file, []byte{byte(i)})
			fds = append(fds, file)
		}
		p.held = map[int]int{fds[0]: fds[1], fds[1]: fds[2], fds[2]: fds[0], fds[3]: fds[3], p.in: fds[4], fds[5] + 40: fds[5]}
		want := map[int]byte{fds[0]: 1, fds[1]: 2, fds[2]: 0, fds[3]: 3, p.in: 4, fds[5] + 40: 5}
		if err := p.place(); err != nil {
			t.Error(err)
		}
		for number, content := range want {
			var got [1]byte
			_, err := unix.Pread(number, got[:], 0)
			flags, _ := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0)
			if err != nil || got[0] != content || flags != 0 {
				t.Errorf("file %d has %d, not %d (%v, flags %d)", number, got[0], content, err, flags)
			}
		}
	}()
	p := <-made
	defer p.close()
	<-over
	p.settle()
}
