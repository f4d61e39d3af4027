package term

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"orchestrator/wire"
)

// ID returns the short form of an id, which people read and type. One that agents have chosen is quoted for a shell if
// needed.
func ID(id string) string { return Word(wire.Visible(wire.ShortID(id))) }

// OneLine returns untrusted text as one line, safe for a terminal.
func OneLine(text string) string { return wire.Visible(strings.Join(strings.Fields(text), " ")) }

// Clip shortens text to a width and marks a cut with an ellipsis.
func Clip(text string, size int) string {
	if Width(text) <= size {
		return text
	}
	var b strings.Builder
	used := 1
	for _, r := range text {
		if used += Width(string(r)); used > size {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// Word quotes text for a shell if needed: it can be pasted without any expansion.
func Word(text string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./+,:@%=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !bare(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Pad fills text with spaces up to a width.
func Pad(s string, size int) string {
	return s + strings.Repeat(" ", max(0, size-Width(s)))
}

// Width returns the number of terminal columns of a text.
func Width(s string) int {
	n := 0
	for _, r := range s {
		if r < 0x300 {
			n++
			continue
		}
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			continue
		}
		n++
		if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}

// FirstLine returns text up to its first line end.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Sentence returns the text of an event as a sentence, with a capital and a full stop.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return strings.TrimSuffix(string(unicode.ToUpper(first))+text[size:], ".") + "."
}

// Duration formats a duration for people: 12m, 0.4s, 1h02m.
func Duration(d time.Duration) string {
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

// MS formats a number of milliseconds as Duration does.
func MS(ms int64) string { return Duration(time.Duration(ms) * time.Millisecond) }

// Bytes formats a size as at most three digits and a letter: 31M, 1.2G.
func Bytes(n int64) string {
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

// Clock formats a timestamp in local time. It adds the date unless that is today's.
func Clock(stamp string, now time.Time, layout string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return wire.Visible(stamp)
	}
	at, now = at.Local(), now.Local()
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format(layout)
	}
	return at.Format("2006-01-02 " + layout)
}

// Count returns a number with its noun in singular or plural.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "ch") { // processes, branches
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Percent formats a progress from 0 to 1 as a percentage. It returns "" for 0.
func Percent(progress float64) string {
	if progress == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", progress*100)
}

// Bar draws a progress from 0 to 1 as a bar of size columns.
func Bar(progress float64, size int) string {
	full := min(size, max(0, int(progress*float64(size)+0.5)))
	return strings.Repeat("#", full) + strings.Repeat("-", size-full)
}
