package wire

import (
	"fmt"
	"slices"
	"strconv"
)

// Problem is one of the things that are wrong with a message.
type Problem struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// mostProblems is how many problems of one message are told.
const mostProblems = 20

// Complaints are all that is wrong, each with its place.
func (e *Error) Complaints() []string {
	problems, _ := e.Details["errors"].([]Problem)
	if len(problems) == 0 {
		pointer, _ := e.Details["pointer"].(string)
		problems = []Problem{{Pointer: pointer, Message: e.Message}}
	}
	said := make([]string, 0, len(problems))
	for _, p := range problems {
		said = append(said, p.String())
	}
	return said
}

// String is a problem in a line.
func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Message
	}
	return p.Pointer + ": " + p.Message
}

// judgement is what comes together while a message is read.
type judgement struct {
	problems []Problem
	lapses   []Problem // what was forgiven, in the words in which it would be refused
	notes    []string
	sparing  bool // null is a way to leave out what need not be there
}

// full says that more problems than are there will not be told. Then there is no need to
// go on: a list may be as long as a line.
func (j *judgement) full() bool { return len(j.problems) >= mostProblems }

func (j *judgement) add(pointer, message string) {
	if !j.full() {
		j.problems = append(j.problems, Problem{Pointer: pointer, Message: message})
	}
}

func (j *judgement) note(pointer, message string) {
	if len(j.notes) < mostOddities {
		j.notes = append(j.notes, Problem{Pointer: pointer, Message: message}.String())
	}
}

// lapse keeps what is forgiven, for strict readers.
func (j *judgement) lapse(pointer, message string) {
	if len(j.lapses) < mostProblems {
		j.lapses = append(j.lapses, Problem{Pointer: pointer, Message: message})
	}
}

// refusing is an error of everything that is wrong: the first in words, all of it
// in the details; nil when nothing is.
func refusing(problems []Problem) *Error {
	if len(problems) == 0 {
		return nil
	}
	first := invalid(problems[0].Pointer, problems[0].Message)
	first.Details["errors"] = problems
	return first
}

// decoder is an object in a message that is judged as a whole. Where Object stops at
// the first thing that is wrong, it goes on: the author of the message is told
// everything at once. And null is no way to leave something out, unless the
// judgement is sparing: sessions do not know it.
type decoder struct {
	Object
	all *judgement
}

// need reports whether a member must be there.
type need uint8

const (
	optional  need = iota
	needed         // missing, it is a mistake
	excusable      // missing, it is forgiven with a note, by all who are not strict
)

// wrong says that a member is wrong.
func (p *decoder) wrong(key, message string) { p.all.add(p.below(key), p.named(key)+" "+message) }

// lapse says what is wrong with a member that is forgiven.
func (p *decoder) lapse(key, message string) { p.all.lapse(p.below(key), p.named(key)+" "+message) }

// odd says that a member is odd and taken as it is.
func (p *decoder) odd(key, message string) { p.all.note(p.below(key), p.named(key)+" "+message) }

// has reports whether there is a member to read, and refuses what is missing, stands
// twice or is null.
func (p *decoder) has(key string, must need) bool {
	count, null := 0, false
	for i := range p.members {
		if string(p.members[i].key) == key {
			count++
			null = isNull(p.members[i].value)
		}
	}
	switch {
	case count == 1 && !null:
		return true
	case count == 1 && p.all.sparing && must != needed:
		return false
	case count == 1:
		p.wrong(key, "must not be null")
	case count > 1:
		p.wrong(key, "stands twice")
	case must == needed:
		p.wrong(key, "is missing")
	case must == excusable:
		p.lapse(key, "is missing")
		p.odd(key, "is missing, which is forgiven")
	}
	return false
}

// settle hands what Object found wrong to the judgement.
func (p *decoder) settle() bool {
	if p.err == nil {
		return true
	}
	pointer, _ := p.err.Details["pointer"].(string)
	p.all.add(pointer, p.err.Message)
	p.err = nil
	return false
}

// text is a string that may be empty.
func (p *decoder) text(key string, must need) string {
	if !p.has(key, must) {
		return ""
	}
	s := p.Text(key)
	p.settle()
	return s
}

// name is a string that says something.
func (p *decoder) name(key string, must need) string {
	if !p.has(key, must) {
		return ""
	}
	s := p.NeedText(key)
	p.settle()
	return s
}

// longestSessionID is how long an id may be, in bytes.
const longestSessionID = 200

