package live

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"orchestrator/cmd/orchestrator/term"
)

// longest is the maximum length of a line in bytes. Input beyond it is dropped.
const longest = 16 << 10

// The bytes that a terminal sends for keys.
const (
	keyEnter     = '\r'
	keyLine      = '\n'
	keyBackspace = '\b'
	keyDelete    = 0x7f
	keyEscape    = 0x1b
	keyKillLine  = 'U' - '@'
	keyKillWord  = 'W' - '@'
	keySuspend   = 'Z' - '@'
)

// editor assembles typed bytes into lines.
type editor struct {
	line   []byte
	part   []byte // the first bytes of an incomplete character
	escape int    // the position in an escape sequence; 0: outside
}

// feed takes bytes and returns the lines that they complete.
func (e *editor) feed(typed []byte) (lines []string) {
	for _, b := range typed {
		switch {
		case e.escape > 0:
			e.follow(b)
		case b == keyEnter || b == keyLine:
			lines = append(lines, string(e.line))
			e.line, e.part = e.line[:0], e.part[:0]
		default:
			e.key(b)
		}
	}
	return lines
}

// follow skips the escape sequence of a key without a function here, such as an arrow.
func (e *editor) follow(b byte) {
	switch {
	case e.escape == 1 && (b == '[' || b == 'O'):
		e.escape = 2
	case e.escape == 2 && (b < '@' || b > '~'): // its parameters
	default:
		e.escape = 0
	}
}

func (e *editor) key(b byte) {
	switch b {
	case keyEscape:
		e.escape = 1
	case keyBackspace, keyDelete:
		_, size := utf8.DecodeLastRune(e.line)
		e.line = e.line[:len(e.line)-size]
	case keyKillLine:
		e.line = e.line[:0]
	case keyKillWord:
		kept := bytes.TrimRightFunc(e.line, unicode.IsSpace)
		e.line = bytes.TrimRightFunc(kept, func(r rune) bool { return !unicode.IsSpace(r) })
	default:
		e.sign(b)
	}
}

// sign adds one byte of a character. It drops invalid UTF-8 and unprintable characters.
func (e *editor) sign(b byte) {
	e.part = append(e.part, b)
	if !utf8.FullRune(e.part) {
		return
	}
	r, _ := utf8.DecodeRune(e.part)
	if r != utf8.RuneError && unicode.IsPrint(r) && len(e.line)+len(e.part) <= longest {
		e.line = append(e.line, e.part...)
	}
	e.part = e.part[:0]
}

// shown returns the end of the line, at most size columns wide.
func (e *editor) shown(size int) string {
	first := len(e.line)
	for first > 0 {
		sign, n := utf8.DecodeLastRune(e.line[:first])
		if size -= term.Width(string(sign)); size < 0 {
			break
		}
		first -= n
	}
	return string(e.line[first:])
}
