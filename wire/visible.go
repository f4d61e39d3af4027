package wire

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"orchestrator/wire/object"
)

// AppendVisible appends text to dst so that it is safe on a terminal. Control characters,
// invalid UTF-8, and characters that are not shown or change the writing direction, are escaped, as
// in \x1b or \u202e, and so are combining marks beyond the eighth on a letter. Tabs are kept. Color sequences are harmless and are removed, since their escapes would
// only be noise.
//
// It is for output only; stored text is not changed.
func AppendVisible(dst, text []byte) []byte {
	var piled marks
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f || c == '\t' {
			dst, piled = append(dst, c), 0
			i++
			continue
		}
		if n := colorLength(text[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		escaped := treacherous(r) || piled.next(r)
		switch {
		case r == utf8.RuneError && size <= 1, r < ' ', r == 0x7f:
			dst = fmt.Appendf(dst, `\x%02x`, text[i])
			size = 1
		case escaped && r > 0xffff:
			dst = fmt.Appendf(dst, `\U%08x`, r)
		case escaped:
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

// AppendVisibleJSON appends a JSON text. Characters that AppendVisible escapes are written as in
// \u202e. A program that reads the text finds the same values.
func AppendVisibleJSON(dst, text []byte) []byte {
	var piled marks
	for i := 0; i < len(text); {
		if text[i] < 0x7f {
			dst, piled = append(dst, text[i]), 0
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		escaped := treacherous(r) || piled.next(r)
		switch high, low := utf16.EncodeRune(r); {
		case r == utf8.RuneError, r != 0x7f && !escaped:
			dst = append(dst, text[i:i+size]...)
		case r > 0xffff:
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		i += size
	}
	return dst
}

// colorLength returns the length of an SGR sequence (ESC [ digits and semicolons m) at the start of
// text, or 0.
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
// controls, bidirectional overrides, line separators and characters that are not shown, such as
// tags, which people do not see and language models read. Joiners and the two selectors of emoji
// are allowed, because emoji and several scripts need them.
func treacherous(r rune) bool {
	switch r {
	case 0x200c, 0x200d, 0xfe0e, 0xfe0f:
		return false
	case 0x2028, 0x2029, 0x2800: // the last one is a braille pattern without dots
		return true
	}
	return r >= 0x80 && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// maxMarks is the largest number of combining marks on a letter. More of them cover the lines above and below; no
// script needs as many.
const maxMarks = 8

// marks counts the combining marks on the present letter.
type marks int

// next takes the next character. It reports whether it is one mark too many.
func (m *marks) next(r rune) bool {
	switch {
	case r < 0x300:
		*m = 0
	case unicode.In(r, unicode.Mn, unicode.Me):
		*m++
	case r != 0x200c && r != 0x200d: // joiners do not begin a letter
		*m = 0
	}
	return *m > maxMarks && r != 0x200c && r != 0x200d
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
