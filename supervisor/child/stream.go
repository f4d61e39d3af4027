package child

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	chunkSize = 64 << 10
	// much is a read after which the next one takes wideChunk. It is half of a new pipe: a program that writes 60 KiB
	// at a time never fills a pipe of 64 KiB.
	much      = 32 << 10
	wideChunk = 256 << 10
	// widePipe is the size that a child's pipe grows to after such a read. Heavy output then needs a quarter of the
	// wake-ups. Other pipes keep the default size, because pipe memory is limited for each user.
	widePipe = 1 << 20
)

// chunks and wideChunks hold the buffers for streams with output, so that a quiet stream needs none.
var (
	chunks     = sync.Pool{New: func() any { return newChunk(chunkSize) }}
	wideChunks = sync.Pool{New: func() any { return newChunk(wideChunk) }}
)

func newChunk(size int) *[]byte {
	chunk := make([]byte, size)
	return &chunk
}

// A pump passes one stream of a child to its Listener.
type pump struct {
	stream Stream
	file   *os.File
	raw    syscall.RawConn
	to     Listener
	done   chan struct{} // closed at the end of the stream
	cut    bool          // closed by finish while a process still held the other end
	held   []Process     // the processes that held it, as far as they are known
	wide   bool

	mu       sync.Mutex
	finished bool // finish cuts the stream
	holding  bool // hold was called
	resting  bool // run has returned because of hold
}

// newPump returns a pump that owns file, which must be non-blocking.
func newPump(stream Stream, file *os.File, to Listener) (*pump, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &pump{stream: stream, file: file, raw: raw, to: to, done: make(chan struct{})}, nil
}

// run passes output on until the end of the stream, or until finish cuts it.
func (p *pump) run() {
	defer close(p.done)
	if p.pass() {
		_ = p.file.Close()
	}
}

// pass passes output on until the stream is over. It returns false if hold interrupts it.
func (p *pump) pass() (over bool) {
	var chunk *[]byte
	var n int
	var readErr error
	pool := &chunks
	read := func(fd uintptr) bool {
		chunk = pool.Get().(*[]byte)
		n, readErr = readFD(int(fd), *chunk)
		if readErr == unix.EAGAIN {
			pool.Put(chunk)
			pool = &chunks
			return false
		}
		return true
	}
	for {
		if err := p.raw.Read(read); errors.Is(err, os.ErrDeadlineExceeded) {
			switch rest, held := p.interrupted(); {
			case held:
				return false
			case rest:
				p.cut = p.rest()
				return true
			}
			continue
		} else if err != nil {
			return true
		}
		if n > 0 {
			p.to.Output(p.stream, (*chunk)[:n])
		}
		pool.Put(chunk)
		if n <= 0 || readErr != nil {
			return true // EOF; a terminal returns EIO instead
		}
		pool = &chunks
		if n >= much {
			pool = &wideChunks
			p.widen()
		}
	}
}

// widen makes the pipe larger, once.
func (p *pump) widen() {
	if !p.wide {
		p.wide = true
		_ = p.raw.Control(func(fd uintptr) { widen(int(fd), widePipe) })
	}
}

// hold stops the reading when the Output func has returned. The stream stays open, and loses no data. hold returns
// false if that takes longer than patience; the caller then calls resume.
func (p *pump) hold(patience time.Duration) bool {
	p.mu.Lock()
	p.holding = true
	_ = p.file.SetReadDeadline(time.Unix(1, 0)) // an error means that the stream is over
	done := p.done
	p.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// resume undoes hold.
func (p *pump) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = false
	_ = p.file.SetReadDeadline(time.Time{})
	if p.resting {
		p.resting, p.done = false, make(chan struct{})
		go p.run()
	}
}

// interrupted returns why a read has reached its deadline: finish cuts the stream, or hold stops the reading. It is
// neither if hold was undone before.
func (p *pump) interrupted() (finished, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = p.holding
	return p.finished, p.holding
}

