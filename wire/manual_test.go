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

// TestMessagesOfTheManualAreRight checks that every line shown as a message in the manual or the
// README is valid. It is not with the other tests of the manual, because their binary is also
// the program. The schema library would make each of its hundreds of starts slow.
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
				continue // shown in part
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
