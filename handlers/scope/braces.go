package scope

import (
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of one pattern. What is beyond allows nothing.
const (
	longestPattern   = 512 // bytes
	mostWildcards    = 32  // * ? and [, where ** are two
	mostBraces       = 8
	mostAlternatives = 64 // once all braces are written out
)

// alternatives is a pattern with its braces written out, and how many there were
// to try: what is refused for having too many of them has cost as much as if it
// had not been.
func alternatives(pattern string) (all []string, tried int) {
	if len(pattern) > longestPattern || !utf8.ValidString(pattern) || !doublestar.ValidatePattern(pattern) || !modest(pattern) {
		return nil, 1
	}
	open := []string{pattern}
	for len(open) > 0 {
		if tried = len(all) + len(open); tried > mostAlternatives {
			return nil, mostAlternatives
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

// modest reports whether a pattern keeps to the bounds of what it may contain.
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
	return wildcards <= mostWildcards && braces <= mostBraces
}

// brace is where the first brace of a well formed pattern begins, where its
// alternatives are cut, and where it ends; nil when there is none.
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

// after is where a pattern goes on after what stands at a place: a character, one
// that is escaped, or a whole class, within which braces and commas are nothing
// but characters.
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
