package api

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// params is a request by a passage, as its reader sees it.
type params struct {
	task, dependency string // of the path
	query            url.Values
	header           http.Header
	text             []byte // the body, as it came
	body             object.Reader
	said             any // what was made of it, for the operation

	wrong *wire.Error // with the query
}

// open takes the body apart.
func (a *params) open(depth int) error {
	if len(bytes.TrimSpace(a.text)) == 0 {
		a.text = []byte("{}")
	}
	if why := a.body.Read(a.text, depth, ""); why != nil {
		return unreadable(a.text, depth, why)
	}
	return nil
}

// depth is how deep a body may nest.
func (d *API) depth() int { return cmp.Or(d.Depth, 64) }

// refusal is the first thing that is wrong, nil if nothing is.
func (a *params) refusal() *wire.Error {
	if a.wrong != nil {
		return a.wrong
	}
	return a.body.Err()
}

// parameter is a value of the query, for those who read about it.
type parameter struct {
	name, words string
	of          []string // the words that it may be; none: any text
	repeats     bool
	least, most int64 // of a whole number; both 0: it is none
	header      bool  // it is a header, and not in the query
}

// word is a parameter of which there is one at most, "" when there is none.
func (a *params) word(p parameter) string {
	values := a.query[p.name]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return ""
	case len(values) > 1:
		a.refuse(p, "stands twice")
	case p.of != nil && !slices.Contains(p.of, values[0]):
		a.refuse(p, fmt.Sprintf("must be one of %s, not %.40q", strings.Join(p.of, ", "), values[0]))
	}
	return values[0]
}

// given is a parameter of which there is one at most. One that is there says
// something: a script whose variable is empty would else ask for something that
// it does not mean.
func (a *params) given(p parameter) (text string, there bool) {
	values := a.query[p.name]
	if p.header {
		values = a.header.Values(p.name)
	}
	switch {
	case len(values) == 0:
		return "", false
	case len(values) > 1:
		a.refuse(p, "stands twice")
	case values[0] == "":
		a.refuse(p, "must not be empty; leave it out")
	}
	return values[0], true
}

// whole is a parameter that is a whole number, nil when it is missing.
func (a *params) whole(p parameter) *int64 {
	text, there := a.given(p)
	if !there {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' || text[0] == '-' || n < p.least || n > p.most {
		a.refuse(p, fmt.Sprintf("must be a whole number from %d to %d, not %.40q", p.least, p.most, text))
	}
	return &n
}

// limit is the parameter of that name, 0 when it is missing.
func (a *params) limit() int64 {
	if n := a.whole(byLimit); n != nil {
		return *n
	}
	return 0
}

func (a *params) refuse(p parameter, why string) {
	if a.wrong == nil {
		a.wrong = &wire.Error{Code: wire.CodeInvalid, Message: p.name + " " + why, Details: map[string]any{"parameter": p.name}}
	}
}

// reading is how a request is read, and the schema of what it carries.
type reading struct {
	schema string
	need   bool // without a body there is something missing
	read   func(*params) any
}

// body reads a request for its operation.
func (g *reading) body(a *params) any {
	a.said = g.read(a)
	return a.said
}

// bodyOf is a reading of a body, which may be about a task.
func bodyOf[Body any](schema string, need bool, read func(o *object.Reader, task string) *Body) *reading {
	return &reading{schema: schema, need: need, read: func(a *params) any { return read(&a.body, a.task) }}
}

// writing is how an answer is written, and the schema of what it is then.
type writing struct {
	status   int
	schema   string
	document func(answer any) (any, bool)
	headings []heading
}

// heading is a header of an answer, and its description.
type heading struct {
	name, words string
	of          func(answer any) string // "": it is missing; nil: the passage sets it
}

// answered is a writing of one type of answer.
func answered[Answer any](status int, schema string, spell func(*Answer) any) *writing {
	return &writing{status: status, schema: schema, document: func(answer any) (any, bool) {
		a, ok := answer.(*Answer)
		if !ok || a == nil {
			return nil, false
		}
		return spell(a), true
	}}
}

// as is an answer that is spelled here as it is everywhere.
func as[Answer any](a *Answer) any { return a }
