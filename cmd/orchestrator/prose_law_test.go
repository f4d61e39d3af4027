package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// vague matches words that do not name an actor. A sentence says which type, program or person
// acts.
var vague = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whom)\b`)

// maxVague is the number of vague words allowed in a thousand.
const maxVague = 0.3

// Prose: comments, the manual and the schemas name the type, program or person that acts.
func TestLawProse(t *testing.T) {
	t.Parallel()
	comments := make(map[string]string)
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, group := range f.syntax.Comments {
			comments[f.path] += group.Text()
		}
	}
	judgeProse(t, "comments", comments)
	judgeProse(t, "help pages", prose(t, "help/*.md"))
	judgeProse(t, "schemas", prose(t, "../../wire/schema/json/*.json", "../../supervisor/api/schemas/*.json"))
	judgeProse(t, "pages of the project", prose(t, "../../README.md", "../../agents/*/README.md"))
}

// prose reads the files that match some patterns.
func prose(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			found[file] = string(text)
		}
	}
	return found
}

// judgeProse counts the vague words in texts and logs their share.
func judgeProse(t *testing.T, what string, found map[string]string) {
	t.Helper()
	words, bad := 0, 0
	var places []string
	for file, text := range found {
		words += len(strings.Fields(text))
		for _, word := range vague.FindAllString(text, -1) {
			bad++
			places = append(places, file+": "+word)
		}
	}
	share := 1000 * float64(bad) / float64(words)
	t.Logf("%s: %d of %d words, %.2f in a thousand", what, bad, words, share)
	require.Less(t, share, maxVague, "%s: name the one who acts\n%s", what, strings.Join(places, "\n"))
}
