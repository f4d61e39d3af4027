package object

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// Rows: S-14.
func TestRefuseDuplicate(t *testing.T) {
	for value, want := range map[string]string{
		`{}`: "", `[]`: "", `1`: "", `"a"`: "", ` { "a" : { "a" : [ { "a" : 1 } , { "a" : 2 } ] } } `: "",
		`{"a":1,"a":1}`:                 "/p/a",
		`{"b":[0,{"c":{"d":1,"d":2}}]}`: "/p/b/1/c/d",
		`{"a":1,"\u0061":2}`:            "/p/a",
		`{"x/y":{"":1,"":2}}`:           "/p/x~1y/",
		`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":{"a":0},"c":0}`: "/p/c",
	} {
		err := RefuseDuplicate([]byte(value), "/p")
		if want == "" {
			require.Nil(t, err, value)
			continue
		}
		require.Equal(t, want, err.Details["pointer"], value)
	}
}

// FuzzRefuseDuplicate compares with a decoder that refuses duplicate keys.
//
// Rows: S-14.
func FuzzRefuseDuplicate(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1,"b":2}],"a":null}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if _, _, ok := Scan(value, AnyDepth, nil); !ok || !json.Valid(value) {
			return
		}
		raw := jsontext.Value(strings.Clone(string(value)))
		if !raw.IsValid(jsontext.AllowDuplicateNames(true)) {
			return
		}
		require.Equal(t, raw.IsValid(), RefuseDuplicate(value, "") == nil)
	})
}

func BenchmarkRefuseDuplicate(b *testing.B) {
	value := []byte(`{"pages":12,"files":[{"path":"a.go","lines":3},{"path":"b.go","lines":4}],"summary":"the page shows the sum"}`)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		RefuseDuplicate(value, "")
	}
}
