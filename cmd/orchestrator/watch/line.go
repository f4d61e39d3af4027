package watch

import (
	"errors"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// A line is a line of input and its purpose.
type line struct {
	prompt   string
	question string // id of the question that it answers
	text     []rune
	at       int
	past     []string // earlier lines, for up and down
	back     int      // position in past, from its end
	draft    []rune   // text before the first step back
	typed    func(text string)
	done     func(text string)
	left     func()
}

// maxTyped is the maximum length of a line, which may be pasted.
const maxTyped = 64 << 10

// key handles a key, and reports whether the line is complete or cancelled.
func (l *line) key(k tea.KeyPressMsg) (over bool) {
	before := string(l.text)
	switch k.String() {
	case "enter":
		l.done(strings.TrimSpace(before))
		return true
	case "esc", "ctrl+c":
		if l.left != nil {
			l.left()
		}
		return true
	case "backspace", "ctrl+h":
		if l.at == 0 && len(l.text) == 0 && l.left != nil {
			l.left()
			return true
		}
		l.cut(l.at-1, l.at)
	case "delete", "ctrl+d":
		l.cut(l.at, l.at+1)
	case "ctrl+u":
		l.cut(0, l.at)
	case "ctrl+k":
		l.cut(l.at, len(l.text))
	case "ctrl+w":
		l.cut(l.wordBefore(), l.at)
	case "left":
		l.at = max(0, l.at-1)
	case "right":
		l.at = min(len(l.text), l.at+1)
	case "home", "ctrl+a":
		l.at = 0
	case "end", "ctrl+e":
		l.at = len(l.text)
	case "up":
		l.recall(l.back + 1)
	case "down":
		l.recall(l.back - 1)
	default:
		l.insert(k.Text)
	}
	if now := string(l.text); l.typed != nil && now != before {
		l.typed(now)
	}
	return false
}

// insert inserts typed or pasted text. Line ends become spaces.
func (l *line) insert(text string) {
	var clean []rune
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			clean = append(clean, ' ')
		case !unicode.IsControl(r):
			clean = append(clean, r)
		}
	}
	clean = clean[:min(len(clean), max(0, maxTyped-len(l.text)))]
	l.text = append(l.text[:l.at:l.at], append(clean, l.text[l.at:]...)...)
	l.at += len(clean)
}

func (l *line) cut(from, to int) {
	from, to = max(0, from), min(to, len(l.text))
	if from >= to {
		return
	}
	l.text = append(l.text[:from:from], l.text[to:]...)
	l.at = from
}

func (l *line) wordBefore() int {
	at := l.at
	for at > 0 && l.text[at-1] == ' ' {
		at--
	}
	for at > 0 && l.text[at-1] != ' ' {
		at--
	}
	return at
}

// recall replaces the text by an earlier line.
func (l *line) recall(back int) {
	if back < 0 || back > len(l.past) {
		return
	}
	if l.back == 0 {
		l.draft = l.text
	}
	if l.back, l.text = back, l.draft; back > 0 {
		l.text = []rune(l.past[len(l.past)-back])
	}
	l.at = len(l.text)
}

// show returns the part of the line around the cursor, and the column of the cursor.
func (l *line) show(p pen, size int) (text string, cursor int) {
	prompt := p.fit(l.prompt, min(p.width.StringWidth(l.prompt), size/2))
	room := max(1, size-p.width.StringWidth(prompt)-1)
	from := l.at
	for from > 0 && p.width.StringWidth(visible(string(l.text[from-1:l.at]))) <= room {
		from--
	}
	shown := visible(string(l.text[from:]))
	cursor = p.width.StringWidth(prompt) + p.width.StringWidth(visible(string(l.text[from:l.at])))
	return p.fit(prompt+p.width.Truncate(shown, room+1, ""), size), cursor
}

var errQuote = errors.New("a quote is not closed")

// wordsOf splits a command line at spaces, with quotes and backslashes as in a shell. No
// other character is special.
func wordsOf(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun, quote, literal := false, rune(0), false
	for _, r := range text {
		switch {
		case literal:
			word.WriteRune(r)
			literal = false
		case r == '\\' && quote != '\'':
			literal, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case unicode.IsSpace(r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || literal {
		return nil, errQuote
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
