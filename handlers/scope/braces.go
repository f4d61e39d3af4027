package scope

import (
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a pattern. A pattern beyond them allows nothing.
const (
	maxPatternLength = 512 // bytes
	maxWildcards     = 32  // * ? and [; ** counts as two
	maxBraces        = 8
	maxAlternatives  = 64 // after all braces are expanded
)

// alternatives expands the braces of a pattern. It also returns how many alternatives were
// tried, so that a pattern with too many has its full cost.
func alternatives(pattern string) (all []string, tried int) {
	if len(pattern) > maxPatternLength || !utf8.ValidString(pattern) || !doublestar.ValidatePattern(pattern) || !modest(pattern) {
		return nil, 1
	}
	open := []string{pattern}
	for len(open) > 0 {
		if tried = len(all) + len(open); tried > maxAlternatives {
			return nil, maxAlternatives
		}
		next := open[len(open)-1]
		open = open[:len(open)-1]
		cuts := brace(next)
		if cuts == nil {
			all = append(all, next)
			continue
		}
		before, after := next[:cuts[0]], next[cuts[len(cuts)-1]+1:]
		for i, cut := range cuts[1:] {
			open = append(open, before+next[cuts[i]+1:cut]+after)
		}
	}
	return all, tried
}

// modest reports whether a pattern is within the bounds.
func modest(pattern string) bool {
	wildcards, braces := 0, 0
	for at := 0; at < len(pattern); at = after(pattern, at) {
		switch pattern[at] {
		case '*', '?', '[':
			wildcards++
		case '{':
			braces++
		}
	}
	return wildcards <= maxWildcards && braces <= maxBraces
}

// brace returns the positions of the first brace of a valid pattern: start, separators and end.
// It returns nil if there is none.
func brace(pattern string) (cuts []int) {
	depth := 0
	for at := 0; at < len(pattern); at = after(pattern, at) {
		switch c := pattern[at]; {
		case c == '{':
			if depth++; depth == 1 {
				cuts = append(cuts, at)
			}
		case c == ',' && depth == 1:
			cuts = append(cuts, at)
		case c == '}':
			if depth--; depth == 0 {
				return append(cuts, at)
			}
		}
	}
	return nil
}

// after returns the position after the next character, escaped character or class. Braces and
// commas within a class have no meaning.
func after(pattern string, at int) int {
	switch pattern[at] {
	case '\\':
		return at + 2
	case '[':
		for at++; at < len(pattern) && pattern[at] != ']'; at++ {
			if pattern[at] == '\\' {
				at++
			}
		}
	}
	return at + 1
}
