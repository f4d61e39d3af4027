package object

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

// Raw is a JSON value that is passed on as it came, digit for digit.
type Raw = jsontext.Value

// A Reader reads the members of one JSON object and keeps the first error. Its results are copies:
// a payload lives as long as its line, and a request longer.
//
// A member that is null counts as missing, since many programs write null for an absent value.
type Reader struct {
	Pointer string // to the object, for messages
	Members []Member
	err     *Error
}

// Read takes a JSON object apart. It may nest depth levels deep; pointer is its place in the
// message.
func (r *Reader) Read(text []byte, depth int, pointer string) *Error {
	found, err := Open(text, depth, pointer, nil)
	*r = found
	return err
}

// Open is Read for a Reader that the caller holds by value, with room for its members.
func Open(text []byte, depth int, pointer string, room []Member) (Reader, *Error) {
	members, why, ok := Scan(text, depth, room)
	if !ok {
		if why == "" {
			why = "it must be an object"
		}
		return Reader{Pointer: pointer}, Invalid(pointer, NameOf(pointer)+": "+why)
	}
	return Reader{Pointer: pointer, Members: members}, nil
}

// Err returns the first error, or nil.
func (r *Reader) Err() *Error { return r.err }

// Refuse records that a member is wrong, unless there is an error already.
func (r *Reader) Refuse(key, message string) {
	if r.err == nil {
		r.err = Invalid(r.Below(key), r.Named(key)+" "+message)
	}
}

// Fail records err, for example that of a nested object, unless r has an error already.
func (r *Reader) Fail(err *Error) {
	if r.err == nil {
		r.err = err
	}
}

// Find returns the text of a member, or nil if it is missing or null. A member that occurs
// twice is refused, and counts as missing so that no later reader takes either value.
func (r *Reader) Find(key string) []byte {
	var found []byte
	twice := false
	for i := range r.Members {
		if string(r.Members[i].Key) != key {
			continue
		}
		if found != nil {
			r.Refuse(key, "stands twice")
			twice = true
		}
		found = r.Members[i].Value
	}
	if twice || IsNull(found) {
		return nil
	}
	return found
}

// IsNull reports whether a valid JSON value is null.
func IsNull(value []byte) bool { return len(value) == 4 && value[0] == 'n' }

// Each calls read for every member that is not null, in the order of the keys. A key that
// occurs twice is refused and not read.
func (r *Reader) Each(read func(key string, value []byte)) {
	byKey := func(a, b Member) int { return bytes.Compare(a.Key, b.Key) }
	slices.SortStableFunc(r.Members, byKey) // no other reader minds their order
	for i := 0; i < len(r.Members); i++ {
		m := r.Members[i]
		twice := false
		for ; i+1 < len(r.Members) && bytes.Equal(r.Members[i+1].Key, m.Key); i++ {
			twice = true
		}
		switch {
		case twice:
			r.Refuse(string(m.Key), "stands twice")
		case !IsNull(m.Value):
			read(string(m.Key), m.Value)
		}
	}
}

// Text returns an optional string.
func (r *Reader) Text(key string) string {
	value := r.Find(key)
	if value == nil {
		return ""
	}
	s, ok := Text(value)
	if !ok {
		r.Refuse(key, "must be a string")
	}
	return s
}

// NeedText returns a string that must be there and must not be blank.
func (r *Reader) NeedText(key string) string {
	if r.Find(key) == nil {
		r.Refuse(key, "is missing")
		return ""
	}
	s := r.Text(key)
	if IsBlank(s) {
		r.Refuse(key, "must not be empty")
	}
	return s
}

// IsBlank reports whether s has no characters but space.
func IsBlank(s string) bool {
	for _, c := range s {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' {
			return false
		}
	}
	return true
}

// NoControls refuses text with control characters. It is for text that is stored in a column
// of the record.
func (r *Reader) NoControls(key, text string) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		r.Refuse(key, "must not have control characters in it")
	}
}

// OneOf returns an optional string, which must be one of a few.
func (r *Reader) OneOf(key string, of ...string) string {
	s := r.Text(key)
	if s == "" && r.Find(key) == nil {
		return ""
	}
	if !slices.Contains(of, s) {
		r.Refuse(key, fmt.Sprintf("must be one of %s, not %q", Choices(of), s))
	}
	return s
}

// NeedOneOf is OneOf for a string that must be there.
func (r *Reader) NeedOneOf(key string, of ...string) string {
	if r.Find(key) == nil {
		r.Refuse(key, "is missing")
		return ""
	}
	return r.OneOf(key, of...)
}

// Choices lists words for a message: a, b or c.
func Choices(words []string) string {
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

// FirstText returns the first of some members that is a non-empty text.
func (r *Reader) FirstText(keys ...string) string {
	for _, key := range keys {
		if s := r.Text(key); s != "" {
			return s
		}
	}
	return ""
}

// Texts returns an optional list of strings, each once. None may be empty.
func (r *Reader) Texts(key string) []string {
	items, ok := r.Items(key)
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(items))
	known := make(map[string]bool, len(items)) // a list may be as long as a line: it is not searched
	r.EachText(key, items, func(s string) {
		if !known[s] {
			known[s] = true
			texts = append(texts, s)
		}
	})
	return texts
}

// EachText calls read for each item of a list of strings. None may be empty.
func (r *Reader) EachText(key string, items [][]byte, read func(string)) {
	for i, item := range items {
		s, ok := Text(item)
		switch {
		case !ok:
			r.RefuseItem(key, i, "must be a string")
		case IsBlank(s):
			r.RefuseItem(key, i, "must not be empty")
		default:
			read(s)
		}
	}
}

