package object

import (
	"cmp"
	"errors"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Stream is a list in a document of our own. Its elements are written and read one at a time, so that
// a long list needs no memory for all of them. To write a Stream, set Elements; to read one, set Read.
type Stream struct {
	Elements iter.Seq[any]   // while it is written; pointers
	Read     func(Raw) error // while it is read; the element is valid until Read returns
}

// MarshalJSONTo implements the encoder's interface.
func (s *Stream) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for element := range s.Elements {
		if err := json.MarshalEncode(e, element); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndArray)
}

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
