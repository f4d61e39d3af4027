package term

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Readable formats a page of Markdown for a screen: headings stand out, text is wrapped,
// tables are aligned and wrapped, samples are indented. It supports only the syntax of our own pages.
func Readable(markdown string, p Paint, width int) string {
	var b strings.Builder
	for lines := range Blocks(markdown) {
		b.WriteString(readableBlock(lines, p, width))
	}
	return b.String()
}

// Blocks returns the blocks of a page of Markdown as their lines: an empty line, a heading, a sample with its
// fences, a table, an entry of a list, or a paragraph.
func Blocks(markdown string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for lines := strings.Split(strings.TrimRight(markdown, "\n"), "\n"); len(lines) > 0; {
			n := blockLength(lines)
			if !isRemark(lines[0]) && !yield(lines[:n]) {
				return
			}
			lines = lines[n:]
		}
	}
}

// blockLength returns how many of the first lines form one block.
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
	case item.MatchString(first):
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

// plainText reports whether a line continues a paragraph.
func plainText(line string) bool {
	return line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "```") &&
		!strings.HasPrefix(line, "|") && !item.MatchString(line) && !isRemark(line)
}

// item matches the mark of an entry in a list.
var item = regexp.MustCompile(`^(-|[0-9]\.) `)

// ItemMark returns the mark of an entry in a list, or "" for another line.
func ItemMark(line string) string { return item.FindString(line) }

// isRemark reports whether a line is a comment for authors of the page.
func isRemark(line string) bool { return strings.HasPrefix(line, "<!--") }

func readableBlock(lines []string, p Paint, width int) string {
	switch first := lines[0]; {
	case first == "":
		return "\n"
	case strings.HasPrefix(first, "#"):
		return p.Strong(strings.ToUpper(strings.TrimLeft(first, "# "))) + "\n"
	case strings.HasPrefix(first, "```"):
		body := lines[1:]
		if n := len(body); n > 0 && strings.HasPrefix(body[n-1], "```") {
			body = body[:n-1]
		}
		return readableSample(body, width)
	case strings.HasPrefix(first, "|"):
		return readableTable(lines, p, width)
	case ItemMark(first) != "":
		return wrapped(strings.Join(lines, " "), "", strings.Repeat(" ", len(ItemMark(first))), width)
	}
	return wrapped(strings.Join(lines, " "), "", "", width)
}

