package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"orchestrator/wire"
)

// route maps a method and path to an operation, with its own documents. hubRoutes and busRoutes
// list them.
type route struct {
	pattern   string // a method and a path, as http.ServeMux reads them
	access    Access
	wide      bool // agents may manage the tasks of others
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

// admission returns the check of the route's Access.
func (r *route) admission() admission { return (&Route{Access: r.access}).admission() }

// passages returns all routes of the hub and the bus.
func (api *API) passages() (there []*route) {
	if api.Do == nil {
		return nil
	}
	for i := range hubRoutes {
		there = append(there, &hubRoutes[i])
	}
	for i := range busRoutes {
		if t := &busRoutes[i]; t.read != readFollower || api.OpenMail != nil {
			there = append(there, t)
		}
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

// noteRefused records a refusal that the handlers do not see.
func (api *API) noteRefused(from Caller, operation string, err *wire.Error) {
	if api.Refused != nil {
		api.Refused(from, operation, err)
	}
}

// pass returns the handler of a route.
func (api *API) pass(t *route) http.HandlerFunc {
	return api.behind(t.operation, t.admission(), func(w http.ResponseWriter, r *http.Request) {
		from := CallerOf(r.Context())
		if from.Kind == Agent {
			from.Wide = t.wide
			r = r.WithContext(withCaller(r.Context(), from))
		}
		if err := api.through(w, r, t, from); err != nil {
			api.refuse(w, r, err)
		}
	})
}

// through reads a request, performs its operation and writes the answer.
func (api *API) through(w http.ResponseWriter, r *http.Request, t *route, from Caller) error {
	a, body, err := api.request(w, r, t)
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		api.noteRefused(from, t.operation, refusal)
	}
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
	a = &params{task: r.PathValue("id"), dependency: r.PathValue("dep_id"), header: r.Header}
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
		Code: codeMethod, Message: fmt.Sprintf("there is no %.20s of %s", r.Method, r.URL.Path), Hint: "There is " + list,
	})
}

// methodsAt returns the methods that a path has, if it has none for the request. The mux itself
// cannot tell, because its catch-all pattern matches every method.
func methodsAt(mux *http.ServeMux, r *http.Request) (methods []string) {
	if !ofPassages(r.URL.Path) {
		return nil
	}
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
		other := *r
		other.Method = method
		_, pattern := mux.Handler(&other)
		if _, path, _ := strings.Cut(pattern, " "); ofPassages(path) {
			methods = append(methods, method)
		}
	}
	return methods
}

func nothingAt(r *http.Request) *wire.Error {
	return &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("there is nothing at %s %s", r.Method, r.URL.Path)}
}
