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

// Issues collects the errors and warnings of Decoders about one message.
type Issues struct {
	Problems     []Problem
	Forgiven     []Problem // errors that only a strict reader refuses
	Notes        []string  // warnings
	NullIsAbsent bool      // an optional member may be null
}

// full reports whether no further problem will be kept. A reader may stop then: a list
// can be as long as a line.
func (i *Issues) full() bool { return len(i.Problems) >= MaxProblems }

func (i *Issues) add(pointer, message string) {
	if !i.full() {
		i.Problems = append(i.Problems, Problem{Pointer: pointer, Message: message})
	}
}

// Note adds a warning.
func (i *Issues) Note(pointer, message string) {
	if len(i.Notes) < MaxNotes {
		i.Notes = append(i.Notes, Problem{Pointer: pointer, Message: message}.String())
	}
}

// forgive adds an error that only a strict reader refuses.
func (i *Issues) forgive(pointer, message string) {
	if len(i.Forgiven) < MaxProblems {
		i.Forgiven = append(i.Forgiven, Problem{Pointer: pointer, Message: message})
	}
}

// A Decoder reads one JSON object and collects every error in it, where a Reader keeps the first:
// the author of the message learns all of them at once. Null does not stand for an absent member,
// unless the Issues say so.
type Decoder struct {
	Reader
	Issues *Issues
}

// Presence is the rule for an absent member.
type Presence uint8

const (
	Optional   Presence = iota
	Required            // an object without the member is refused
	Forgivable          // an object without the member gets a note; a strict reader refuses it
)

// Refuse adds the error that a member is wrong.
func (d *Decoder) Refuse(key, message string) { d.Issues.add(d.Below(key), d.Named(key)+" "+message) }

// Forgive adds an error that only a strict reader refuses.
func (d *Decoder) Forgive(key, message string) {
	d.Issues.forgive(d.Below(key), d.Named(key)+" "+message)
}

// Note adds a warning about a member. Its value is kept unchanged.
func (d *Decoder) Note(key, message string) { d.Issues.Note(d.Below(key), d.Named(key)+" "+message) }

// Has reports whether there is a member to read. It adds an error if the member is missing,
// occurs twice or is null where that is not allowed.
func (d *Decoder) Has(key string, must Presence) bool {
	count, null := 0, false
	for i := range d.Members {
		if string(d.Members[i].Key) == key {
			count++
			null = IsNull(d.Members[i].Value)
		}
	}
	switch {
	case count == 1 && !null:
		return true
	case count == 1 && d.Issues.NullIsAbsent && must != Required:
		return false
	case count == 1:
		d.Refuse(key, "must not be null")
	case count > 1:
		d.Refuse(key, "stands twice")
	case must == Required:
		d.Refuse(key, "is missing")
	case must == Forgivable:
		d.Forgive(key, "is missing")
		d.Note(key, "is missing, which is tolerated")
	}
	return false
}

// Settle moves the error of the Reader to the Issues. It reports whether there was none.
func (d *Decoder) Settle() bool {
	if d.err == nil {
		return true
	}
	pointer, _ := d.err.Details["pointer"].(string)
	d.Issues.add(pointer, d.err.Message)
	d.err = nil
	return false
}

// Text returns a string, which may be empty.
func (d *Decoder) Text(key string, must Presence) string {
	if !d.Has(key, must) {
		return ""
	}
	s := d.Reader.Text(key)
	d.Settle()
	return s
}

// Name returns a string that must not be blank.
func (d *Decoder) Name(key string, must Presence) string {
	if !d.Has(key, must) {
		return ""
	}
	s := d.NeedText(key)
	d.Settle()
	return s
}

// MaxIDLength is how long an id may be, in bytes.
const MaxIDLength = 200

// ID returns a name that other messages refer to, so that it is used as a key.
func (d *Decoder) ID(key string, must Presence) string {
	s := d.Name(key, must)
	if len(s) > MaxIDLength {
		d.Refuse(key, fmt.Sprintf("must not be longer than %d bytes", MaxIDLength))
		return ""
	}
	d.NoControls(key, s)
	d.Settle()
	return s
}

// OneOf returns a string that must be one of a few.
func (d *Decoder) OneOf(key string, must Presence, of []string) string {
	if !d.Has(key, must) {
		return ""
	}
	s := d.Reader.Text(key)
	if d.Settle() && !slices.Contains(of, s) {
		d.Refuse(key, fmt.Sprintf("must be one of %s, not %.80q", Choices(of), s))
	}
	return s
}

// Bool returns a boolean.
func (d *Decoder) Bool(key string, must Presence) bool {
	if !d.Has(key, must) {
		return false
	}
	value, _ := d.Reader.Bool(key)
	d.Settle()
	return value
}

