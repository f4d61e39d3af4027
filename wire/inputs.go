package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
)

// Inputs are the results that a task gets from its dependencies, by contract.
type Inputs []InputData

// InputData is the data of one contract. From is the task that delivered it.
type InputData struct {
	Key, From, Status string
	Data              Raw // null when there is none
}

// MarshalJSONTo implements json.MarshalerTo.
func (i Inputs) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(i.append(nil)) }

func (i Inputs) append(b []byte) []byte {
	b = append(b, '{')
	for n := range i {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(object.AppendText(b, i[n].Key), ':')
		if i[n].Data == nil {
			b = append(b, "null"...)
		} else {
			b = append(b, i[n].Data...)
		}
	}
	return append(b, '}')
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom, for clients. From is not on the wire and
// stays empty.
func (i *Inputs) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := key.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		*i = append(*i, InputData{Key: name, Data: value.Clone()})
	}
	_, err := d.ReadToken()
	return err
}
