// Package site writes the manual as a static web site: a page for each topic and for each code, a search that
// needs no server, light and dark colors. It loads nothing from elsewhere, so it can be read from any static
// host, and from a folder.
package site

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"orchestrator/cmd/orchestrator/help"
)

//go:embed page.html style.css site.js
var files embed.FS

// A Code is an error code or an exit code, with the rows of tables that explain it.
type Code struct {
	Name string
	Rows []Row
}

// A Row is one column of a table of codes: its head, its text, and the page of the table.
type Row struct{ Head, Text, Topic string }

// Write writes the site into a folder and returns the number of pages. Equal programs write equal sites.
func Write(dir, version string, codes []Code) (int, error) {
	s := &site{dir: dir, version: version, places: make(map[string]string)}
	if err := os.MkdirAll(filepath.Join(dir, "code"), 0o777); err != nil {
		return 0, err
	}
	for _, name := range []string{"style.css", "site.js"} {
		content, err := files.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o666)
		}
		if err != nil {
			return 0, err
		}
	}
	pages := s.codePages(codes)
	topics, err := s.topicPages()
	if err != nil {
		return 0, err
	}
	all := append(topics, pages...)
	for i := range all {
		if err := s.write(&all[i]); err != nil {
			return i, err
		}
	}
	index, err := json.Marshal(s.index)
	if err != nil {
		return 0, err
	}
	return len(all), os.WriteFile(filepath.Join(dir, "search.js"), fmt.Appendf(nil, "found(%s);\n", index), 0o666)
}

// A site is being written.
type site struct {
	dir, version string
	places       map[string]string // the addresses of the pages of codes
	index        []entry
}

// An entry is a section that the search finds.
type entry struct {
	Page    string `json:"p"`
	Title   string `json:"t"`
	Address string `json:"a"`
	Text    string `json:"x"`
}

// A page is the data of the template.
type page struct {
	Title, About   string
	Address        string
	Root           string // the path from the page to the first page
	Body           template.HTML
	Sections       []section
	Previous, Next *help.Chapter
	Parts          []part
	Version        string
	ids            map[string]bool // of its headings
}

// A section is a heading of a page.
type section struct{ Title, ID string }

// A part is a group of pages in the contents.
type part struct {
	Name     string
	Chapters []help.Chapter
}

func parts() (found []part) {
	for _, c := range help.Chapters {
		if len(found) == 0 || found[len(found)-1].Name != c.Part {
			found = append(found, part{Name: c.Part})
		}
		last := &found[len(found)-1]
		last.Chapters = append(last.Chapters, c)
	}
	return found
}

// topicPages returns the first page and the pages of topics.
func (s *site) topicPages() ([]page, error) {
	pages := []page{{Title: "orchestrator", Address: "index.html", About: "The manual, by task."}}
	for i, c := range help.Chapters {
		markdown, err := help.ReadTopic(c.Topic)
		if err != nil {
			return nil, err
		}
		p := page{About: c.About, Address: c.Topic + ".html"}
		s.render(&p, markdown)
		if i > 0 {
			p.Previous = &help.Chapters[i-1]
		}
		if i+1 < len(help.Chapters) {
			p.Next = &help.Chapters[i+1]
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// codePages returns the pages of codes. Codes that differ only in case share a page: some file systems have
// one file for both names.
func (s *site) codePages(codes []Code) (pages []page) {
	groups := make(map[string][]Code)
	var order []string
	for _, c := range codes {
		file := anchor(c.Name)
		if groups[file] == nil {
			order = append(order, file)
		}
		groups[file] = append(groups[file], c)
		s.places[c.Name] = "code/" + file + ".html"
	}
	for _, file := range order {
		var names []string
		var body, plain strings.Builder
		for _, c := range groups[file] {
			names = append(names, c.Name)
			topic, shown := "", make(map[Row]bool)
			for _, r := range c.Rows {
				same := Row{Head: r.Head, Text: r.Text}
				if shown[same] {
					continue
				}
				shown[same] = true
				if r.Topic != topic {
					topic = r.Topic
					fmt.Fprintf(&body, "<h2><a href=\"../%[1]s.html\">%[1]s</a></h2>\n", topic)
				}
				fmt.Fprintf(&body, "<p><strong>%s:</strong> %s</p>\n", html.EscapeString(r.Head), s.inline(r.Text, "../"))
				plain.WriteString(r.Text + " ")
			}
		}
		title := strings.Join(names, ", ")
		p := page{Title: title, Address: "code/" + file + ".html", Root: "../", Body: template.HTML(body.String())}
		pages = append(pages, p)
		s.index = append(s.index, entry{Page: "Codes", Title: title, Address: p.Address, Text: plain.String()})
	}
	return pages
}

var frame = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(files, "page.html")) })

func (s *site) write(p *page) error {
	p.Parts, p.Version = parts(), s.version
	var b bytes.Buffer
	if err := frame().Execute(&b, p); err != nil {
		return fmt.Errorf("writing %s: %w", p.Address, err)
	}
	return os.WriteFile(filepath.Join(s.dir, filepath.FromSlash(p.Address)), b.Bytes(), 0o666)
}
