package stdio

import (
	"bytes"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// An agent that waits asks the same again and again. A line that differs from an earlier request only in the text of
// its id and in its time is a valid request, too, and is not parsed again.

// A shape is a request, and the parts of its line that may differ.
type shape struct {
	line      []byte  // nil: none
	free      [2]span // what stands between the quotes of id and time, in their order in the line
	id, time  span
	payload   span
	operation *wire.Operation
	repeat    *wire.Repeat // nil before the second request of this shape
}

// A span is a part of a line.
type span struct{ from, to int }

// inner returns the span between the quotes of a string.
func (s span) inner() span { return span{s.from + 1, s.to - 1} }

// shapes are the latest shapes of an agent.
type shapes struct {
	latest [fewShapes]shape
	next   int
}

// The number of shapes that are kept, and the longest line of one.
const fewShapes, maxShape = 4, 1 << 10

// of returns the shape of a line, or nil.
func (s *shapes) of(line []byte) *shape {
	for i := range s.latest {
		if k := &s.latest[i]; len(k.line) == len(line) && k.line != nil && k.fits(line) {
			return k
		}
	}
	return nil
}

// fits reports whether a line of the same length has the shape.
func (k *shape) fits(line []byte) bool {
	a, b := k.free[0], k.free[1]
	return bytes.Equal(line[:a.from], k.line[:a.from]) && bytes.Equal(line[a.to:b.from], k.line[a.to:b.from]) &&
		bytes.Equal(line[b.to:], k.line[b.to:]) && isPlain(line[k.id.inner().from:k.id.inner().to]) && plainTime(line[k.time.from:k.time.to])
}

// isPlain reports whether text may stand in a JSON string as it is. Text that is not ASCII is left to the parser.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// keep keeps the shape of a valid request in a line.
func (s *shapes) keep(line []byte, k *dialect.Keys, operation *wire.Operation) {
	if len(line) > maxShape {
		return
	}
	place := &s.latest[s.next]
	s.next = (s.next + 1) % fewShapes
	*place = shape{
		line: append(place.line[:0], line...), id: spanOf(line, k.ID), time: spanOf(line, k.Timestamp), payload: spanOf(line, k.Payload),
		operation: operation,
	}
	place.free = [2]span{place.id.inner(), place.time.inner()}
	if place.time.from < place.id.from {
		place.free = [2]span{place.time.inner(), place.id.inner()}
	}
}

// spanOf returns the place of a value in its line. The value ends where its room does.
func spanOf(line, value []byte) span {
	if value == nil {
		return span{}
	}
	from := cap(line) - cap(value)
	return span{from, from + len(value)}
}

// plainTime reports whether a value is a time in the most common form, without parsing it:
// 2006-01-02T15:04:05Z, with or without a fraction. ParseTime checks days that not every month
// has.
func plainTime(value []byte) bool {
	const form = `"0000-00-00T00:00:00`
	if len(value) < len(form)+len(`Z"`) || value[len(value)-2] != 'Z' {
		return false
	}
	for i := range len(form) {
		if form[i] != '0' && value[i] != form[i] || form[i] == '0' && !object.IsDigit(value[i]) {
			return false
		}
	}
	fraction := value[len(form) : len(value)-2]
	for i, c := range fraction {
		if i == 0 && c != '.' || i > 0 && !object.IsDigit(c) {
			return false
		}
	}
	two := func(at int) byte { return (value[at]-'0')*10 + value[at+1] - '0' }
	month, day := two(6), two(9)
	return month >= 1 && month <= 12 && day >= 1 && day <= 28 && two(12) < 24 && two(15) < 60 && two(18) < 60 &&
		len(fraction) != 1 && len(fraction) <= len(".123456789")
}
