package serve

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
)

// scripted is an answer to questions that match a pattern.
type scripted struct{ pattern, answer string }

// readAnswers reads a file of answers. Each line has a question, => and the answer. A * in
// the question matches any text, and the first matching line is used.
func readAnswers(file string) ([]scripted, error) {
	text, err := cli.ReadFile(file)
	if err != nil {
		var gone *os.PathError
		if errors.As(err, &gone) {
			err = gone.Err
		}
		return nil, cli.UsageError(fmt.Sprintf("--answers %s cannot be read: %v", file, err), "It is a file with lines such as: Which login* => oauth")
	}
	var rules []scripted
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, answer, ok := strings.Cut(line, "=>")
		if !ok || strings.TrimSpace(pattern) == "" {
			return nil, cli.UsageError(fmt.Sprintf("%s:%d is no answer: %q", file, i+1, line), "Write the question, => and the answer: Which login* => oauth")
		}
		rules = append(rules, scripted{pattern: strings.TrimSpace(pattern), answer: strings.TrimSpace(answer)})
	}
	return rules, nil
}

// fits reports whether a question matches the pattern.
func (s scripted) fits(question string) bool {
	parts := strings.Split(s.pattern, "*")
	if len(parts) == 1 {
		return question == s.pattern
	}
	rest, ok := strings.CutPrefix(question, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, ok = strings.Cut(rest, part)
		if !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, last)
}