// Whole returns an integer that is at least least, and whether the member exists.
func (d *Decoder) Whole(key string, must Presence, least int64) (value int64, there bool) {
	if !d.Has(key, must) {
		return 0, false
	}
	value = d.Reader.Whole(key, least)
	return value, d.Settle()
}

// Count returns an optional number of things, or nil if it is missing.
func (d *Decoder) Count(key string) *int64 {
	n, there := d.Whole(key, Optional, 0)
	if !there {
		return nil
	}
	return &n
}

// Percent returns a number from 0 to 100.
func (d *Decoder) Percent(key string) float64 {
	if !d.Has(key, Required) {
		return 0
	}
	value, _ := d.Number(key)
	if d.Settle() && (value < 0 || value > 100) {
		d.Refuse(key, "must be a number from 0 to 100")
	}
	return value
}

// Time returns an ISO 8601 time as it was written.
func (d *Decoder) Time(key string, must Presence) string {
	if !d.Has(key, must) {
		return ""
	}
	when := d.Reader.Text(key)
	if !d.Settle() {
		return ""
	}
	if _, ok := ParseTime(when); !ok {
		d.Refuse(key, fmt.Sprintf("must be an ISO 8601 time, not %.40q", when))
	}
	return when
}

// Texts returns a list of strings.
func (d *Decoder) Texts(key string, must Presence) []string { return d.strings(key, must, false) }

// Names returns a list of strings that must not be blank.
func (d *Decoder) Names(key string, must Presence) []string { return d.strings(key, must, true) }

func (d *Decoder) strings(key string, must Presence, say bool) []string {
	items := d.items(key, must)
	all := make([]string, 0, len(items))
	for i, item := range items {
		if d.Issues.full() {
			break
		}
		s, ok := Text(item)
		switch {
		case !ok:
			d.RefuseItem(key, i, "must be a string")
		case say && IsBlank(s):
			d.RefuseItem(key, i, "must not be empty")
		}
		all = append(all, s)
	}
	return all
}

// ManyOf returns a list of strings, each from a given list.
func (d *Decoder) ManyOf(key string, must Presence, of []string) []string {
	items := d.items(key, must)
	words := make([]string, 0, len(items))
	for i, item := range items {
		if d.Issues.full() {
			break
		}
		word, ok := Text(item)
		if !ok || !slices.Contains(of, word) {
			d.RefuseItem(key, i, "must be one of "+Choices(of))
		}
		words = append(words, word)
	}
	return words
}

func (d *Decoder) items(key string, must Presence) [][]byte {
	if !d.Has(key, must) {
		return nil
	}
	items, _ := d.Items(key)
	d.Settle()
	return items
}

// RefuseItem adds the error that an item of a list is wrong.
func (d *Decoder) RefuseItem(key string, i int, message string) {
	d.Issues.add(d.BelowItem(key, i), d.Named(key)+"["+strconv.Itoa(i)+"] "+message)
}

// Objects calls read for every item of a list of objects.
func (d *Decoder) Objects(key string, must Presence, read func(*Decoder)) {
	for i, item := range d.items(key, must) {
		switch {
		case d.Issues.full():
			return
		case IsObject(item):
			d.Enter(d.BelowItem(key, i), item, read)
		default:
			d.RefuseItem(key, i, "must be an object")
		}
	}
}

// Inside calls read for a member that is an object.
func (d *Decoder) Inside(key string, must Presence, read func(*Decoder)) {
	if !d.Has(key, must) {
		return
	}
	value := d.Find(key)
	if !IsObject(value) {
		d.Refuse(key, "must be an object")
		return
	}
	d.Enter(d.Below(key), value, read)
}

// EachMember calls read for every member of the object; all must be objects.
func (d *Decoder) EachMember(read func(key string, in *Decoder)) {
	known := make(map[string]bool, len(d.Members))
	for _, m := range d.Members {
		key := string(m.Key)
		switch {
		case d.Issues.full():
			return
		case known[key]:
			d.Refuse(key, "stands twice")
		case !IsObject(m.Value):
			d.Refuse(key, "must be an object")
		default:
			d.Enter(d.Below(key), m.Value, func(in *Decoder) { read(key, in) })
		}
		known[key] = true
	}
}

// Enter reads an object that was scanned together with the object around it.
func (d *Decoder) Enter(pointer string, value []byte, read func(*Decoder)) {
	var room [8]Member
	object, err := Open(value, AnyDepth, pointer, room[:0])
	if err != nil {
		d.Issues.add(pointer, err.Message)
		return
	}
	read(&Decoder{Reader: object, Issues: d.Issues})
}
