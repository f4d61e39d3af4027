package api

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/wire"
	"orchestrator/wire/hostlink"
	"orchestrator/wire/identity"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// Operation answers a document with a document.
type Operation func(ctx context.Context, request []byte) (any, error)

// Do returns the Operation that decodes a request and calls f.
func Do[Request, Answer any](f func(context.Context, Request) (Answer, error)) Operation {
	return func(ctx context.Context, text []byte) (any, error) {
		request, err := decode[Request](text)
		if err != nil {
			return nil, err
		}
		return f(ctx, request)
	}
}

// Stream answers a document with lines, one JSON document each, until it returns.
type Stream func(ctx context.Context, request []byte, send func(any) error) error

// DoLines returns the Stream that decodes a request and calls f.
func DoLines[Request any](f func(context.Context, Request, func(any) error) error) Stream {
	return func(ctx context.Context, text []byte, send func(any) error) error {
		request, err := decode[Request](text)
		if err != nil {
			return err
		}
		return f(ctx, request, send)
	}
}

func decode[T any](text []byte) (T, error) {
	var request T
	if len(text) == 0 {
		return request, nil
	}
	if err := object.Decode(text, &request); err != nil {
		return request, &wire.Error{Code: wire.CodeInvalid, Message: "the request cannot be read: " + err.Error()}
	}
	return request, nil
}

// List answers a query with lines.
type List func(ctx context.Context, query url.Values, send func(any) error) error

const (
	apiPath        = "/api/v1/"
	operationsPath = apiPath + "operations/"
)

// Content types of requests and answers.
const (
	inJSON  = "application/json"
	inLines = "application/jsonl"
)

// A Guard knows the rights of the processes of agents.
type Guard interface {
	// MayOperate reports whether an agent may be an operator, by its configuration.
	MayOperate(agent string) bool
	// Report reports a forbidden request of a process below a run. The agent is "" if it is not known.
	Report(agent, run, what string)
}

// Callers perform operations for the callers of an API, and know their credentials.
type Callers interface {
	// AgentOf returns the agent of a key.
	AgentOf(key string) (name string, ok bool)
	// ActorOf returns the external actor of a token. It is called for keys that AgentOf does not know.
	ActorOf(token string) (id string, ok bool)
	// Ask performs an operation of wire.Operations for a known caller.
	Ask(ctx context.Context, from identity.Caller, operation string, request []byte) (any, error)
	// Do performs an operation with a decoded body, for a route. A caller without credentials is Anonymous, so that it
	// can register.
	Do(ctx context.Context, from identity.Caller, operation string, body any) (any, error)
	// Note records a request without a decision, granted or refused. Ask and Do record all other requests.
	Note(r identity.Request, refusal *wire.Error)
	// OpenMail opens the mail of an actor after a number, until ctx ends. A nil cursor means the last
	// acknowledged message, and "" the caller's own actor. next returns the next messages, in order.
	// It waits until there are some, or returns the error of its context. No message is lost if it is
	// called again after that.
	OpenMail(ctx context.Context, from identity.Caller, actor string, cursor *int64) (
		next func(context.Context) ([]mail.Message, error), err error)
}

