package help

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A section is a part of a page with a heading.
type section struct {
	at, end int // its text in the page, with the heading and the sections below it
	level   int // 2 for ##
	title   string
}

// sectionsOf returns the sections of a page, in their order.
func sectionsOf(page string) []section {
	var all []section
	fenced, at := false, 0
	for line := range strings.Lines(page) {
		fenced = fenced != strings.HasPrefix(line, "```")
		marks := len(line) - len(strings.TrimLeft(line, "#"))
		if !fenced && marks >= 2 && strings.HasPrefix(line[marks:], " ") {
			all = append(all, section{at: at, end: len(page), level: marks, title: strings.TrimSpace(line[marks:])})
		}
		at += len(line)
	}
	for i := range all {
		if next := slices.IndexFunc(all[i+1:], func(s section) bool { return s.level <= all[i].level }); next >= 0 {
			all[i].end = all[i+1+next].at
		}
	}
	return all
}

// Sections returns the titles of the sections of a page, and the titles of the sections inside
// them.
func Sections(page string) (titles, inside []string) {
	for _, s := range sectionsOf(page) {
		if s.level == 2 {
			titles = append(titles, s.title)
		} else {
			inside = append(inside, s.title)
		}
	}
	return titles, inside
}

// FindSections returns the section with a title, or else the sections with titles that contain it.
// It returns "" without a match.
func FindSections(page, title string) string {
	all := sectionsOf(page)
	for _, fits := range []func(s section) bool{
		func(s section) bool { return strings.EqualFold(s.title, title) },
		func(s section) bool { return strings.Contains(strings.ToLower(s.title), strings.ToLower(title)) },
	} {
		var found strings.Builder
		end := 0
		for _, s := range all {
			if title != "" && s.at >= end && fits(s) {
				found.WriteString(page[s.at:s.end])
				end = s.end
			}
		}
		if found.Len() > 0 {
			return found.String()
		}
	}
	return ""
}

// longPage is the minimum number of sections of a page that begins with their titles.
const longPage = 5

// WithSections puts the titles of the sections before the first, if there are many.
func WithSections(topic, page string) string {
	titles, _ := Sections(page)
	if len(titles) < longPage {
		return page
	}
	list := "Sections: " + strings.Join(titles, " · ") + ".\n\n"
	if i := slices.IndexFunc(titles, func(title string) bool { return oneWord.MatchString(title) }); i >= 0 {
		list += fmt.Sprintf("One of them: `orchestrator help %s %s`\n\n", topic, strings.ToLower(titles[i]))
	}
	first := sectionsOf(page)[0].at
	return page[:first] + list + page[first:]
}

var oneWord = regexp.MustCompile(`^[A-Za-z]+$`)

// Mentioning returns the topics of the pages that contain a word, in reading order.
func Mentioning(word string) (topics []string) {
	if strings.TrimSpace(word) == "" {
		return nil
	}
	whole := regexp.MustCompile(`(?i)(^|\W)` + regexp.QuoteMeta(strings.TrimSpace(word)) + `($|\W)`)
	for _, chapter := range Chapters {
		if page, err := ReadTopic(chapter.Topic); err == nil && whole.MatchString(page) {
			topics = append(topics, chapter.Topic)
		}
	}
	return topics
}
