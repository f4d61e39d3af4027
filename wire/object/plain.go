package object

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// A Fixed is for a member that must have this value.
type Fixed string

// An OrNull is for a member that is a string, or null for an empty one, and else a Likely.
type OrNull struct{ Text, Before *string }

// A Likely is for a member that is a string, which is often the same as in the document before. Then
// both share the memory of the text.
type Likely struct{ Text, Before *string }

// ReadPlain reads an object without reflection. Each key is followed by where its value goes: a *string,
// *int64, *uint64, *Raw, a *[]byte for a part of the text, an OrNull, a Likely, or a Fixed. ReadPlain reports
// false if the object has other members, or if reflection might read the text differently.
func ReadPlain(text []byte, room *[]Member, members ...any) (ok bool) {
	if Numbered(text) {
		return false
	}
	*room, _, ok = Scan(text, PlainDepth, *room)
	return ok && ReadMembers(*room, members...)
}

// PlainDepth is how deep a plain document may nest.
const PlainDepth = 128

// Numbered reports whether characters of a text may be escaped by their numbers. Reflection refuses some of them.
func Numbered(text []byte) bool { return bytes.Contains(text, []byte(`\u`)) }

// ReadMembers is ReadPlain for the members of an object that is not Numbered.
func ReadMembers(all []Member, members ...any) bool {
	for _, m := range all {
		at := 0
		for at < len(members) && members[at].(string) != string(m.Key) {
			at += 2
		}
		if at == len(members) || !readPlain(m.Value, members[at+1]) {
			return false
		}
	}
	return true
}

func readPlain(value []byte, to any) bool {
	ok, err := true, error(nil)
	switch to := to.(type) {
	case *string:
		*to, ok = Text(value)
	case *int64:
		*to, err = strconv.ParseInt(string(value), 10, 64)
	case *uint64:
		*to, err = strconv.ParseUint(string(value), 10, 64)
	case *Raw:
		*to = bytes.Clone(value)
	case *[]byte:
		*to, ok = value, *to == nil // reflection would merge two of them
	case Likely:
		ok = to.read(value)
	case OrNull:
		if *to.Text = ""; string(value) != "null" {
			ok = Likely(to).read(value)
		}
	case Fixed:
		ok = string(value) == string(to)
	}
	return ok && err == nil
}

func (l Likely) read(value []byte) bool {
	if len(value) < 2 || value[0] != '"' {
		return false
	}
	if text := Unquote(value); string(text) == *l.Before {
		*l.Text = *l.Before
	} else {
		*l.Text = string(text)
	}
	return true
}

// A Stream is a list in a document of our own. Its elements are read one at a time, so that a long list
// needs no memory for all of them. It is written as an empty list.
type Stream struct {
	Read func(Raw) error // the element is valid until Read returns
}

// MarshalJSONTo implements the encoder's interface.
func (s *Stream) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(jsontext.Value("[]")) }

// UnmarshalJSONFrom implements the decoder's interface.
func (s *Stream) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if begin, err := d.ReadToken(); err != nil || begin.Kind() != jsontext.KindBeginArray {
		return cmp.Or(err, errors.New("a list is expected"))
	}
	for d.PeekKind() != jsontext.KindEndArray {
		element, err := d.ReadValue()
		if err == nil {
			err = s.Read(element)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}
