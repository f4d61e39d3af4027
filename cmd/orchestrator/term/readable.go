package term

import (
	"strings"
)

// Readable lays a page of Markdown out for a screen: headings stand out, text
// is wrapped, tables are aligned, samples are indented. It knows what our own
// pages use and no more.
func Readable(markdown string, p Paint, width int) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(markdown, "\n"), "\n")
	for len(lines) > 0 {
		n := blockLength(lines)
		b.WriteString(readableBlock(lines[:n], p, width))
		lines = lines[n:]
	}
	return b.String()
}

// blockLength is how many of the lines belong together.
func blockLength(lines []string) int {
	is := func(line string) bool { return plainText(line) }
	switch first := lines[0]; {
	case strings.HasPrefix(first, "```"):
		for n := 1; n < len(lines); n++ {
			if strings.HasPrefix(lines[n], "```") {
				return n + 1
			}
		}
		return len(lines)
	case strings.HasPrefix(first, "|"):
		is = func(line string) bool { return strings.HasPrefix(line, "|") }
	case strings.HasPrefix(first, "- "):
		is = func(line string) bool { return strings.HasPrefix(line, "  ") }
	case !plainText(first):
		return 1
	}
	n := 1
	for n < len(lines) && is(lines[n]) {
		n++
	}
	return n
}

// plainText reports whether a line goes on with a paragraph.
func plainText(line string) bool {
	return line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "```") &&
		!strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "- ") && !isRemark(line)
}

// isRemark reports whether a line is a comment for authors of the page.
func isRemark(line string) bool { return strings.HasPrefix(line, "<!--") }

func readableBlock(lines []string, p Paint, width int) string {
	switch first := lines[0]; {
	case first == "":
		return "\n"
	case isRemark(first):
		return ""
	case strings.HasPrefix(first, "#"):
		return p.Strong(strings.ToUpper(strings.TrimLeft(first, "# "))) + "\n"
	case strings.HasPrefix(first, "```"):
		body := lines[1:]
		if n := len(body); n > 0 && strings.HasPrefix(body[n-1], "```") {
			body = body[:n-1]
		}
		return "    " + strings.Join(body, "\n    ") + "\n"
	case strings.HasPrefix(first, "|"):
		return readableTable(lines, p, width)
	case strings.HasPrefix(first, "- "):
		return wrapped(strings.Join(lines, " "), "", "  ", width)
	}
	return wrapped(strings.Join(lines, " "), "", "", width)
}

// leastWide is the least that the last column of a table is laid out in.
const leastWide = 24

// readableTable aligns the columns; the last one is wrapped where it is. Where
// there is no room for that, each row is a paragraph of its own.
func readableTable(lines []string, p Paint, width int) string {
	var rows [][]string
	var widths []int
	for _, line := range lines {
		if strings.Trim(line, "|-: ") == "" {
			continue
		}
		row := RowFields(line)
		for i := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(row[i]))
		}
		rows = append(rows, row)
	}
	taken := 2
	for _, wide := range widths[:len(widths)-1] {
		taken += wide + 2
	}
	if width-taken < leastWide {
		return stacked(rows, width)
	}
	var b strings.Builder
	for n, row := range rows {
		head := "  "
		for i, field := range row[:len(row)-1] {
			head += Pad(field, widths[i]) + "  "
		}
		line := wrapped(row[len(row)-1], head, strings.Repeat(" ", Width(head)), width)
		if n == 0 {
			line = p.Dim(strings.TrimRight(line, "\n")) + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// stacked is a table whose rows are too wide for a line: each begins with its
// first text, and says what the others are.
func stacked(rows [][]string, width int) string {
	var b strings.Builder
	for _, row := range rows[1:] {
		b.WriteString(wrapped(row[0], "  ", "  ", width))
		for i, field := range row[1:] {
			if field != "" && i+1 < len(rows[0]) {
				b.WriteString(wrapped(field, "    "+rows[0][i+1]+": ", "      ", width))
			}
		}
	}
	return b.String()
}

// RowFields are the texts of a row; a bar with a backslash belongs to a text.
func RowFields(line string) []string {
	const bar = "\x00"
	row := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|"), "|")
	for i, field := range row {
		row[i] = unmarked(strings.TrimSpace(strings.ReplaceAll(field, bar, "|")))
	}
	return row
}

// wrapped breaks text at spaces. The first line follows head, the others
// follow indent.
func wrapped(text, head, indent string, width int) string {
	var b strings.Builder
	line, empty := head, true
	for _, word := range strings.Fields(unmarked(text)) {
		if !empty && Width(line)+1+Width(word) > width {
			b.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

// unmarked is text without the signs for emphasis and code.
func unmarked(text string) string {
	return strings.NewReplacer("**", "", "`", "").Replace(text)
}