// rest passes on the output that is in the pipe already, without waiting. It reports whether the other end is still
// open.
func (p *pump) rest() (open bool) {
	chunk := chunks.Get().(*[]byte)
	defer chunks.Put(chunk)
	for heard := 0; heard <= widePipe; { // a full pipe, and then one read that shows whether it is still open
		var n int
		var err error
		if p.raw.Control(func(fd uintptr) { n, err = readFD(int(fd), *chunk) }) != nil {
			return false
		}
		if n <= 0 || err != nil {
			return err == unix.EAGAIN
		}
		p.to.Output(p.stream, (*chunk)[:n])
		heard += n
	}
	return true
}

// finish waits for the end of the stream and cuts the stream after patience. It waits without
// limit for an Output func that is still running.
func (p *pump) finish(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.held = holders(p.pipeName())
		p.mu.Lock()
		p.finished = true
		_ = p.file.SetReadDeadline(time.Unix(1, 0))
		p.mu.Unlock()
		<-p.done
	}
}

// readFD is read(2), repeated after EINTR.
func readFD(fd int, into []byte) (int, error) {
	for {
		n, err := unix.Read(fd, into)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// pipe creates a pipe for a child. The end of this process is non-blocking, the child's end is
// blocking, and both close on exec.
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

// openPty creates a terminal for the child's stdin and stdout. It is raw before the child gets
// it. Otherwise the line discipline would cut lines at 4095 bytes, change line ends, and echo
// messages as if the child had sent them.
//
// The master that package pty opens is blocking and supports neither deadlines nor Close while
// it is read. A non-blocking duplicate supports both.
func (c *Child) openPty(e *ends) error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer master.Close()
	defer slave.Close()
	if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
		return err
	}
	if err := plainEcho(int(slave.Fd())); err != nil {
		return err
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		return err
	}
	fd, err := dupFD(int(master.Fd()))
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "terminal")
	if c.stdin, err = newStdin(file); err != nil {
		return err
	}
	theirs, err := dupFD(int(slave.Fd()))
	if err != nil {
		return err
	}
	e.theirs = append(e.theirs, theirs)
	if err := unix.SetNonblock(theirs, false); err != nil {
		return err
	}
	e.stdin, e.stdout = theirs, theirs
	c.out, err = newPump(Stdout, file, c.spec.Listener)
	return err
}

// plainEcho makes an echo that the program turns on return lines unchanged. Otherwise a newline
// would come back as ^J, and neither a line reader nor the echo filter would recognize it.
func plainEcho(fd int) error {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHOCTL
	return unix.IoctlSetTermios(fd, setTermios, t)
}

// typeEnd types the end-of-file character if the terminal behind master is in line mode and has
// one. It does not block.
func typeEnd(master *stdin) bool {
	conn, err := master.SyscallConn()
	if err != nil {
		return false
	}
	typed := false
	_ = conn.Control(func(fd uintptr) {
		t, err := unix.IoctlGetTermios(int(fd), getTermios) // the settings of the program's side
		if err == nil && t.Lflag&unix.ICANON != 0 && t.Cc[unix.VEOF] != noChar {
			n, _ := unix.Write(int(fd), t.Cc[unix.VEOF:unix.VEOF+1])
			typed = n == 1
		}
	})
	return typed
}

// dupFD returns a non-blocking duplicate of fd that is closed on exec.
func dupFD(fd int) (int, error) {
	dup, err := unix.FcntlInt(uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(dup, true); err != nil {
		closeAll(dup)
		return -1, os.NewSyscallError("fcntl", err)
	}
	return dup, nil
}

// Resize sets the window size of a child's terminal.
func (c *Child) Resize(rows, cols uint16) error {
	if !c.spec.Pty {
		return nil
	}
	conn, err := c.stdin.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = conn.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
	if err != nil {
		return err
	}
	return set
}
