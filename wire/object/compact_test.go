package object

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompactLen(t *testing.T) {
	for document, want := range map[string]int{
		"": 0, `{"a": [1, 2],` + "\n\t" + `"b": " \" x \\"}`: len(`{"a":[1,2],"b":" \" x \\"}`), ` "a b" `: 5,
	} {
		require.Equal(t, want, CompactLen(Raw(document)), document)
	}
}
