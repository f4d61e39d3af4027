package live

import "strconv"

const (
	begin   = "\x1b[?2026h" // begins a synchronized update, if the terminal supports it
	commit  = "\x1b[?2026l"
	hide    = "\x1b[?25l"
	reveal  = "\x1b[?25h"
	wipe    = "\x1b[J" // from here to the end of the screen
	wipeRow = "\x1b[K"
)

// frame holds the rows of the screen and the column of the caret in the last row.
type frame struct {
	rows  []string
	caret int // -1: no caret
}

func (f *frame) same(o *frame) bool {
	if len(f.rows) != len(o.rows) || f.caret != o.caret {
		return false
	}
	for i := range f.rows {
		if f.rows[i] != o.rows[i] {
			return false
		}
	}
	return true
}

// canvas holds the frame on the screen. The cursor is in its last row. If no rows are
// drawn, the cursor is where the next line begins.
type canvas struct{ frame }

// erase appends the bytes that remove the frame from the screen.
func (c *canvas) erase(b []byte) []byte {
	if len(c.rows) == 0 {
		return b
	}
	b = append(up(append(b, '\r'), len(c.rows)-1), wipe...)
	if c.caret < 0 {
		b = append(b, reveal...)
	}
	c.frame = frame{caret: -1}
	return b
}

// draw appends the bytes that draw f on an empty canvas.
func (c *canvas) draw(b []byte, f frame) []byte {
	if c.frame = f; len(f.rows) == 0 {
		return b
	}
	for i, row := range f.rows {
		if i > 0 {
			b = append(b, '\n')
		}
		b = append(b, row...)
	}
	if f.caret < 0 {
		return append(b, hide...)
	}
	return right(append(b, '\r'), f.caret)
}

// change appends the bytes that replace the frame on the screen with f.
func (c *canvas) change(b []byte, f frame) []byte {
	switch {
	case c.same(&f):
		return b
	case len(c.rows) != len(f.rows):
		return c.draw(c.erase(b), f)
	}
	b = up(append(b, '\r'), len(f.rows)-1)
	for i, row := range f.rows {
		if i > 0 {
			b = append(b, '\n')
		}
		if row != c.rows[i] {
			b = append(append(b, row...), wipeRow...)
		}
	}
	b = append(b, '\r')
	switch {
	case f.caret < 0 && c.caret >= 0:
		b = append(b, hide...)
	case f.caret >= 0 && c.caret < 0:
		b = append(b, reveal...)
	}
	c.frame = f
	return right(b, max(0, f.caret))
}

func up(b []byte, n int) []byte    { return move(b, n, 'A') }
func right(b []byte, n int) []byte { return move(b, n, 'C') }

func move(b []byte, n int, where byte) []byte {
	if n == 0 {
		return b
	}
	return append(strconv.AppendInt(append(b, "\x1b["...), int64(n), 10), where)
}
