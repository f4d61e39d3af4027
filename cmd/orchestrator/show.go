package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// firstLine is text up to its first line end.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// sentence is what an event says, standing alone.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return strings.TrimSuffix(string(unicode.ToUpper(first))+text[size:], ".") + "."
}
