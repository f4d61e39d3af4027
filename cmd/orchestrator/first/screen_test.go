package first

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVisible checks that a terminal gets colors and nothing else that it obeys, wherever the text is cut.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain \u00e9 \u4e16\n\tend\r":     "plain \u00e9 \u4e16\n\tend\r",
		"\x1b[1;31mred\x1b[0m\x1b[m":       "\x1b[1;31mred\x1b[0m\x1b[m",
		"\x1b]52;c;aGk=\x07":               `\x1b]52;c;aGk=\x07`,
		"\x1b[2J\x1b[H\x1bc":               `\x1b[2J\x1b[H\x1bc`,
		"\x1bm \x1b[?25l":                  `\x1bm \x1b[?25l`,
		"\u009b31m \u0085 \u00a0 \x7f\x00": "\\x9b31m \\x85 \u00a0 \\x7f\\x00",
		"\x1b[" + strings.Repeat("1", 40):  `\x1b[` + strings.Repeat("1", 40),
	} {
		for cut := range len(text) + 1 {
			first, held := visible([]byte(text[:cut]))
			second, rest := visible(append(held, text[cut:]...))
			require.Equal(t, want, string(first)+string(second), "%q cut at %d", text, cut)
			require.Empty(t, rest)
		}
	}
	_, held := visible([]byte("half a color \x1b[3"))
	require.Equal(t, "\x1b[3", string(held))
}
