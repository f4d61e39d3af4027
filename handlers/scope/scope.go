package scope

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// maxPatterns bounds the patterns of a Scope after alternatives are expanded. Further patterns
// allow no file.
const maxPatterns = 2000

// A Scope is an immutable set of patterns of files that may change.
type Scope struct {
	files map[string]struct{} // from patterns that stand for one file
	globs []glob
}

// New returns the Scope of some patterns.
func New(patterns []string) *Scope {
	s := &Scope{files: make(map[string]struct{})}
	for room := maxPatterns; len(patterns) > 0 && room > 0; patterns = patterns[1:] {
		all, tried := alternatives(patterns[0])
		for _, text := range all[:min(len(all), room)] {
			s.add(text)
		}
		room -= tried
	}
	return s
}

// add adds a pattern without alternatives.
func (s *Scope) add(text string) {
	text, ok := normal(text)
	switch {
	case !ok:
	case strings.ContainsAny(text, special):
		s.globs = append(s.globs, newGlob(text))
	default:
		s.files[text] = struct{}{}
	}
}

// Outside returns the files that may not change, as they were given.
func (s *Scope) Outside(files []string) (outside []string) {
	steps := maxSteps
	for _, file := range files {
		if !s.allows(file, &steps) {
			outside = append(outside, file)
		}
	}
	return outside
}

// Outside returns the files that no pattern allows, as they were given.
func Outside(patterns, files []string) []string { return New(patterns).Outside(files) }

// maxSteps bounds the steps of one check of any number of files. The most expensive check
// found took a tenth of a second.
const maxSteps = 1 << 25

// look is the number of steps to find that a file is not near a pattern.
const look = 6

// allows reports whether a file may change. It deducts its steps from steps.
func (s *Scope) allows(file string, steps *int) bool {
	file, ok := clean(file)
	if !ok {
		return false
	}
	if _, ok := s.files[file]; ok {
		return true
	}
	for i := range s.globs {
		if *steps -= s.globs[i].price(file); *steps < 0 {
			*steps = 0
			return false
		}
		if s.globs[i].matches(file) {
			return true
		}
	}
	return false
}

// maxPathLength bounds a path; no system opens longer ones.
const maxPathLength = 4096

// clean returns the normal form of a file. It returns false if the file is not below the top
// folder.
func clean(file string) (string, bool) {
	if file == "" || len(file) > maxPathLength || strings.ContainsAny(file, "\\\x00") || !utf8.ValidString(file) {
		return "", false
	}
	file = path.Clean(file)
	switch {
	case file == ".", file == "..", strings.HasPrefix(file, "../"), strings.HasPrefix(file, "/"), onDrive(file):
		return "", false
	}
	return file, true
}

// onDrive reports whether a file begins with the letter of a drive.
func onDrive(file string) bool {
	if len(file) < 2 || file[1] != ':' {
		return false
	}
	letter := file[0] | 0x20
	return letter >= 'a' && letter <= 'z'
}

// special lists the characters with a meaning in a pattern after braces are expanded.
const special = `*?[\`

// normal returns the normal form of a pattern without alternatives. It returns false if the pattern
// can allow no file. It keeps names of .., because no clean file has one.
func normal(text string) (string, bool) {
	text, ok := tame(text)
	for _, odd := range []string{"//", "/./"} {
		for strings.Contains(text, odd) {
			text = strings.ReplaceAll(text, odd, "/")
		}
	}
	text = strings.TrimPrefix(text, "./")
	if !ok || text == "" || strings.HasPrefix(text, "/") || strings.HasSuffix(text, "/") {
		return "", false
	}
	// Otherwise dir/** would allow dir.
	if strings.HasSuffix(text, "/**") {
		text += "/*"
	}
	return text, true
}

// tame rewrites the parts that doublestar would match differently: a class that matches a slash,
// and three or more stars that do not match the empty text. It refuses a class that contains a
// slash.
func tame(text string) (string, bool) {
	var b strings.Builder
	for at := 0; at < len(text); {
		next := after(text, at)
		part := text[at:next]
		switch {
		case part == "*":
			next = at + len(text[at:]) - len(strings.TrimLeft(text[at:], "*"))
			if part = text[at:next]; len(part) > len("**") {
				part = "*"
			}
		case part[0] != '[':
		case strings.Contains(part, "/"):
			return "", false
		case part[1] == '!' || part[1] == '^':
			// As a range, so that it cannot become the beginning of another one.
			part = "[^/-/" + part[2:]
		case matches(part, "/"): // it lies within a range
			return "", false
		}
		b.WriteString(part)
		at = next
	}
	return b.String(), true
}

func matches(pattern, name string) bool {
	matched, err := doublestar.Match(pattern, name)
	return matched && err == nil
}

// glob is a pattern with wildcards. Its head and end quickly rule out most files.
type glob struct {
	head string // the folders before the first wildcard, with a trailing slash
	tail string // the rest after head
	end  string // the end of tail without wildcards
}

func newGlob(text string) glob {
	first := strings.IndexAny(text, special)
	head := strings.LastIndexByte(text[:first], '/') + 1
	end := strings.LastIndexAny(text, special+"]/") + 1 // **/ may be empty, and then so is its slash
	return glob{head: text[:head], tail: text[head:], end: text[end:]}
}

// near reports whether a file has the head and end of the pattern.
func (g *glob) near(file string) bool {
	return strings.HasPrefix(file, g.head) && strings.HasSuffix(file[len(g.head):], g.end)
}

// price returns the number of steps charged for matching a file.
func (g *glob) price(file string) int {
	if !g.near(file) {
		return look
	}
	return look + len(g.tail)*(len(file)-len(g.head))
}

func (g *glob) matches(file string) bool {
	return g.near(file) && matches(g.tail, file[len(g.head):])
}

// Bounds of a pattern. A pattern beyond them allows no file.
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
// Without a brace it returns nil.
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
