package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesOfAnotherKind checks that a habit from another file format is one error, in the terms
// of the file.
func TestFilesOfAnotherKind(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
		problems   int
	}{
		"UTF-16":        {"\xff\xfea\x00g\x00", "It is UTF-16. Save it as UTF-8.", 1},
		"binary":        {"\x7fELF\x02\x00\x01", "It is no text: it holds NUL bytes.", 1},
		"JSON":          {"\n{\"agent\": {\"a\": {\"command\": [\"true\"]}}}", "Call it orchestrator.hcl.json", 1},
		"YAML":          {"agents:\n  coder:\n    command: x\n", "There is no colon in this language. An attribute is written agents = …, a block agents { … }.", 3},
		"single quotes": {"agent 'a' {\n}\n", `Single quotes are not valid. Use double quotes (") to enclose strings.`, 1},
		"empty":         {"# nothing yet\n", `It declares no agent, so there is nothing to start.`, 1},
		"misspelt":      {"agent \"a\" {\n  comand = [\"true\"]\n}\n", `Agent "a" has no attribute "comand". Did you mean "command"?`, 1},
		"misplaced":     {"command = [\"true\"]\n", `It stands in the block of an agent: agent "NAME" { command = … }`, 1},
		"like no other": {"agent \"a\" {\n  command = [\"true\"]\n  xyzzy_quux = 1\n}\n", "It may hold command, description, dir,", 1},
		"no name":       {"agent {\n  command = [\"true\"]\n}\n", `Each agent has a name: agent "NAME" { … }`, 1},
		"no quotes":     {"agent \"a\" {\n  command = [cat]\n}\n", `For the text itself use quotes: "cat".`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(config(t, test.text), Options{})
			require.Len(t, problems, test.problems, rendered(problems))
			require.Contains(t, problems[0].explanation(), test.want)
		})
	}
}

// TestHarmlessDifferences checks that a byte order mark, Windows line ends and tabs change
// nothing.
func TestHarmlessDifferences(t *testing.T) {
	c := load(t, config(t, "\xef\xbb\xbfagent \"a\" {\r\n\tcommand = [\"true\"]\r\n}\r\n"), Options{})
	require.Equal(t, []string{"true"}, c.Agents[0].Command)
	_, problems := Load(config(t, "agent \"a\" {\r\n\tcomand = [\"true\"]\r\n}\r\n"), Options{})
	require.Equal(t, "\tcomand = [\"true\"]", problems[0].Snippet.Code, "no carriage return is shown")
}
