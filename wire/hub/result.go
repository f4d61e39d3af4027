package hub

import (
	"bytes"
	"fmt"

	"orchestrator/wire/object"
)

// The states of a Contract.
const (
	ContractFulfilled = "fulfilled"
	ContractPartial   = "partial"
	ContractSkipped   = "skipped"
)

var ContractStatuses = []string{ContractFulfilled, ContractPartial, ContractSkipped}

// ResultIn reads an optional result, which is any JSON value. Only an object with a $schema is
// checked.
func ResultIn(o *object.Reader, key string) *Result {
	value := o.Find(key)
	if value == nil {
		return nil
	}
	if !object.IsObject(value) {
		if value := o.Value(key); value != nil {
			return &Result{Document: value}
		}
		return nil
	}
	if !mayNameSchema(value) {
		return &Result{Document: o.Document(key)}
	}
	var room [8]object.Member
	kept, in, ok := readDocument(o, key, room[:0])
	if !ok {
		return nil
	}
	r := &Result{Document: kept}
	if in.Find(schemaKey) == nil && in.Err() == nil {
		return r
	}
	r.Structured = true
	r.read(&in)
	return r
}

// mayNameSchema reports whether an object may have a $schema. It is cheap: it looks for the
// word, or for an escape that may spell it.
func mayNameSchema(text []byte) bool {
	return bytes.Contains(text, []byte(schemaKey)) || bytes.IndexByte(text, '\\') >= 0
}

// read fills in all members that can be read, even if some are wrong. The caller may accept them.
func (r *Result) read(o *object.Reader) {
	full, odd := readSchema(o, SchemaResult, true)
	r.Oddities = odd
	mustSay(o, "summary")
	r.readChanges(o)
	r.readContracts(o, full)
	checkTests(o)
	mayObject(o, "artifacts")
	if full {
		r.Breach = o.Err()
	}
}

func (r *Result) readChanges(o *object.Reader) {
	var room [8]object.Member
	in, ok := openDocument(o, "changes", room[:0])
	if !ok {
		return
	}
	touched := make(map[string]struct{}) // a file that is created and modified counts once
	for _, key := range [...]string{"files_modified", "files_created", "files_deleted"} {
		items, _ := in.Items(key)
		in.EachText(key, items, func(path string) { touched[path] = struct{}{} })
	}
	in.Whole("lines_added", 0)
	in.Whole("lines_removed", 0)
	r.Files = len(touched)
	o.Fail(in.Err())
}

func (r *Result) readContracts(o *object.Reader, full bool) {
	var room [8]object.Member
	in, ok := openDocument(o, "contracts", room[:0])
	if !ok {
		return
	}
	in.RefuseNulls("must be an object")
	in.Each(func(key string, value []byte) {
		var room [4]object.Member
		c, ok := openValue(&in, key, value, room[:0])
		if !ok {
			return
		}
		contract := readContract(key, &c)
		in.Fail(c.Err())
		if c.Err() != nil {
			return
		}
		r.Contracts = append(r.Contracts, contract)
		if full {
			r.noteContract(&contract, &c)
		}
	})
	o.Fail(in.Err())
}

// readContract reads a contract. Its data shares the memory of the document.
func readContract(key string, o *object.Reader) Contract {
	const dataKey = "data"
	data := o.Find(dataKey)
	c := Contract{Key: key, Status: o.NeedOneOf("status", ContractStatuses...), Data: object.Raw(data[:len(data):len(data)])}
	if c.Status != ContractSkipped {
		return c
	}
	if data == nil {
		o.Refuse(dataKey, "is missing: it must have the reason for skipping")
		return c
	}
	var room [4]object.Member
	if in, ok := openDocument(o, dataKey, room[:0]); ok {
		c.Reason = in.NeedText("reason")
		o.Fail(in.Err())
	}
	return c
}

// noteContract records warnings about a contract that is accepted.
func (r *Result) noteContract(c *Contract, o *object.Reader) {
	if !isContractKey(c.Key) {
		r.Oddities = note(r.Oddities, o.Pointer, fmt.Sprintf("the key %q should have %s", c.Key, keyForm))
	}
	switch {
	case c.Data == nil && c.Status == ContractFulfilled:
		r.Oddities = note(r.Oddities, o.Below("data"), "it is fulfilled and has no data: a task that needs it gets null")
	case c.Data != nil && !object.IsObject(c.Data):
		r.Oddities = note(r.Oddities, o.Below("data"), "data should be an object; it is delivered unchanged")
	}
}

func checkTests(o *object.Reader) {
	var room [8]object.Member
	in, ok := openDocument(o, "tests", room[:0])
	if !ok {
		return
	}
	mayText(&in, "framework")
	for _, key := range [...]string{"total", "passed", "failed", "skipped"} {
		in.Whole(key, 0)
	}
	mayNumber(&in, "coverage_percent")
	o.Fail(in.Err())
}

// mayNumber refuses a member that is not a number. It does not check the range or the precision.
func mayNumber(o *object.Reader, key string) {
	if value := o.Find(key); value != nil && value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		o.Refuse(key, "must be a number")
	}
}
