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

// ReadPlain reads an object without reflection. Each key is followed by where its value goes: a *string,
// *int64, *uint64, *Raw, a *[]byte for a part of the text, or a Fixed. ReadPlain reports false if the
// object has other members, or if reflection might read the text differently.
func ReadPlain(text []byte, room *[]Member, members ...any) (ok bool) {
	if bytes.Contains(text, []byte(`\u`)) {
		return false
	}
	if *room, _, ok = Scan(text, 128, *room); !ok {
		return false
	}
	for _, m := range *room {
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
	case Fixed:
		ok = string(value) == string(to)
	}
	return ok && err == nil
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
