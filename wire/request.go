package wire

import (
	"orchestrator/wire/object"
)

// Payloads reads payloads, one after the other, with the same memory.
type Payloads struct {
	Depth int // how deep one may nest

	room   []object.Member
	object object.Reader // the payload that is being read
	fields fields
}

// Request reads the payload of a request, given the operation's name without
// its prefix.
func (p *Payloads) Request(operation string, payload []byte) (any, *Error) {
	op := OperationNamed(operation)
	switch {
	case op == nil:
		return nil, unknownType("request:" + operation)
	case op.payload == nil: // the payload is a document
		return p.taskRequest(payload)
	}
	o, err := p.open(payload)
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

func (p *Payloads) open(payload []byte) (object.Reader, *Error) {
	o, err := object.Open(payload, p.Depth, "/payload", p.room)
	if o.Members != nil {
		p.room = o.Members
	}
	return o, err
}

// ReadRequest is Payloads.Request for a single request.
func ReadRequest(operation string, payload []byte, depth int) (any, *Error) {
	return (&Payloads{Depth: depth}).Request(operation, payload)
}

// Nothing is the payload of an operation that needs none. Its members are ignored.
type Nothing struct{}

func (*Nothing) fields(*fields) {}
