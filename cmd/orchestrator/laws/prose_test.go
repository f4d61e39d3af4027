package laws

import (
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
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
	for _, f := range source.Files(t) {
		if f.Test {
			continue
		}
		for _, group := range f.Syntax.Comments {
			comments[f.Path] += group.Text()
		}
	}
	judgeProse(t, "comments", comments)
	judgeProse(t, "help pages", prose(t, "../help/*.md"))
	judgeProse(t, "schemas", prose(t, "../../../wire/schema/json/*.json", "../../../supervisor/api/schemas/*.json"))
	judgeProse(t, "pages of the project", prose(t, "../../../README.md", "../../../agents/*/README.md"))
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

// filler matches words that stand where a noun should: what-clauses, pronouns without a noun nearby, and the like.
var filler = regexp.MustCompile(`(?i)\b(what|the one that|that of|those (that|which|of)|others|something|nothing|any ?more|as it is|of its own|meanwhile|(in|at|by|from|of|to|with|on|for) which|whose|(is|are) there|there (is|are) (no|none)|says|told)\b`)

// maxFiller is how many of them are allowed in a thousand words of a room. It only falls. The standard library has 3.
const maxFiller = 5

// TestLawFiller checks the share of filler in the comments of each room and of its tests, and in the manual.
func TestLawFiller(t *testing.T) {
	t.Parallel()
	rooms := make(map[string]string)
	for _, f := range source.Files(t) {
		room := strings.Join(strings.SplitN(f.Folder, "/", 3)[:min(2, strings.Count(f.Folder, "/")+1)], "/")
		if f.Test {
			room += " tests"
		}
		for _, group := range f.Syntax.Comments {
			rooms[room] += group.Text()
		}
	}
	for file, text := range prose(t, "../help/*.md", "../../../README.md", "../../../.github/CONTRIBUTING.md") {
		name := "manual"
		if !strings.HasPrefix(file, "../help/") {
			name = filepath.Base(file)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "| [`") { // a row of the table of packages, made from comments
				rooms[name] += line
			}
		}
	}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		words := len(strings.Fields(rooms[room]))
		share := 1000 * float64(len(filler.FindAllString(rooms[room], -1))) / float64(words)
		if words < 500 {
			continue // too few to judge
		}
		assert.LessOrEqual(t, share, float64(maxFiller), "%s: put nouns where clauses stand", room)
		t.Logf("%q: %.1f,", room, math.Ceil(10*share)/10)
	}
}

// subject matches the first line of a commit.
var subject = regexp.MustCompile(`^([a-z0-9][a-z0-9/_., -]*|README|CONTRIBUTING): [A-Za-z]`)

// TestLawCommits checks the first lines of the latest commits: a package, and a summary of at most 72 columns about one topic.
func TestLawCommits(t *testing.T) {
	t.Parallel()
	text, err := exec.Command("git", "log", "--no-merges", "--format=%h %s", "-60").Output()
	if err != nil {
		return // a copy without its history
	}
	for line := range strings.Lines(string(text)) {
		hash, first, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.True(t, subject.MatchString(first) && len(first) <= 72 && !strings.Contains(first, ";"), "%s %s", hash, first)
	}
}
