package object

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestScan(t *testing.T) {
	for line, want := range map[string]string{
		`{}`:                           "",
		` { "a" : 1 , "b":[{},"x"] } `: `a=1 b=[{},"x"]`,
		`{"t\u0079pe":"\u00e9"}`:       `type="\u00e9"`,
		`{"a":12345678901234567890,"b":-0.5e+10}`: `a=12345678901234567890 b=-0.5e+10`,
		`{"a":1,"a":2}`:        `a=1 a=2`,
		`{"😀":"\ud83d\ude00"}`: `😀="\ud83d\ude00"`,
	} {
		members, why, ok := Scan([]byte(line), 64, nil)
		require.True(t, ok, "%s: %s", line, why)
		var words []string
		for _, m := range members {
			words = append(words, string(m.Key)+"="+string(m.Value))
		}
		require.Equal(t, want, strings.Join(words, " "), line)
	}
	for _, line := range []string{
		``, ` `, `x`, `42`, `"s"`, `null`, `[1]`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`,
		`{"a":+1}`, `{"a":1e}`, `{"a":tru}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\ud800"}`, `{"a":"\udc00"}`, `{"a":"\ud800\u0041"}`,
		"{\"a\":\"\xff\"}", "{\"a\":\"\t\"}", `{"a":1}{"b":2}`, `{"a":1} x`, `{a:1}`, `{'a':1}`, `{"a":1]`, `{"a":[1}`, `{"a":NaN}`,
		`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "{\"a\":1}\x00", `{"a":"` + strings.Repeat("x", 30),
	} {
		_, _, ok := Scan([]byte(line), 64, nil)
		require.False(t, ok, line)
	}
	_, why, _ := Scan([]byte(`{"a":{"b":{}}}`), 2, nil)
	require.Equal(t, "it nests too deeply", why)
}

func TestScanBoth(t *testing.T) {
	for line, want := range map[string][]Member{
		`{}`:                                    nil,
		`{"p":1}`:                               nil,
		`{"p":{}}`:                              {},
		`{"x":{"p":{"a":1}}}`:                   nil,
		` {"p" : { "a" : {"p":2} } } `:          {{Key: []byte("a"), Value: []byte(`{"p":2}`)}},
		`{"p":{"a":1},"p":{"p":{"b":2}}}`:       {{Key: []byte("p"), Value: []byte(`{"b":2}`)}},
		`{"p":{"a":1},"p":[],"\u0070":{"b":2}}`: nil,
	} {
		room := make([]Member, 0, 4)
		_, inner, why, ok := ScanBoth([]byte(line), 64, nil, "p", room)
		require.True(t, ok, "%s: %s", line, why)
		require.Equal(t, want, inner, line)
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	line := []byte(`{"type":"request:get-task","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{"taskId":"x"}}`)
	room := make([]Member, 0, 16)
	require.Zero(t, testing.AllocsPerRun(100, func() { Scan(line, 64, room) }))
}

func TestIsCompact(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":[1,"b c",{}]}`: true, `null`: true, `1.5e3`: true, `" "`: true, `"\" "`: true,
		`{"a": 1}`: false, ` 1`: false, `1 `: false, `[1, 2]`: false, ``: false, `{`: false, `1 2`: false, `"\ud800"`: false, `nul`: false,
	} {
		require.Equal(t, want, IsCompact([]byte(text)), text)
	}
}

// FuzzScan checks that the scanner and the token reader of the JSON library accept the same
// lines.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e-3,"\u00e9\n",{"b":null}]}`))
	f.Add([]byte(` {"type":"x","type":"\ud83d\ude00"} `))
	f.Add([]byte(`{"a":{"b":1,"a":{"c":2}},"\u0061":{"d":3},"b":{"a":{}}}`))
	f.Add([]byte(`{"a" : {"b":[{"a":1}]} , "a":4}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		const depth = 8
		members, why, got := Scan(line, depth, nil)
		require.Equal(t, accepted(line, depth), got, "%q", line)
		both, inner, reason, ok := ScanBoth(line, depth, nil, "a", nil)
		require.Equal(t, []any{members, why, got}, []any{both, reason, ok}, "%q", line)
		if ok {
			require.Equal(t, inside(line, members, "a"), inner, "%q", line)
		}
	})
}

// inside returns the members of the last object with a key, in a second scan. A key with escapes
// does not count.
func inside(line []byte, members []Member, key string) (inner []Member) {
	for _, m := range members {
		at := cap(line) - cap(m.Value)
		if bytes.HasSuffix(bytes.TrimRight(line[:at], " \t\r\n:"), []byte(`"`+key+`"`)) {
			inner, _, _ = Scan(m.Value, AnyDepth, nil)
		}
	}
	return inner
}

// accepted reports whether the library accepts a line as exactly one object.
func accepted(line []byte, depth int) bool {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '{' {
		return false
	}
	for first := true; first || d.StackDepth() > 0; first = false {
		if _, err := d.ReadToken(); err != nil || d.StackDepth() > depth {
			return false
		}
	}
	_, err := d.ReadToken()
	return err != nil && err.Error() == "EOF"
}

func BenchmarkScan(b *testing.B) {
	line := []byte(`{"type":"event:progress","id":"evt-7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100","timestamp":"2026-11-20T09:15:00Z","payload":{"taskId":"task-123","progress":0.75,"message":"Compiles, now the manual now"}}`)
	room := make([]Member, 0, 16)
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		b.ReportAllocs()
		for b.Loop() {
			Scan(line, 64, room)
		}
	})
	b.Run("tokens", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			accepted(line, 64)
		}
	})
}
