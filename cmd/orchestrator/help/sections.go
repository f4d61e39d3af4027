package help

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
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
	list := "Sections: " + TitleList(topic, titles) + ".\n\n"
	if i := slices.IndexFunc(titles, func(title string) bool { return oneWord.MatchString(title) }); i >= 0 {
		list += fmt.Sprintf("One of them: `orchestrator help %s %s`\n\n", topic, strings.ToLower(titles[i]))
	}
	first := sectionsOf(page)[0].at
	return page[:first] + list + page[first:]
}

// TitleList returns the titles of sections on one line. Those of the page of commands are code.
func TitleList(topic string, titles []string) string {
	if topic == "commands" {
		return "`" + strings.Join(titles, "` · `") + "`"
	}
	return strings.Join(titles, " · ")
}

var oneWord = regexp.MustCompile(`^[A-Za-z]+$`)

// A Place is a section of a page.
type Place struct{ Topic, Title string }

// SectionsNamed returns the sections whose titles have all words of a text, in reading order. A plural is the same
// word.
func SectionsNamed(text string) (found []Place) {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return nil
	}
	for _, chapter := range Chapters {
		page, err := ReadTopic(chapter.Topic)
		if err != nil || chapter.Topic == "commands" {
			continue
		}
		for _, s := range sectionsOf(page) {
			title := wordsOf(s.title)
			if !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(title, singular(w)) }) {
				found = append(found, Place{Topic: chapter.Topic, Title: s.title})
			}
		}
	}
	return found
}

func wordsOf(title string) []string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && r != '_' && r != '-' && r != ':' })
	for i, w := range words {
		words[i] = singular(w)
	}
	return words
}

func singular(word string) string {
	if stem, ok := strings.CutSuffix(word, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(word, "s")
}

// Mentioning returns the topics of the pages that contain a word, the one with the most of it first.
func Mentioning(word string) (topics []string) {
	if strings.TrimSpace(word) == "" {
		return nil
	}
	whole := regexp.MustCompile(`(?i)(^|\W)` + regexp.QuoteMeta(strings.TrimSpace(word)) + `($|\W)`)
	count := make(map[string]int)
	for _, chapter := range Chapters {
		page, err := ReadTopic(chapter.Topic)
		if n := len(whole.FindAllString(page, -1)); err == nil && n > 0 {
			count[chapter.Topic] = n
			topics = append(topics, chapter.Topic)
		}
	}
	slices.SortStableFunc(topics, func(a, b string) int { return count[b] - count[a] })
	return topics
}
