// Package problem describes mistakes in a configuration, and shows them with their source.
package problem

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// The severities of a Problem.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// A Problem is a mistake in a configuration, with its position. Code is stable and meant for
// programs; the other texts are for people.
type Problem struct {
	Severity string   `json:"severity"`
	Code     string   `json:"code"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail"`
	Hint     string   `json:"hint,omitempty"`
	Range    Range    `json:"range"`
	Snippet  *Snippet `json:"snippet,omitempty"`
}

// A Range is a part of a file. The zero value means a mistake outside any file, such as a wrong
// --var.
type Range struct {
	Filename string   `json:"filename"`
	Start    Position `json:"start"`
	End      Position `json:"end"`
}

// A Position counts lines and columns from 1, and bytes from 0.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// A Snippet is the source that a Problem is about. The highlight is a range of bytes in Code.
type Snippet struct {
	Context        string `json:"context,omitempty"`
	Code           string `json:"code"`
	StartLine      int    `json:"start_line"`
	HighlightStart int    `json:"highlight_start_offset"`
	HighlightEnd   int    `json:"highlight_end_offset"`
}

// Problems are the mistakes of one load, sorted by file and position.
type Problems []Problem

// Errors counts the problems that make a configuration unusable.
func (ps Problems) Errors() int { return ps.count(SeverityError) }

// Warnings counts the problems that do not make a configuration unusable.
func (ps Problems) Warnings() int { return ps.count(SeverityWarning) }

func (ps Problems) count(severity string) int {
	n := 0
	for _, p := range ps {
		if p.Severity == severity {
			n++
		}
	}
	return n
}

// Err returns the first error in one line, with the number of further ones. It returns nil if
// there are only warnings.
func (ps Problems) Err() error {
	i := slices.IndexFunc(ps, func(p Problem) bool { return p.Severity == SeverityError })
	if i < 0 {
		return nil
	}
	more := ""
	if n := ps.Errors() - 1; n > 0 {
		more = fmt.Sprintf(" (and %s more)", plural(n, "error"))
	}
	return &invalid{text: ps[i].line() + more}
}

type invalid struct{ text string }

func (i *invalid) Error() string { return i.text }

// line returns the problem in one line, without its source.
func (p Problem) line() string {
	text := p.Summary
	if why := p.explanation(); why != "" {
		text += ": " + why
	}
	if at := p.Range.String(); at != "" {
		text = at + ": " + text
	}
	return visible(text)
}

func (p Problem) explanation() string {
	switch {
	case p.Detail == "":
		return p.Hint
	case p.Hint == "":
		return p.Detail
	}
	return p.Detail + " " + p.Hint
}

// String returns file:line:column, or the known part of it.
func (r Range) String() string {
	if r.Filename == "" || r.Start.Line == 0 {
		return r.Filename
	}
	return fmt.Sprintf("%s:%d:%d", r.Filename, r.Start.Line, r.Start.Column)
}

// Sorted sorts problems by position and drops duplicates. A body is read once for each replica,
// and each reading finds the same mistakes.
func (ps Problems) Sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Range.Filename, b.Range.Filename),
			cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte),
			cmp.Compare(a.Range.End.Byte, b.Range.End.Byte),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Summary, b.Summary),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool {
		if a.Range != b.Range || a.Code != b.Code || a.Summary != b.Summary {
			return false
		}
		return a.Range.Start.Line != 0 || a.Detail == b.Detail
	})
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wrapAt is the column where explanations are wrapped.
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