// An API serves operations, streams and routes over HTTP and checks which callers may use them. The
// declaration of an operation in package wire names its callers. Without Callers and Signer, the API
// accepts no credentials.
type API struct {
	Operations map[string]Operation // operations that Ask does not perform; answered with a document
	Streams    map[string]Stream    // operations answered with lines
	Lists      map[string]List
	Pipes      map[string]Pipe
	MaxBody    int64 // bytes
	Rate       int   // requests a second for each caller; 0: no limit
	Log        hclog.Logger

	// Runs admits running agents, each with its own credential.
	Runs *Runs
	// Signer signs and verifies the tokens of operators.
	Signer *Signer

	// Callers perform the operations of wire.Operations, and the routes of the hub and the bus. With ReadOnly, the routes
	// are not served, and only the operations that read.
	Callers  Callers // nil: there are neither
	ReadOnly bool

	// Guard knows the rights of agents; nil: no agent is an operator, and nobody hears of trespassers.
	Guard Guard

	// Writable returns why recording is not possible at the moment; nil: it is. Requests that write are refused then, and
	// answers to other requests are marked with AsOf.
	Writable func() *wire.Error
	AsOf     func() int64 // the number of the last fact

	// SignedIn reports that a person has signed in to the web view with a role.
	SignedIn func(name, role string)

	Depth     int           // maximal nesting of the bodies of routes; 0: 64
	KeepAlive time.Duration // longest silence of a mail stream; 0: 15 seconds

	// Link serves the link of a host until it ends; nil: hosts cannot join.
	Link func(host, address string, conn net.Conn, in *bufio.Reader) error

	// MCP serves clients of the Model Context Protocol. It performs operations by calling AskAs.
	MCP http.Handler

	// Commands runs the command lines of operators on this machine; nil: nobody passes them on.
	Commands Commands

	// SignIns has the people who have signed in with a browser; nil: the team has no web view. Pages serves its files.
	SignIns *SignIns
	Pages   http.Handler

	// Metrics writes figures in the Prometheus text format; nil disables them.
	Metrics func(ctx context.Context, to io.Writer) error

	Version string // for the OpenAPI document

	limits  limits
	readers readers // of mail
	streams readers // of lines

	commands atomic.Int64 // running
}

// Handler returns the handler of the API. It must be called only once.
func (api *API) Handler() http.Handler {
	mux := http.NewServeMux()
	api.mount(mux.HandleFunc)
	if api.Commands != nil {
		mux.HandleFunc("POST "+commandPath, api.authenticated("command", toCommand, func(w http.ResponseWriter, r *http.Request) {
			api.command(w, r, mux)
		}))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { api.notFound(mux, w, r) })
	return whole(api.guard(api.rejectDotSegments(mux)))
}

// mount registers all handlers.
func (api *API) mount(at func(pattern string, do func(http.ResponseWriter, *http.Request))) {
	for _, name := range api.operations() {
		at("POST "+operationsPath+name, api.authenticated(name, toOperation(name), func(w http.ResponseWriter, r *http.Request) {
			api.document(w, r, name)
		}))
	}
	for name, stream := range api.Streams {
		at("POST "+operationsPath+name, api.authenticated(name, toOperation(name), func(w http.ResponseWriter, r *http.Request) {
			api.stream(w, r, stream)
		}))
	}
	for name, list := range api.Lists {
		at("GET "+apiPath+name, api.authenticated(name, toLook, func(w http.ResponseWriter, r *http.Request) {
			api.list(w, r, list)
		}))
	}
	for name, pipe := range api.Pipes {
		at("POST "+apiPath+name, api.authenticated(name, toJoin, func(w http.ResponseWriter, r *http.Request) { api.pipe(w, r, pipe) }))
	}
	for _, t := range api.routes() {
		at(t.pattern, api.routeHandler(t))
	}
	if api.Metrics != nil {
		at("GET "+metricsPath, api.authenticated("metrics", toLook, api.metrics))
	}
	if api.MCP != nil {
		at("POST "+mcpPath, api.authenticated("mcp", Agents.admission(), api.mcp))
	}
	if api.Link != nil {
		at("POST "+hostlink.Path, api.authenticated("link-host", toLink, api.link))
	}
	api.browse(at)
	at("GET "+openAPIPath, api.openAPI())
}

// operations returns the names of the operations that are answered with a document.
func (api *API) operations() []string {
	names := slices.Collect(maps.Keys(api.Operations))
	for _, o := range wire.Operations {
		own := api.Operations[o.Name] != nil || api.Streams[o.Name] != nil
		if api.Callers != nil && !own && !(api.ReadOnly && o.IsWrite()) {
			names = append(names, o.Name)
		}
	}
	return names
}

// stream answers an operation with lines.
func (api *API) stream(w http.ResponseWriter, r *http.Request, stream Stream) {
	body, err := api.body(w, r)
	if err != nil {
		api.refuse(w, r, err)
		return
	}
	leave, refusal := api.enterStream(r)
	if refusal != nil {
		api.refuse(w, r, refusal)
		return
	}
	defer leave()
	api.lines(w, r, true, func(send func(any) error) error { return stream(r.Context(), body, send) })
}

// enterStream counts a stream of lines until leave is called.
func (api *API) enterStream(r *http.Request) (leave func(), refusal *wire.Error) {
	c := CallerOf(r.Context())
	if c.Wide {
		return func() {}, nil
	}
	return api.streams.enter(c, maxStreams)
}

