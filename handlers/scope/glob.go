package scope

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// special lists the characters with a meaning in a pattern after braces are expanded.
const special = `*?[\`

// normal returns the normal form of a pattern without alternatives. It returns false if the
// pattern can allow nothing. It keeps names of .., because no clean file has one.
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

// tame rewrites what doublestar would match differently: a class that matches a slash, and
// three or more stars that do not match nothing. It refuses a class that contains a slash.
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
	end := strings.LastIndexAny(text, special+"]/") + 1 // **/ may be nothing, and then so is its slash
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
