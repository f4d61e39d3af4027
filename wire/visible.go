package wire

import (
	"fmt"
	"unicode/utf8"

	"orchestrator/wire/object"
)

// AppendVisible appends text to dst so that it is safe on a terminal. Control characters,
// invalid UTF-8 and characters that change the writing direction are escaped, as in \x1b or
// \u202e. Tabs are kept. Color sequences are harmless and are removed, since their escapes would
// only be noise.
//
// It is for output only; stored text is not changed.
func AppendVisible(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f || c == '\t' {
			dst = append(dst, c)
			i++
			continue
		}
		if n := colorLength(text[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size <= 1, r < ' ', r == 0x7f:
			dst = fmt.Appendf(dst, `\x%02x`, text[i])
			size = 1
		case treacherous(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = append(dst, text[i:i+size]...)
		}
		i += size
	}
	return dst
}

// Visible is AppendVisible for strings.
func Visible(text string) string {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' && c != '\t' || c >= 0x7f {
			return string(AppendVisible(nil, []byte(text)))
		}
	}
	return text
}

// colorLength returns the length of an SGR sequence (ESC [ digits and semicolons m) at the start of
// text, or 0 if there is none.
func colorLength(text []byte) int {
	if len(text) < 3 || text[0] != 0x1b || text[1] != '[' {
		return 0
	}
	for i := 2; i < len(text) && i < 32; i++ {
		switch c := text[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// treacherous reports whether a character makes a line look different from its content: C1
// controls, bidirectional overrides, line separators and zero-width spaces. Joiners are allowed,
// because emoji and several scripts need them.
func treacherous(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f,
		r >= 0x202a && r <= 0x202e,
		r >= 0x2066 && r <= 0x2069:
		return true
	}
	switch r {
	case 0x061c, 0x180e, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x2060, 0xfeff:
		return true
	}
	return false
}

// How much of an id people see.
const (
	shortUUID = 8
	maxOwn    = 24 // characters of an id that a person has chosen
)

// ShortID returns an id for people. A UUID is cut to a prefix that identifies it. An id that a
// person has chosen is cut only if it is long.
func ShortID(id string) string {
	if object.IsUUID(id) {
		return id[:shortUUID]
	}
	n := 0
	for i := range id {
		if n++; n > maxOwn {
			return id[:i]
		}
	}
	return id
}
