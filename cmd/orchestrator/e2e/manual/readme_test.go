package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

const contributing = "../../../../.github/CONTRIBUTING.md"

const readme = "../../../../README.md"

func TestReadme(t *testing.T) {
	t.Parallel()
	newReader(t).reads(readme)
}

// The commands of the quickstart work as the manual shows.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	newReader(t).reads("../../help/quickstart.md")
}

// The smallest agents on the pages of the libraries do a task.
func TestSmallestAgents(t *testing.T) {
	t.Parallel()
	for page, file := range map[string]string{"python": "agent.py", "typescript": "agent.mjs"} {
		all := source.Fences(t, "../../help/"+page+".md")
		require.Equal(t, file, all[0].File)
		newReader(t).write(file, strings.Join(all[0].Lines, "\n")+"\n")
	}
}

// The links in the README point to existing files.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	links := regexp.MustCompile(`(?:\]\(|src=")([^)"]+)[)"]`).FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1)
	require.Greater(t, len(links), 10)
	require.Contains(t, string(text), `<img src=".github/demo.svg" width="720" alt="A terminal`, "a picture, in words too")
	for _, link := range links {
		file, anchor, _ := strings.Cut(link[1], "#")
		page, err := filepath.Glob("../../../../" + file)
		require.NoError(t, err)
		require.Len(t, page, 1, link[1])
		if anchor != "" {
			heading := "(?mi)^#+ " + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", "[ -]") + "$"
			there, err := os.ReadFile(page[0])
			require.NoError(t, err)
			require.Regexp(t, heading, string(there), link[1])
		}
	}
}

// The README fits on a few screens, and the links of the contributors' page lead to packages.
func TestReadmeIsComplete(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.Less(t, strings.Count(string(text), "\n"), 153)
	page, err := os.ReadFile(contributing)
	require.NoError(t, err)
	for _, link := range regexp.MustCompile(`\]\(\.\./([^)]+)\)`).FindAllStringSubmatch(string(page), -1) {
		require.DirExists(t, "../../../../"+link[1])
	}
}

// The agent in the README is the same as in the manual.
func TestOneAgentForBoth(t *testing.T) {
	page, err := os.ReadFile("../../help/agents.md")
	require.NoError(t, err)
	all := source.Fences(t, readme)
	agent := all[slices.IndexFunc(all, func(block source.Fence) bool { return block.File != "" })]
	require.Equal(t, "agent.sh", agent.File)
	require.Len(t, agent.Lines, 5, "five lines of shell")
	require.Contains(t, string(page), "\n```\n"+strings.Join(agent.Lines, "\n")+"\n```\n")
}

// compared matches expected lines with printed lines. It returns the missing and the unexpected
// ones.
func compared(want, said []string) (missing, extra []string) {
	left := append([]string(nil), said...)
	more := false
	for _, line := range want {
		if line == "…" {
			more = true
			continue
		}
		form, found := loose(line), false
		for i := range left {
			if form.MatchString(left[i]) {
				left, found = append(left[:i:i], left[i+1:]...), true
				break
			}
		}
		if !found {
			missing = append(missing, line)
		}
	}
	for _, line := range left {
		if !more && !passing.MatchString(line) {
			extra = append(extra, line)
		}
	}
	return missing, extra
}

// passing matches lines that may be missing: intermediate states, and notices of long waits.
var passing = regexp.MustCompile(`^[0-9a-f]{8} (queued|assigned to|running on)|^Waiting for `)

// various matches parts that differ between runs. The forms are patterns for them.
var (
	various = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d:\d\d:\d\d|\b[0-9a-f]{8}\b|\d+\.\d+s|\b\d{4,}\b|…|created, .*| +`)
	forms   = []struct{ of, form *regexp.Regexp }{
		{regexp.MustCompile(`^\d{4}-`), regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)},
		{regexp.MustCompile(`^\d\d:`), regexp.MustCompile(`\d\d:\d\d:\d\d`)},
		{regexp.MustCompile(`^\d+\.\d+s$`), regexp.MustCompile(`[\d.hms]+`)},
		{regexp.MustCompile(`^[0-9a-f]{8}$`), regexp.MustCompile(`[0-9a-f]{8}`)},
		{regexp.MustCompile(`^\d+$`), regexp.MustCompile(`\d+`)},
		{regexp.MustCompile(`^created`), regexp.MustCompile(`created, .*`)},
		{regexp.MustCompile(`^…$`), regexp.MustCompile(`.*`)},
		{regexp.MustCompile(`^ +$`), regexp.MustCompile(` +`)},
	}
)

// loose returns a pattern for a line of the README.
func loose(line string) *regexp.Regexp {
	var b strings.Builder
	at := 0
	for _, found := range various.FindAllStringIndex(line, -1) {
		b.WriteString(regexp.QuoteMeta(line[at:found[0]]))
		at = found[1]
		part := regexp.QuoteMeta(line[found[0]:found[1]])
		for _, f := range forms {
			if f.of.MatchString(line[found[0]:found[1]]) {
				part = f.form.String()
				break
			}
		}
		b.WriteString(part)
	}
	return regexp.MustCompile("^" + b.String() + regexp.QuoteMeta(line[at:]) + "$")
}

func TestLoose(t *testing.T) {
	for want, said := range map[string]string{
		"14:53:41 hello   ok a8f6daff \"x\" done":  "09:00:00 hello ok 00000000 \"x\" done",
		"4a2a6c3f created, running on hello":       "11112222 created, queued",
		"shop is up, pid 5651, 1 agent. See …":     "shop is up, pid 7, 1 agent. See this",
		"  hello  exit 0 (0.0s)":                   "  hello  exit 0 (12.5s)",
		`{"id":…"at":"2026-11-21T14:53:39.954Z"}`:  `{"id":"7","at":"2030-01-01T00:00:00.000Z"}`,
		"4a2a6c3f  Say hello  done   hello - 1.0s": "ffffffff  Say hello  done  hello  -  1m02s",
	} {
		require.Regexp(t, loose(want), said)
		require.NotRegexp(t, loose(want), "x"+said)
	}
	missing, extra := compared([]string{"a", "b"}, []string{"b", "c"})
	require.Equal(t, []string{"a"}, missing)
	require.Equal(t, []string{"c"}, extra)
	_, extra = compared([]string{"a", "…"}, []string{"a", "c"})
	require.Empty(t, extra)
}

// The agent and the configuration on the page equal the ones in the script.
func TestTheAgentOfTheBusPageRuns(t *testing.T) {
	script, err := os.ReadFile("testdata/script/bus_team.txtar")
	require.NoError(t, err)
	ran := 0
	for _, block := range source.Fences(t, "../../help/bus.md") {
		text := strings.Join(block.Lines, "\n") + "\n"
		switch block.Lang {
		case "sh":
			require.Contains(t, string(script), "\n-- answer.sh --\n"+text+"-- ")
			ran++
		case "hcl":
			require.Contains(t, string(script), "\n"+text)
			ran++
		}
	}
	require.Equal(t, 3, ran)
}
