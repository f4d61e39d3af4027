package wire

import (
	"fmt"
	"strings"
)

// The words of a task spec.
var (
	specPriorities = []string{"must", "should", "could"}
	specReferences = []string{"task", "file", "url"}
	specTesting    = []string{"required", "recommended", "none"}
)

// Spec reads an optional task spec.
func (o *Object) Spec(key string) *Spec {
	var room [8]member
	kept, in, ok := o.document(key, room[:0])
	if !ok {
		return nil
	}
	full, odd := in.schema(SchemaSpec, true)
	s := &Spec{Document: kept, Oddities: odd}
	in.checkAims()
	s.readContext(&in, full)
	s.readConstraints(&in)
	s.readExpectations(&in)
	if full {
		o.take(in.Err())
	}
	return s
}

// checkAims reads what the task is for: at least one thing.
func (o *Object) checkAims() {
	const key = "requirements"
	count := 0
	o.Objects(key, func(aim *Object) {
		count++
		aim.mustSay("description")
		aim.NeedOneOf("priority", specPriorities...)
		aim.mayText("category")
	})
	switch {
	case o.find(key) == nil:
		o.Refuse(key, "is missing")
	case count == 0:
		o.Refuse(key, "must have at least one item")
	}
}

func (s *Spec) readContext(o *Object, full bool) {
	var room [4]member
	in, ok := o.inside("input_context", room[:0])
	if !ok {
		return
	}
	in.Objects("references", func(r *Object) {
		switch r.NeedOneOf("type", specReferences...) {
		case "task":
			r.mustSay("id")
			if id := r.Text("id"); full && r.Err() == nil && !isUUID(id) {
				s.Oddities = note(s.Oddities, r.below("id"), fmt.Sprintf("%q is no UUID, as the id of a task is", id))
			}
		case "file":
			r.mustSay("id")
		case "url":
			r.mustSay("url")
		}
		r.mayText("id")
		r.mayText("url")
		r.mayText("description")
	})
	o.take(in.Err())
}

func (s *Spec) readConstraints(o *Object) {
	var room [8]member
	in, ok := o.inside("constraints", room[:0])
	if !ok {
		return
	}
	in.mayTexts("languages")
	in.mayTexts("frameworks")
	in.OneOf("testing", specTesting...)
	in.Truth("no_breaking_changes")
	s.MaxFiles = in.Whole("max_files_changed", 0)
	in.mayObject("custom")
	o.take(in.Err())
}

func (s *Spec) readExpectations(o *Object) {
	var room [4]member
	in, ok := o.inside("output_expectations", room[:0])
	if !ok {
		return
	}
	s.readPromises(&in)
	in.mayTexts("artifacts")
	o.take(in.Err())
}

func (s *Spec) readPromises(o *Object) {
	var room [8]member
	in, ok := o.inside("contracts", room[:0])
	if !ok {
		return
	}
	in.Each(func(key string, value []byte) {
		if !isContractKey(key) {
			in.take(invalid(in.below(key), fmt.Sprintf("%s: the key %.80q must have %s", nameOf(in.pointer), key, keyForm)))
			return
		}
		var room [4]member
		c, ok := in.open(key, value, room[:0])
		if !ok {
			return
		}
		c.mustSay("description")
		c.mayText("format")
		required, _ := c.Truth("required")
		if c.Err() == nil {
			s.Promises = append(s.Promises, Promise{Key: key, Required: required})
		}
		in.take(c.Err())
	})
	o.take(in.Err())
}

// keyForm is what the key of a contract must have.
const keyForm = "letters from a to z, digits and underscores alone, and one of them at least"

func isContractKey(key string) bool {
	for i := range len(key) {
		if c := key[i]; c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return key != ""
}

// isUUID knows the one spelling that most programs write: 8-4-4-4-12.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

// CanonicalID returns a UUID in lower case, as RFC 9562 has it, and any other id as it is.
func CanonicalID(id string) string {
	if isUUID(id) {
		return strings.ToLower(id)
	}
	return id
}

// mostOddities is how many things are worth a warning in one document: a reader
// reads them.
const mostOddities = 20

// note adds what is odd.
func note(odd []Oddity, pointer, text string) []Oddity {
	if len(odd) >= mostOddities {
		return odd
	}
	return append(odd, Oddity{Kind: EventDocumentOdd, Pointer: pointer, Text: text})
}

// mayText is Text for those who only want to know that it is one.
func (o *Object) mayText(key string) {
	if value := o.find(key); value != nil && value[0] != '"' {
		o.Refuse(key, "must be a string")
	}
}

// mustSay is NeedText for those who only want to know that it is there.
func (o *Object) mustSay(key string) {
	switch value := o.find(key); {
	case value == nil:
		o.Refuse(key, "is missing")
	case value[0] != '"':
		o.Refuse(key, "must be a string")
	case blank(string(unquoted(value))):
		o.Refuse(key, "must not be empty")
	}
}

// mayTexts is Texts for those who only want to know that it is a list of them.
func (o *Object) mayTexts(key string) {
	items, _ := o.list(key)
	o.eachText(key, items, func(string) {})
}

// mayObject is Document for those who only want to know that it is one.
func (o *Object) mayObject(key string) {
	if value := o.find(key); value != nil && !isObject(value) {
		o.Refuse(key, "must be an object")
	}
}
