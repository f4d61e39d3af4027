package live

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"

	"orchestrator/cmd/orchestrator/term"
)

const (
	// lookEvery is how often it is looked whether this program is in front.
	lookEvery = 200 * time.Millisecond
	// drawEvery is how often the rows are drawn at most when they change.
	drawEvery = 100 * time.Millisecond
	// clocksEvery is how often they are drawn because time has passed.
	clocksEvery = time.Second
	// leastRows and leastColumns are what a terminal must have for any rows.
	leastRows, leastColumns = 5, 30
	// share is the part of the terminal that the rows may take.
	share = 3
	// stuck is how long the end waits for a terminal that takes nothing.
	stuck = 200 * time.Millisecond
)

// prompt stands in front of what a person types.
const prompt = "> "

// Picture is what is to be seen below the lines.
type Picture struct {
	// Rows are composed each time they may be drawn: at most so many, none wider.
	Rows func(columns, most int) []string
	// Asked says that something typed is waited for: then there is a row for it, also
	// while nothing is typed. Hint stands in it until then.
	Asked bool
	Hint  string
}

// Region is the bottom of a terminal.
type Region struct {
	in, out *os.File
	mode    mode
	typed   chan string
	dirty   chan struct{}
	signals chan os.Signal
	quit    chan struct{}
	picture atomic.Pointer[Picture]
	wake    [2]*os.File // written to by Close, for who waits for a key
	group   sync.WaitGroup
	once    sync.Once
	closed  bool // by once

	mu     sync.Mutex
	canvas canvas
	edit   editor
	drawn  time.Time
	over   bool
	buffer []byte
}

// Open begins to keep the bottom of a terminal. The goroutines that it starts end
// with Close.
func Open(in, out *os.File) (*Region, error) {
	r := &Region{
		in: in, out: out, mode: mode{fd: int(in.Fd())}, canvas: canvas{frame{caret: -1}},
		typed: make(chan string), dirty: make(chan struct{}, 1), signals: make(chan os.Signal, 8), quit: make(chan struct{}),
	}
	var err error
	if r.wake[0], r.wake[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	r.picture.Store(new(Picture))
	signal.Notify(r.signals, unix.SIGWINCH, unix.SIGCONT)
	r.mode.take()
	r.group.Go(func() { r.guarded(r.keep) })
	r.group.Go(func() { r.guarded(r.listen) })
	return r, nil
}

// guarded gives the terminal back before a bug ends the program.
func (r *Region) guarded(do func()) {
	defer func() {
		if cause := recover(); cause != nil {
			r.mode.restore()
			_, _ = r.out.WriteString(commit + reveal + "\r" + wipe)
			panic(cause)
		}
	}()
	do()
}

// Fd is the terminal that is written to.
func (r *Region) Fd() uintptr { return r.out.Fd() }

// Typed gives the lines that a person types. It is closed by Close.
func (r *Region) Typed() <-chan string { return r.typed }

// Show changes the picture. It does not wait for it to be drawn, nor for a terminal that
// takes nothing.
func (r *Region) Show(p Picture) {
	r.picture.Store(&p)
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// Write writes whole lines above the rows. After Close it writes them as they are.
func (r *Region) Write(lines []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live() && len(r.canvas.rows) == 0 {
		return r.out.Write(lines)
	}
	b := r.canvas.erase(append(r.buffer[:0], begin...))
	before := len(b)
	b = append(b, lines...)
	if n := len(b); n > 0 && b[n-1] != '\n' {
		b = append(b, '\n')
	}
	b = append(r.canvas.draw(b, r.compose()), commit...)
	n, err := r.flush(b)
	return min(max(0, n-before), len(lines)), err
}

// live reports whether anything may be drawn: it is the turn of this program.
func (r *Region) live() bool {
	if r.over {
		return false
	}
	if front(r.mode.fd) {
		return r.mode.take()
	}
	r.mode.lost()
	r.canvas.frame = frame{caret: -1} // what was drawn is not ours to remove
	return false
}

// redraw draws what has changed.
func (r *Region) redraw() {
	if !r.live() {
		return
	}
	f := r.compose()
	if r.canvas.same(&f) {
		return
	}
	r.drawn = time.Now()
	_, _ = r.flush(append(r.canvas.change(append(r.buffer[:0], begin...), f), commit...))
}

func (r *Region) flush(b []byte) (int, error) {
	n, err := r.out.Write(b)
	if cap(b) <= 1<<20 {
		r.buffer = b
	}
	return n, err
}

// compose makes the rows for the terminal as it is now.
func (r *Region) compose() frame {
	f := frame{caret: -1}
	picture := r.picture.Load()
	if r.over {
		return f
	}
	columns, rows, err := xterm.GetSize(int(r.out.Fd()))
	if err != nil || rows < 2 || columns < 2 {
		return f
	}
	columns-- // the last one makes terminals break the row
	roomy := rows >= leastRows && columns >= leastColumns-1
	typing := len(r.edit.line) > 0 || picture.Asked && roomy
	most := max(1, rows/share)
	if typing {
		most--
	}
	if roomy && picture.Rows != nil && most > 0 {
		f.rows = picture.Rows(columns, most)
		f.rows = f.rows[:min(len(f.rows), most)]
	}
	if typing {
		f.rows, f.caret = r.input(f.rows, columns, picture.Hint)
	}
	return f
}

// input adds the row in which a person types.
func (r *Region) input(rows []string, columns int, hint string) ([]string, int) {
	room := max(0, columns-term.Width(prompt)-1)
	text := r.edit.shown(room)
	caret := min(columns, term.Width(prompt)+term.Width(text))
	if text == "" {
		text = term.Clip(hint, room)
	}
	return append(rows, term.Clip(prompt+text, columns)), caret
}

// Close takes the rows away, and gives the terminal back as it was. It does not wait
// for a terminal that takes nothing, and says false then.
func (r *Region) Close() bool {
	r.once.Do(func() {
		r.mode.restore()
		signal.Stop(r.signals)
		close(r.quit)
		_ = r.wake[1].Close()
		erased := make(chan struct{})
		go func() { // ends when the terminal takes it, or with the program
			defer close(erased)
			r.erase()
		}()
		select {
		case <-erased:
			r.group.Wait()
			_ = r.wake[0].Close()
			r.closed = true
		case <-time.After(stuck):
		}
	})
	return r.closed
}

func (r *Region) erase() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && front(r.mode.fd) {
		if b := r.canvas.erase(nil); len(b) > 0 {
			_, _ = r.out.Write(b)
		}
	}
	r.over = true
	r.mode.restore()
}
