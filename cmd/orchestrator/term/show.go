package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FirstLine returns text up to its first line end.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Sentence returns the text of an event as a sentence, with a capital and a full stop.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return strings.TrimSuffix(string(unicode.ToUpper(first))+text[size:], ".") + "."
}