func (api *API) list(w http.ResponseWriter, r *http.Request, list List) {
	if err := unhurried(w); err != nil {
		api.refuse(w, r, err)
		return
	}
	follows := r.URL.Query().Get("follow") == "true"
	if follows {
		leave, refusal := api.enterStream(r)
		if refusal != nil {
			api.refuse(w, r, refusal)
			return
		}
		defer leave()
	}
	api.lines(w, r, follows, func(send func(any) error) error { return list(r.Context(), r.URL.Query(), send) })
}

// document answers one operation.
func (api *API) document(w http.ResponseWriter, r *http.Request, name string) {
	body, err := api.body(w, r)
	if err != nil {
		api.refuse(w, r, err)
		return
	}
	if opensTask(name) {
		body = inTrace(body, r.Header, api.depth())
	}
	answer, err := api.ask(r.Context(), name, body)
	if err != nil {
		api.refuse(w, r, err)
		return
	}
	if place := placeOf(answer); place != "" {
		w.Header().Set(traceparent, place)
	}
	api.write(w, http.StatusOK, answer)
}

// body reads the body of a request, up to a limit.
func (api *API) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := api.MaxBody
	if CallerOf(r.Context()).Kind == identity.Unknown {
		most = min(most, maxOfStrangers)
	}
	tooLarge := &wire.Error{Code: wire.CodeTooLarge, Message: fmt.Sprintf("the request is larger than %d bytes", most)}
	if r.ContentLength > most {
		return nil, tooLarge
	}
	control := http.NewResponseController(w)
	text, err := io.ReadAll(http.MaxBytesReader(w, &steady{ReadCloser: r.Body, control: control, until: time.Now().Add(bodyTime)}, most))
	switch _, larger := errors.AsType[*http.MaxBytesError](err); {
	case larger:
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &wire.Error{Code: wire.CodeMalformed, Message: fmt.Sprintf("the request is incomplete: no data arrived for %s, or it took longer than %s", bodySilence, bodyTime)}
	case err != nil:
		return nil, &wire.Error{Code: wire.CodeMalformed, Message: "the request is incomplete"}
	}
	return text, unhurried(w)
}

// Bounds of the time for the body of a request.
const (
	bodySilence = 10 * time.Second // without a byte
	bodyTime    = time.Minute
)

// A steady body ends with an error when it is silent for bodySilence.
type steady struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time // it must be whole
}

func (s *steady) Read(p []byte) (int, error) {
	end := time.Now().Add(bodySilence)
	if end.After(s.until) {
		end = s.until
	}
	_ = s.control.SetReadDeadline(end) // the deadline of the server holds if there can be none
	return s.ReadCloser.Read(p)
}

// maxOfStrangers bounds the body of a caller without a credential.
const maxOfStrangers = 256 << 10

// unhurried removes the read deadline after a request is read. During the answer the server
// reads on to detect a closed connection; a deadline would look like one.
func unhurried(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// patience is how long a write may block before the connection is given up.
const patience = 30 * time.Second

// hurry sets the deadline of the next write; sent removes it, because the following write may
// come much later.
func hurry(control *http.ResponseController) error {
	return control.SetWriteDeadline(time.Now().Add(patience))
}

// sent flushes the written bytes and removes the deadline.
func sent(control *http.ResponseController) error {
	if err := control.Flush(); err != nil {
		return err
	}
	return control.SetWriteDeadline(time.Time{})
}

// headAfter is how long a stream may have no line before the caller gets the header.
const headAfter = 500 * time.Millisecond

// lines answers with lines and sends each at once. A stream of them has two lines in the audit. An error before the
// first line and before headAfter is an ordinary refusal. A later error cuts the connection, so that a part is not
// taken for the whole. A last line reports damage of the record.
func (api *API) lines(w http.ResponseWriter, r *http.Request, stream bool, run func(func(any) error) error) {
	control := http.NewResponseController(w)
	var mu sync.Mutex // held during a write
	begun := false
	begin := func() {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", inLines)
			w.WriteHeader(http.StatusOK)
			if stream {
				accountOf(r.Context()).begin()
			}
		}
	}
	early := time.AfterFunc(headAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if begun {
			return
		}
		if begin(); hurry(control) == nil {
			_ = sent(control)
		}
	})
	send := func(document any) error {
		if api.lapsed(callerOf(r.Context())) {
			return errLapsed
		}
		text, err := object.Encode(document)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		begin()
		if err := hurry(control); err != nil {
			return err
		}
		if _, err := w.Write(append(text, '\n')); err != nil {
			return err
		}
		return sent(control)
	}
	err := run(send)
	early.Stop()
	mu.Lock() // until this returns, because the writer cannot be used afterwards
	defer mu.Unlock()
	switch {
	case err != nil && !begun:
		begun = true
		api.refuse(w, r, err)
	case damageOf(err) != nil:
		api.endAtDamage(w, r, err)
	case err != nil:
		api.cut(r, err)
	default:
		begin()
		_ = hurry(control) // the end of the stream is written when this returns
	}
}

