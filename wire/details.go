package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Details are the parts of a task that few tasks have. They are never changed in
// place.
type Details struct {
	StructuredSpec     Raw      `json:"structured_spec,omitzero"`
	Requirements       Raw      `json:"requirements,omitzero"`
	TargetRepo         string   `json:"targetRepo,omitzero"`
	AcceptanceCriteria []string `json:"acceptanceCriteria,omitzero"`
	ProjectID          string   `json:"projectId,omitzero"`
	SessionID          string   `json:"sessionId,omitzero"`
	ParentTaskID       string   `json:"parentTaskId,omitzero"` // what its submitter was working on
	Plan               Raw      `json:"plan,omitzero"`         // an object or a text
	PlanFeedback       string   `json:"planFeedback,omitzero"` // why the plan is to be changed
	Help               *Help    `json:"help,omitzero"`
}

// Help is what the agent of a task asked a person.
type Help struct {
	QuestionID string `json:"questionId"`
	Question   string `json:"question"`
	Context    Raw    `json:"context,omitzero"`
	Answer     string `json:"answer,omitzero"`
	AnsweredAt string `json:"answeredAt,omitzero"`
}

// empty says whether a task can do without.
func (d *Details) empty() bool {
	return d == nil || d.StructuredSpec == nil && d.Requirements == nil && d.TargetRepo == "" &&
		len(d.AcceptanceCriteria) == 0 && d.ProjectID == "" && d.SessionID == "" && d.ParentTaskID == "" &&
		d.Plan == nil && d.PlanFeedback == "" && d.Help == nil
}

// Filled is d, or nil when there is nothing in it.
func (d *Details) Filled() *Details {
	if d.empty() {
		return nil
	}
	return d
}

func (d *Details) append(b []byte) []byte {
	if d == nil {
		return b
	}
	b = appendRaw(b, "structured_spec", d.StructuredSpec)
	b = appendRaw(b, "requirements", d.Requirements)
	b = appendSome(b, "targetRepo", d.TargetRepo)
	if len(d.AcceptanceCriteria) > 0 {
		b = appendTexts(b, "acceptanceCriteria", d.AcceptanceCriteria)
	}
	b = appendSome(b, "projectId", d.ProjectID)
	b = appendSome(b, "sessionId", d.SessionID)
	b = appendSome(b, "parentTaskId", d.ParentTaskID)
	b = appendRaw(b, "plan", d.Plan)
	b = appendSome(b, "planFeedback", d.PlanFeedback)
	if d.Help != nil {
		help, err := Encode(d.Help)
		if err == nil {
			b = appendRaw(b, "help", help)
		}
	}
	return b
}

// Link is a dependency of a task as it stands.
type Link struct {
	ID         string `json:"id"`
	On         string `json:"depends_on_task_id"`
	Type       string `json:"dependency_type"` // blocks | input | related
	Contract   string `json:"contract_key"`    // null unless it is an input
	Soft       bool   `json:"soft,omitzero"`   // shown as related, and resolved when the other has ended
	Resolved   bool   `json:"resolved"`
	ResolvedAt string `json:"resolved_at"` // null until it is
}

// MarshalJSONTo implements the encoder's interface.
func (l *Link) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(l.append(nil)) }

func (l *Link) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendText(b, l.ID)
	b = appendMember(b, "depends_on_task_id", l.On)
	b = appendMember(b, "dependency_type", l.Type)
	b = appendOrNull(b, "contract_key", l.Contract)
	if l.Soft {
		b = append(b, `,"soft":true`...)
	}
	b = strconv.AppendBool(append(b, `,"resolved":`...), l.Resolved)
	b = appendOrNull(b, "resolved_at", l.ResolvedAt)
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

// Inputs are what a task gets of those that it depends on, by contract.
type Inputs []InputData

// InputData is what was delivered under one contract. From is the task that
// delivered it.
type InputData struct {
	Key, From, Status string
	Data              Raw // null when there is none
}

// MarshalJSONTo implements the encoder's interface.
func (i Inputs) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(i.append(nil)) }

func (i Inputs) append(b []byte) []byte {
	b = append(b, '{')
	for n := range i {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, i[n].Key), ':')
		if i[n].Data == nil {
			b = append(b, "null"...)
		} else {
			b = append(b, i[n].Data...)
		}
	}
	return append(b, '}')
}

// UnmarshalJSONFrom implements the decoder's interface, for those who are told
// of a task. Where a value came from is not on the wire.
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

// ServerID is the id of an agent for those who call agents servers. It follows
// from the name: a server that comes again is the same one (RFC 9562, version 8).
func ServerID(agent string) string {
	if agent == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("orchestrator agent " + agent))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	text := hex.EncodeToString(sum[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// Brief are the details without what can be large.
func (d *Details) Brief() *Details {
	if d == nil {
		return nil
	}
	brief := *d
	brief.StructuredSpec, brief.Requirements, brief.Plan, brief.Help = nil, nil, nil, nil
	return brief.Filled()
}

// Copy is a copy to be changed; an empty one when there are none.
func (d *Details) Copy() *Details {
	if d == nil {
		return new(Details)
	}
	whole := *d
	return &whole
}

// MemberOf is a member of a document, as it stands there; nil when there is
// none.
func MemberOf(document Raw, key string) Raw {
	if document == nil {
		return nil
	}
	var o Object
	if o.ReadObject(document, scannedBefore, "") != nil {
		return nil
	}
	return o.Value(key)
}

// longestName is how long the name of an agent may be.
const longestName = 128

// CheckName says what is wrong with a name that somebody gives itself; "" when
// nothing is.
func CheckName(name string) string {
	if len(name) > longestName {
		return "is longer than 128 characters"
	}
	for _, c := range name {
		if c <= ' ' || c == 0x7f || c == '"' || c == '\\' {
			return "must be one word of printable characters"
		}
	}
	return ""
}
