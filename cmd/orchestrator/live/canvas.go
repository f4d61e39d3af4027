package live

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"

	"orchestrator/cmd/orchestrator/term"
)

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

// longest is the maximum length of a line in bytes. Input beyond it is dropped.
const longest = 16 << 10

// The bytes that a terminal sends for keys.
const (
	keyEnter     = '\r'
	keyLine      = '\n'
	keyBackspace = '\b'
	keyDelete    = 0x7f
	keyEscape    = 0x1b
	keyKillLine  = 'U' - '@'
	keyKillWord  = 'W' - '@'
	keySuspend   = 'Z' - '@'
)

// editor assembles typed bytes into lines.
type editor struct {
	line   []byte
	part   []byte // the first bytes of an incomplete character
	escape int    // the position in an escape sequence; 0: outside
}

// feed takes bytes and returns the lines that they complete.
func (e *editor) feed(typed []byte) (lines []string) {
	for _, b := range typed {
		switch {
		case e.escape > 0:
			e.follow(b)
		case b == keyEnter || b == keyLine:
			lines = append(lines, string(e.line))
			e.line, e.part = e.line[:0], e.part[:0]
		default:
			e.key(b)
		}
	}
	return lines
}

// follow skips the escape sequence of a key without a function here, such as an arrow.
func (e *editor) follow(b byte) {
	switch {
	case e.escape == 1 && (b == '[' || b == 'O'):
		e.escape = 2
	case e.escape == 2 && (b < '@' || b > '~'): // its parameters
	default:
		e.escape = 0
	}
}

func (e *editor) key(b byte) {
	switch b {
	case keyEscape:
		e.escape = 1
	case keyBackspace, keyDelete:
		_, size := utf8.DecodeLastRune(e.line)
		e.line = e.line[:len(e.line)-size]
	case keyKillLine:
		e.line = e.line[:0]
	case keyKillWord:
		kept := bytes.TrimRightFunc(e.line, unicode.IsSpace)
		e.line = bytes.TrimRightFunc(kept, func(r rune) bool { return !unicode.IsSpace(r) })
	default:
		e.sign(b)
	}
}

// sign adds one byte of a character. It drops invalid UTF-8 and unprintable characters.
func (e *editor) sign(b byte) {
	e.part = append(e.part, b)
	if !utf8.FullRune(e.part) {
		return
	}
	r, _ := utf8.DecodeRune(e.part)
	if r != utf8.RuneError && unicode.IsPrint(r) && len(e.line)+len(e.part) <= longest {
		e.line = append(e.line, e.part...)
	}
	e.part = e.part[:0]
}

// shown returns the end of the line, at most size columns wide.
func (e *editor) shown(size int) string {
	first := len(e.line)
	for first > 0 {
		sign, n := utf8.DecodeLastRune(e.line[:first])
		if size -= term.Width(string(sign)); size < 0 {
			break
		}
		first -= n
	}
	return string(e.line[first:])
}
