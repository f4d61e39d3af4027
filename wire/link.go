package wire

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
)

// A Link is a dependency of a task, in its current state.
type Link struct {
	// The id of the dependency.
	ID string `json:"id"`
	// The id of the other task.
	On string `json:"depends_on_task_id"`
	// blocks: the other task must be done first. input: part of its result is needed as well. related:
	// for information only.
	Type string `json:"dependency_type" schema:"enum=hub.DependencyTypes"`
	// The part of the result that an input needs; null for any other type.
	Contract string `json:"contract_key" schema:"null"`
	// Whether the dependency is resolved when the other task ends, in any state; false when it is
	// missing.
	Soft bool `json:"soft,omitzero"`
	// Whether the dependency is resolved: it no longer blocks the task.
	Resolved bool `json:"resolved"`
	// When the dependency was resolved; null before that.
	ResolvedAt string `json:"resolved_at" schema:"stamp,null"`

	// The result of the other task, when it is done. It is missing if the author of the dependency may
	// not read the other task.
	Result Raw `json:"result,omitzero"`
	// Whether the result is left out because a task shows at most 256 KiB of results. To get a part of
	// it, depend on it as an input.
	LeftOut bool `json:"result_left_out,omitzero"`
}

// MaxLinkResults is the maximum size of the dependency results that a task shows, in bytes.
const MaxLinkResults = 256 << 10

// MarshalJSONTo implements json.MarshalerTo.
func (l *Link) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(l.append(nil)) }

func (l *Link) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = object.AppendText(b, l.ID)
	b = object.AppendMember(b, "depends_on_task_id", l.On)
	b = object.AppendMember(b, "dependency_type", l.Type)
	b = object.AppendOrNull(b, "contract_key", l.Contract)
	if l.Soft {
		b = append(b, `,"soft":true`...)
	}
	b = strconv.AppendBool(append(b, `,"resolved":`...), l.Resolved)
	b = object.AppendOrNull(b, "resolved_at", l.ResolvedAt)
	b = object.AppendRaw(b, "result", l.Result)
	if l.LeftOut {
		b = append(b, `,"result_left_out":true`...)
	}
	return append(b, '}')
}

func appendLinks(b []byte, links []Link) []byte {
	b = append(b, '[')
	for i := range links {
		if i > 0 {
			b = append(b, ',')
		}
		b = links[i].append(b)
	}
	return append(b, ']')
}

// LinkReply answers add-dependency.
type LinkReply struct {
	Dependency Link `json:"dependency"`
}

// Inputs are the results that a task gets from its dependencies, by contract.
type Inputs []InputData

// InputData is the data of one contract. From is the task that delivered it.
type InputData struct {
	Key, From, Status string
	Data              Raw // null when it is missing
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
