package web

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

var update = flag.Bool("update", false, "write the list of hidden characters")

// TestHiddenCharacters checks that the page writes out the same characters as the terminal. With -update it writes
// their list.
//
// Rows: S-11.
func TestHiddenCharacters(t *testing.T) {
	const file = "assets/text.js"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	class := hiddenClass()
	list := regexp.MustCompile(`(?m)^const hidden = /\[.*\]/gu;$`)
	require.Len(t, list.FindAll(text, -1), 1)
	want := list.ReplaceAllLiteralString(string(text), "const hidden = /["+class+"]/gu;")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "%s is stale: go test ./supervisor/web -run TestHiddenCharacters -update", file)
}

// hiddenClass returns the characters that wire.Visible escapes, as the class of a regular expression. It leaves out
// surrogates, which are no characters.
func hiddenClass() string {
	var class strings.Builder
	from := rune(-1)
	for r := rune(0); r <= unicode.MaxRune+1; r++ {
		hidden := r <= unicode.MaxRune && (r < 0xd800 || r > 0xdfff) && wire.Visible(string(r)) != string(r)
		switch {
		case hidden && from < 0:
			from = r
		case !hidden && from >= 0:
			class.WriteString(spelled(from))
			if r-1 > from {
				class.WriteString("-" + spelled(r-1))
			}
			from = -1
		}
	}
	return class.String()
}

func spelled(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// TestVisibleOfThePage checks that the page and the terminal write texts out in the same way.
func TestVisibleOfThePage(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Logf("THE TEXTS OF THE PAGE ARE NOT TESTED: %v (with $CI set this fails)", err)
		return
	}
	require.NoError(t, err)
	folder, err := filepath.Abs("assets")
	require.NoError(t, err)
	for _, text := range []string{
		"plain", "tab\tstays", "\x1b]0;title\a", "abc\u202etxt.exe", "zero\u200bwidth", "c1 \u009b", "tag\U000e0041\u00ad",
		"\u3164\u2063\u115f\ufe01\u2800\U000e0100\u034f\u17b4\U0001d173\uffa0", "\U0001f469\u200d\U0001f680 \u2764\ufe0f",
		"e" + strings.Repeat("\u0301", 10) + "x\u0301", "e" + strings.Repeat("\u20dd\u200d", 9),
	} {
		program := fmt.Sprintf(`import { visible } from %q; process.stdout.write(visible(process.argv[1]));`, filepath.Join(folder, "text.js"))
		out, err := exec.Command(node, "--input-type=module", "-e", program, text).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, wire.Visible(text), string(out))
	}
}

// TestStatesHaveOneName checks that the page names the states of tasks and agents as the command line does.
func TestStatesHaveOneName(t *testing.T) {
	text, err := os.ReadFile("assets/states.js")
	require.NoError(t, err)
	words := make(map[string]string)
	for _, list := range []string{"taskStates = {", "agentStates = {"} {
		_, rest, found := strings.Cut(string(text), list)
		require.True(t, found, list)
		rest, _, _ = strings.Cut(rest, "\n};")
		for _, one := range regexp.MustCompile(`(?m)^  (\w+): \{ word: "([^"]+)"`).FindAllStringSubmatch(rest, -1) {
			require.Equal(t, strings.ReplaceAll(one[1], "_", " "), one[2])
			words[one[1]] = one[2]
		}
	}
	for _, state := range wire.TaskStates {
		require.Contains(t, words, string(state))
	}
	require.Contains(t, words, string(control.StateBackoff))
}
