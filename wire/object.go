package wire

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Object reads a payload, one member after the other, and keeps the first thing
// that is wrong with it. What it returns is copied: a payload lives as long as
// its line, a request longer.
//
// A member that is null is one that is not there: programs that have nothing to
// say often say that.
type Object struct {
	pointer string // to the object, for messages
	members []member
	err     *Error
}

// ReadObject takes a payload apart. Depth is how deep it may nest.
func (o *Object) ReadObject(text []byte, depth int, pointer string) *Error {
	found, err := openObject(text, depth, pointer, nil)
	*o = found
	return err
}

// openObject is ReadObject with room for the members, which the caller has to
// spare: a payload is read for every message.
func openObject(text []byte, depth int, pointer string, room []member) (Object, *Error) {
	members, why, ok := scan(text, depth, room)
	if !ok {
		if why == "" {
			why = "it must be an object"
		}
		return Object{pointer: pointer}, invalid(pointer, nameOf(pointer)+": "+why)
	}
	return Object{pointer: pointer, members: members}, nil
}

// Err is the first thing that is wrong, or nil.
func (o *Object) Err() *Error { return o.err }

// Refuse says that a member is wrong.
func (o *Object) Refuse(key, message string) {
	if o.err == nil {
		o.err = invalid(o.below(key), o.named(key)+" "+message)
	}
}

// take makes what is wrong inside a member wrong with the object.
func (o *Object) take(err *Error) {
	if o.err == nil {
		o.err = err
	}
}

// find returns a member, nil when it is missing or null. One that stands twice
// is refused, and so that no later reader takes either for it, it is
// missing too.
func (o *Object) find(key string) []byte {
	var found []byte
	twice := false
	for i := range o.members {
		if string(o.members[i].key) != key {
			continue
		}
		if found != nil {
			o.Refuse(key, "stands twice")
			twice = true
		}
		found = o.members[i].value
	}
	if twice || isNull(found) {
		return nil
	}
	return found
}

func isNull(value []byte) bool { return len(value) == 4 && value[0] == 'n' }

// Each calls read for every member that is not null, in the order of their
// keys. A key that stands twice is refused, and read in neither place.
func (o *Object) Each(read func(key string, value []byte)) {
	byKey := func(a, b member) int { return bytes.Compare(a.key, b.key) }
	slices.SortStableFunc(o.members, byKey) // no other reader minds their order
	for i := 0; i < len(o.members); i++ {
		m := o.members[i]
		twice := false
		for ; i+1 < len(o.members) && bytes.Equal(o.members[i+1].key, m.key); i++ {
			twice = true
		}
		switch {
		case twice:
			o.Refuse(string(m.key), "stands twice")
		case !isNull(m.value):
			read(string(m.key), m.value)
		}
	}
}

// Text is an optional string.
func (o *Object) Text(key string) string {
	value := o.find(key)
	if value == nil {
		return ""
	}
	s, ok := text(value)
	if !ok {
		o.Refuse(key, "must be a string")
	}
	return s
}

// NeedText is a string that must be there and say something.
func (o *Object) NeedText(key string) string {
	if o.find(key) == nil {
		o.Refuse(key, "is missing")
		return ""
	}
	s := o.Text(key)
	if blank(s) {
		o.Refuse(key, "must not be empty")
	}
	return s
}

func blank(s string) bool {
	for _, c := range s {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' {
			return false
		}
	}
	return true
}

// needPlain refuses a text with control characters in it, which is to stand in a
// column of the record: a NUL is none that can be kept.
func (o *Object) needPlain(key, text string) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		o.Refuse(key, "must not have control characters in it")
	}
}

// OneOf is an optional string out of a few.
func (o *Object) OneOf(key string, of ...string) string {
	s := o.Text(key)
	if s == "" && o.find(key) == nil {
		return ""
	}
	if !slices.Contains(of, s) {
		o.Refuse(key, fmt.Sprintf("must be one of %s, not %q", list(of), s))
	}
	return s
}

// NeedOneOf is OneOf for a string that must be there.
func (o *Object) NeedOneOf(key string, of ...string) string {
	if o.find(key) == nil {
		o.Refuse(key, "is missing")
		return ""
	}
	return o.OneOf(key, of...)
}

// list spells words for people: a, b or c.
func list(words []string) string {
	var out []byte
	for i, word := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			out = append(out, " or "...)
		default:
			out = append(out, ", "...)
		}
		out = append(out, word...)
	}
	return string(out)
}

// Texts is an optional list of strings, none of them empty. One that stands
// twice counts once.
func (o *Object) Texts(key string) []string {
	items, ok := o.list(key)
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(items))
	known := make(map[string]bool, len(items)) // a list may be as long as a line: it is not searched
	o.eachText(key, items, func(s string) {
		if !known[s] {
			known[s] = true
			texts = append(texts, s)
		}
	})
	return texts
}

// eachText calls read for each item of a list of strings, none of them empty.
func (o *Object) eachText(key string, items [][]byte, read func(string)) {
	for i, item := range items {
		s, ok := text(item)
		switch {
		case !ok:
			o.refuseItem(key, i, "must be a string")
		case blank(s):
			o.refuseItem(key, i, "must not be empty")
		default:
			read(s)
		}
	}
}

// scannedBefore is how deep a value may nest that was bounded with the object
// that it stands in.
const scannedBefore = 1 << 20

// Objects calls read for each item of an optional list of objects.
func (o *Object) Objects(key string, read func(*Object)) {
	items, _ := o.list(key)
	for i, item := range items {
		var inner Object
		err := inner.ReadObject(item, scannedBefore, o.belowItem(key, i))
		if err == nil {
			read(&inner)
			err = inner.Err()
		}
		o.take(err)
	}
}

func (o *Object) refuseItem(key string, i int, message string) {
	if o.err == nil {
		o.err = invalid(o.belowItem(key, i), o.named(key)+"["+strconv.Itoa(i)+"] "+message)
	}
}

// list splits an optional array into its items.
func (o *Object) list(key string) (items [][]byte, ok bool) {
	value := o.find(key)
	if value == nil {
		return nil, false
	}
	if value[0] != '[' {
		o.Refuse(key, "must be a list")
		return nil, false
	}
	s := scanner{text: value, at: 1, room: scannedBefore}
	if s.next(']') {
		return nil, true
	}
	for {
		s.space()
		from := s.at
		s.value()
		items = append(items, value[from:s.at])
		if !s.next(',') {
			return items, true
		}
	}
}

// Document is an optional object that is kept as it is.
func (o *Object) Document(key string) jsontext.Value {
	value := o.find(key)
	if value == nil {
		return nil
	}
	if !isObject(value) {
		o.Refuse(key, "must be an object")
		return nil
	}
	return keep(value)
}

// Value is an optional value of any kind that is kept as it is.
func (o *Object) Value(key string) jsontext.Value {
	value := o.find(key)
	if value == nil {
		return nil
	}
	return keep(value)
}

// keep copies a value, on one line: what came over HTTP may be written over
// several.
func keep(value []byte) jsontext.Value {
	kept := jsontext.Value(bytes.Clone(value))
	if bytes.IndexByte(value, '\n') >= 0 || bytes.IndexByte(value, '\r') >= 0 {
		_ = kept.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)) // it was scanned
	}
	return kept
}

// Number is an optional number, as it was written.
func (o *Object) Number(key string) (value float64, raw jsontext.Value) {
	digits := o.find(key)
	if digits == nil {
		return 0, nil
	}
	value, err := strconv.ParseFloat(string(digits), 64)
	if err != nil {
		o.Refuse(key, "must be a number")
		return 0, nil
	}
	return value, jsontext.Value(bytes.Clone(digits))
}

// mostWhole is the largest whole number that no neighbour is taken for.
const mostWhole = 1<<53 - 1

// Whole is an optional whole number that is not less than least; 0 when it is
// missing.
func (o *Object) Whole(key string, least int64) int64 { return readWhole(o, key, least, mostWhole) }

// readWhole is Whole with a maximum.
func readWhole(o *Object, key string, least, most int64) int64 {
	value, raw := o.Number(key)
	if raw == nil {
		return 0
	}
	if value > float64(most) || value != math.Trunc(value) || value < float64(least) {
		o.Refuse(key, fmt.Sprintf("must be a whole number from %d to %d", least, most))
		return 0
	}
	return int64(value)
}

// longestTime is the longest duration in a request: a year, in
// milliseconds.
const longestTime = 365 * 24 * 3600 * 1000

// milliseconds is an optional time of a year at most; 0 when it is missing.
func (o *Object) milliseconds(key string, least int64) int64 {
	time := o.Whole(key, least)
	if time > longestTime {
		o.Refuse(key, "is longer than a year, in milliseconds")
	}
	return time
}

// Truth is an optional yes or no.
func (o *Object) Truth(key string) (value, there bool) {
	switch word := o.find(key); string(word) {
	case "":
		return false, false
	case "true", "false":
		return word[0] == 't', true
	}
	o.Refuse(key, "must be true or false")
	return false, false
}
