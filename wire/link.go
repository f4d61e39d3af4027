package wire

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
)

// A Link is a dependency of a task, in its current state.
type Link struct {
	ID         string `json:"id"`
	On         string `json:"depends_on_task_id"`
	Type       string `json:"dependency_type"` // blocks | input | related
	Contract   string `json:"contract_key"`    // null unless it is an input
	Soft       bool   `json:"soft,omitzero"`   // shown as related, and resolved when the other has ended
	Resolved   bool   `json:"resolved"`
	ResolvedAt string `json:"resolved_at"` // null until it is

	Result  Raw  `json:"result,omitzero"`          // of the other, when it is done
	LeftOut bool `json:"result_left_out,omitzero"` // the result is too long to be shown
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
