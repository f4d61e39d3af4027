package stdio

import (
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// reads makes the messages that are not kept after their answer: requests that only read, and
// lines of log. Many of them share an allocation, and so do their texts. A message that is kept
// is allocated by itself, because it would keep all of them.
type reads struct {
	requests arena[wire.Request]
	log      wire.AgentEvent // the latest line of log
	texts    strings.Builder
}

// Answered makes the memory of all requests that only read available for the next ones. The caller must
// not use them afterwards.
func (r *Reader) Answered() { r.reads.requests.again() }

// An arena hands out values that were allocated together.
type arena[T any] struct {
	values []T
	used   int
}

// The values that are allocated together first and at most, and the bytes of a block of texts.
const fewValues, manyValues, blockBytes = 16, 256, 2 << 10

func (a *arena[T]) next() *T {
	if a.used == len(a.values) {
		a.values, a.used = make([]T, min(max(fewValues, 2*len(a.values)), manyValues)), 0
	}
	a.used++
	return &a.values[a.used-1]
}

// again hands out the values again. None of them may be in use.
func (a *arena[T]) again() {
	clear(a.values[:a.used])
	a.used = 0
}

// text returns the value of a JSON string, and "" for any other value.
func (r *reads) text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	inner := object.Unquote(value)
	if r.texts.Cap()-r.texts.Len() < len(inner) {
		r.texts.Reset()
		r.texts.Grow(max(blockBytes, len(inner)))
	}
	from := r.texts.Len()
	_, _ = r.texts.Write(inner)
	return r.texts.String()[from:]
}
