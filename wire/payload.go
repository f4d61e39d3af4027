package wire

import (
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"

	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A payload reads the payloads of an operation as its Go type declares them. The fields are read in
// their order, by their types and the words of their tags; the package generator documents these and
// writes the JSON Schema from them.
type payload struct {
	kind reflect.Type
	make func() any
	plan atomic.Pointer[plan] // nil before the first payload is read
	hub  atomic.Pointer[plan] // likewise, with the keys of protocol A
}

// A plan has the members of a payload in the order of the fields.
type plan struct {
	members []member
	own     bool // the payload is an ownReader
}

// An ownReader reads the members with the word own in their tag, after all other members, and
// checks rules between members.
type ownReader interface{ read(o *object.Reader) }

// read reads a payload by a plan. The ids are members that are known already. The first error is in
// o.Err.
func (p *payload) read(plan *plan, o *object.Reader, ids map[string]string) any {
	body := p.make()
	fields := reflect.ValueOf(body).Elem()
	for i := range plan.members {
		m := &plan.members[i]
		if id, known := ids[m.key]; known {
			fields.Field(m.field).SetString(id)
		} else if value := o.Find(m.key); value != nil || m.needed {
			m.read(o, value, fields.Field(m.field).Addr().Interface())
		}
	}
	if plan.own {
		body.(ownReader).read(o)
	}
	return body
}

// made returns the plan of a payload. The first payload makes it. The keys are the tags in the
// spelling of spell.
func (p *payload) made(kept *atomic.Pointer[plan], spell func(string) string) *plan {
	if plan := kept.Load(); plan != nil {
		return plan
	}
	made := &plan{own: reflect.PointerTo(p.kind).Implements(reflect.TypeFor[ownReader]())}
	for i := range p.kind.NumField() {
		tag := p.kind.Field(i).Tag
		key, option, _ := strings.Cut(tag.Get("json"), ",")
		m := member{key: spell(key), field: i, needed: option == ""}
		if key != "" && key != "-" && m.tagged(tag.Get("schema")) {
			made.members = append(made.members, m)
		}
	}
	kept.Store(made)
	return made
}

// A member is a member of a payload.
type member struct {
	key         string
	field       int // the index of its field
	needed      bool
	form        string   // the word that selects a reader of its type
	words       []string // of an enumeration
	least, most int64    // of a number
}

// tagged adopts the words of a schema tag. It reports whether the member is read by the plan.
func (m *member) tagged(tag string) bool {
	for limit := range strings.SplitSeq(tag, ",") {
		word, value, _ := strings.Cut(limit, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch word {
		case "own":
			return false
		case "whole", "ms":
			m.form, m.least, m.most = word, n, object.MaxWhole
		case "min":
			m.least = n
		case "max":
			m.most = n
		case "enum":
			m.form = word
			if m.words = Words[value]; m.words == nil {
				m.words = strings.Split(value, "|")
			}
		case "nonblank", "time", "actor", "addressee", "session", "priority", "output", "any":
			m.form = word
		}
	}
	return true
}

// read reads the member into its field. The value is nil only if the member is needed.
func (m *member) read(o *object.Reader, value []byte, field any) {
	switch p := field.(type) {
	case *string:
		*p = m.text(o, value)
	case **string:
		text := m.text(o, value)
		*p = &text
	case *[]string:
		*p = o.Texts(m.key)
	case **[]string:
		texts := o.Texts(m.key)
		*p = &texts
	case *bool:
		*p, _ = o.Bool(m.key)
	case **bool:
		is, _ := o.Bool(m.key)
		*p = &is
	case *int64:
		*p = m.number(o, value)
	case **int64:
		n := m.number(o, value)
		*p = &n
	case **float64:
		n, _ := o.Number(m.key)
		if n < float64(m.least) || n > float64(m.most) {
			o.Refuse(m.key, "must be from "+strconv.FormatInt(m.least, 10)+" to "+strconv.FormatInt(m.most, 10))
		}
		*p = &n
	case *Raw:
		*p = m.raw(o)
	default:
		m.document(o, field)
	}
}

func (m *member) text(o *object.Reader, value []byte) string {
	if m.form == "enum" {
		for _, word := range m.words {
			if len(value) == len(word)+2 && value[0] == '"' && string(value[1:len(value)-1]) == word {
				return word
			}
		}
	}
	if m.form == "" || m.form == "nonblank" { // the most frequent members, found once
		if text, ok := object.Text(value); ok && (m.form == "" || !object.IsBlank(text)) {
			return text
		}
	}
	switch m.form {
	case "nonblank":
		return o.NeedText(m.key)
	case "enum":
		return o.OneOf(m.key, m.words...)
	case "time":
		return o.Time(m.key)
	case "actor":
		return readActor(o, m.key, mail.CheckActor)
	case "addressee":
		return readActor(o, m.key, mail.CheckAddressee)
	case "session":
		return readSessionID(o, m.key)
	}
	text := o.Text(m.key)
	m.mustBe(o)
	return text
}

// mustBe refuses a payload without the member if it is needed.
func (m *member) mustBe(o *object.Reader) {
	if m.needed && o.Find(m.key) == nil {
		o.Refuse(m.key, "is missing")
	}
}

func (m *member) number(o *object.Reader, value []byte) int64 {
	if n, ok := object.Digits(value); ok && m.form != "ms" && n >= m.least && n <= m.most {
		return n
	}
	if m.form == "ms" {
		return o.Milliseconds(m.key, m.least)
	}
	n := object.ReadWhole(o, m.key, m.least, m.most)
	m.mustBe(o)
	return n
}

func (m *member) raw(o *object.Reader) Raw {
	switch m.form {
	case "any":
		return o.Value(m.key)
	case "output":
		return activity.ReadOutput(o)
	case "priority":
		return hub.PriorityIn(o, m.key)
	case "nonblank":
		return readPlan(o)
	}
	value := o.Document(m.key)
	m.mustBe(o)
	return value
}

// document reads a member of a type with its own reader.
func (m *member) document(o *object.Reader, field any) {
	switch p := field.(type) {
	case **hub.Spec:
		*p = hub.SpecIn(o, m.key)
	case **hub.Requirements:
		*p = hub.RequirementsIn(o, m.key)
	case **hub.Capabilities:
		*p = hub.CapabilitiesIn(o, m.key)
	case **hub.Result:
		*p = hub.ResultIn(o, m.key)
	case *[]hub.Artifact:
		*p = readArtifacts(o)
	case *[]hub.Dependency:
		*p = hub.DependenciesIn(o, m.key)
	case **delegation.Trace:
		*p = readTrace(o, m.key)
	case *[]delegation.Option:
		*p = delegation.ReadOptions(o, m.key)
	case *[]activity.PermissionChoice:
		*p = activity.ChoicesIn(o)
	case *[]session.Member:
		*p = session.MembersIn(o, m.key)
	case *[][]string:
		*p = readCommands(o, m.key)
	default:
		o.Refuse(m.key, "has a type that no reader knows")
	}
}

// Words are the lists of words that the tags of payloads name.
var Words = map[string][]string{
	"wire.statusWords": statusWords, "wire.FailureClasses": FailureClasses, "wire.PersonRoles": PersonRoles,
	"session.validations": {session.ValidationStandard, session.ValidationStrict}, "session.Escalations": session.Escalations,
}

// Payloads reads payloads, one after the other, with the same memory.
type Payloads struct {
	Depth int // how deep one may nest

	room   []object.Member
	object object.Reader // the payload that is being read
}

// Request reads the payload of a request.
func (p *Payloads) Request(r *Request) (any, *Error) {
	op := r.Declaration()
	switch {
	case op == nil:
		return nil, UnknownType("request:" + r.Operation)
	case op.payload == nil: // the payload is a document
		return p.taskRequest(r.Payload)
	}
	o, err := p.open(r.Payload, r.Members)
	if err != nil {
		return nil, err
	}
	p.object = o
	body := op.Read(&p.object)
	if p.object.Err() != nil {
		return nil, p.object.Err()
	}
	return body, nil
}

// open takes a payload apart, unless its members are known already.
func (p *Payloads) open(payload []byte, members []object.Member) (object.Reader, *Error) {
	if members != nil {
		return object.Reader{Pointer: "/payload", Members: members}, nil
	}
	o, err := object.Open(payload, p.Depth, "/payload", p.room)
	if o.Members != nil {
		p.room = o.Members
	}
	return o, err
}

// ReadRequest is Payloads.Request for a single request.
func ReadRequest(operation string, payload []byte, depth int) (any, *Error) {
	return (&Payloads{Depth: depth}).Request(&Request{Operation: operation, Payload: payload})
}

// Nothing is the payload of an operation that needs none. Its members are ignored.
type Nothing struct{}
