package adapter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// TestAllowedBeginnings checks that a pattern for the beginning of a command does not allow options that make a program
// that reads also write or execute.
func TestAllowedBeginnings(t *testing.T) {
	patterns := []string{
		"Bash(git diff:*)", "Bash(git log:*)", "Bash(git show:*)", "Bash(git grep:*)", "Bash(git status)", "Bash(ls:*)", "Bash(cat:*)", "Bash(grep:*)",
		"Bash(find:*)", "Bash(sort:*)", "Bash(go test:*)",
	}
	ask := func(command string) bool {
		input := wire.Raw(append(append([]byte(`{"command":`), object.Quote(command)...), '}'))
		return allowed(patterns, &Permission{Tool: "Bash", Input: input})
	}
	for _, command := range []string{
		"git diff", "git diff --stat main", "git log -p --oneline -n 5", "git diff --text", "git log --format=%H",
		"git grep -n output", "ls -la", "cat output", "grep -rn --include=*.go output .", "find . -name x", "sort -u a", "go test -run X ./...",
		"go test -exec x", "git diff --no-ext-diff --no-textconv",
	} {
		require.True(t, ask(command), command)
	}
	for _, command := range []string{
		"git diff --output=/home/ann/.bashrc", "git diff --output /home/ann/.bashrc", "git log --outp=x", `git diff "--output=x"`, `git diff --out'put=x'`,
		"git show --ext-diff", "git log --textconv", "git diff -Oorder", "git grep -Oless x", "git grep --open-files-in-pager=sh x", "git grep --open x",
		"git diff --no-index /etc/passwd /dev/null", "grep -f /home/ann/.codex/auth.json x", "grep -rf secret .", "grep --file=secret .", "find . -delete",
		"find . -exec rm x", "sort -o x y", "sort --outp=x y",
	} {
		require.False(t, ask(command), command)
	}
}
