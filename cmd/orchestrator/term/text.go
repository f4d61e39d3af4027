package term

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"orchestrator/wire"
)

// ID returns the short form of an id, which people read and type.
func ID(id string) string { return wire.Visible(wire.ShortID(id)) }

// OneLine returns untrusted text as one line, safe for a terminal.
func OneLine(text string) string { return wire.Visible(strings.Join(strings.Fields(text), " ")) }

// Clip shortens text to a width and marks a cut with an ellipsis.
func Clip(text string, size int) string {
	if Width(text) <= size {
		return text
	}
	var b strings.Builder
	used := 1
	for _, r := range text {
		if used += Width(string(r)); used > size {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// Word quotes text for a shell if needed: it can be pasted, and nothing in it is expanded.
func Word(text string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./+,:@%=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !bare(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Pad fills text with spaces up to a width.
func Pad(s string, size int) string {
	return s + strings.Repeat(" ", max(0, size-Width(s)))
}

// Width returns the number of terminal columns of a text.
func Width(s string) int {
	n := 0
	for _, r := range s {
		if r < 0x300 {
			n++
			continue
		}
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			continue
		}
		n++
		if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}

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
