package config

import (
	"cmp"
	"fmt"
	"slices"
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

// sorted sorts problems by position and drops duplicates. A body is read once for each replica,
// and each reading finds the same mistakes.
func (ps Problems) sorted() Problems {
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
