package wire

import (
	"strings"

	"orchestrator/wire/object"
)

// reads makes the messages that are not kept after their answer: requests that only read, and
// lines of log. Many of them share an allocation, and so do their texts. A message that is kept
// is allocated by itself, because it would keep the others.
type reads struct {
	requests slab[Request]
	logs     slab[AgentEvent]
	texts    strings.Builder
}

// A slab hands out values that were allocated together. None is used twice.
type slab[T any] struct{ rest []T }

const (
	slabValues = 32      // values in a slab
	slabBytes  = 2 << 10 // of text
)

func (s *slab[T]) next() *T {
	if len(s.rest) == 0 {
		s.rest = make([]T, slabValues)
	}
	value := &s.rest[0]
	s.rest = s.rest[1:]
	return value
}

// text returns the value of a JSON string, and "" for any other value.
func (r *reads) text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	inner := object.Unquote(value)
	if r.texts.Cap()-r.texts.Len() < len(inner) {
		r.texts.Reset()
		r.texts.Grow(max(slabBytes, len(inner)))
	}
	from := r.texts.Len()
	_, _ = r.texts.Write(inner)
	return r.texts.String()[from:]
}
