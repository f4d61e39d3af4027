package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"orchestrator/wire"
)

// Some call all this a hub, with servers that work on its tasks. What they ask
// for are the same operations, by paths of their own, in documents of their own
// and with refusals of their own. Each of these routes is a row of hubRoutes.

// hubTrees are the paths below which they are.
var hubTrees = []string{"/api/v1/tasks", "/api/v1/server", "/api/v1/servers"}

// ofHub says whether a path belongs to the hub, whether or not there is
// something.
func ofHub(path string) bool {
	return slices.ContainsFunc(hubTrees, func(tree string) bool {
		rest, ok := strings.CutPrefix(path, tree)
		return ok && (rest == "" || rest[0] == '/')
	})
}

// hubRoute is a way to an operation.
type hubRoute struct {
	pattern   string // a method and a path, as http.ServeMux reads them
	access    Access
	wide      bool // an agent that comes by it may see to the tasks of others
	operation string
	read      *reading
	query     []parameter
	write     *writing
	summary   string
}

// method and path are the parts of the pattern.
func (t *hubRoute) method() string { method, _, _ := strings.Cut(t.pattern, " "); return method }
func (t *hubRoute) path() string   { _, path, _ := strings.Cut(t.pattern, " "); return path }

// takesBody says whether what a request carries is looked at.
func (t *hubRoute) takesBody() bool { return t.method() != http.MethodGet }

// admission is that of a Route.
func (t *hubRoute) admission() admission { return (&Route{Access: t.access}).admission() }

// noteRefused has a refusal noted of which nobody hears who decides.
func (d *Door) noteRefused(from Caller, operation string, err *wire.Error) {
	if d.Refused != nil {
		d.Refused(from, operation, err)
	}
}

// hub answers a route.
func (d *Door) hub(t *hubRoute) http.HandlerFunc {
	return d.behind(t.operation, t.admission(), func(w http.ResponseWriter, r *http.Request) {
		from := CallerOf(r.Context())
		if from.Kind == Agent {
			from.Wide = t.wide
		}
		status, document, err := d.throughHub(w, r, t, from)
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		d.write(w, status, document)
	})
}

// throughHub asks for what a request wants and returns what to answer.
func (d *Door) throughHub(w http.ResponseWriter, r *http.Request, t *hubRoute, from Caller) (status int, document any, err error) {
	a, body, err := d.hubRequest(w, r, t)
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		d.noteRefused(from, t.operation, refusal)
	}
	if err != nil {
		return 0, nil, err
	}
	answer, err := d.Do(r.Context(), from, t.operation, body)
	if err != nil {
		return 0, nil, a.aimed(err)
	}
	document, ok := t.write.document(answer)
	if !ok {
		return 0, nil, fmt.Errorf("%s was answered with a %T", t.operation, answer)
	}
	return t.write.status, document, nil
}

// hubRequest reads a request. What comes without a body is as good as one with
// an empty object.
func (d *Door) hubRequest(w http.ResponseWriter, r *http.Request, t *hubRoute) (a *asked, body any, err error) {
	a = &asked{task: r.PathValue("id"), dependency: r.PathValue("dep_id")}
	for _, id := range []string{a.task, a.dependency} {
		if !mayBeID(id) {
			return nil, nil, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("there is nothing with the id %.80q", id)}
		}
	}
	if a.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, nil, &wire.Error{Code: wire.CodeMalformed, Message: "the query cannot be read: " + err.Error()}
	}
	if !t.takesBody() {
		err = unhurried(w)
	} else if a.text, err = d.body(w, r); err == nil {
		err = a.open(d.depth())
	}
	if err != nil {
		return nil, nil, err
	}
	body = t.read.body(a)
	if refusal := a.refusal(); refusal != nil {
		return nil, nil, refusal
	}
	return a, body, nil
}

// longestID is longer than any id that is given here, or kept.
const longestID = 256

// mayBeID is false for what nothing is called by: it need not be asked for, nor
// repeated in a log.
func mayBeID(id string) bool {
	return len(id) <= longestID && utf8.ValidString(id) && !strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// straight refuses what net/http would answer with the way to a tidier path:
// no id is empty, and nobody means another task than the one in the path.
func (d *Door) straight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.EscapedPath(); ofHub(r.URL.Path) {
			for part := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
				if part == "" || part == "." || part == ".." {
					d.refuse(w, r, nothingAt(r))
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// nowhere answers where nothing is: perhaps it is there for another method.
func (d *Door) nowhere(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	methods := hubMethods(mux, r)
	if len(methods) == 0 {
		d.refuse(w, r, nothingAt(r))
		return
	}
	list := strings.Join(methods, ", ")
	w.Header().Set("Allow", list)
	d.refuse(w, r, &wire.Error{
		Code: codeMethod, Message: fmt.Sprintf("there is no %.20s of %s", r.Method, r.URL.Path), Hint: "There is " + list,
	})
}

// hubMethods are the methods for which there is something of the hub where a
// request has found nothing. The mux itself does not say: it has something for
// all of them, which is where this is asked.
func hubMethods(mux *http.ServeMux, r *http.Request) (methods []string) {
	if !ofHub(r.URL.Path) {
		return nil
	}
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
		other := *r
		other.Method = method
		_, pattern := mux.Handler(&other)
		if _, path, _ := strings.Cut(pattern, " "); ofHub(path) {
			methods = append(methods, method)
		}
	}
	return methods
}

func nothingAt(r *http.Request) *wire.Error {
	return &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("there is nothing at %s %s", r.Method, r.URL.Path)}
}
