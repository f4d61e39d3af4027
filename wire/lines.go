package wire

import (
	"bytes"
)

// Head is how much of an oversized line is kept, in bytes: enough to tell what it was
// and whose, for a message of a session says that behind its names and times.
const Head = 1000

// idleCarry is the largest buffer that Lines keeps between two lines, so that
// a thousand quiet streams cost nothing.
const idleCarry = 4 << 10

// framing is what a line may carry beyond its text: a byte order mark and a
// carriage return.
const framing = 4

var mark = []byte("\xef\xbb\xbf")

// Line is one line of a stream, without its end.
type Line struct {
	// Text is valid until the next call of the Lines that gave it.
	Text []byte
	// Size is the length of Text, or, when Cut, of the line as it came.
	Size int64
	// Cut says that the line was longer than the limit: Text is its head.
	Cut bool
	// Open says that the stream ended before the line did.
	Open bool
}

// Lines splits a stream into lines. It is fed chunks and lends out lines that
// lie inside them; only a line that spans chunks is copied. It splits at LF
// bytes alone, drops one CR before the LF and one byte order mark at the start
// of the stream. A line beyond the limit costs itself: its head is kept, the
// rest is counted and skipped, and the line after it arrives.
//
//	lines.Feed(chunk)
//	for line, ok := lines.Next(); ok; line, ok = lines.Next() { … }
//	… at the end of the stream: line, ok := lines.Rest()
//
// Chunks are the caller's: after Next has said no, Lines holds none of them.
type Lines struct {
	max     int
	chunk   []byte
	carry   []byte
	skipped int64 // bytes of an oversized line beyond carry; 0: not skipping
	begun   bool  // the first line is behind us
}

// NewLines returns a splitter for lines of at most limit bytes.
func NewLines(limit int) *Lines { return &Lines{max: limit} }

// Feed hands over the next chunk. The one before must be used up.
func (l *Lines) Feed(chunk []byte) { l.chunk = chunk }

// Next returns the next complete line, or false when the chunk is used up.
func (l *Lines) Next() (Line, bool) {
	end := bytes.IndexByte(l.chunk, '\n')
	if end < 0 {
		l.keep(l.chunk)
		l.chunk = nil
		return Line{}, false
	}
	text := l.chunk[:end]
	l.chunk = l.chunk[end+1:]
	if len(l.carry) == 0 {
		return l.line(text, true), true
	}
	l.keep(text)
	return l.finish(true), true
}

// Rest returns what the stream ended with, if that was not a line end.
func (l *Lines) Rest() (Line, bool) {
	l.keep(l.chunk)
	l.chunk = nil
	if len(l.carry) == 0 {
		return Line{}, false
	}
	return l.finish(false), true
}

// finish turns the carried bytes into a line and lets go of them.
func (l *Lines) finish(ended bool) Line {
	text := l.carry
	if cap(text) > idleCarry {
		l.carry = nil
	} else {
		l.carry = text[:0]
	}
	if l.skipped == 0 {
		return l.line(text, ended)
	}
	size := int64(len(text)) + l.skipped
	if !l.begun && bytes.HasPrefix(text, mark) {
		text, size = text[len(mark):], size-int64(len(mark))
	}
	l.skipped, l.begun = 0, true
	return Line{Text: text, Size: size, Cut: true, Open: !ended}
}

// line strips what frames the text and applies the limit to what is left.
func (l *Lines) line(text []byte, ended bool) Line {
	if !l.begun {
		text = bytes.TrimPrefix(text, mark)
		l.begun = true
	}
	came := int64(len(text))
	if n := len(text); ended && n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if len(text) > l.max {
		return Line{Text: text[:min(Head, len(text))], Size: came, Cut: true, Open: !ended}
	}
	return Line{Text: text, Size: int64(len(text)), Open: !ended}
}

// keep carries bytes of an unfinished line, up to the limit.
func (l *Lines) keep(text []byte) {
	if l.skipped > 0 {
		l.skipped += int64(len(text))
		return
	}
	total := len(l.carry) + len(text)
	if total <= l.max+framing {
		l.grow(total)
		l.carry = append(l.carry, text...)
		return
	}
	head := make([]byte, 0, Head)
	head = append(head, l.carry[:min(Head, len(l.carry))]...)
	head = append(head, text[:min(Head-len(head), len(text))]...)
	l.skipped = int64(total - len(head))
	l.carry = head
}

// grow makes room for size carried bytes, but never more than a line may hold,
// so that a stream without line ends stays within the limit. The steps are
// wide because what is grown out of is garbage, and counts as long as that.
func (l *Lines) grow(size int) {
	if size <= cap(l.carry) {
		return
	}
	room := max(size, min(4*cap(l.carry), l.max+framing))
	bigger := make([]byte, len(l.carry), room)
	copy(bigger, l.carry)
	l.carry = bigger
}
