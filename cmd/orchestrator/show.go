package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// shortDuration shows a time as people say it: 12m, 0.4s, 1h02m.
func shortDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 10*time.Minute && d%time.Minute >= time.Second:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	days := int(d.Hours()) / 24
	return fmt.Sprintf("%dd%02dh", days, int(d.Hours())%24)
}

// shortMS is shortDuration for the milliseconds of a document.
func shortMS(ms int64) string { return shortDuration(time.Duration(ms) * time.Millisecond) }

// shortBytes shows a size in one or two digits and a letter: 31M, 1.2G.
func shortBytes(n int64) string {
	size := float64(n)
	for _, unit := range []string{"B", "K", "M", "G"} {
		if size < 1000 {
			if size < 9.95 && unit != "B" {
				return fmt.Sprintf("%.1f%s", size, unit)
			}
			return fmt.Sprintf("%.0f%s", size, unit)
		}
		size /= 1024
	}
	return fmt.Sprintf("%.1fT", size)
}

// clock shows when something happened to somebody who looks now: the time
// alone when it was today.
func clock(stamp string, now time.Time, layout string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stamp
	}
	at, now = at.Local(), now.Local()
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format(layout)
	}
	return at.Format("2006-01-02 " + layout)
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if noun == "process" {
		return fmt.Sprintf("%d processes", n)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// firstLine is text up to its first line end.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// sentence is what an event says, standing alone.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return strings.TrimSuffix(string(unicode.ToUpper(first))+text[size:], ".") + "."
}
