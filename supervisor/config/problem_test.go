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

func TestFormat(t *testing.T) {
	src := "# top\nagent \"a\" {\ncommand=[\"x\"] # why\n   description = \"d\"\n}\n"
	out, problems := Format([]byte(src), "orchestrator.hcl")
	require.Empty(t, problems)
	require.Equal(t, "# top\nagent \"a\" {\n  command     = [\"x\"] # why\n  description = \"d\"\n}\n", string(out))
	again, _ := Format(out, "orchestrator.hcl")
	require.Equal(t, string(out), string(again))
}

func TestFormatLeavesTheReferenceAlone(t *testing.T) {
	src := reference()
	out, problems := Format([]byte(src), "reference.hcl")
	require.Empty(t, problems)
	require.Equal(t, src, string(out))
}

func TestFormatChangesNothingThatDoesNotParse(t *testing.T) {
	src := []byte("agent \"a\" {\n   x=\n}")
	out, problems := Format(src, "orchestrator.hcl")
	require.Equal(t, src, out)
	require.Equal(t, 1, problems.Errors())
	require.Equal(t, "config/syntax", problems[0].Code)
}

// TestFilesOfAnotherKind checks that a habit from another file format is one error, in the terms
// of the file.
func TestFilesOfAnotherKind(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
		problems   int
	}{
		"one line with commas": {`agent "a" { command = ["true"], role = "coder" }`, "Write each attribute in its own line", 1},
		"one line of two":      {`agent "a" { command = ["true"] role = "coder" }`, "Write each attribute in its own line", 1},
		"first line with one":  {"agent \"a\" { command = [\"true\"]\n}", "A block in one line can hold one attribute only.", 1},
		"UTF-16":               {"\xff\xfea\x00g\x00", "It is UTF-16. Save it as UTF-8.", 1},
		"binary":               {"\x7fELF\x02\x00\x01", "It is not text: it contains NUL bytes.", 1},
		"JSON":                 {"\n{\"agent\": {\"a\": {\"command\": [\"true\"]}}}", "Rename it to orchestrator.hcl.json", 1},
		"YAML":                 {"agents:\n  coder:\n    command: x\n", "HCL uses no colon here. Write an attribute as agents = …, and a block as agents { … }.", 3},
		"single quotes":        {"agent 'a' {\n}\n", `Single quotes are not valid. Use double quotes (") to enclose strings.`, 1},
		"empty":                {"# nothing yet\n", `It declares no agent, so there is nothing to start.`, 1},
		"misspelt":             {"agent \"a\" {\n  comand = [\"true\"]\n}\n", `Agent "a" has no attribute "comand". Did you mean "command"?`, 1},
		"misplaced":            {"command = [\"true\"]\n", `It belongs in an agent block: agent "NAME" { command = … }`, 1},
		"like no other":        {"agent \"a\" {\n  command = [\"true\"]\n  xyzzy_quux = 1\n}\n", "It can have command,", 1},
		"no name":              {"agent {\n  command = [\"true\"]\n}\n", `Each agent has a name: agent "NAME" { … }`, 1},
		"no quotes":            {"agent \"a\" {\n  command = [cat]\n}\n", `For the text itself use quotes: "cat".`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(config(t, test.text), Options{})
			require.Len(t, problems, test.problems, rendered(problems))
			require.Contains(t, problems[0].Detail+" "+problems[0].Hint, test.want)
		})
	}
}

// TestHarmlessDifferences checks that a byte order mark, Windows line ends and tabs have no effect.
func TestHarmlessDifferences(t *testing.T) {
	c := load(t, config(t, "\xef\xbb\xbfagent \"a\" {\r\n\tcommand = [\"true\"]\r\n}\r\n"), Options{})
	require.Equal(t, []string{"true"}, c.Agents[0].Command)
	_, problems := Load(config(t, "agent \"a\" {\r\n\tcomand = [\"true\"]\r\n}\r\n"), Options{})
	require.Equal(t, "\tcomand = [\"true\"]", problems[0].Snippet.Code, "no carriage return is shown")
}
