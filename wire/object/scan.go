package object

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A Member is a top-level key of an object and its value, as they stand in the text.
type Member struct {
	Key   []byte // without its quotes and escapes
	Value []byte
}

// Scan checks all of a text that should be one JSON object and returns its top-level members, in
// the room of into. If ok is false, the text is not exactly one object or nests deeper than depth;
// why is the reason, or "" if the text does not begin an object, and members are the members before
// the fault.
//
// Scan is written by hand because every line of every agent passes through it. It allocates nothing
// and takes half the time of the token reader that its test compares it with.
func Scan(line []byte, depth int, into []Member) (members []Member, why string, ok bool) {
	s := Scanner{Text: line, room: depth}
	return s.message(into)
}

// ScanBoth is Scan that also takes one member apart. It returns the members of the object with the
// given key, in the room of inside, or nil without such an object. A key with escapes is not found,
// and of several values the last counts.
func ScanBoth(line []byte, depth int, into []Member, key string, inside []Member) (members, inner []Member, why string, ok bool) {
	s := Scanner{Text: line, room: depth, key: key, spare: inside[:0]}
	members, why, ok = s.message(into)
	return members, s.inner, why, ok
}

// message reads the whole text, which should be an object.
func (s *Scanner) message(into []Member) (members []Member, why string, ok bool) {
	s.Space()
	if s.At >= len(s.Text) || s.Text[s.At] != '{' {
		return nil, "", false
	}
	members, ok = s.object(into[:0], true)
	if !ok {
		return members, s.why(), false
	}
	s.Space()
	if s.At < len(s.Text) {
		return nil, "more text follows the object: write one message a line, with one writer a stream", false
	}
	return members, "", true
}

// A Scanner walks over JSON text. After each method that succeeds, At is the offset behind the text
// that it read.
type Scanner struct {
	Text []byte
	At   int
	room int  // levels that may still be opened
	deep bool // there was no room
	half bool // half of a surrogate pair stands in it

	key   string   // of the member that is taken apart; "": none
	inner []Member // its members
	spare []Member // the room for them
}

const (
	TooDeep = "it nests too deeply"
	HalfOf  = "it contains half of a character, an escape such as \\ud800 without its other half"
)

func (s *Scanner) why() string {
	if s.deep {
		return TooDeep
	}
	if s.half {
		return HalfOf
	}
	return "it is not valid JSON"
}

// IsCompact reports whether a text is one JSON value without white space between its parts.
func IsCompact(text []byte) bool {
	s := Scanner{Text: text, room: AnyDepth}
	return s.value() && s.At == len(text) && CompactLen(text) == len(text)
}

// Space skips white space.
func (s *Scanner) Space() {
	for s.At < len(s.Text) {
		switch s.Text[s.At] {
		case ' ', '\t', '\r', '\n':
			s.At++
		default:
			return
		}
	}
}

// Next skips space, and c if it follows.
func (s *Scanner) Next(c byte) bool {
	s.Space()
	if s.At < len(s.Text) && s.Text[s.At] == c {
		s.At++
		return true
	}
	return false
}

// object reads an object. Its members are appended only if wanted is set.
func (s *Scanner) object(members []Member, wanted bool) ([]Member, bool) {
	if !s.open('{') {
		return members, false
	}
	if s.Next('}') {
		s.room++
		return members, true
	}
	for {
		s.Space()
		from := s.At
		simple, ok := s.name()
		if !ok {
			return members, false
		}
		key := s.Text[from:s.At]
		if !s.Next(':') {
			return members, false
		}
		s.Space()
		from = s.At
		if !s.member(key, wanted) {
			return members, false
		}
		if wanted {
			bare := key[1 : len(key)-1]
			if !simple {
				bare = Unquote(key)
			}
			members = append(members, Member{Key: bare, Value: s.Text[from:s.At]})
		}
		if s.Next(',') {
			continue
		}
		if !s.Next('}') {
			return members, false
		}
		s.room++
		return members, true
	}
}

// name reads a key, and reports whether it has plain characters only.
func (s *Scanner) name() (simple, ok bool) {
	if s.At >= len(s.Text) || s.Text[s.At] != '"' {
		return false, false
	}
	if end := s.At + 1 + plain(s.Text[s.At+1:]); end < len(s.Text) && s.Text[end] == '"' {
		s.At = end + 1
		return true, true
	}
	return false, s.Quoted()
}