// readableSample indents a sample. A comment at the end of a line that is too wide goes to lines above it.
func readableSample(lines []string, width int) string {
	const indent = "    "
	var b strings.Builder
	for i, line := range lines {
		continues := i > 0 && strings.HasSuffix(lines[i-1], `\`) // a comment above it would end the command
		if code, comment := endComment(line); comment != "" && !continues && Width(indent+line) > width {
			margin := indent + line[:len(line)-len(strings.TrimLeft(line, " "))] + "# "
			b.WriteString(wrapped(comment, margin, margin, width))
			line = code
		}
		b.WriteString(indent + line + "\n")
	}
	return b.String()
}

// endComment splits a line of a sample into the code and the comment at its end.
func endComment(line string) (code, comment string) {
	const mark = " # "
	at := strings.LastIndex(line, mark)
	if at < 0 || strings.Trim(line[:at], " #") == "" || strings.Count(line[:at], `"`)%2 == 1 {
		return line, ""
	}
	return strings.TrimRight(line[:at], " "), line[at+len(mark):]
}

// leastWide is the least width of a column with longer text.
const leastWide = 16

// readableTable aligns the columns and wraps their text. If they have no room side by side, each
// row becomes a paragraph.
func readableTable(lines []string, p Paint, width int) string {
	var rows [][]string
	var natural, least []int
	for _, line := range lines {
		if strings.Trim(line, "|-: ") == "" {
			continue
		}
		row := MarkedFields(line)
		for i, field := range row {
			if i == len(natural) {
				natural, least = append(natural, 0), append(least, 0)
			}
			natural[i] = max(natural[i], Width(unmarked(field)))
			least[i] = max(least[i], min(Width(unmarked(field)), leastWide))
			for word := range strings.FieldsSeq(unmarked(whole(field, width))) {
				least[i] = max(least[i], Width(word))
			}
		}
		rows = append(rows, row)
	}
	widths := columnWidths(natural, least, width-2*len(natural))
	if widths == nil {
		return stacked(rows, width)
	}
	var b strings.Builder
	for n, row := range rows {
		text := readableRow(row, widths)
		if n == 0 {
			text = p.Dim(strings.TrimRight(text, "\n")) + "\n"
		}
		b.WriteString(text)
	}
	return b.String()
}

// columnWidths divides room among columns. It widens the narrowest column first, up to its natural
// width. It returns nil if the least widths do not fit.
func columnWidths(natural, least []int, room int) []int {
	widths := slices.Clone(least)
	for _, wide := range widths {
		room -= wide
	}
	if room < 0 {
		return nil
	}
	for ; room > 0; room-- {
		narrowest := -1
		for i := range widths {
			if widths[i] < natural[i] && (narrowest < 0 || widths[i] < widths[narrowest]) {
				narrowest = i
			}
		}
		if narrowest < 0 {
			break
		}
		widths[narrowest]++
	}
	return widths
}

// readableRow wraps the fields of a row side by side. Further lines of the first are indented.
func readableRow(row []string, widths []int) string {
	var columns [][]string
	height := 0
	for i, field := range row {
		indent := ""
		if i == 0 {
			indent = " "
		}
		lines := strings.Split(strings.TrimRight(wrapped(field, "", indent, widths[i]), "\n"), "\n")
		columns = append(columns, lines)
		height = max(height, len(lines))
	}
	var b strings.Builder
	for n := range height {
		line := ""
		for i, lines := range columns {
			field := ""
			if n < len(lines) {
				field = lines[n]
			}
			line += "  " + Pad(field, widths[i])
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// stacked formats a table that is too wide. Each row begins with its first field; the other
// fields follow with their column heads.
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

// RowFields returns the fields of a table row, without marks.
func RowFields(line string) []string {
	row := MarkedFields(line)
	for i, field := range row {
		row[i] = unmarked(field)
	}
	return row
}

// MarkedFields returns the fields of a table row. A bar after a backslash belongs to a field.
func MarkedFields(line string) []string {
	const bar = "\x00"
	row := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|"), "|")
	for i, field := range row {
		row[i] = strings.TrimSpace(strings.ReplaceAll(field, bar, "|"))
	}
	return row
}

// Wrap breaks the paragraphs of plain text at spaces, but not in words that mark returns as code. It keeps indented
// lines.
func Wrap(text string, mark func(paragraph string) string, width int) string {
	var b strings.Builder
	for lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) > 0; {
		n := 1
		for n < len(lines) && isProse(lines[0]) && isProse(lines[n]) {
			n++
		}
		if isProse(lines[0]) {
			b.WriteString(wrapped(mark(strings.Join(lines[:n], " ")), "", "", width))
		} else {
			b.WriteString(lines[0] + "\n")
		}
		lines = lines[n:]
	}
	return b.String()
}

func isProse(line string) bool { return line != "" && !strings.HasPrefix(line, " ") }

// wrapped breaks text at spaces, but not in code that fits on a line. The first line follows head, the others follow
// indent.
func wrapped(text, head, indent string, width int) string {
	text = whole(text, width-Width(indent))
	var b strings.Builder
	line, empty := head, true
	for word := range strings.FieldsSeq(unmarked(text)) {
		if !empty && Width(line)+1+Width(word) > width {
			b.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return strings.ReplaceAll(b.String()+strings.TrimRight(line, " ")+"\n", space, " ")
}

// space stands for a space in code that must stay on one line.
const space = "\ue000"

// whole returns text with code of up to width columns as single words.
func whole(text string, width int) string {
	return code.ReplaceAllStringFunc(text, func(found string) string {
		if Width(unmarked(found)) > width {
			return found
		}
		return strings.ReplaceAll(found, " ", space)
	})
}

var code = regexp.MustCompile("`[^`]+`")

// unmarked returns text without the Markdown marks for emphasis and code.
func unmarked(text string) string {
	return strings.NewReplacer("**", "", "`", "").Replace(text)
}
