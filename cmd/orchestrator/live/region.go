// Package live keeps a few rows at the bottom of a terminal, below the scrolling lines, and
// reads lines that a person types there.
//
// A [Region] writes lines above the rows, redraws the rows when they change, and erases them at the
// end. While the rows are shown, the terminal does not echo and delivers each key at once. Ctrl-C
// remains a signal. Ctrl-Z is read as a key, so that the rows are erased before the program stops.
// A program in the background of its terminal does not draw and does not change the terminal's
// mode.
//
// The screens of watch use bubbletea, and this package does not. Bubbletea sets a terminal to
// raw mode: Ctrl-C is a key then, lines that other programs print there begin where the last one
// ended, and a program in the background takes the terminal from the shell.
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
	// lookEvery is how often this program checks whether it is in the foreground.
	lookEvery = 200 * time.Millisecond
	// drawEvery is the shortest pause between two redraws of changed rows.
	drawEvery = 100 * time.Millisecond
	// clocksEvery is how often the rows are redrawn because time has passed.
	clocksEvery = time.Second
	// leastRows and leastColumns are the smallest terminal that shows rows.
	leastRows, leastColumns = 5, 30
	// share limits the rows to a third of the terminal.
	share = 3
	// stuck is how long Close waits for a terminal that accepts no output.
	stuck = 200 * time.Millisecond
)

// prompt precedes the typed text.
const prompt = "> "

// A Picture describes the rows below the scrolling lines.
type Picture struct {
	// Rows returns at most the given number of rows, each at most columns wide. It is
	// called for each redraw.
	Rows func(columns, most int) []string
	// Asked reports that input is expected. The input row is then always shown, with Hint in it
	// until a person types.
	Asked bool
	Hint  string
}

// A Region keeps rows at the bottom of a terminal.
type Region struct {
	in, out *os.File
	mode    mode
	typed   chan string
	dirty   chan struct{}
	signals chan os.Signal
	quit    chan struct{}
	picture atomic.Pointer[Picture]
	wake    [2]*os.File // wake[1] is closed by Close, which ends listen
	group   sync.WaitGroup
	once    sync.Once
	closed  bool // set by once

	mu     sync.Mutex
	canvas canvas
	edit   editor
	drawn  time.Time
	over   bool
	buffer []byte
}

// Open starts a Region on a terminal. Its goroutines end with Close.
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

// guarded calls do, and restores the terminal before a panic ends the program.
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

// Fd returns the file descriptor of the terminal that is written to.
func (r *Region) Fd() uintptr { return r.out.Fd() }

// Typed returns the channel of typed lines. Close closes it.
func (r *Region) Typed() <-chan string { return r.typed }

// Show sets the picture. It does not wait until the picture is drawn.
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

// live reports whether rows may be drawn: r is open and this program is in the foreground.
func (r *Region) live() bool {
	if r.over {
		return false
	}
	if front(r.mode.fd) {
		return r.mode.take()
	}
	r.mode.lost()
	r.canvas.frame = frame{caret: -1} // another program may have written since
	return false
}

// redraw draws the rows if they have changed.
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

// compose returns the frame for the current size of the terminal.
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
	columns-- // text in the last column can wrap the row
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

// input adds the row for the input of a person, and returns it with the caret's column.
func (r *Region) input(rows []string, columns int, hint string) ([]string, int) {
	room := max(0, columns-term.Width(prompt)-1)
	text := r.edit.shown(room)
	caret := min(columns, term.Width(prompt)+term.Width(text))
	if text == "" {
		text = term.Clip(hint, room)
	}
	return append(rows, term.Clip(prompt+text, columns)), caret
}

// Close erases the rows and restores the terminal. It returns false if the terminal accepts
// no output within a short time.
func (r *Region) Close() bool {
	r.once.Do(func() {
		r.mode.restore()
		signal.Stop(r.signals)
		close(r.quit)
		_ = r.wake[1].Close()
		erased := make(chan struct{})
		go func() { // ends when the terminal accepts the bytes, or with the program
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
