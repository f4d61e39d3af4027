package object

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadHead checks which members the beginning of an object has.
func TestReadHead(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"xxxx":                           "",
		`["a"`:                           "",
		"{":                              "map[]",
		"{}":                             "map[]",
		`{"a`:                            "map[]",
		`{"a"`:                           "map[a:]",
		`{"a":`:                          "map[a:]",
		`{"a": "b`:                       `map[a:"b]`,
		`{"a":"b"`:                       `map[a:"b"]`,
		`{"a" : 1,"b":{"c":[2`:           `map[a:1 b:{"c":[2]`,
		`{"a":1,"a":2`:                   "map[a:2]",
		"{\"a\":\"\xff\",\"b\":tr":       "map[a:\"\xff\" b:tr]",
		`{"a":{"b":1},"c":nul,"d":true}`: `map[a:{"b":1} c:nul,"d":true}]`,
	} {
		var got strings.Builder
		if h := ReadHead([]byte(text)); h != nil {
			got.WriteString("map[")
			for i, key := range slices.Sorted(maps.Keys(h)) {
				if i > 0 {
					got.WriteByte(' ')
				}
				got.WriteString(key + ":" + string(h[key]))
			}
			got.WriteByte(']')
		}
		require.Equal(t, want, got.String(), text)
	}
}

// FuzzReadHead checks that all members are read of an object that is whole, and that those before a cut
// are as they are in the whole object.
func FuzzReadHead(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"toolCall":{"title":"ls"}}}`), 30)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		head := ReadHead(text[:min(max(at, 0), len(text))])
		var whole map[string]Raw
		if Decode(text, &whole) != nil {
			return
		}
		all := ReadHead(text)
		require.Len(t, all, len(whole))
		for key, value := range whole {
			require.Equal(t, string(value), string(all[key]))
			if cut := head[key]; cut != nil {
				require.True(t, strings.HasPrefix(string(value), string(cut)), "%q: %q is not the beginning of %q", key, cut, value)
			}
		}
	})
}
