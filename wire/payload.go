package wire

import (
	"fmt"
	"strconv"
	"strings"

	"orchestrator/wire/object"
)

// fields declares the members of a payload: their keys, types and descriptions. One declaration
// serves two purposes. While a payload is read, each method reads its member into a variable.
// While a payload is described, the method adds its member to a JSON Schema and reads nothing.
type fields struct {
	in     *object.Reader // the payload that is read; nil while it is described
	schema payloadSchema
}

// payload is a payload that declares its members.
type payload interface {
	fields(f *fields)
}

// ReadPayload reads a payload of the type T. The first error is in o.Err.
func ReadPayload[T any, P interface {
	*T
	payload
}](o *object.Reader) *T {
	p := new(T)
	P(p).fields(&fields{in: o})
	return p
}

// describe adds a member to the schema and reports whether the payload is only described. The
// schema argument is the inside of a JSON object. A needed member is required.
func (f *fields) describe(key, about, schema string, needed bool) bool {
	if f.in != nil {
		return false
	}
	f.schema.add(key, about, schema, needed)
	return true
}

// rule adds a rule about several members to the schema. It is the inside of a JSON object.
func (f *fields) rule(schema string) {
	if f.in == nil {
		f.schema.rules = append(f.schema.rules, schema)
	}
}

// Fragments of schemas.
const (
	wordsPattern    = `"pattern": "[^ \\t\\n\\r\\f]"`
	schemaWords     = `"type": "string", ` + wordsPattern
	schemaText      = `"type": ["string", "null"]`
	schemaObject    = `"type": ["object", "null"]`
	schemaTexts     = `"type": ["array", "null"], "items": {` + schemaWords + `}`
	schemaTruth     = `"type": ["boolean", "null"]`
	schemaSomeWords = schemaText + `, ` + wordsPattern
)

func wholeSchema(kind string, least, most int64) string {
	return fmt.Sprintf(`"type": %s, "minimum": %d, "maximum": %d`, kind, least, most)
}

// need declares a text that must be there and is not blank.
func (f *fields) need(p *string, key, about string) {
	if !f.describe(key, about, schemaWords, true) {
		*p = f.in.NeedText(key)
	}
}

// text declares an optional text.
func (f *fields) text(p *string, key, about string) {
	if !f.describe(key, about, schemaText, false) {
		*p = f.in.Text(key)
	}
}

// textOrNil declares an optional text. It stays nil when it is missing.
func (f *fields) textOrNil(p **string, key, about string) {
	if !f.describe(key, about, schemaText, false) {
		*p = f.in.OptionalText(key)
	}
}

// wordsOrNil is textOrNil for a text that is not blank.
func (f *fields) wordsOrNil(p **string, key, about string) {
	if !f.describe(key, about, schemaSomeWords, false) {
		*p = f.in.OptionalName(key)
	}
}

// texts declares an optional list of texts, none of them blank.
func (f *fields) texts(p *[]string, key, about string) {
	if !f.describe(key, about, schemaTexts, false) {
		*p = f.in.Texts(key)
	}
}

// oneOf declares an optional text out of a few.
func (f *fields) oneOf(p *string, key, about string, of ...string) {
	if f.in != nil {
		*p = f.in.OneOf(key, of...)
		return
	}
	var words strings.Builder
	for _, word := range of {
		words.WriteString(strconv.Quote(word) + ", ")
	}
	f.schema.add(key, about, `"enum": [`+words.String()+`null]`, false)
}

// truth declares an optional true or false.
func (f *fields) truth(p *bool, key, about string) {
	if !f.describe(key, about, schemaTruth, false) {
		*p, _ = f.in.Bool(key)
	}
}

// truthOrNil declares an optional true or false, and keeps apart whether it is there.
func (f *fields) truthOrNil(p **bool, key, about string) {
	if !f.describe(key, about, schemaTruth, false) {
		if is, there := f.in.Bool(key); there {
			*p = &is
		}
	}
}

// whole declares an optional whole number from least to most.
func (f *fields) whole(p *int64, key, about string, least, most int64) {
	if f.in != nil {
		*p = object.ReadWhole(f.in, key, least, most)
		return
	}
	f.schema.add(key, about, wholeSchema(`["integer", "null"]`, least, most), false)
}

// milliseconds declares an optional duration of at most a year.
func (f *fields) milliseconds(p *int64, key, about string, least int64) {
	if f.in != nil {
		*p = f.in.Milliseconds(key, least)
		return
	}
	f.schema.add(key, about, wholeSchema(`["integer", "null"]`, least, object.MaxMilliseconds), false)
}

// millisecondsOr is milliseconds with a default.
func (f *fields) millisecondsOr(p *int64, key, about string, otherwise int64) {
	if f.in != nil {
		*p = millisecondsOr(f.in, key, otherwise)
		return
	}
	f.milliseconds(nil, key, about, 0)
}

// when declares an optional time. It is read as a timestamp.
func (f *fields) when(p *string, key, about string) {
	if !f.describe(key, about, schemaText+`, `+timePattern, false) {
		*p = f.in.Time(key)
	}
}

// object declares an optional object that is kept as it is.
func (f *fields) object(p *Raw, key, about string) {
	if !f.describe(key, about, schemaObject, false) {
		*p = f.in.Document(key)
	}
}

// document declares an optional document that has a schema of its own, and reports whether
// it is only described.
func (f *fields) document(key, about, schema string) bool {
	if f.in == nil {
		f.describe(key, about, schemaObject+`, "anyOf": [{"$ref": "urn:orchestrator:`+schema+`"}, {"type": "null"}]`, false)
	}
	return f.in == nil
}

// payloadSchema is the schema of a payload while its members are declared.
type payloadSchema struct {
	members []string
	needed  []string
	rules   []string
}

func (s *payloadSchema) add(key, about, schema string, needed bool) {
	if schema != "" {
		schema += ", "
	}
	s.members = append(s.members, strconv.Quote(key)+`: {`+schema+`"description": `+quoted(about)+`}`)
	if needed {
		s.needed = append(s.needed, strconv.Quote(key))
	}
}

// text spells the schema of the payload, indented by so many spaces.
func (s *payloadSchema) text(indent int) string {
	in := strings.Repeat(" ", indent)
	var b strings.Builder
	b.WriteString("{\n" + in + `  "type": "object"`)
	if len(s.members) == 0 {
		b.WriteString(",\n" + in + `  "description": "No member is read."`)
	} else {
		b.WriteString(",\n" + in + `  "properties": {` + "\n" + in + "    " + strings.Join(s.members, ",\n"+in+"    ") + "\n" + in + "  }")
	}
	if len(s.needed) > 0 {
		b.WriteString(",\n" + in + `  "required": [` + strings.Join(s.needed, ", ") + `]`)
	}
	for _, rule := range s.rules {
		b.WriteString(",\n" + in + "  " + rule)
	}
	b.WriteString("\n" + in + "}")
	return b.String()
}

func quoted(text string) string { return string(object.AppendText(nil, text)) }

// Payloads reads payloads, one after the other, with the same memory.
type Payloads struct {
	Depth int // how deep one may nest

	room   []object.Member
	object object.Reader // the payload that is being read
	fields fields
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
	p.object, p.fields.in = o, &p.object
	body := op.payload()
	body.fields(&p.fields)
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

func (*Nothing) fields(*fields) {}
