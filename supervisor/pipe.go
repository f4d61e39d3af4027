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

// Conn is a connection by which a program joins as an agent. What comes in is
// the agent's stdout, what goes out its stdin.
type Conn interface {
	// Read returns io.EOF when nothing more will come and what goes out is
	// still read, and another error when the program is gone.
	io.ReadCloser
	child.Stdin
	// Gone waits, after io.EOF, until the program is gone. Close ends the
	// wait.
	Gone()
}

// hungUp is the exit of a pipe whose other end went away without having ended
// what it said: it was killed, or lost. There is no exit code to be had, so it
// counts as ended by the signal that stands for a line that was hung up.
var hungUp = child.Exit{Code: -1, Signal: syscall.SIGHUP}

// pipe is a Process that is no child but a connection. It runs from the moment
// a program has joined until one of these:
//
//	what comes in ends         all that was asked is answered first: exit 0
//	its stdin ends             it is told so (wire.Farewell), and leaves: exit 0
//	Signal                     the connection is cut: exit 0, for it was told before
//	Kill                       the connection is cut: killed by SIGKILL
//	the program is gone        killed by SIGHUP, unless it was told to leave
//
// The farewell is the last word. Where the other side does not wait for it to
// leave, it comes after the end of the run was recorded: a program that has heard it
// sees everywhere that it is over.
type pipe struct {
	conn  Conn
	began time.Time
	spec  child.Spec
	// answers waits until all is answered that was asked, or over, and has the
	// stdin ended then. parted waits until the end of the run is recorded.
	answers func(over <-chan struct{})
	parted  func()

	closing sync.Once
	shut    chan struct{} // closed when there is nothing more to write
	said    chan struct{} // closed when the farewell has been said
	fixing  sync.Once
	exit    child.Exit
	cutting sync.Once
	over    chan struct{} // closed when the connection is cut
	done    chan struct{} // closed when run has returned
}

func newPipe(conn Conn, spec child.Spec) *pipe {
	return &pipe{
		conn: conn, began: time.Now(), spec: spec,
		shut: make(chan struct{}), said: make(chan struct{}), over: make(chan struct{}), done: make(chan struct{}),
	}
}

// PID is 0: there is no process of ours.
func (p *pipe) PID() int              { return 0 }
func (p *pipe) StartedAt() time.Time  { return p.began }
func (p *pipe) Stdin() child.Stdin    { return pipeStdin{p.conn} }
func (p *pipe) Signal(syscall.Signal) { p.end(child.Exit{}) }
func (p *pipe) Kill()                 { p.end(child.Exit{Code: -1, Signal: syscall.SIGKILL}) }
func (p *pipe) Unread() int64         { return 0 }
func (p *pipe) Usage() (int64, int64) { return 0, 0 }

// CloseStdin is for when all is written.
func (p *pipe) CloseStdin() bool {
	p.closing.Do(func() { close(p.shut) })
	return true
}

// pipeStdin is the outgoing side of a pipe. Its end looks like that of a child's
// stdin.
type pipeStdin struct{ child.Stdin }

func (in pipeStdin) Write(text []byte) (int, error) {
	n, err := in.Stdin.Write(text)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		err = os.ErrClosed
	}
	return n, err
}

// fix says how the run ended. What ends it first does.
func (p *pipe) fix(exit child.Exit) { p.fixing.Do(func() { p.exit = exit }) }

// end cuts the connection.
func (p *pipe) end(exit child.Exit) {
	p.fix(exit)
	p.cutting.Do(func() {
		close(p.over)
		_ = p.conn.Close()
	})
}

// leave ends the pipe because the program is gone. That is in order when
// it had been told that there is nothing more to hear.
func (p *pipe) leave() {
	select {
	case <-p.said:
		p.end(child.Exit{})
	default:
		p.end(hungUp)
	}
}

// run sees the pipe to its end. The two goroutines that it starts end before it.
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
	p.spec.Exited(exit)
	p.spec.Ended(child.Ending{})
	p.parted()
	p.farewell()
	p.end(exit)
	others.Wait()
}

// listen hears what comes in, to its end. A last line without its end gets one,
// so that it is heard before anything follows from the end.
func (p *pipe) listen() error {
	chunk := make([]byte, 32<<10)
	last := byte('\n')
	for {
		n, err := p.conn.Read(chunk)
		if n > 0 {
			last = chunk[n-1]
			p.spec.Output(child.Stdout, chunk[:n])
		}
		if errors.Is(err, io.EOF) && last != '\n' {
			p.spec.Output(child.Stdout, []byte("\n"))
		}
		if err != nil {
			return err
		}
	}
}

// dismiss says farewell to one that has more to say, when its stdin has ended:
// it is to leave.
func (p *pipe) dismiss(heard <-chan struct{}) {
	select {
	case <-p.shut:
		p.farewell()
	case <-heard:
	case <-p.over:
	}
}

// farewell says, once, that nothing more will be said. There is no other writer any
// more. It is not said where the program is gone.
func (p *pipe) farewell() {
	select {
	case <-p.said:
	default:
		if p.conn.SetWriteDeadline(time.Time{}) != nil {
			return
		}
		if _, err := io.WriteString(p.conn, wire.Farewell); err == nil {
			close(p.said)
		}
	}
}