// AnyDepth is the depth for a value that was scanned together with the object around it.
const AnyDepth = 1 << 20

// Objects calls read for each item of an optional list of objects.
func (r *Reader) Objects(key string, read func(*Reader)) {
	items, _ := r.Items(key)
	for i, item := range items {
		var inner Reader
		err := inner.Read(item, AnyDepth, r.BelowItem(key, i))
		if err == nil {
			read(&inner)
			err = inner.Err()
		}
		r.Fail(err)
	}
}

// RefuseItem records that an item of a list is wrong, unless there is an error already.
func (r *Reader) RefuseItem(key string, i int, message string) {
	if r.err == nil {
		r.err = Invalid(r.BelowItem(key, i), r.Named(key)+"["+strconv.Itoa(i)+"] "+message)
	}
}

// Items splits an optional list into its items.
func (r *Reader) Items(key string) (items [][]byte, ok bool) {
	value := r.Find(key)
	if value == nil {
		return nil, false
	}
	if value[0] != '[' {
		r.Refuse(key, "must be a list")
		return nil, false
	}
	s := Scanner{Text: value, At: 1, room: AnyDepth}
	if s.Next(']') {
		return nil, true
	}
	for {
		s.Space()
		from := s.At
		s.value()
		items = append(items, value[from:s.At])
		if !s.Next(',') {
			return items, true
		}
	}
}

// Document returns a copy of an optional object.
func (r *Reader) Document(key string) Raw {
	value := r.Find(key)
	if value == nil {
		return nil
	}
	if !IsObject(value) {
		r.Refuse(key, "must be an object")
		return nil
	}
	return r.copy(key, value)
}

// Value returns a copy of an optional value of any kind.
func (r *Reader) Value(key string) Raw {
	value := r.Find(key)
	if value == nil {
		return nil
	}
	return r.copy(key, value)
}

// copy returns a copy of the value of a member, and refuses it if a key occurs twice in it.
func (r *Reader) copy(key string, value []byte) Raw {
	if below := duplicateIn(value); below != "" {
		pointer := r.Below(key) + below
		r.Fail(Invalid(pointer, NameOf(pointer)+" stands twice"))
	}
	return Clone(value)
}

// Clone copies a JSON value and puts it on one line. A value that came over HTTP may have
// several lines.
func Clone(value []byte) Raw {
	kept := Raw(bytes.Clone(value))
	if bytes.IndexByte(value, '\n') >= 0 || bytes.IndexByte(value, '\r') >= 0 {
		_ = kept.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)) // it was scanned
	}
	return kept
}

// Number returns an optional number, and how it was written.
func (r *Reader) Number(key string) (value float64, raw Raw) {
	digits := r.Find(key)
	if digits == nil {
		return 0, nil
	}
	value, err := strconv.ParseFloat(string(digits), 64)
	if err != nil {
		r.Refuse(key, "must be a number")
		return 0, nil
	}
	return value, Raw(bytes.Clone(digits))
}

// Digits returns the number that a JSON value of a few digits is, without an exponent or a sign, as most are.
func Digits(value []byte) (n int64, ok bool) {
	if len(value) == 0 || len(value) > 15 {
		return 0, false
	}
	for _, c := range value {
		if !IsDigit(c) {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// MaxWhole is the largest integer that every JSON reader keeps exactly.
const MaxWhole = 1<<53 - 1

// Whole returns an optional integer that is at least least, or 0 if it is missing.
func (r *Reader) Whole(key string, least int64) int64 { return ReadWhole(r, key, least, MaxWhole) }

// ReadWhole is Whole with a maximum.
func ReadWhole(o *Reader, key string, least, most int64) int64 {
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

// MaxMilliseconds bounds a duration in a request: one year.
const MaxMilliseconds = 365 * 24 * 3600 * 1000

// Milliseconds returns an optional duration of at most a year, or 0 if it is missing.
func (r *Reader) Milliseconds(key string, least int64) int64 {
	time := r.Whole(key, least)
	if time > MaxMilliseconds {
		r.Refuse(key, "is longer than a year, in milliseconds")
	}
	return time
}

// Bool returns an optional boolean, and whether the member exists.
func (r *Reader) Bool(key string) (value, there bool) {
	switch word := r.Find(key); string(word) {
	case "":
		return false, false
	case "true", "false":
		return word[0] == 't', true
	}
	r.Refuse(key, "must be true or false")
	return false, false
}

// OptionalName returns an optional string that must not be blank, or nil if it is missing.
func (r *Reader) OptionalName(key string) *string {
	if r.Find(key) == nil {
		return nil
	}
	text := r.NeedText(key)
	return &text
}

// OptionalText returns an optional string, or nil if it is missing.
func (r *Reader) OptionalText(key string) *string {
	if r.Find(key) == nil {
		return nil
	}
	text := r.Text(key)
	return &text
}

// RefuseNulls refuses members that are null, for objects where null does not mean missing.
func (r *Reader) RefuseNulls(why string) {
	for i := range r.Members {
		if IsNull(r.Members[i].Value) {
			r.Refuse(string(r.Members[i].Key), why)
		}
	}
}

// HasNull reports whether a member exists with the value null.
func (r *Reader) HasNull(key string) bool {
	for i := range r.Members {
		if string(r.Members[i].Key) == key {
			return IsNull(r.Members[i].Value)
		}
	}
	return false
}

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// Text returns the value of a JSON string; ok is false for any other valid JSON value.
func Text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return string(Unquote(value)), true
}

// IsObject reports whether a valid JSON value is an object.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }
