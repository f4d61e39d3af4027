package serve

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTypist(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	typist := &stdinAnswers{}
	for _, test := range []struct{ typed, sent string }{
		{`{"type":"request:query-agents"}`, `{"id":"1","timestamp":"2026-11-21T14:00:00.000Z","type":"request:query-agents"}`},
		{`  {"type":"event:log","payload":{"level":"info","message":"x"}} `, `{"id":"2","timestamp":"2026-11-21T14:00:00.000Z","type":"event:log","payload":{"level":"info","message":"x"}}`},
		{`{"type":"request:get-task","id":"a"}`, `{"timestamp":"2026-11-21T14:00:00.000Z","type":"request:get-task","id":"a"}`},
		{`{"timestamp":"now","type":"request:get-task"}`, `{"id":"3","timestamp":"now","type":"request:get-task"}`},
		{`{"type":"request:get-task","id":7,"timestamp":null}`, `{"type":"request:get-task","id":7,"timestamp":null}`},
		{`{"type":"task"}`, `{"type":"task"}`},
		{`{"type":"request:a","type":"request:b"}`, `{"type":"request:a","type":"request:b"}`},
		{`hello`, `hello`},
		{``, ``},
	} {
		require.Equal(t, test.sent+"\n", string(typist.complete([]byte(test.typed+"\n"), now)))
	}
}

func TestDisplay(t *testing.T) {
	var shown bytes.Buffer
	echo := newEcho(&shown)
	for _, piece := range []string{"one\nt", "wo\n", strings.Repeat("x", 2*maxEcho), "\nlast"} {
		n, err := echo.Write([]byte(piece))
		require.NoError(t, err)
		require.Len(t, piece, n)
	}
	echo.end()
	lines := strings.Split(shown.String(), "\n")
	require.Equal(t, []string{"> one", "> two"}, lines[:2])
	require.Regexp(t, `^> x+… \(16K in all\)$`, lines[2])
	require.Equal(t, []string{"> last", ""}, lines[3:])

	shown.Reset()
	_, err := newDisplay(&shown).Write([]byte("\x1b[2Jgone\n"))
	require.NoError(t, err)
	require.Equal(t, `\x1b[2Jgone`+"\n", shown.String())
}

// The farewell is found even if the stream is split inside it, and only the exact text matches.
func TestFarewell(t *testing.T) {
	stream := "{\"a\":\"\x04\"}\n{}\n\x04\n"
	for cut := range len(stream) {
		var heard []byte
		over, last := false, byte('\n')
		for _, piece := range []string{stream[:cut], stream[cut:]} {
			if over || piece == "" {
				continue
			}
			var text []byte
			text, over = beforeFarewell([]byte(piece), last)
			heard, last = append(heard, text...), piece[len(piece)-1]
		}
		require.True(t, over, "cut at %d", cut)
		require.Equal(t, "{\"a\":\"\x04\"}\n{}\n", string(heard))
	}
}
