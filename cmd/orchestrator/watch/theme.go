package watch

import (
	"image/color"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"

	"orchestrator/cmd/orchestrator/term"
)

// A theme has the styles of the screen. The program draws with the nearest colors that the terminal has: 16, 256 or
// all. Without color it draws none.
type theme struct {
	inks   map[term.Ink]lipgloss.Style
	border lipgloss.Border
	bar    progress.Model
}

// Inks that only the screen has.
const (
	inkPicked  term.Ink = "7"  // a selected row
	inkAccent  term.Ink = "36" // the focused border, and the name of the team
	inkBorder  term.Ink = "90"
	inkTab     term.Ink = "7;1" // the selected tab
	inkWaiting term.Ink = "94"  // time that a task waits
)

// newTheme returns the theme for a dark or a light background.
func newTheme(dark bool) *theme {
	pick := lipgloss.LightDark(dark)
	shade := func(light, dark string) color.Color { return pick(lipgloss.Color(light), lipgloss.Color(dark)) }
	plain := lipgloss.NewStyle()
	accent, good := shade("#0a5fb4", "#58a6ff"), shade("#1a7f37", "#3fb950")
	return &theme{
		border: lipgloss.RoundedBorder(),
		bar:    progress.New(progress.WithColors(good), progress.WithoutPercentage(), progress.WithFillCharacters('━', '─')),
		inks: map[term.Ink]lipgloss.Style{
			term.InkBad:    plain.Foreground(shade("#b3202c", "#ff7b72")).Bold(true),
			term.InkGood:   plain.Foreground(good),
			term.InkWarn:   plain.Foreground(shade("#7d5300", "#e3b341")),
			term.InkStrong: plain.Bold(true),
			term.InkDim:    plain.Foreground(shade("#59636e", "#8b949e")),
			inkPicked:      plain.Foreground(shade("#ffffff", "#ffffff")).Background(shade("#0a5fb4", "#1f4f8f")),
			inkTab:         plain.Foreground(shade("#ffffff", "#0d1117")).Background(accent).Bold(true),
			inkAccent:      plain.Foreground(accent).Bold(true),
			inkBorder:      plain.Foreground(shade("#afb8c1", "#484f58")),
			inkWaiting:     plain.Foreground(shade("#8c959f", "#6e7681")),
		},
	}
}

// ink colors text. Color never adds information to the words.
func (p pen) ink(ink term.Ink, text string) string {
	if !p.color || text == "" || ink == "" {
		return text
	}
	style, ok := p.theme.inks[ink]
	if !ok {
		return p.color.Ink(ink, text)
	}
	return style.Render(text)
}

// bar draws a done fraction, in size columns.
func (p pen) bar(done float64, size int) string {
	done = max(0, min(1, done))
	if p.color {
		bar := p.theme.bar
		bar.SetWidth(size)
		return bar.ViewAs(done)
	}
	full := int(done*float64(size) + 0.5)
	text := make([]rune, 0, size)
	for i := range size {
		if i < full {
			text = append(text, '#')
		} else {
			text = append(text, '-')
		}
	}
	return string(text)
}
