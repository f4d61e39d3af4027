package child

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunkSize = 64 << 10
	// widePipe is what the pipe of a child grows to when it fills a whole
	// chunk: a flood then costs a quarter of the wake-ups. Quiet children keep
	// the default, because pipe memory is limited for each user.
	widePipe = 1 << 20
)

// chunks lends buffers to streams that have something to say just now, so that
// a quiet stream holds none.
var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// pump carries one stream of a child to its listener.
type pump struct {
	stream Stream
	file   *os.File
	raw    syscall.RawConn
	output func(Stream, []byte)
	done   chan struct{} // closed at the end of the stream
	cut    bool          // the end is ours: a process still holds the other side
	held   []Process     // who that is, as far as can be seen
	wide   bool
}

// newPump takes over file, which must be non-blocking.
func newPump(stream Stream, file *os.File, output func(Stream, []byte)) (*pump, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &pump{stream: stream, file: file, raw: raw, output: output, done: make(chan struct{})}, nil
}

// run carries until the end of the stream, or until finish loses patience.
func (p *pump) run() {
	defer close(p.done)
	var chunk *[chunkSize]byte
	var n int
	var readErr error
	read := func(fd uintptr) bool {
		chunk = chunks.Get().(*[chunkSize]byte)
		n, readErr = readFD(int(fd), chunk[:])
		if readErr == unix.EAGAIN {
			chunks.Put(chunk)
			return false
		}
		return true
	}
	for {
		if err := p.raw.Read(read); err != nil {
			p.cut = errors.Is(err, os.ErrDeadlineExceeded) && p.rest()
			break
		}
		if n > 0 {
			p.output(p.stream, chunk[:n])
		}
		chunks.Put(chunk)
		if n <= 0 || readErr != nil {
			break // EOF; EIO is how a terminal says it
		}
		if n == chunkSize && !p.wide {
			p.wide = true
			_ = p.raw.Control(func(fd uintptr) { widen(int(fd), widePipe) })
		}
	}
	_ = p.file.Close()
}

// rest hears what is in the pipe already, without waiting for more. It says
// whether the other side is still open.
func (p *pump) rest() (open bool) {
	chunk := chunks.Get().(*[chunkSize]byte)
	defer chunks.Put(chunk)
	for heard := 0; heard < widePipe; {
		var n int
		var err error
		if p.raw.Control(func(fd uintptr) { n, err = readFD(int(fd), chunk[:]) }) != nil {
			return false
		}
		if n <= 0 || err != nil {
			return err == unix.EAGAIN
		}
		p.output(p.stream, chunk[:n])
		heard += n
	}
	return true
}

// finish waits for the end of the stream, at most for patience without one.
// A listener that is still busy with what was said is waited for.
func (p *pump) finish(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.held = holders(p.pipeName())
		_ = p.file.SetReadDeadline(time.Unix(1, 0))
		<-p.done
	}
}

// readFD is read(2), again after a signal.
func readFD(fd int, into []byte) (int, error) {
	for {
		n, err := unix.Read(fd, into)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// pipe makes a pipe for a child: ours is non-blocking and known to the poller,
// the child's is an ordinary one. Both close on exec.
func pipe(name string, oursReads bool) (ours *os.File, theirs int, err error) {
	var ends [2]int
	if err := cloexecPipe(&ends); err != nil {
		return nil, -1, os.NewSyscallError("pipe", err)
	}
	mine, other := ends[0], ends[1]
	if !oursReads {
		mine, other = other, mine
	}
	if err := unix.SetNonblock(mine, true); err != nil {
		closeAll(mine, other)
		return nil, -1, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(mine), name), other, nil
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
