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
	"unicode/utf8"

	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// route maps a method and path to an operation, with its own documents. hubRoutes and busRoutes
// list them.
type route struct {
	pattern   string // a method and a path, as http.ServeMux reads them
	access    Access
	wide      bool // agents may manage tasks of other agents
	operation string
	read      *reading
	query     []parameter
	write     *writing
	// answer, if set, replaces Do and writes the answer. If it returns an error, it must not
	// have written anything.
	answer  func(d *API, w http.ResponseWriter, r *http.Request, body any) error
	summary string // "": the summary of the operation
	words   string // a description; "": the name of the operation
}

// method and path return the parts of the pattern.
func (r *route) method() string { method, _, _ := strings.Cut(r.pattern, " "); return method }
func (r *route) path() string   { _, path, _ := strings.Cut(r.pattern, " "); return path }

// takesBody reports whether the body of a request is read.
func (r *route) takesBody() bool { return r.method() != http.MethodGet }

// routes returns all routes of the hub and the bus.
func (api *API) routes() (there []*route) {
	if api.Callers == nil || api.ReadOnly {
		return nil
	}
	for i := range hubRoutes() {
		there = append(there, &hubRoutes()[i])
	}
	for i := range busRoutes() {
		there = append(there, &busRoutes()[i])
	}
	return there
}

// ofPassages reports whether a path belongs to the hub or the bus, which have their own error
// documents.
func ofPassages(path string) bool { return ofHub(path) || ofBus(path) }

