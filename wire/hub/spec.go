package hub

import (
	"fmt"

	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// The words of a task spec.
var (
	SpecPriorities = []string{"must", "should", "could"}
	SpecReferences = []string{"task", "file", "url"}
	SpecTesting    = []string{"required", "recommended", "none"}
)

// SpecIn reads an optional task spec.
func SpecIn(o *object.Reader, key string) *Spec {
	if o.Find(key) == nil {
		return nil // before room, which escapes to the heap
	}
	var room [8]object.Member
	kept, in, ok := readDocument(o, key, room[:0])
	if !ok {
		return nil
	}
	full, odd := readSchema(&in, SchemaSpec, true)
	s := &Spec{Document: kept, Oddities: odd}
	checkAims(&in)
	s.readContext(&in, full)
	s.readConstraints(&in)
	s.readExpectations(&in)
	if full {
		o.Fail(in.Err())
	}
	return s
}

// checkAims checks the requirements of a task: at least one.
func checkAims(o *object.Reader) {
	const key = "requirements"
	count := 0
	o.Objects(key, func(aim *object.Reader) {
		count++
		mustSay(aim, "description")
		aim.NeedOneOf("priority", SpecPriorities...)
		mayText(aim, "category")
	})
	switch {
	case o.Find(key) == nil:
		o.Refuse(key, "is missing")
	case count == 0:
		o.Refuse(key, "must have at least one item")
	}
}

func (s *Spec) readContext(o *object.Reader, full bool) {
	var room [4]object.Member
	in, ok := openDocument(o, "input_context", room[:0])
	if !ok {
		return
	}
	in.Objects("references", func(r *object.Reader) {
		switch r.NeedOneOf("type", SpecReferences...) {
		case "task":
			mustSay(r, "id")
			if id := r.Text("id"); full && r.Err() == nil && !object.IsUUID(id) {
				s.Oddities = note(s.Oddities, r.Below("id"), fmt.Sprintf("%q is not a UUID, which a task id is", id))
			}
		case "file":
			mustSay(r, "id")
		case "url":
			mustSay(r, "url")
		}
		mayText(r, "id")
		mayText(r, "url")
		mayText(r, "description")
	})
	o.Fail(in.Err())
}

func (s *Spec) readConstraints(o *object.Reader) {
	var room [8]object.Member
	in, ok := openDocument(o, "constraints", room[:0])
	if !ok {
		return
	}
	mayTexts(&in, "languages")
	mayTexts(&in, "frameworks")
	in.OneOf("testing", SpecTesting...)
	in.Bool("no_breaking_changes")
	s.MaxFiles = in.Whole("max_files_changed", 0)
	mayObject(&in, "custom")
	o.Fail(in.Err())
}

func (s *Spec) readExpectations(o *object.Reader) {
	var room [4]object.Member
	in, ok := openDocument(o, "output_expectations", room[:0])
	if !ok {
		return
	}
	s.readPromises(&in)
	mayTexts(&in, "artifacts")
	o.Fail(in.Err())
}

func (s *Spec) readPromises(o *object.Reader) {
	var room [8]object.Member
	in, ok := openDocument(o, "contracts", room[:0])
	if !ok {
		return
	}
	in.RefuseNulls("must be an object")
	in.Each(func(key string, value []byte) {
		if !isContractKey(key) {
			in.Fail(object.Invalid(in.Below(key), fmt.Sprintf("%s: the key %.80q must have %s", object.NameOf(in.Pointer), key, keyForm)))
			return
		}
		var room [4]object.Member
		c, ok := openValue(&in, key, value, room[:0])
		if !ok {
			return
		}
		mustSay(&c, "description")
		mayText(&c, "format")
		required, _ := c.Bool("required")
		if c.Err() == nil {
			s.Promises = append(s.Promises, Promise{Key: key, Required: required})
		}
		in.Fail(c.Err())
	})
	o.Fail(in.Err())
}

// keyForm describes the key of a contract, for messages.
const keyForm = "letters from a to z, digits and underscores alone, and one of them at least"

func isContractKey(key string) bool {
	for i := range len(key) {
		if c := key[i]; c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return key != ""
}

// note appends a warning, up to mostOddities.
func note(odd []Oddity, pointer, text string) []Oddity {
	if len(odd) >= object.MaxNotes {
		return odd
	}
	return append(odd, Oddity{Kind: events.DocumentOdd, Pointer: pointer, Text: text})
}

// mayText checks an optional text without returning it.
func mayText(o *object.Reader, key string) {
	if value := o.Find(key); value != nil && value[0] != '"' {
		o.Refuse(key, "must be a string")
	}
}

// mustSay checks a required text without returning it.
func mustSay(o *object.Reader, key string) {
	switch value := o.Find(key); {
	case value == nil:
		o.Refuse(key, "is missing")
	case value[0] != '"':
		o.Refuse(key, "must be a string")
	case object.IsBlank(string(object.Unquote(value))):
		o.Refuse(key, "must not be empty")
	}
}

// mayTexts checks an optional list of texts without returning it.
func mayTexts(o *object.Reader, key string) {
	items, _ := o.Items(key)
	o.EachText(key, items, func(string) {})
}

// mayObject checks an optional object without returning it.
func mayObject(o *object.Reader, key string) {
	if value := o.Find(key); value != nil && !object.IsObject(value) {
		o.Refuse(key, "must be an object")
	}
}

// A TaskBlock is a task block of the configuration. Its task is submitted once, regardless of later
// changes of the block.
type TaskBlock struct {
	Name  string   `json:"name"`
	Sum   uint64   `json:"sum"` // of the block, to recognize a change
	Needs []string `json:"-"`   // blocks with tasks that must be done first
	Again bool     `json:"-"`   // it is given out again if its task was not completed
}
