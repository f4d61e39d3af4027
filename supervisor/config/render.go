package config

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"golang.org/x/text/width"
)

// wrapAt is the column at which explanations are wrapped.
const wrapAt = 78

// A paint holds the escape sequences of one rendering, all empty without color.
type paint struct{ red, yellow, dim, bold, reset string }

var colors = paint{red: "\x1b[1;31m", yellow: "\x1b[1;33m", dim: "\x1b[2m", bold: "\x1b[1m", reset: "\x1b[0m"}

// Render writes every problem with its source, and then the number of problems. The last line
// has no newline, so that the caller can complete it, as in "4 errors. Nothing was started."
func (ps Problems) Render(w io.Writer, color bool) error {
	if len(ps) == 0 {
		return nil
	}
	ink := paint{}
	if color {
		ink = colors
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

// lowerFirst returns the title of an HCL diagnostic in the style of other errors.
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

// wrap breaks text at spaces into lines of at most limit columns. Only a line of a single word
// may be longer. Line breaks in the text are kept.
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

// visible replaces characters that could move the cursor or reorder the text of a terminal.
// Each rune, tabs included, is replaced by one rune, so that carets keep their column.
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

// columns returns the width of the text on a terminal.
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

// Format returns a configuration with standard indentation and aligned equals signs. It keeps
// comments and line breaks. A file that does not parse is returned unchanged, with its
// problems. JSON is returned unchanged.
func Format(src []byte, filename string) ([]byte, Problems) {
	r := &reader{sources: map[string]*source{}}
	if _, ok := r.parse(src, filename, false); !ok {
		return src, r.problems.sorted()
	}
	if filepath.Ext(filename) == ".json" {
		return src, nil
	}
	return settledLayout(src), nil
}

// settledLayout formats until nothing moves. Aligning comments can need a
// second pass after the equals signs before them have moved.
func settledLayout(src []byte) []byte {
	const enough = 4
	for range enough {
		out := hclwrite.Format(src)
		if bytes.Equal(out, src) {
			break
		}
		src = out
	}
	return src
}
