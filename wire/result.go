package wire

import (
	"bytes"
	"fmt"
)

// The states of a Contract.
const (
	ContractFulfilled = "fulfilled"
	ContractPartial   = "partial"
	ContractSkipped   = "skipped"
)

var contractStatuses = []string{ContractFulfilled, ContractPartial, ContractSkipped}

// Result reads an optional result: a text, or an object that is as its $schema
// says, or any other object, which is not looked into.
func (o *Object) Result(key string) *Result {
	value := o.find(key)
	if value == nil {
		return nil
	}
	if value[0] == '"' {
		return &Result{Document: keep(value)}
	}
	if !isObject(value) {
		o.Refuse(key, "must be an object or a text")
		return nil
	}
	if !mayNameSchema(value) {
		return &Result{Document: keep(value)}
	}
	var room [8]member
	kept, in, ok := o.document(key, room[:0])
	if !ok {
		return nil
	}
	r := &Result{Document: kept}
	if in.find(schemaKey) == nil && in.Err() == nil {
		return r
	}
	r.Structured = true
	r.read(&in)
	return r
}

// mayNameSchema is false for most objects that have no $schema, without a look
// at their parts: the word is in the text, or an escape that may spell it.
func mayNameSchema(text []byte) bool {
	return bytes.Contains(text, []byte(schemaKey)) || bytes.IndexByte(text, '\\') >= 0
}

// read fills in what can be read, whatever is wrong with the rest: it may be
// that the reader is not strict.
func (r *Result) read(o *Object) {
	full, odd := o.schema(SchemaResult, true)
	r.Oddities = odd
	o.mustSay("summary")
	r.readChanges(o)
	r.readContracts(o, full)
	checkTests(o)
	o.mayObject("artifacts")
	if full {
		r.Breach = o.Err()
	}
}

func (r *Result) readChanges(o *Object) {
	var room [8]member
	in, ok := o.inside("changes", room[:0])
	if !ok {
		return
	}
	touched := make(map[string]struct{}) // one that is created and modified is one file
	for _, key := range [...]string{"files_modified", "files_created", "files_deleted"} {
		items, _ := in.list(key)
		in.eachText(key, items, func(path string) { touched[path] = struct{}{} })
	}
	in.Whole("lines_added", 0)
	in.Whole("lines_removed", 0)
	r.Files = len(touched)
	o.take(in.Err())
}

func (r *Result) readContracts(o *Object, full bool) {
	var room [8]member
	in, ok := o.inside("contracts", room[:0])
	if !ok {
		return
	}
	in.refuseNulls("must be an object")
	in.Each(func(key string, value []byte) {
		var room [4]member
		c, ok := in.open(key, value, room[:0])
		if !ok {
			return
		}
		contract := readContract(key, &c)
		in.take(c.Err())
		if c.Err() != nil {
			return
		}
		r.Contracts = append(r.Contracts, contract)
		if full {
			r.noteContract(&contract, &c)
		}
	})
	o.take(in.Err())
}

// readContract reads a contract. Its data is the part of the document that it
// is, not a copy.
func readContract(key string, o *Object) Contract {
	const dataKey = "data"
	data := o.find(dataKey)
	c := Contract{Key: key, Status: o.NeedOneOf("status", contractStatuses...), Data: Raw(data[:len(data):len(data)])}
	if c.Status != ContractSkipped {
		return c
	}
	if data == nil {
		o.Refuse(dataKey, "is missing: it must have the reason for what was skipped")
		return c
	}
	var room [4]member
	if in, ok := o.inside(dataKey, room[:0]); ok {
		c.Reason = in.NeedText("reason")
		o.take(in.Err())
	}
	return c
}

// noteContract notes what is odd about a contract that is taken as it is.
func (r *Result) noteContract(c *Contract, o *Object) {
	if !isContractKey(c.Key) {
		r.Oddities = note(r.Oddities, o.pointer, fmt.Sprintf("the key %q should have %s", c.Key, keyForm))
	}
	switch {
	case c.Data == nil && c.Status == ContractFulfilled:
		r.Oddities = note(r.Oddities, o.below("data"), "it is fulfilled and has no data: a task that needs it gets null")
	case c.Data != nil && !isObject(c.Data):
		r.Oddities = note(r.Oddities, o.below("data"), "data should be an object; it is delivered as it is")
	}
}

func checkTests(o *Object) {
	var room [8]member
	in, ok := o.inside("tests", room[:0])
	if !ok {
		return
	}
	in.mayText("framework")
	for _, key := range [...]string{"total", "passed", "failed", "skipped"} {
		in.Whole(key, 0)
	}
	in.mayNumber("coverage_percent")
	o.take(in.Err())
}

// mayNumber refuses a member that is there and no number. How large it is, or
// how exact, is for those who need it.
func (o *Object) mayNumber(key string) {
	if value := o.find(key); value != nil && value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		o.Refuse(key, "must be a number")
	}
}
