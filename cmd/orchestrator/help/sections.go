package help

import (
	"fmt"
	"slices"
	"strings"
)

// A section is a part of a page with a heading.
type section struct {
	level int // 2 for ##
	title string
	text  string // with the heading, and with the sections below it
}

// sectionsOf returns the sections of a page, in their order.
func sectionsOf(page string) []section {
	type opening struct{ at, level int }
	var open []opening
	var all []section
	fenced, at := false, 0
	for line := range strings.Lines(page) {
		fenced = fenced != strings.HasPrefix(line, "```")
		marks := len(line) - len(strings.TrimLeft(line, "#"))
		if !fenced && marks >= 2 && strings.HasPrefix(line[marks:], " ") {
			all = append(all, section{level: marks, title: strings.TrimSpace(line[marks:])})
			open = append(open, opening{at, marks})
		}
		at += len(line)
	}
	for i := range all {
		end := len(page)
		if next := slices.IndexFunc(open[i+1:], func(o opening) bool { return o.level <= open[i].level }); next >= 0 {
			end = open[i+1+next].at
		}
		all[i].text = page[open[i].at:end]
	}
	return all
}

// Sections returns the titles of the sections of a page, without those inside them.
func Sections(page string) (titles []string) {
	for _, s := range sectionsOf(page) {
		if s.level == 2 {
			titles = append(titles, s.title)
		}
	}
	return titles
}

// FindSections returns the section with a title, or else those whose titles contain it. It
// returns "" if there are none.
func FindSections(page, title string) string {
	all := sectionsOf(page)
	for _, fits := range []func(s section) bool{
		func(s section) bool { return strings.EqualFold(s.title, title) },
		func(s section) bool { return strings.Contains(strings.ToLower(s.title), strings.ToLower(title)) },
	} {
		var found strings.Builder
		for _, s := range all {
			if title != "" && fits(s) {
				found.WriteString(s.text)
			}
		}
		if found.Len() > 0 {
			return found.String()
		}
	}
	return ""
}

// longPage is the number of sections from which a page begins with their titles.
const longPage = 5

// WithSections puts the titles of the sections before the first, if there are many.
func WithSections(topic, page string) string {
	titles := Sections(page)
	first := strings.Index(page, "\n## ")
	if len(titles) < longPage || first < 0 {
		return page
	}
	list := fmt.Sprintf("\nSections: %s.\n\nOne of them: `orchestrator help %s %s`\n", strings.Join(titles, " · "), topic, strings.ToLower(titles[1]))
	return page[:first] + list + page[first:]
}

// Mentioning returns the topics whose pages contain a word, in reading order.
func Mentioning(word string) (topics []string) {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return nil
	}
	for _, chapter := range Chapters {
		if page, err := ReadTopic(chapter.Topic); err == nil && strings.Contains(strings.ToLower(page), word) {
			topics = append(topics, chapter.Topic)
		}
	}
	return topics
}
