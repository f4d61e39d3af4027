package object

import (
	"fmt"
	"slices"
	"strconv"
)

const (
	// MaxProblems bounds the errors that are reported of one message.
	MaxProblems = 20
	// MaxNotes bounds the warnings about one document: a person reads them.
	MaxNotes = 20
)

// Issues collects what Decoders find in one message.
type Issues struct {
	Problems     []Problem
	Forgiven     []Problem // errors that only a strict reader refuses
	Notes        []string  // warnings
	NullIsAbsent bool      // an optional member may be null
}

// full reports whether no further problem will be kept. A reader may stop then: a list
// can be as long as a line.
func (j *Issues) full() bool { return len(j.Problems) >= MaxProblems }

func (j *Issues) add(pointer, message string) {
	if !j.full() {
		j.Problems = append(j.Problems, Problem{Pointer: pointer, Message: message})
	}
}

// Note adds a warning.
func (j *Issues) Note(pointer, message string) {
	if len(j.Notes) < MaxNotes {
		j.Notes = append(j.Notes, Problem{Pointer: pointer, Message: message}.String())
	}
}

// forgive adds an error that only a strict reader refuses.
func (j *Issues) forgive(pointer, message string) {
	if len(j.Forgiven) < MaxProblems {
		j.Forgiven = append(j.Forgiven, Problem{Pointer: pointer, Message: message})
	}
}

// A Decoder reads one JSON object and collects every error in it, where a Reader keeps the
// first: the author of the message is told of all of them at once. Null does not stand for an
// absent member, unless the Issues say so.
type Decoder struct {
	Reader
	Issues *Issues
}

// Presence says whether a member must be there.
type Presence uint8

const (
	Optional   Presence = iota
	Required            // an object without the member is refused
	Forgivable          // an object without the member gets a note; a strict reader refuses it
)

// Refuse adds the error that a member is wrong.
func (p *Decoder) Refuse(key, message string) { p.Issues.add(p.Below(key), p.Named(key)+" "+message) }

// Forgive adds an error that only a strict reader refuses.
func (p *Decoder) Forgive(key, message string) {
	p.Issues.forgive(p.Below(key), p.Named(key)+" "+message)
}

// Note adds a warning about a member whose value is taken as it is.
func (p *Decoder) Note(key, message string) { p.Issues.Note(p.Below(key), p.Named(key)+" "+message) }

// Has reports whether there is a member to read. It adds an error if the member is missing,
// occurs twice or is null where that is not allowed.
func (p *Decoder) Has(key string, must Presence) bool {
	count, null := 0, false
	for i := range p.Members {
		if string(p.Members[i].Key) == key {
			count++
			null = IsNull(p.Members[i].Value)
		}
	}
	switch {
	case count == 1 && !null:
		return true
	case count == 1 && p.Issues.NullIsAbsent && must != Required:
		return false
	case count == 1:
		p.Refuse(key, "must not be null")
	case count > 1:
		p.Refuse(key, "stands twice")
	case must == Required:
		p.Refuse(key, "is missing")
	case must == Forgivable:
		p.Forgive(key, "is missing")
		p.Note(key, "is missing, which is forgiven")
	}
	return false
}

// Settle moves the error of the Reader to the Issues. It reports whether there was none.
func (p *Decoder) Settle() bool {
	if p.err == nil {
		return true
	}
	pointer, _ := p.err.Details["pointer"].(string)
	p.Issues.add(pointer, p.err.Message)
	p.err = nil
	return false
}

// Text returns a string, which may be empty.
func (p *Decoder) Text(key string, must Presence) string {
	if !p.Has(key, must) {
		return ""
	}
	s := p.Reader.Text(key)
	p.Settle()
	return s
}

// Name returns a string that must not be blank.
func (p *Decoder) Name(key string, must Presence) string {
	if !p.Has(key, must) {
		return ""
	}
	s := p.NeedText(key)
	p.Settle()
	return s
}

// MaxIDLength is how long an id may be, in bytes.
const MaxIDLength = 200

// ID returns a name that others refer to, so that it is used as a key.
func (p *Decoder) ID(key string, must Presence) string {
	s := p.Name(key, must)
	if len(s) > MaxIDLength {
		p.Refuse(key, fmt.Sprintf("must not be longer than %d bytes", MaxIDLength))
		return ""
	}
	p.NoControls(key, s)
	p.Settle()
	return s
}

// OneOf returns a string that must be one of a few.
func (p *Decoder) OneOf(key string, must Presence, of []string) string {
	if !p.Has(key, must) {
		return ""
	}
	s := p.Reader.Text(key)
	if p.Settle() && !slices.Contains(of, s) {
		p.Refuse(key, fmt.Sprintf("must be one of %s, not %.80q", Choices(of), s))
	}
	return s
}