// cut ends a connection in the middle of an answer.
func (api *API) cut(r *http.Request, err error) {
	refusal, over := errors.AsType[*wire.Error](err) // the orchestrator has stopped, and reports it itself
	accountOf(r.Context()).refuse(refusal)
	if r.Context().Err() == nil && !over {
		api.Log.Warn("a stream ended early", "path", r.URL.Path, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// refuse answers with an error. An internal error is logged here, once; the caller gets only a
// general message.
func (api *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal, known := errors.AsType[*wire.Error](err)
	if damage := damageOf(err); !known && damage != nil {
		api.Log.Warn("a request met damage of the record", "path", r.URL.Path, "error", err)
		refusal, known = &damage.Error, true
	}
	if !known {
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler) // the client is gone, or may not hear it
		}
		level := hclog.Error
		if errors.Is(err, net.ErrClosed) { // an upgrade or the end has cut it off
			level = hclog.Debug
		}
		api.Log.Log(level, "a request failed", "path", r.URL.Path, "error", err)
		refusal = &wire.Error{Code: wire.CodeInternal, Message: "internal error; see the orchestrator's log"}
	}
	accountOf(r.Context()).refuse(refusal)
	if unread(r) { // no further request can follow on this connection
		w.Header().Set("Connection", "close")
	}
	if refusal.Code == wire.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="orchestrator"`)
	}
	switch path := r.URL.Path; {
	case ofHub(path):
		api.write(w, hubStatus(refusal.Code), toHub(refusal))
		return
	case ofBus(path):
		if refusal.Code == wire.CodeLimited && w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", busPause)
		}
		api.write(w, status(refusal.Code), toHub(refusal))
		return
	}
	api.write(w, status(refusal.Code), wire.Refusal{FormatVersion: wire.FormatVersion, Error: refusal})
}

func (api *API) write(w http.ResponseWriter, status int, document any) {
	text, err := wire.AppendPayload(nil, document)
	if err != nil {
		api.Log.Error("an answer could not be encoded", "error", err)
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	text = append(text, '\n')
	w.Header().Set("Content-Type", inJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	control := http.NewResponseController(w)
	_ = hurry(control)
	w.WriteHeader(status)
	_, _ = w.Write(text) // a caller that is gone has no use for it
	_ = sent(control)
}

// statuses are the HTTP statuses of codes; all other codes are internal errors.
var statuses = map[wire.Code]int{
	wire.CodeInvalid:         http.StatusBadRequest,
	wire.CodeMalformed:       http.StatusBadRequest,
	wire.CodeUnauthenticated: http.StatusUnauthorized,
	wire.CodeTooLarge:        http.StatusRequestEntityTooLarge,
	wire.CodeMediaType:       http.StatusUnsupportedMediaType,
	wire.CodeLimited:         http.StatusTooManyRequests,
	wire.CodeDenied:          http.StatusForbidden,
	wire.CodeNotFound:        http.StatusNotFound,
	wire.CodeUnknownType:     http.StatusNotFound,
	wire.CodeConflict:        http.StatusConflict,
	wire.CodeTimeout:         http.StatusGatewayTimeout,
	CodeNoQuorum:             http.StatusServiceUnavailable,
	codeMethod:               http.StatusMethodNotAllowed,
}

func status(code wire.Code) int { return cmp.Or(statuses[code], http.StatusInternalServerError) }
