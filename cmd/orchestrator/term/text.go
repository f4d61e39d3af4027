package term

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"orchestrator/wire"
)

// ID is an id as people read and type it.
func ID(id string) string { return wire.Visible(wire.ShortID(id)) }

// OneLine is text of others in one line, fit for a screen.
func OneLine(text string) string { return wire.Visible(strings.Join(strings.Fields(text), " ")) }

// Clip shortens text to a width; what is missing shows as an ellipsis.
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

// Word is text as a word for a shell: it can be pasted, and nothing in it is expanded.
func Word(text string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./+,:@%=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !bare(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Pad is text filled up to a width with spaces.
func Pad(s string, size int) string {
	return s + strings.Repeat(" ", max(0, size-Width(s)))
}

// Width is how many columns a terminal needs for the text.
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
