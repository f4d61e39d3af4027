package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every line of a message that the manual or the README shows is one. (This is
// not with the manual's other tests because their binary is the program as well,
// and the library of schemas would make each of its hundreds of starts slow.)
func TestMessagesOfTheManualAreRight(t *testing.T) {
	compiled := validators(t)
	pages, err := filepath.Glob("../cmd/orchestrator/help/*.md")
	require.NoError(t, err)
	checked := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, line := range regexp.MustCompile(`(?m)^\{"type":".*\}$`).FindAllString(string(text), -1) {
			if strings.Contains(line, "…") {
				continue // told in parts
			}
			checked++
			var said struct{ Type string }
			require.NoError(t, json.Unmarshal([]byte(line), &said), "%s: %s", page, line)
			require.Contains(t, compiled, said.Type, "%s: %s", page, line)
			require.NoError(t, compiled[said.Type].Validate(decoded(t, []byte(line))), "%s: %s", page, line)
		}
	}
	require.Greater(t, checked, 3)
}
