package line

import (
	"bytes"
	"fmt"
	"strings"
)

// Head is how many bytes of an oversized line are kept. They are enough to identify the message and
// its sender: in a session message, these follow its names and times.
const Head = 1000

// idleCarry is the largest buffer that Lines keeps between two lines. It bounds the memory of
// idle streams.
const idleCarry = 4 << 10

// framing is how many bytes a line may have beyond its text: a byte order mark and a carriage
// return.
const framing = 4

var mark = []byte("\xef\xbb\xbf")

// A Line is one line of a stream, without its end.
type Line struct {
	// Text is valid until the next call of the Splitter.
	Text []byte
	// Size is the length of Text or, if Cut is set, of the whole line.
	Size int64
	// Cut reports whether the line was longer than the limit: Text is its head.
	Cut bool
	// Open reports whether the stream ended before the line did.
	Open bool
}

// FormatSize returns the size with its unit.
func (l Line) FormatSize() string { return FormatSize(l.Size) }

// FormatSize returns a number of bytes with its unit, such as 16 MiB or 1.5 KiB.
func FormatSize(n int64) string {
	const mebi, kibi = 1 << 20, 1 << 10
	switch {
	case n >= mebi:
		return rounded(float64(n)/mebi) + " MiB"
	case n >= kibi:
		return rounded(float64(n)/kibi) + " KiB"
	}
	return fmt.Sprintf("%d bytes", n)
}

func rounded(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }

// A Splitter splits a stream into lines. It splits at LF bytes only, and drops one CR before the
// LF and one byte order mark at the start of the stream. Of a line beyond the limit it keeps the
// head and counts the rest; the line after it arrives whole.
//
//	lines.Feed(chunk)
//	for line, ok := lines.Next(); ok; line, ok = lines.Next() { … }
//	… at the end of the stream: line, ok := lines.Rest()
//
// Chunks stay the caller's: after Next has returned false, the Splitter holds none of them.
type Splitter struct {
	max     int
	chunk   []byte
	carry   []byte
	skipped int64 // bytes of an oversized line beyond carry; 0: not skipping
	begun   bool  // the start of the stream has been read
}

// NewSplitter returns a Splitter for lines of at most limit bytes.
func NewSplitter(limit int) *Splitter { return &Splitter{max: limit} }

// A Partial is the unfinished line of a Splitter, for another Splitter of the same stream.
type Partial struct {
	Text    []byte `json:"text,omitzero"`
	Skipped int64  `json:"skipped,omitzero"`
	Begun   bool   `json:"begun,omitzero"`
}

// Partial returns the unfinished line. It must be called between Next and Feed.
func (s *Splitter) Partial() Partial {
	return Partial{Text: bytes.Clone(s.carry), Skipped: s.skipped, Begun: s.begun}
}

// Continue begins with the unfinished line of another Splitter.
func (s *Splitter) Continue(p Partial) { s.carry, s.skipped, s.begun = p.Text, p.Skipped, p.Begun }

// Feed passes the next chunk. The one before it must be used up.
func (s *Splitter) Feed(chunk []byte) { s.chunk = chunk }

// Next returns the next complete line, or false when the chunk is used up.
func (s *Splitter) Next() (Line, bool) {
	end := bytes.IndexByte(s.chunk, '\n')
	if end < 0 {
		s.keep(s.chunk)
		s.chunk = nil
		return Line{}, false
	}
	text := s.chunk[:end]
	s.chunk = s.chunk[end+1:]
	if len(s.carry) == 0 {
		return s.line(text, true), true
	}
	s.keep(text)
	return s.finish(true), true
}

// Rest returns the unfinished line at the end of the stream, if there is one.
func (s *Splitter) Rest() (Line, bool) {
	s.keep(s.chunk)
	s.chunk = nil
	if len(s.carry) == 0 {
		return Line{}, false
	}
	return s.finish(false), true
}

// finish returns the carried bytes as a line and releases them.
func (s *Splitter) finish(ended bool) Line {
	text := s.carry
	if cap(text) > idleCarry {
		s.carry = nil
	} else {
		s.carry = text[:0]
	}
	if s.skipped == 0 {
		return s.line(text, ended)
	}
	size := int64(len(text)) + s.skipped
	if !s.begun && bytes.HasPrefix(text, mark) {
		text, size = text[len(mark):], size-int64(len(mark))
	}
	s.skipped, s.begun = 0, true
	return Line{Text: text, Size: size, Cut: true, Open: !ended}
}

// line strips the framing from a text and applies the limit to the rest.
func (s *Splitter) line(text []byte, ended bool) Line {
	if !s.begun {
		text = bytes.TrimPrefix(text, mark)
		s.begun = true
	}
	came := int64(len(text))
	if n := len(text); ended && n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if len(text) > s.max {
		return Line{Text: text[:min(Head, len(text))], Size: came, Cut: true, Open: !ended}
	}
	return Line{Text: text, Size: int64(len(text)), Open: !ended}
}

// keep carries bytes of an unfinished line, up to the limit.
func (s *Splitter) keep(text []byte) {
	if s.skipped > 0 {
		s.skipped += int64(len(text))
		return
	}
	total := len(s.carry) + len(text)
	if total <= s.max+framing {
		s.grow(total)
		s.carry = append(s.carry, text...)
		return
	}
	head := make([]byte, 0, Head)
	head = append(head, s.carry[:min(Head, len(s.carry))]...)
	head = append(head, text[:min(Head-len(head), len(text))]...)
	s.skipped = int64(total - len(head))
	s.carry = head
}

// grow makes room for size carried bytes, but never more than a line may hold,
// so that a stream without line ends stays within the limit. The steps are large, since every
// outgrown buffer is garbage.
func (s *Splitter) grow(size int) {
	if size <= cap(s.carry) {
		return
	}
	room := max(size, min(4*cap(s.carry), s.max+framing))
	bigger := make([]byte, len(s.carry), room)
	copy(bigger, s.carry)
	s.carry = bigger
}
