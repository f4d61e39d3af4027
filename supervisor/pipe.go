package supervisor

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// A Conn is the connection of a program that joins as an agent. Its input is the agent's stdout, and its output is the
// agent's stdin.
type Conn interface {
	// Read returns io.EOF when the program has ended its output but still reads, and another error when the program is
	// gone.
	io.ReadCloser
	child.Stdin
	// Gone waits, after io.EOF, until the program is gone or Close is called.
	Gone()
}

// hungUp is the exit of a pipe after its program went away without ending its output: it was killed, or the connection
// was lost. No exit code is known, so the run counts as ended by SIGHUP.
var hungUp = child.Exit{Code: -1, Signal: syscall.SIGHUP}

// goodbyePatience is how long a program that has ended its output may take to read the rest.
const goodbyePatience = 10 * time.Second

// A pipe is a Process that is a connection instead of a child. It lasts from the moment a
// program joins until one of these events:
//
//	the input ends             all requests are answered first: exit 0
//	its stdin ends             it gets wire.Farewell and leaves: exit 0
//	Signal                     the connection is cut: exit 0, because it got a notice before
//	Kill                       the connection is cut: killed by SIGKILL
//	the program is gone        killed by SIGHUP, unless it was asked to leave
//
// The farewell is the last message. Unless the other side waits for it before leaving, it is
// sent after the end of the run was recorded. So a program that has received it finds the run
// ended everywhere.
type pipe struct {
	conn  Conn
	began time.Time
	to    child.Listener
	// answers waits until all requests are answered, or until over is closed, and then ends
	// stdin. parted waits until the end of the run is recorded.
	answers func(over <-chan struct{})
	parted  func()

	closing sync.Once
	shut    chan struct{} // closed when no more output follows
	said    chan struct{} // closed when the farewell has been sent
	fixing  sync.Once
	exit    child.Exit
	cutting sync.Once
	over    chan struct{} // closed when the connection is cut
	done    chan struct{} // closed when run has returned
}

func newPipe(conn Conn, to child.Listener) *pipe {
	return &pipe{
		conn: conn, began: time.Now(), to: to,
		shut: make(chan struct{}), said: make(chan struct{}), over: make(chan struct{}), done: make(chan struct{}),
	}
}

// PID returns 0: a pipe has no child process.
func (p *pipe) PID() int              { return 0 }
func (p *pipe) StartedAt() time.Time  { return p.began }
func (p *pipe) Stdin() child.Stdin    { return pipeStdin{p.conn} }
func (p *pipe) Kill()                 { p.end(child.Exit{Code: -1, Signal: syscall.SIGKILL}) }
func (p *pipe) Unread() int64         { return 0 }
func (p *pipe) Usage() (int64, int64) { return 0, 0 }

// Signal cuts the connection, unless the run has already ended. Then the farewell is still to be sent.
func (p *pipe) Signal(syscall.Signal) {
	if p.fix(child.Exit{}) {
		p.end(child.Exit{})
	}
}

// CloseStdin reports that everything has been written.
func (p *pipe) CloseStdin() bool {
	p.closing.Do(func() { close(p.shut) })
	return true
}

// pipeStdin is the output side of a pipe. After its end it returns the same error as a child's
// stdin.
type pipeStdin struct{ child.Stdin }

func (p pipeStdin) Write(text []byte) (int, error) {
	n, err := p.Stdin.Write(text)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		err = os.ErrClosed
	}
	return n, err
}

// fix sets the exit of the run. Only the first call has an effect, and returns true.
func (p *pipe) fix(exit child.Exit) bool {
	first := false
	p.fixing.Do(func() { p.exit, first = exit, true })
	return first
}

// end cuts the connection.
func (p *pipe) end(exit child.Exit) {
	p.fix(exit)
	p.cutting.Do(func() {
		close(p.over)
		_ = p.conn.Close()
	})
}

// leave ends the pipe because the program is gone. The exit is 0 if the program got the
// farewell before.
func (p *pipe) leave() {
	select {
	case <-p.said:
		p.end(child.Exit{})
	default:
		p.end(hungUp)
	}
}

// run works until the pipe has ended. The two goroutines that it starts end before it returns.
func (p *pipe) run() {
	defer close(p.done)
	var others sync.WaitGroup
	heard := make(chan struct{})
	others.Go(func() { p.dismiss(heard) })
	err := p.listen()
	close(heard)
	others.Wait()
	if errors.Is(err, io.EOF) {
		others.Go(func() {
			p.conn.Gone()
			p.leave()
		})
		p.answers(p.over)
		select {
		case <-p.shut:
		case <-p.over:
		}
		p.fix(child.Exit{})
	} else {
		p.leave()
	}
	exit := p.exit
	exit.At = time.Now()
	p.to.Exited(exit)
	p.to.Ended(child.Ending{})
	p.parted()
	p.farewell(time.Now().Add(goodbyePatience))
	p.end(exit)
	others.Wait()
}

// listen reads the input to its end. It adds a missing final newline, so that the last line is
// handled before the end of the input.
func (p *pipe) listen() error {
	chunk := make([]byte, 32<<10)
	last := byte('\n')
	for {
		n, err := p.conn.Read(chunk)
		if n > 0 {
			last = chunk[n-1]
			p.to.Output(child.Stdout, chunk[:n])
		}
		if errors.Is(err, io.EOF) && last != '\n' {
			p.to.Output(child.Stdout, []byte("\n"))
		}
		if err != nil {
			return err
		}
	}
}

// dismiss sends the farewell when stdin has ended before the input.
func (p *pipe) dismiss(heard <-chan struct{}) {
	select {
	case <-p.shut:
		p.farewell(time.Time{}) // a stop that takes too long cuts the connection
	case <-heard:
	case <-p.over:
	}
}

// farewell sends the farewell once, unless the program is gone or does not read until the deadline. No other
// writer is left then.
func (p *pipe) farewell(deadline time.Time) {
	select {
	case <-p.said:
	default:
		if p.conn.SetWriteDeadline(deadline) != nil {
			return
		}
		if _, err := io.WriteString(p.conn, wire.Farewell); err == nil {
			close(p.said)
		}
	}
}
