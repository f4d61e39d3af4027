package config

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// wrapAt is the column explanations are wrapped at.
const wrapAt = 78

// paint holds the escape sequences of one rendering, all empty without colour.
type paint struct{ red, yellow, dim, bold, reset string }

var colours = paint{red: "\x1b[1;31m", yellow: "\x1b[1;33m", dim: "\x1b[2m", bold: "\x1b[1m", reset: "\x1b[0m"}

// Render writes every problem with its source, and then how many there are.
// That last line has no newline: the caller ends the sentence with what did
// not happen, as in "4 errors. Nothing was started."
func (ps Problems) Render(w io.Writer, color bool) error {
	if len(ps) == 0 {
		return nil
	}
	ink := paint{}
	if color {
		ink = colours
	}
	var b strings.Builder
	for _, p := range ps {
		p.render(&b, ink)
		b.WriteByte('\n')
	}
	b.WriteString(ps.tally())
	_, err := io.WriteString(w, b.String())
	return err
}

func (ps Problems) tally() string {
	var parts []string
	if n := ps.Errors(); n > 0 {
		parts = append(parts, plural(n, "error"))
	}
	if n := ps.Warnings(); n > 0 {
		parts = append(parts, plural(n, "warning"))
	}
	return strings.Join(parts, ", ") + "."
}

func (p Problem) render(b *strings.Builder, ink paint) {
	word, hue := "Error", ink.red
	if p.Severity == SeverityWarning {
		word, hue = "Warning", ink.yellow
	}
	fmt.Fprintf(b, "%s%s:%s %s%s%s\n", hue, word, ink.reset, ink.bold, visible(lowerFirst(p.Summary)), ink.reset)

	gutter := " "
	if s := p.Snippet; s != nil {
		last := s.StartLine + strings.Count(s.Code, "\n")
		gutter = strings.Repeat(" ", len(strconv.Itoa(last))+1)
	}
	if at := p.Range.String(); at != "" {
		fmt.Fprintf(b, "%s%s-->%s %s\n", gutter, ink.dim, ink.reset, visible(at))
	}
	if p.Snippet != nil {
		p.Snippet.render(b, ink, hue, gutter)
	}
	p.renderExplanation(b, ink, gutter)
}

// lowerFirst makes a title of HCL read like every other error.
func lowerFirst(title string) string {
	if len(title) > 1 && (title[1] == ' ' || 'a' <= title[1] && title[1] <= 'z') {
		return strings.ToLower(title[:1]) + title[1:]
	}
	return title
}

func (s *Snippet) render(b *strings.Builder, ink paint, hue, gutter string) {
	bar := func() { fmt.Fprintf(b, "%s%s|%s\n", gutter, ink.dim, ink.reset) }
	bar()
	offset := 0
	for i, line := range strings.Split(s.Code, "\n") {
		fmt.Fprintf(b, "%s%*d |%s %s\n", ink.dim, len(gutter)-1, s.StartLine+i, ink.reset, visible(line))
		from, to := s.HighlightStart-offset, s.HighlightEnd-offset
		if from >= 0 && from <= len(line) {
			to = min(max(to, from), len(line))
			space := strings.Repeat(" ", columns(line[:from]))
			carets := strings.Repeat("^", max(1, columns(line[from:to])))
			fmt.Fprintf(b, "%s%s|%s %s%s%s%s\n", gutter, ink.dim, ink.reset, space, hue, carets, ink.reset)
		}
		offset += len(line) + 1
	}
	bar()
}

func (p Problem) renderExplanation(b *strings.Builder, ink paint, gutter string) {
	mark := fmt.Sprintf("%s%s=%s ", gutter, ink.dim, ink.reset)
	indent := strings.Repeat(" ", len(gutter)+2)
	for _, line := range wrap(visible(p.explanation()), wrapAt-len(indent)) {
		b.WriteString(mark + line + "\n")
		mark = indent
	}
}

// wrap breaks text at spaces so that no line but one of a single word is wider
// than limit. Line breaks in the text stay.
func wrap(text string, limit int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case line == "":
				line = word
			case columns(line)+1+columns(word) > limit:
				lines = append(lines, line)
				line = word
			default:
				line += " " + word
			}
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// visible replaces whatever could move the cursor or reorder the text of a
// terminal. One rune stays one rune, so carets keep their place; a tab becomes
// a space for the same reason.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029':
			return '\uFFFD'
		}
		return r
	}, s)
}

// columns is how wide a terminal shows the text.
func columns(s string) int {
	n := 0
	for _, r := range visible(s) {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			continue
		}
		n++
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}
