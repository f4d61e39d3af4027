package live

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func framed(caret int, rows ...string) frame { return frame{rows: rows, caret: caret} }

// Rows are replaced in place, and only changed rows are written.
func TestCanvas(t *testing.T) {
	c := canvas{framed(-1)}
	require.Empty(t, c.erase(nil), "nothing is there")
	require.Equal(t, "one\ntwo"+hide, string(c.change(nil, framed(-1, "one", "two"))))
	require.Empty(t, c.change(nil, framed(-1, "one", "two")))
	require.Equal(t, "\r\x1b[1A\nthree"+wipeRow+"\r", string(c.change(nil, framed(-1, "one", "three"))))
	require.Equal(t, "\r\x1b[1A"+"1"+wipeRow+"\n"+"> x"+wipeRow+"\r"+reveal+"\x1b[3C", string(c.change(nil, framed(3, "1", "> x"))))
	require.Equal(t, "\r\x1b[1A"+wipe+"alone"+hide, string(c.change(nil, framed(-1, "alone"))))
	require.Equal(t, "\r"+wipe+reveal, string(c.erase(nil)))
	require.Empty(t, c.change(nil, framed(-1)), "nothing is to be there")
}

// A line is the typed text after all editing keys.
func TestEditor(t *testing.T) {
	for typed, want := range map[string]string{
		"oauth\r":                          "oauth",
		"oauth\n":                          "oauth",
		"oauht\x7f\x7fth\r":                "oauth",
		"größe 写手\x7f\r":                   "größe 写",
		"one two  \x17three\r":             "one three",
		"wrong\x15right\r":                 "right",
		"\x7f\x15\x17a\r":                  "a",
		"a\x1b[A\x1b[1;5Cb\x1bOPc\x1bxd\r": "abcd",
		"tab\there\x01\x04\r":              "tabhere",
		"not \xff\xc3( UTF-8\r":            "not  UTF-8",
	} {
		require.Equal(t, []string{want}, new(editor).feed([]byte(typed)), "%q", typed)
		var slow editor
		var lines []string
		for i := range len(typed) {
			lines = append(lines, slow.feed([]byte{typed[i]})...)
		}
		require.Equal(t, []string{want}, lines, "%q, a byte at a time", typed)
	}
}

// Pasted text has as many lines as line ends. The rest waits for its line end.
func TestEditorTakesLines(t *testing.T) {
	var e editor
	require.Equal(t, []string{"one", "", "two"}, e.feed([]byte("one\r\rtwo\nthr")))
	require.Equal(t, "thr", e.shown(10))
	require.Equal(t, "hr", e.shown(2))
	require.Equal(t, []string{"three"}, e.feed([]byte("ee\r")))
	require.Empty(t, e.feed([]byte(strings.Repeat("long", longest))))
	require.Len(t, e.feed([]byte("\r"))[0], longest)
}