// member reads the value behind a quoted key, and takes it apart if it is the one to be.
func (s *Scanner) member(quoted []byte, wanted bool) (ok bool) {
	if !wanted || s.key == "" || string(quoted[1:len(quoted)-1]) != s.key {
		return s.value()
	}
	if s.inner = nil; s.At >= len(s.Text) || s.Text[s.At] != '{' {
		return s.value()
	}
	key := s.key
	s.key = "" // the same key inside it is another member
	s.inner, ok = s.object(s.spare, true)
	s.key = key
	return ok
}

func (s *Scanner) array() bool {
	if !s.open('[') {
		return false
	}
	if s.Next(']') {
		s.room++
		return true
	}
	for {
		s.Space()
		if !s.value() {
			return false
		}
		if s.Next(']') {
			s.room++
			return true
		}
		if !s.Next(',') {
			return false
		}
	}
}

// open enters a level of nesting.
func (s *Scanner) open(c byte) bool {
	if s.room == 0 {
		s.deep = true
		return false
	}
	s.room--
	return s.Next(c)
}

func (s *Scanner) value() bool {
	if s.At >= len(s.Text) {
		return false
	}
	switch c := s.Text[s.At]; {
	case c == '"':
		return s.Quoted()
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

func (s *Scanner) word(w string) bool {
	if len(s.Text)-s.At < len(w) || string(s.Text[s.At:s.At+len(w)]) != w {
		return false
	}
	s.At += len(w)
	return true
}

func (s *Scanner) number() bool {
	if s.Text[s.At] == '-' {
		s.At++
	}
	switch {
	case s.At < len(s.Text) && s.Text[s.At] == '0':
		s.At++
	case !s.digits():
		return false
	}
	if s.At < len(s.Text) && s.Text[s.At] == '.' {
		s.At++
		if !s.digits() {
			return false
		}
	}
	if s.At < len(s.Text) && s.Text[s.At]|0x20 == 'e' {
		s.At++
		if s.At < len(s.Text) && (s.Text[s.At] == '+' || s.Text[s.At] == '-') {
			s.At++
		}
		return s.digits()
	}
	return true
}

// digits reads at least one digit.
func (s *Scanner) digits() bool {
	from := s.At
	for s.At < len(s.Text) && '0' <= s.Text[s.At] && s.Text[s.At] <= '9' {
		s.At++
	}
	return s.At > from
}

// plain measures the plain bytes at the start of text: no quote, no backslash, no control
// character, ASCII. It looks at eight bytes at a time. A special byte sets its highest bit in the
// word, and borrows touch no byte before the first special one.
func plain(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		w := binary.LittleEndian.Uint64(text[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		special := (quote - ones) | (slash - ones) | (w - ones*' ') | w
		if special &= highs; special != 0 {
			return n + bits.TrailingZeros64(special)/8
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

// Quoted reads a string with its escapes and its UTF-8.
func (s *Scanner) Quoted() bool {
	if s.At >= len(s.Text) || s.Text[s.At] != '"' {
		return false
	}
	s.At++
	for {
		s.At += plain(s.Text[s.At:])
		if s.At >= len(s.Text) {
			return false
		}
		switch c := s.Text[s.At]; {
		case c == '"':
			s.At++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < ' ':
			return false
		default:
			r, size := utf8.DecodeRune(s.Text[s.At:])
			if r == utf8.RuneError && size <= 1 {
				return false
			}
			s.At += size
		}
	}
}

// escape reads an escape. It refuses half of a surrogate pair, which would become another
// character when it is written again.
func (s *Scanner) escape() bool {
	if s.At+1 >= len(s.Text) {
		return false
	}
	switch s.Text[s.At+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.At += 2
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
func (s *Scanner) unit() (rune, bool) {
	if len(s.Text)-s.At < 6 || s.Text[s.At] != '\\' || s.Text[s.At+1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range s.Text[s.At+2 : s.At+6] {
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			unit = unit<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	s.At += 6
	return unit, true
}

// Unquote returns a valid JSON string without quotes and escapes. It allocates only for
// escapes.
func Unquote(text []byte) []byte {
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		inner, _ = jsontext.AppendUnquote(nil, text)
	}
	return inner
}
