package scope

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// special are the characters that are not just themselves in a pattern whose
// braces are written out.
const special = `*?[\`

// normal is the one way to write a pattern without alternatives, unless it can
// allow nothing. Names of .. are left in it: no file that is clean has one.
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
	// Else dir/** would allow dir.
	if strings.HasSuffix(text, "/**") {
		text += "/*"
	}
	return text, true
}

// tame rewrites what would be matched in another way than the package comment
// says: a class would match a slash, and three stars or more not match nothing. A
// class that asks for a slash is refused.
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

// glob is a pattern that may allow many files. Most files it does not, and of
// those most are told by how they begin and how they end.
type glob struct {
	head string // whole names without wildcards, and the slash after them
	tail string // all that is after the head
	end  string // of the tail, without wildcards
}

func newGlob(text string) glob {
	first := strings.IndexAny(text, special)
	head := strings.LastIndexByte(text[:first], '/') + 1
	end := strings.LastIndexAny(text, special+"]/") + 1 // **/ may be nothing, and then so is its slash
	return glob{head: text[:head], tail: text[head:], end: text[end:]}
}

// near reports whether a file may be one that the pattern allows.
func (g *glob) near(file string) bool {
	return strings.HasPrefix(file, g.head) && strings.HasSuffix(file[len(g.head):], g.end)
}

// price is at least how many steps it is to match a file.
func (g *glob) price(file string) int {
	if !g.near(file) {
		return look
	}
	return look + len(g.tail)*(len(file)-len(g.head))
}

func (g *glob) matches(file string) bool {
	return g.near(file) && matches(g.tail, file[len(g.head):])
}
