package config

import (
	"bytes"
	"path/filepath"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns a configuration with standard indentation and aligned equals signs. It keeps
// comments and line breaks. A file that does not parse is returned unchanged, with its
// problems. JSON is returned unchanged.
func Format(src []byte, filename string) ([]byte, Problems) {
	r := &reader{sources: map[string]*source{}}
	if _, ok := r.parse(src, filename, false); !ok {
		return src, r.problems.sorted()
	}
	if filepath.Ext(filename) == ".json" {
		return src, nil
	}
	return settledLayout(src), nil
}

// settledLayout formats until nothing moves. Aligning comments can need a
// second pass after the equals signs before them have moved.
func settledLayout(src []byte) []byte {
	const enough = 4
	for range enough {
		out := hclwrite.Format(src)
		if bytes.Equal(out, src) {
			break
		}
		src = out
	}
	return src
}