// Bool returns a boolean.
func (p *Decoder) Bool(key string, must Presence) bool {
	if !p.Has(key, must) {
		return false
	}
	value, _ := p.Reader.Bool(key)
	p.Settle()
	return value
}

// Whole returns an integer that is at least least, and whether it is there.
func (p *Decoder) Whole(key string, must Presence, least int64) (value int64, there bool) {
	if !p.Has(key, must) {
		return 0, false
	}
	value = p.Reader.Whole(key, least)
	return value, p.Settle()
}

// Count returns an optional number of things, or nil if it is missing.
func (p *Decoder) Count(key string) *int64 {
	n, there := p.Whole(key, Optional, 0)
	if !there {
		return nil
	}
	return &n
}

// Percent returns a number from 0 to 100.
func (p *Decoder) Percent(key string) float64 {
	if !p.Has(key, Required) {
		return 0
	}
	value, _ := p.Number(key)
	if p.Settle() && (value < 0 || value > 100) {
		p.Refuse(key, "must be a number from 0 to 100")
	}
	return value
}

// Time returns an ISO 8601 time as it was written.
func (p *Decoder) Time(key string, must Presence) string {
	if !p.Has(key, must) {
		return ""
	}
	when := p.Reader.Text(key)
	if !p.Settle() {
		return ""
	}
	if _, ok := ParseTime(when); !ok {
		p.Refuse(key, fmt.Sprintf("must be an ISO 8601 time, not %.40q", when))
	}
	return when
}

// Texts returns a list of strings.
func (p *Decoder) Texts(key string, must Presence) []string { return p.strings(key, must, false) }

// Names returns a list of strings that must not be blank.
func (p *Decoder) Names(key string, must Presence) []string { return p.strings(key, must, true) }

func (p *Decoder) strings(key string, must Presence, say bool) []string {
	items := p.items(key, must)
	all := make([]string, 0, len(items))
	for i, item := range items {
		if p.Issues.full() {
			break
		}
		s, ok := Text(item)
		switch {
		case !ok:
			p.RefuseItem(key, i, "must be a string")
		case say && IsBlank(s):
			p.RefuseItem(key, i, "must not be empty")
		}
		all = append(all, s)
	}
	return all
}

// ManyOf checks a list of strings, each of which must be one of a few.
func (p *Decoder) ManyOf(key string, must Presence, of []string) {
	for i, item := range p.items(key, must) {
		if p.Issues.full() {
			return
		}
		if word, ok := Text(item); !ok || !slices.Contains(of, word) {
			p.RefuseItem(key, i, "must be one of "+Choices(of))
		}
	}
}

func (p *Decoder) items(key string, must Presence) [][]byte {
	if !p.Has(key, must) {
		return nil
	}
	items, _ := p.Items(key)
	p.Settle()
	return items
}

// RefuseItem adds the error that an item of a list is wrong.
func (p *Decoder) RefuseItem(key string, i int, message string) {
	p.Issues.add(p.BelowItem(key, i), p.Named(key)+"["+strconv.Itoa(i)+"] "+message)
}

// Objects calls read for every item of a list of objects.
func (p *Decoder) Objects(key string, must Presence, read func(*Decoder)) {
	for i, item := range p.items(key, must) {
		switch {
		case p.Issues.full():
			return
		case IsObject(item):
			p.Enter(p.BelowItem(key, i), item, read)
		default:
			p.RefuseItem(key, i, "must be an object")
		}
	}
}

// Inside calls read for a member that is an object.
func (p *Decoder) Inside(key string, must Presence, read func(*Decoder)) {
	if !p.Has(key, must) {
		return
	}
	value := p.Find(key)
	if !IsObject(value) {
		p.Refuse(key, "must be an object")
		return
	}
	p.Enter(p.Below(key), value, read)
}

// EachMember calls read for every member of the object; all must be objects.
func (p *Decoder) EachMember(read func(key string, in *Decoder)) {
	known := make(map[string]bool, len(p.Members))
	for _, m := range p.Members {
		key := string(m.Key)
		switch {
		case p.Issues.full():
			return
		case known[key]:
			p.Refuse(key, "stands twice")
		case !IsObject(m.Value):
			p.Refuse(key, "must be an object")
		default:
			p.Enter(p.Below(key), m.Value, func(in *Decoder) { read(key, in) })
		}
		known[key] = true
	}
}

// Enter reads an object that was scanned together with the object around it.
func (p *Decoder) Enter(pointer string, value []byte, read func(*Decoder)) {
	var room [8]Member
	object, err := Open(value, AnyDepth, pointer, room[:0])
	if err != nil {
		p.Issues.add(pointer, err.Message)
		return
	}
	read(&Decoder{Reader: object, Issues: p.Issues})
}
