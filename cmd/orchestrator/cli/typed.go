package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/help"
)

// MarkCommands returns a paragraph with its commands, and flags with their values, as code.
func MarkCommands(root *cobra.Command, text string) string {
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		if n := typedLength(root, words[i:]); n > 1 {
			words[i] = "`" + words[i]
			i += n - 1
			words[i] += "`"
		}
	}
	return strings.Join(words, " ")
}

// typedLength returns the number of first words that are typed as one command, or as a flag with its value.
func typedLength(root *cobra.Command, words []string) int {
	first := strings.TrimLeft(words[0], `"'(`)
	if strings.HasPrefix(first, "--") && len(words) > 1 && !endsClause(first) && isArgument(words[1]) {
		return 2
	}
	if first != root.Name() {
		return 0
	}
	verb, n := root, 1
	for ; n < len(words) && !endsClause(words[n-1]); n++ {
		word := strings.TrimRight(words[n], clauseEnds)
		if sub := commandBelow(verb, word); sub != nil {
			verb = sub
		} else if verb == root || !isArgument(word) && (verb.Name() != "help" || !namesPage(words[2:n], word)) {
			break
		}
	}
	return n
}

const clauseEnds = `.,:;)"'`

func endsClause(word string) bool { return strings.ContainsAny(word[len(word)-1:], clauseEnds) }

// isArgument reports whether a word in a text is a flag, or stands for a value.
func isArgument(word string) bool {
	return strings.HasPrefix(word, "-") || strings.Contains(word, "://") || strings.ToUpper(word) == word && strings.ToLower(word) != word
}

func commandBelow(parent *cobra.Command, name string) *cobra.Command {
	if i := slices.IndexFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
		return parent.Commands()[i]
	}
	return nil
}

// namesPage reports whether a word is a page of the manual, or a section of the page before it.
func namesPage(before []string, word string) bool {
	if len(before) == 0 {
		return slices.Contains(help.TopicNames(), word)
	}
	return isSection(before[0], word)
}
