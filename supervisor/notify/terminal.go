package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
)

// A Terminal notifies the person at a terminal. Its zero value is silent.
type Terminal struct {
	On       []string
	Bell     bool
	OSC      bool
	From, To time.Duration // the quiet hours
	Getenv   func(string) string

	rung   time.Time // the time of the last signal
	missed int       // events without a signal since then
}

// often is the shortest time between two bells.
const often = time.Second

// Signal returns the text to write to the terminal for an event. It moves no cursor.
func (t *Terminal) Signal(e *wire.Event) string {
	if !t.Bell && !t.OSC || !slices.Contains(t.On, On(e)) {
		return ""
	}
	now := time.Now()
	if now.Sub(t.rung) < often || !Quiet(now, t.From, t.To).IsZero() {
		t.missed++
		return ""
	}
	text := Text(e)
	if t.missed > 0 {
		text += fmt.Sprintf(" (and %d before)", t.missed)
	}
	t.rung, t.missed = now, 0
	signal := ""
	if t.OSC {
		signal = OSC(text, t.Getenv)
	}
	if t.Bell {
		signal += "\a"
	}
	return signal
}

// OSC returns the sequence for a notification of the terminal: OSC 777 for foot, rxvt and terminals with VTE, and
// otherwise OSC 9. Inside of tmux it is wrapped to reach the outer terminal, if allow-passthrough is on there.
func OSC(text string, getenv func(string) string) string {
	name := getenv("TERM")
	sequence := "\x1b]9;" + text + "\x1b\\"
	if strings.HasPrefix(name, "foot") || strings.HasPrefix(name, "rxvt") || getenv("VTE_VERSION") != "" {
		sequence = "\x1b]777;notify;orchestrator;" + strings.ReplaceAll(text, ";", ",") + "\x1b\\"
	}
	if getenv("TMUX") != "" {
		return "\x1bPtmux;" + strings.ReplaceAll(sequence, "\x1b", "\x1b\x1b") + "\x1b\\"
	}
	return sequence
}
