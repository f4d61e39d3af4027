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

// params is a request of a route, as its reader sees it.
type params struct {
	task, dependency string // from the path
	query            url.Values
	header           http.Header
	text             []byte // the body, as it came
	body             object.Reader
	said             any // the payload that was read, for the operation

	wrong *wire.Error // an error in the query
}

// open parses the body.
func (a *params) open(depth int) error {
	if len(bytes.TrimSpace(a.text)) == 0 {
		a.text = []byte("{}")
	}
	if why := a.body.Read(a.text, depth, ""); why != nil {
		return unreadable(a.text, depth, why)
	}
	return nil
}

// depth returns the maximal nesting of a body.
func (api *API) depth() int { return cmp.Or(api.Depth, 64) }

// refusal returns the first error of the request, or nil.
func (a *params) refusal() *wire.Error {
	if a.wrong != nil {
		return a.wrong
	}
	return a.body.Err()
}

// parameter describes a query parameter.
type parameter struct {
	name, words string
	of          []string // allowed values; none: any text
	repeats     bool
	least, most int64 // of an integer; both 0: not an integer
	header      bool  // a header instead of a query parameter
}

// word returns a parameter, or "" if it is missing. It must not be repeated.
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

// given returns a parameter, if it is present. It must not be empty or repeated, so that an
// unset variable in a script does not change the meaning of a request.
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

// whole returns an integer parameter, or nil if it is missing.
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

// limit returns the parameter limit, or 0 if it is missing.
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

// reading describes how to read a request, and the schema of its body.
type reading struct {
	schema string
	need   bool // the body is required
	read   func(*params) any
}

// body reads a request for its operation.
func (r *reading) body(a *params) any {
	a.said = r.read(a)
	return a.said
}

// bodyOf returns the reading of a body, which may concern the task in the path.
func bodyOf[Body any](schema string, need bool, read func(o *object.Reader, task string) *Body) *reading {
	return &reading{schema: schema, need: need, read: func(a *params) any { return read(&a.body, a.task) }}
}

// writing describes how to write an answer, and its schema.
type writing struct {
	status   int
	schema   string
	document func(answer any) (any, bool)
	headings []heading
}

// heading describes a header of an answer.
type heading struct {
	name, words string
	of          func(answer any) string // "": omitted; nil: set by the route
}

// answered returns the writing of one type of answer.
func answered[Answer any](status int, schema string, spell func(*Answer) any) *writing {
	return &writing{status: status, schema: schema, document: func(answer any) (any, bool) {
		a, ok := answer.(*Answer)
		if !ok || a == nil {
			return nil, false
		}
		return spell(a), true
	}}
}

// as returns an answer unchanged.
func as[Answer any](a *Answer) any { return a }
