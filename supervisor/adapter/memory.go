package adapter

import "fmt"

const (
	// maxRemembered is the maximum size of the values of a Memory, in bytes.
	maxRemembered = 8 << 20
	// rememberedBase is added to the size of each value.
	rememberedBase = 100
)

// A Memory keeps values with ids of a turn, such as calls of tools. A value that does not fit is counted and not kept.
// The zero value is empty.
type Memory[T any] struct {
	values map[string]remembered[T]
	bytes  int
	lost   int // values that were not kept
}

type remembered[T any] struct {
	value T
	size  int
}

// Get returns the value with an id, or the zero value.
func (m *Memory[T]) Get(id string) T { return m.values[id].value }

// Put keeps a value of this size instead of an earlier one with the id.
func (m *Memory[T]) Put(id string, value T, size int) {
	m.Forget(id)
	size += len(id) + rememberedBase
	if m.bytes+size > maxRemembered {
		m.lost++
		return
	}
	if m.values == nil {
		m.values = map[string]remembered[T]{}
	}
	m.values[id] = remembered[T]{value: value, size: size}
	m.bytes += size
}

// Forget removes the value with an id.
func (m *Memory[T]) Forget(id string) {
	m.bytes -= m.values[id].size
	delete(m.values, id)
}

// Has reports whether a value fits.
func (m *Memory[T]) Has(fits func(T) bool) bool {
	for _, r := range m.values {
		if fits(r.value) {
			return true
		}
	}
	return false
}

// Len returns the number of values.
func (m *Memory[T]) Len() int { return len(m.values) }

// Clear removes all values. It returns a line about the values that were not kept, or an empty line if all were.
func (m *Memory[T]) Clear() Log {
	lost := m.lost
	*m = Memory[T]{}
	if lost == 0 {
		return Log{}
	}
	return Log{Text: fmt.Sprintf("%d tool calls were not stored: the client made too many in one turn", lost)}
}