// id is a name that others refer to: it becomes a key.
func (p *decoder) id(key string, must need) string {
	s := p.name(key, must)
	if len(s) > longestSessionID {
		p.wrong(key, fmt.Sprintf("must not be longer than %d bytes", longestSessionID))
		return ""
	}
	p.needPlain(key, s)
	p.settle()
	return s
}

// word is one of a few.
func (p *decoder) word(key string, must need, of []string) string {
	if !p.has(key, must) {
		return ""
	}
	s := p.Text(key)
	if p.settle() && !slices.Contains(of, s) {
		p.wrong(key, fmt.Sprintf("must be one of %s, not %.80q", list(of), s))
	}
	return s
}

// truth is a yes or no.
func (p *decoder) truth(key string, must need) bool {
	if !p.has(key, must) {
		return false
	}
	value, _ := p.Truth(key)
	p.settle()
	return value
}

// whole is a whole number that is not less than least.
func (p *decoder) whole(key string, must need, least int64) (value int64, there bool) {
	if !p.has(key, must) {
		return 0, false
	}
	value = p.Whole(key, least)
	return value, p.settle()
}

// percent is a number from 0 to 100.
func (p *decoder) percent(key string) float64 {
	if !p.has(key, needed) {
		return 0
	}
	value, _ := p.Number(key)
	if p.settle() && (value < 0 || value > 100) {
		p.wrong(key, "must be a number from 0 to 100")
	}
	return value
}

// moment is an ISO 8601 time.
func (p *decoder) moment(key string, must need) string {
	if !p.has(key, must) {
		return ""
	}
	when := p.Text(key)
	if !p.settle() {
		return ""
	}
	if _, ok := ParseTime(when); !ok {
		p.wrong(key, fmt.Sprintf("must be an ISO 8601 time, not %.40q", when))
	}
	return when
}

// texts is a list of strings.
func (p *decoder) texts(key string, must need) []string { return p.strings(key, must, false) }

// names is a list of strings that say something.
func (p *decoder) names(key string, must need) []string { return p.strings(key, must, true) }

func (p *decoder) strings(key string, must need, say bool) []string {
	items := p.items(key, must)
	all := make([]string, 0, len(items))
	for i, item := range items {
		if p.all.full() {
			break
		}
		s, ok := text(item)
		switch {
		case !ok:
			p.wrongItem(key, i, "must be a string")
		case say && blank(s):
			p.wrongItem(key, i, "must not be empty")
		}
		all = append(all, s)
	}
	return all
}

// words is a list of strings out of a few.
func (p *decoder) words(key string, must need, of []string) {
	for i, item := range p.items(key, must) {
		if p.all.full() {
			return
		}
		if word, ok := text(item); !ok || !slices.Contains(of, word) {
			p.wrongItem(key, i, "must be one of "+list(of))
		}
	}
}

func (p *decoder) items(key string, must need) [][]byte {
	if !p.has(key, must) {
		return nil
	}
	items, _ := p.list(key)
	p.settle()
	return items
}

func (p *decoder) wrongItem(key string, i int, message string) {
	p.all.add(p.belowItem(key, i), p.named(key)+"["+strconv.Itoa(i)+"] "+message)
}

// each calls read for every item of a list of objects.
func (p *decoder) each(key string, must need, read func(*decoder)) {
	for i, item := range p.items(key, must) {
		switch {
		case p.all.full():
			return
		case isObject(item):
			p.enter(p.belowItem(key, i), item, read)
		default:
			p.wrongItem(key, i, "must be an object")
		}
	}
}

// inside calls read for a member that is an object.
func (p *decoder) inside(key string, must need, read func(*decoder)) {
	if !p.has(key, must) {
		return
	}
	value := p.find(key)
	if !isObject(value) {
		p.wrong(key, "must be an object")
		return
	}
	p.enter(p.below(key), value, read)
}

// eachMember calls read for every member of the object; all must be objects.
func (p *decoder) eachMember(read func(key string, in *decoder)) {
	known := make(map[string]bool, len(p.members))
	for _, m := range p.members {
		key := string(m.key)
		switch {
		case p.all.full():
			return
		case known[key]:
			p.wrong(key, "stands twice")
		case !isObject(m.value):
			p.wrong(key, "must be an object")
		default:
			p.enter(p.below(key), m.value, func(in *decoder) { read(key, in) })
		}
		known[key] = true
	}
}

// enter reads an object that was scanned with what it stands in.
func (p *decoder) enter(pointer string, value []byte, read func(*decoder)) {
	var room [8]member
	object, err := openObject(value, scannedBefore, pointer, room[:0])
	if err != nil {
		p.all.add(pointer, err.Message)
		return
	}
	read(&decoder{Object: object, all: p.all})
}
