package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCaretsStandUnderWideText(t *testing.T) {
	_, problems := Load(config(t, "log {\n level = upper(\"日本\", wrong)\n}"), Options{})
	lines := strings.Split(rendered(problems), "\n")
	require.Equal(t, `2 |  level = upper("日本", wrong)`, lines[3])
	require.Equal(t, "  |                        ^^^^^", lines[4])
}

func TestTerminalSequencesAreShownNotObeyed(t *testing.T) {
	_, problems := Load(config(t, "log {\n level = \"\x1b[31m\u202Ered\a\"\n}"), Options{})
	require.NotEmpty(t, problems)
	require.NotContains(t, rendered(problems), "\x1b")
	require.NotContains(t, rendered(problems), "\u202E")
	require.NotContains(t, problems.Err().Error(), "\a")
}

func TestColour(t *testing.T) {
	_, problems := Load(config(t, "log {\n lvl = 1\n}"), Options{})
	var b strings.Builder
	require.NoError(t, problems.Render(&b, true))
	require.Contains(t, b.String(), "\x1b[1;31mError:\x1b[0m")
	require.True(t, strings.HasSuffix(b.String(), "\n1 error."))
}

func TestProblemAsJSON(t *testing.T) {
	_, problems := Load(config(t, "log {\n lvl = 1\n}"), Options{})
	text, err := json.Marshal(problems[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"severity":"error","code":"config/unknown-attribute","summary":"Unknown attribute",
		"detail":"Block log has no attribute \"lvl\".","hint":"Did you mean \"level\"?",
		"range":{"filename":"orchestrator.hcl","start":{"line":2,"column":2,"byte":7},"end":{"line":2,"column":5,"byte":10}},
		"snippet":{"context":"log","code":" lvl = 1","start_line":2,"highlight_start_offset":1,"highlight_end_offset":4}}`, string(text))
	require.EqualError(t, problems.Err(), `orchestrator.hcl:2:2: Unknown attribute: Block log has no attribute "lvl". Did you mean "level"?`)
}

func TestSuggestions(t *testing.T) {
	known := []string{"SIGTERM", "command", "depends_on", "description"}
	for wrong, want := range map[string]string{
		"TERM": "SIGTERM", "comand": "command", "cmomand": "command", "dependson": "depends_on",
		"c": "", "banana": "", "command": "", "": "",
	} {
		require.Equal(t, want, nearest(wrong, known), wrong)
	}
}
