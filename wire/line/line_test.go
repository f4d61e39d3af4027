package line

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said is a copy of a Line.
type said struct {
	text string
	size int64
	cut  bool
	open bool
}

// split feeds chunks and returns all lines.
func split(limit int, chunks ...[]byte) []said {
	l := NewSplitter(limit)
	var lines []said
	keep := func(line Line) {
		lines = append(lines, said{string(line.Text), line.Size, line.Cut, line.Open})
	}
	for _, chunk := range chunks {
		l.Feed(chunk)
		for line, ok := l.Next(); ok; line, ok = l.Next() {
			keep(line)
		}
	}
	if line, ok := l.Rest(); ok {
		keep(line)
	}
	return lines
}

func whole(text string) said { return said{text: text, size: int64(len(text))} }

// Rows: B-02, B-10.
func TestLines(t *testing.T) {
	head := strings.Repeat("x", Head)
	for name, test := range map[string]struct {
		in   string
		want []said
	}{
		"nothing":             {"", nil},
		"one":                 {"a\n", []said{whole("a")}},
		"two":                 {"a\nb\n", []said{whole("a"), whole("b")}},
		"empty lines":         {"\n\n", []said{whole(""), whole("")}},
		"no end":              {"a\nb", []said{whole("a"), {"b", 1, false, true}}},
		"CR LF":               {"a\r\nb\r\n", []said{whole("a"), whole("b")}},
		"one CR is stripped":  {"a\r\r\n", []said{whole("a\r")}},
		"CR alone is text":    {"a\rb\n", []said{whole("a\rb")}},
		"CR at the open end":  {"a\r", []said{{"a\r", 2, false, true}}},
		"mark at the start":   {"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", []said{whole("a"), whole("\xef\xbb\xbfb")}},
		"mark alone":          {"\xef\xbb\xbf\n", []said{whole("")}},
		"U+2028 is text":      {"a\u2028b\u0085c\n", []said{whole("a\u2028b\u0085c")}},
		"NUL and bad UTF-8":   {"a\x00\xffb\n", []said{whole("a\x00\xffb")}},
		"at the limit":        {strings.Repeat("x", 1500) + "\r\n", []said{whole(strings.Repeat("x", 1500))}},
		"beyond it":           {strings.Repeat("x", 1501) + "\nnext\n", []said{{head, 1501, true, false}, whole("next")}},
		"far beyond it":       {strings.Repeat("x", 5000) + "\nnext\n", []said{{head, 5000, true, false}, whole("next")}},
		"beyond it, no end":   {strings.Repeat("x", 5000), []said{{head, 5000, true, true}}},
		"mark and beyond":     {"\xef\xbb\xbf" + strings.Repeat("x", 5000) + "\nn\n", []said{{strings.Repeat("x", Head), 5000, true, false}, whole("n")}},
		"mark and at limit":   {"\xef\xbb\xbf" + strings.Repeat("x", 1500) + "\n", []said{whole(strings.Repeat("x", 1500))}},
		"two beyond in a row": {strings.Repeat("x", 1600) + "\n" + strings.Repeat("x", 1600) + "\n", []said{{head, 1600, true, false}, {head, 1600, true, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := []byte(test.in)
			require.Equal(t, test.want, split(1500, in), "in one chunk")
			for at := range in {
				got := split(1500, in[:at], in[at:])
				require.Equal(t, normal(test.want), normal(got), "split at %d", at)
			}
			require.Equal(t, normal(test.want), normal(split(1500, slices.Collect(slices.Chunk(in, 1))...)), "byte by byte")
		})
	}
}

// normal removes what may depend on the chunks: the head of a cut line may include the byte
// order mark.
func normal(lines []said) []said {
	var out []said
	for _, l := range lines {
		if l.cut {
			l.text = l.text[:min(len(l.text), Head-len(mark))]
		}
		out = append(out, l)
	}
	return out
}

// TestSplitPositions is torture row 12. A message split at every position is one message. It has
// characters of two, three and four bytes, CR LF, a byte order mark and U+2028.
//
// Rows: B-02, T-01.
func TestSplitPositions(t *testing.T) {
	message := "{\"type\":\"x\",\"text\":\"é\u20ac\u2028\U0001f600\"}"
	stream := []byte("\xef\xbb\xbf" + message + "\r\n" + message + "\n")
	want := []said{whole(message), whole(message)}
	for i := range stream {
		for j := i; j < len(stream); j++ {
			require.Equal(t, want, split(1<<20, stream[:i], stream[i:j], stream[j:]))
		}
	}
}

// TestMemoryOfAnEndlessLine checks that a stream without line ends uses no more memory than the
// limit.
//
// Rows: B-09.
func TestMemoryOfAnEndlessLine(t *testing.T) {
	const limit = 1 << 20
	l := NewSplitter(limit)
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for range 1000 {
		l.Feed(chunk)
		_, ok := l.Next()
		require.False(t, ok)
		require.LessOrEqual(t, cap(l.carry), limit+framing)
	}
	line, ok := l.Rest()
	require.True(t, ok)
	require.EqualValues(t, 1000*len(chunk), line.Size)
}

// TestIdleStreamsHoldNothing checks that no large buffer is kept between two lines.
func TestIdleStreamsHoldNothing(t *testing.T) {
	l := NewSplitter(1 << 20)
	l.Feed(bytes.Repeat([]byte("x"), 100<<10))
	l.Next()
	l.Feed([]byte("\n"))
	_, ok := l.Next()
	require.True(t, ok)
	l.Next()
	require.LessOrEqual(t, cap(l.carry), idleCarry)
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\xef\xbb\xbfc"), uint16(3), uint16(2))
	f.Add([]byte("\xef\xbb\xbf\n\n"), uint16(1), uint16(0))
	f.Fuzz(func(t *testing.T, in []byte, step, limit uint16) {
		size := int(step%64) + 1
		most := int(limit) + Head
		got := split(most, slices.Collect(slices.Chunk(in, size))...)
		require.Equal(t, normal(split(most, in)), normal(got), "chunks change the lines")
		// The joined lines are never longer than the stream. If all lines are whole, they equal
		// it, except for CRs and marks.
		var total int64
		exact := true
		var joined []byte
		for _, line := range got {
			require.LessOrEqual(t, len(line.text), most)
			total += line.size
			exact = exact && !line.cut
			joined = append(joined, line.text...)
		}
		require.LessOrEqual(t, total, int64(len(in)))
		if exact {
			require.Equal(t, bare(in), bare(joined))
		}
		require.Equal(t, bytes.Count(in, []byte("\n")), len(got)-openLines(got))
	})
}

// bare returns text without the bytes that could frame a line.
func bare(text []byte) string {
	var out []byte
	for _, c := range text {
		if !bytes.ContainsRune([]byte("\r\n"), rune(c)) && !bytes.Contains(mark, []byte{c}) {
			out = append(out, c)
		}
	}
	return string(out)
}

func openLines(lines []said) int {
	n := 0
	for _, l := range lines {
		if l.open {
			n++
		}
	}
	return n
}

func BenchmarkLines(b *testing.B) {
	chunk := bytes.Repeat(append(bytes.Repeat([]byte("x"), 199), '\n'), 327)
	l := NewSplitter(16 << 20)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		l.Feed(chunk)
		for _, ok := l.Next(); ok; _, ok = l.Next() {
		}
	}
}
