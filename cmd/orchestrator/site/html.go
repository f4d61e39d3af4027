package site

import (
	"cmp"
	"html"
	"html/template"
	"regexp"
	"strings"

	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/term"
)

// render sets the title, the body and the sections of a page, and adds them to the search. It knows the
// syntax of our own pages. A library for all of Markdown costs each command a millisecond at its start.
func (s *site) render(p *page, markdown string) {
	var b strings.Builder
	list := "" // the element of the list that is open
	first := len(s.index)
	p.ids = make(map[string]bool)
	for lines := range term.Blocks(markdown) {
		mark := term.ItemMark(lines[0])
		if kind := listOf(mark); kind != list && lines[0] != "" {
			b.WriteString(closing(list) + opening(kind))
			list = kind
		}
		text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		switch {
		case lines[0] == "":
			continue
		case strings.HasPrefix(lines[0], "#"):
			text = s.heading(&b, p, lines[0])
		case strings.HasPrefix(lines[0], "```"):
			text = sample(&b, lines)
		case strings.HasPrefix(lines[0], "|"):
			s.table(&b, lines)
		case mark != "":
			b.WriteString("<li>" + s.inline(strings.TrimPrefix(text, mark), p.Root) + "</li>\n")
		default:
			b.WriteString("<p>" + s.inline(text, p.Root) + "</p>\n")
		}
		if len(s.index) > first && !strings.HasPrefix(lines[0], "#") {
			now := &s.index[len(s.index)-1]
			now.Text += strings.Join(strings.Fields(unmarked(text)), " ") + " "
		}
	}
	b.WriteString(closing(list))
	p.Body = template.HTML(b.String())
}

func listOf(mark string) string {
	switch mark {
	case "":
		return ""
	case "- ":
		return "ul"
	}
	return "ol"
}

func opening(element string) string {
	if element == "" {
		return ""
	}
	return "<" + element + ">\n"
}

func closing(element string) string {
	if element == "" {
		return ""
	}
	return "</" + element + ">\n"
}

// heading writes a heading with its anchor and begins a section of the search.
func (s *site) heading(b *strings.Builder, p *page, line string) string {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	title := strings.TrimSpace(line[level:])
	id := anchor(title)
	for p.ids[id] {
		id += "-"
	}
	p.ids[id] = true
	if level == 1 && p.Title == "" {
		p.Title = unmarked(title)
	} else if level == 2 {
		p.Sections = append(p.Sections, section{Title: unmarked(title), ID: id})
	}
	s.index = append(s.index, entry{Page: p.Title, Title: unmarked(title), Address: p.Address + "#" + id})
	element := "h" + string(rune('0'+level))
	b.WriteString("<" + element + ` id="` + id + `">` + s.inline(title, p.Root) + "</" + element + ">\n")
	return title
}

// anchor returns the id of a heading.
func anchor(title string) string {
	return strings.Trim(strange.ReplaceAllString(strings.ToLower(title), "-"), "-")
}

// strange matches the characters that are not part of an id or of a file name.
var strange = regexp.MustCompile(`[^a-z0-9_]+`)

// sample writes a sample as it is.
func sample(b *strings.Builder, lines []string) string {
	body := lines[1:]
	if n := len(body); n > 0 && strings.HasPrefix(body[n-1], "```") {
		body = body[:n-1]
	}
	text := strings.Join(body, "\n")
	b.WriteString("<pre><code>" + html.EscapeString(text) + "</code></pre>\n")
	return text
}

// table writes a table. Codes in its cells are links to their pages.
func (s *site) table(b *strings.Builder, lines []string) {
	b.WriteString("<table>\n")
	for i, line := range lines {
		if strings.Trim(line, "|-: ") == "" {
			continue
		}
		cell := "td"
		if i == 0 {
			cell = "th"
		}
		b.WriteString("<tr>")
		for _, field := range term.MarkedFields(line) {
			code := strings.Trim(field, "`")
			text := s.inline(field, "")
			if place, ok := s.places[code]; ok && field != code {
				text = `<a href="` + place + `"><code>` + html.EscapeString(code) + "</code></a>"
			}
			b.WriteString("<" + cell + ">" + text + "</" + cell + ">")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
}

// marks matches code and bold text.
var marks = regexp.MustCompile("`[^`]+`|\\*\\*[^*]+\\*\\*")

// inline returns text as HTML. Commands of the manual and codes are links to their pages, which begin at root. A
// code without _ or / may also be another word.
func (s *site) inline(text, root string) string {
	var b strings.Builder
	at := 0
	for _, m := range marks.FindAllStringIndex(text, -1) {
		b.WriteString(html.EscapeString(text[at:m[0]]))
		at = m[1]
		found := text[m[0]:m[1]]
		if found[0] == '*' {
			b.WriteString("<strong>" + s.inline(strings.Trim(found, "*"), root) + "</strong>")
			continue
		}
		word := strings.Trim(found, "`")
		code := "<code>" + html.EscapeString(word) + "</code>"
		to := reference(word)
		if strings.ContainsAny(word, "_/") {
			to = cmp.Or(to, s.places[word])
		}
		if to != "" {
			code = `<a href="` + root + to + `">` + code + "</a>"
		}
		b.WriteString(code)
	}
	return b.String() + html.EscapeString(text[at:])
}

// unmarked returns text without marks.
func unmarked(text string) string { return strings.NewReplacer("**", "", "`", "").Replace(text) }

// reference returns the address of the page and the section that a command of the manual names, or "".
func reference(command string) string {
	rest, ok := strings.CutPrefix(command, "orchestrator help ")
	if !ok {
		return ""
	}
	topic, title, _ := strings.Cut(rest, " ")
	if also, ok := help.AlsoCalled[topic]; ok {
		topic = also
	}
	page, err := help.ReadTopic(topic)
	if err != nil {
		return ""
	}
	if title != "" {
		heading, _, _ := strings.Cut(help.FindSections(page, title), "\n")
		if heading != "" {
			return topic + ".html#" + anchor(strings.TrimLeft(heading, "# "))
		}
	}
	return topic + ".html"
}
