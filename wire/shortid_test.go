package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShortIDs(t *testing.T) {
	for id, short := range map[string]string{
		"": "", "greeting-1": "greeting-1", "日本語-1": "日本語-1",
		"5b8aa5a2-d2c8-42e8-a21c-f37308d69df2": "5b8aa5a2", "5B8AA5A2-D2C8-42E8-A21C-F37308D69DF2": "5B8AA5A2",
		"5b8aa5a2-d2c8-42e8-a21c-f37308d69dfg": "5b8aa5a2-d2c8-42e8-a21c-",
		strings.Repeat("é", 30):                strings.Repeat("é", 24),
		strings.Repeat("é", 18):                strings.Repeat("é", 18),
	} {
		require.Equal(t, short, ShortID(id))
	}
}