// below reports whether a path equals or is below one of the given paths.
func below(path string, trees []string) bool {
	for _, tree := range trees {
		if rest, ok := strings.CutPrefix(path, tree); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// routeHandler returns the handler of a route.
func (api *API) routeHandler(t *route) http.HandlerFunc {
	return api.authenticated(t.operation, t.access.admission(), func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(r.Context())
		if c.who.Kind == identity.Agent {
			c.who.Wide = t.wide
			r = r.WithContext(withCaller(r.Context(), c))
		}
		if err := api.serveRoute(w, r, t, c.who); err != nil {
			api.refuse(w, r, err)
		}
	})
}

// serveRoute reads a request, performs its operation and writes the answer.
func (api *API) serveRoute(w http.ResponseWriter, r *http.Request, t *route, from identity.Caller) error {
	a, body, err := api.request(w, r, t)
	if err != nil {
		return err
	}
	if t.answer != nil {
		return a.aimed(t.answer(api, w, r, body))
	}
	answer, err := api.do(r.Context(), from, t.operation, body)
	if err != nil {
		return a.aimed(err)
	}
	document, ok := t.write.document(answer)
	if !ok {
		return fmt.Errorf("%s was answered with a %T", t.operation, answer)
	}
	for _, h := range t.write.headings {
		if text := h.of(answer); text != "" {
			w.Header().Set(h.name, text)
		}
	}
	api.write(w, t.write.status, document)
	return nil
}

// request reads a request. An empty body counts as an empty object.
func (api *API) request(w http.ResponseWriter, r *http.Request, t *route) (a *params, body any, err error) {
	a = &params{ids: make(map[string]string), header: r.Header}
	for _, name := range []string{"id", "dep_id"} {
		id := r.PathValue(name)
		if !mayBeID(id) {
			return nil, nil, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("nothing has the id %.80q", id)}
		}
		if id != "" {
			a.ids[pathMembers[name]] = id
		}
	}
	if a.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, nil, &wire.Error{Code: wire.CodeMalformed, Message: "the query cannot be read: " + err.Error()}
	}
	if !t.takesBody() {
		err = unhurried(w)
	} else if a.text, err = api.body(w, r); err == nil {
		err = a.open(api.depth())
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

// maxIDLength bounds an id; valid ids are shorter.
const maxIDLength = 256

// mayBeID reports whether a text can be an id. Other texts are neither looked up nor logged.
func mayBeID(id string) bool {
	return len(id) <= maxIDLength && utf8.ValidString(id) && !strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// rejectDotSegments refuses paths with empty or dot segments. net/http would redirect them,
// perhaps to another task.
func (api *API) rejectDotSegments(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.EscapedPath(); ofPassages(r.URL.Path) {
			for part := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
				if part == "" || part == "." || part == ".." {
					api.refuse(w, r, nothingAt(r))
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// notFound replies 404, or 405 with Allow if the path exists for other methods.
func (api *API) notFound(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	methods := methodsAt(mux, r)
	if len(methods) == 0 {
		api.refuse(w, r, nothingAt(r))
		return
	}
	list := strings.Join(methods, ", ")
	w.Header().Set("Allow", list)
	api.refuse(w, r, &wire.Error{
		Code: codeMethod, Message: fmt.Sprintf("%.20s is not allowed at %s", r.Method, r.URL.Path), Hint: "Allowed: " + list,
	})
}

// methodsAt returns the methods that a path has, if it has none for the request. The mux itself
// cannot tell, because its catch-all pattern matches every method.
func methodsAt(mux *http.ServeMux, r *http.Request) (methods []string) {
	if !namesMethods(r.URL.Path) {
		return nil
	}
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
		other := *r
		other.Method = method
		_, pattern := mux.Handler(&other)
		if _, path, _ := strings.Cut(pattern, " "); namesMethods(path) {
			methods = append(methods, method)
		}
	}
	return methods
}

// namesMethods reports whether a path refuses other methods with 405.
func namesMethods(path string) bool { return ofPassages(path) || path == mcpPath }

func nothingAt(r *http.Request) *wire.Error {
	return &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("no route matches %s %s", r.Method, r.URL.Path)}
}

// params is a request of a route, as its reader sees it.
type params struct {
	ids    map[string]string // in the path, by members of payloads
	query  url.Values
	header http.Header
	text   []byte // the body, as it came
	body   object.Reader
	said   any // the payload that was read, for the operation

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

// onTask returns the reader of a body that concerns the task in the path.
func onTask[Body any](read func(o *object.Reader, task string) *Body) func(*params) any {
	return func(a *params) any { return read(&a.body, a.ids[pathMembers["id"]]) }
}

// A form is how the routes of an operation differ from its declaration.
type form struct {
	body    string            // the schema of the body, under another name than the operation
	need    bool              // with read: a body is required
	read    func(*params) any // nil: as the operation declares its payload
	write   *writing          // nil: the short form of a task
	query   []parameter
	answer  func(d *API, w http.ResponseWriter, r *http.Request, body any) error
	summary string
}

// declaredRoutes returns the routes of the operations below some paths.
func declaredRoutes(below func(path string) bool, forms map[string]form) (all []route) {
	for _, o := range wire.Operations {
		for _, pattern := range o.HTTP {
			r := route{pattern: pattern, operation: o.Name}
			if !below(r.path()) {
				continue
			}
			f := forms[o.Name]
			r.access, r.wide = callersOf(o, r.path())
			r.read, r.write, r.query, r.answer, r.summary = f.reading(o, &r), f.write, f.query, f.answer, f.summary
			if r.write == nil {
				r.write = writeMoved
			}
			all = append(all, r)
		}
	}
	return all
}

// callersOf returns who may use a route, by the beginning of its path, and whether an agent may manage tasks of other
// agents there.
func callersOf(o *wire.Operation, path string) (access Access, wide bool) {
	switch {
	case o.Audience == wire.ForUnregistered:
		return Public, false
	case below(path, []string{"/api/v1/tasks"}):
		return Operators, false
	case below(path, []string{"/api/v1/servers"}):
		return Agents, false
	case below(path, []string{"/api/v1/server"}):
		return Agents, true
	}
	return Actors, false
}

// reading returns how a route reads its requests.
func (f form) reading(o *wire.Operation, r *route) *reading {
	if f.read != nil {
		return &reading{schema: f.body, need: f.need, read: f.read}
	}
	found := &reading{read: func(a *params) any { return o.ReadBody(&a.body, a.ids) }}
	for key, needed := range o.Body() {
		if key != pathMembers["id"] && key != pathMembers["dep_id"] && r.takesBody() {
			found.schema, found.need = cmp.Or(f.body, "hub."+o.Name), found.need || needed
		}
	}
	return found
}

// pathMembers maps the ids in paths to members of payloads.
var pathMembers = map[string]string{"id": "task_id", "dep_id": "dependency_id"}

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
