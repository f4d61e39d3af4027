package wire

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// member is a top-level key of an object and its value, as they stand in the
// line.
type member struct {
	key   []byte // without its quotes and escapes
	value []byte
}

// scan reads one JSON object, checking all of it, and lends out its top-level
// members in into. It says false when the line is not exactly one object, or
// nests deeper than allowed; why is then in words, or "" for a line that was
// never meant to be an object, and members are those before the trouble.
//
// It is written by hand because every line that any agent prints passes
// through it: it allocates nothing and is twice as fast as the token reader
// that it is tested against.
func scan(line []byte, depth int, into []member) (members []member, why string, ok bool) {
	s := scanner{text: line, room: depth}
	s.space()
	if s.at >= len(line) || line[s.at] != '{' {
		return nil, "", false
	}
	members, ok = s.object(into[:0], true)
	if !ok {
		return members, s.why(), false
	}
	s.space()
	if s.at < len(line) {
		return nil, "more follows the object: one message a line, one writer a stream", false
	}
	return members, "", true
}

// scanner walks over a text. Its methods leave at behind what they read.
type scanner struct {
	text []byte
	at   int
	room int  // levels that may still be opened
	deep bool // there was no room
	half bool // half of a surrogate pair stands in it
}

const (
	tooDeep = "it nests too deeply"
	halfOf  = "half of a character stands in it, an escape such as \\ud800 without its other half"
)

func (s *scanner) why() string {
	if s.deep {
		return tooDeep
	}
	if s.half {
		return halfOf
	}
	return "it is no valid JSON"
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next skips space and consumes c if it is there.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// object reads an object; its members are added to what is given only if
// they are wanted. They are returned and not passed by pointer so that the
// caller's room for them can be on its stack.
func (s *scanner) object(members []member, wanted bool) ([]member, bool) {
	if !s.open('{') {
		return members, false
	}
	defer func() { s.room++ }()
	if s.next('}') {
		return members, true
	}
	for {
		s.space()
		from := s.at
		if !s.string() {
			return members, false
		}
		key := s.text[from:s.at]
		if !s.next(':') {
			return members, false
		}
		s.space()
		from = s.at
		if !s.value() {
			return members, false
		}
		if wanted {
			members = append(members, member{key: unquoted(key), value: s.text[from:s.at]})
		}
		if s.next('}') {
			return members, true
		}
		if !s.next(',') {
			return members, false
		}
	}
}

func (s *scanner) array() bool {
	if !s.open('[') {
		return false
	}
	defer func() { s.room++ }()
	if s.next(']') {
		return true
	}
	for {
		s.space()
		if !s.value() {
			return false
		}
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// open enters a level.
func (s *scanner) open(c byte) bool {
	if s.room == 0 {
		s.deep = true
		return false
	}
	s.room--
	return s.next(c)
}

func (s *scanner) value() bool {
	if s.at >= len(s.text) {
		return false
	}
	switch c := s.text[s.at]; {
	case c == '"':
		return s.string()
	case c == '{':
		_, ok := s.object(nil, false)
		return ok
	case c == '[':
		return s.array()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	return false
}

func (s *scanner) word(w string) bool {
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

func (s *scanner) number() bool {
	if s.text[s.at] == '-' {
		s.at++
	}
	switch {
	case s.at < len(s.text) && s.text[s.at] == '0':
		s.at++
	case !s.digits():
		return false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

// digits reads at least one digit.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// plain measures the bytes at the start of text that are nothing special in a
// string: no quote, no backslash, no control character, ASCII. It looks at
// eight at a time; in each byte of the word the highest bit is set by what is
// special, and nothing before the first such byte is touched by borrows.
func plain(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		w := binary.LittleEndian.Uint64(text[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		special := (quote - ones) | (slash - ones) | (w - ones*' ') | w
		if special&highs != 0 {
			break
		}
	}
	for n < len(text) {
		if c := text[n]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
		n++
	}
	return n
}

// string reads a string, its escapes and its UTF-8.
func (s *scanner) string() bool {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return false
	}
	s.at++
	for {
		s.at += plain(s.text[s.at:])
		if s.at >= len(s.text) {
			return false
		}
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < ' ':
			return false
		default:
			r, size := utf8.DecodeRune(s.text[s.at:])
			if r == utf8.RuneError && size <= 1 {
				return false
			}
			s.at += size
		}
	}
}

// escape reads an escape. Half of a surrogate pair is refused: it would become
// another character on the way.
func (s *scanner) escape() bool {
	if s.at+1 >= len(s.text) {
		return false
	}
	switch s.text[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return true
	case 'u':
	default:
		return false
	}
	unit, ok := s.unit()
	switch {
	case !ok:
		return false
	case unit < 0xd800 || unit > 0xdfff:
		return true
	case unit < 0xdc00:
		low, ok := s.unit()
		if ok && low >= 0xdc00 && low <= 0xdfff {
			return true
		}
	}
	s.half = true
	return false
}

// unit reads an escape of \u and four hex digits.
func (s *scanner) unit() (rune, bool) {
	if len(s.text)-s.at < 6 || s.text[s.at] != '\\' || s.text[s.at+1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range s.text[s.at+2 : s.at+6] {
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			unit = unit<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	s.at += 6
	return unit, true
}

// unquoted is a valid JSON string without quotes and escapes. It allocates
// only for escapes.
func unquoted(text []byte) []byte {
	inner := text[1 : len(text)-1]
	for _, c := range inner {
		if c == '\\' {
			out, _ := jsontext.AppendUnquote(nil, text)
			return out
		}
	}
	return inner
}
