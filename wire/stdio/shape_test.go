package stdio

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// plain returns a message without what only saves work.
func plain(m wire.Message) wire.Message {
	q, ok := m.(*wire.Request)
	if !ok {
		return m
	}
	kept := *q
	kept.Members, kept.Repeat = nil, nil
	kept.Payload = []byte(string(q.Payload))
	return &kept
}

// TestRepeatedLines checks that a reader that has seen a request reads the next line as a new reader does, also when
// the line differs in any byte.
func TestRepeatedLines(t *testing.T) {
	lines := []string{
		`{"type":"request:get-task","id":"r-0001","timestamp":"2026-01-02T03:04:05.678Z","agentId":"a","payload":{"taskId":"t1"}}`,
		`{"timestamp":"2026-01-02T03:04:05Z","payload":{"limit":3},"id":"r-0001","type":"request:query-tasks"}`,
		` { "type" : "request:query-tasks" , "id" : "x" , "timestamp" : "2026-01-02T03:04:05Z" } `,
	}
	same := func(r *Reader, line string) (repeated bool) {
		t.Helper()
		fresh := &Reader{Agent: "a", Depth: 8}
		want, got := fresh.Parse([]byte(line)), r.Parse([]byte(line))
		require.Equal(t, plain(want), plain(got), "%s", line)
		q, ok := got.(*wire.Request)
		return ok && q.Repeat != nil && q.Members == nil && strings.Contains(line, "payload") // Parse takes payloads apart
	}
	for _, line := range lines {
		r := &Reader{Agent: "a", Depth: 8}
		same(r, line)
		require.Equal(t, strings.Contains(line, "payload"), same(r, line), "it is recognized")
		for at := range len(line) {
			for _, c := range []byte("\"\\{}[],: \n\x00\x1f\x7f\xc3aZ019-") {
				same(r, line[:at]+string(c)+line[at+1:])
				same(r, line)
			}
		}
	}
	require.False(t, same(&Reader{Agent: "a", Depth: 8}, lines[0]), "a new reader has seen nothing")
}

// TestRepeatsShare checks that the requests of a shape share their Repeat, that several shapes are kept, and that a
// line of another shape has another.
func TestRepeatsShare(t *testing.T) {
	r := &Reader{Agent: "a", Depth: 8}
	ask := func(n int, task string) *wire.Repeat {
		line := fmt.Sprintf(`{"type":"request:get-task","id":"r-%04d","timestamp":"2026-01-02T03:04:%02dZ","payload":{"taskId":%q}}`, n, n%60, task)
		q, ok := r.Parse([]byte(line)).(*wire.Request)
		require.True(t, ok)
		require.Equal(t, fmt.Sprintf("r-%04d", n), q.ID)
		require.Equal(t, fmt.Sprintf(`{"taskId":%q}`, task), string(q.Payload))
		return q.Repeat
	}
	for i, task := range []string{"t1", "t2", "t3", "t4"} {
		require.Nil(t, ask(i, task), "it may never be repeated")
	}
	first := []*wire.Repeat{ask(1, "t1"), ask(2, "t2"), ask(3, "t3"), ask(4, "t4")}
	for i, task := range []string{"t1", "t2", "t3", "t4"} {
		require.Same(t, first[i], ask(10+i, task))
	}
	require.Nil(t, ask(20, "t5"))
	require.NotSame(t, first[0], ask(21, "t5"))
	for i := range 4 {
		for j := range i {
			require.NotSame(t, first[i], first[j])
		}
	}
	write := r.Parse([]byte(`{"type":"request:start-task","id":"1","timestamp":"2026-01-02T03:04:05Z","payload":{"taskId":"t1"}}`))
	require.Nil(t, write.(*wire.Request).Repeat, "only requests with stable answers")
}

// TestRepeatedLineInBuffer checks that the parts of a shape are found in a line that is part of a larger buffer, as
// lines of a chunk are.
func TestRepeatedLineInBuffer(t *testing.T) {
	r := &Reader{Agent: "a", Depth: 8}
	for n := range 50 {
		line := fmt.Sprintf(`{"type":"request:get-task","id":"r-%04d","timestamp":"2026-01-02T03:04:05Z","payload":{"taskId":"t1"}}`, n)
		buffer := []byte(strings.Repeat("x", rand.IntN(100)) + line + "\n" + strings.Repeat("y", rand.IntN(100)))
		from := strings.Index(string(buffer), line)
		q := r.Parse(buffer[from : from+len(line)]).(*wire.Request)
		require.Equal(t, fmt.Sprintf("r-%04d", n), q.ID)
		id, _ := object.Text([]byte(`"2026-01-02T03:04:05Z"`))
		require.Equal(t, id, q.Timestamp)
		require.Equal(t, `{"taskId":"t1"}`, string(q.Payload))
	}
}
