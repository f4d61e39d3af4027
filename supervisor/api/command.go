package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// Commands runs command lines that programs pass on.
type Commands interface {
	// Run runs the command line in a request. It calls begin before it does anything, and writes the output to what
	// begin returns. The command makes its requests through again, as the caller of the request. If Run returns a
	// refusal, it has done nothing, and the program runs the command itself.
	Run(ctx context.Context, text []byte, again http.RoundTripper, begin func() (io.Writer, error)) *wire.Error
}

// commandPath is the path of the command lines: see package form of the commands.
const commandPath = apiPath + "command"

// maxCommands bounds the commands that run at a time. Each holds its answer in memory. Programs run the others
// themselves.
const maxCommands = 64

// toCommand admits the operator at its own socket. An agent that may operate runs its commands itself, with its own
// rights to files.
func toCommand(c identity.Caller, r *http.Request) *wire.Error {
	if c.Kind == identity.Operator && (!c.Wide || c.Name != "") {
		return denied("commands are run only for the operator on this machine")
	}
	return operatorsOnly(c, r, true)
}

// command runs a command line. Only the requests of the command are in the audit.
func (api *API) command(w http.ResponseWriter, r *http.Request, mux http.Handler) {
	defer api.commands.Add(-1)
	if api.commands.Add(1) > maxCommands || callerOf(r.Context()).hub != "" {
		api.refuse(w, r, &wire.Error{Code: wire.CodeConflict, Message: "the command is not run here"})
		return
	}
	body, err := api.body(w, r)
	if err != nil {
		api.refuse(w, r, err)
		return
	}
	accountOf(r.Context()).decide()
	again := &inside{handler: mux, caller: r.Context(), address: r.RemoteAddr, api: api}
	defer again.wait()
	refusal := api.Commands.Run(r.Context(), body, again, func() (io.Writer, error) {
		control := http.NewResponseController(w)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.WriteHeader(http.StatusOK)
		return &prompt{ResponseWriter: w, control: control}, control.Flush()
	})
	if refusal != nil {
		api.refuse(w, r, refusal)
	}
}

// A prompt writer sends each write at once. It waits for a slow reader, as the command itself would.
type prompt struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p *prompt) Write(text []byte) (int, error) {
	n, err := p.ResponseWriter.Write(text)
	if err == nil {
		err = p.control.Flush()
	}
	return n, err
}

// inside makes requests of a caller in this process.
type inside struct {
	api     *API
	handler http.Handler
	caller  context.Context // of the request that the caller has sent
	address string
	serving sync.WaitGroup
}

// wait waits until no request is served.
func (i *inside) wait() { i.serving.Wait() }

// RoundTrip serves a request. It returns when the answer begins.
func (i *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	own := r.WithContext(inner{Context: r.Context(), caller: i.caller})
	own.RemoteAddr, own.RequestURI = i.address, r.URL.RequestURI()
	if own.Body == nil {
		own.Body = http.NoBody
	}
	text, to := io.Pipe()
	w := &written{header: make(http.Header), to: to, begun: make(chan struct{})}
	i.serving.Go(func() {
		defer func() {
			w.WriteHeader(http.StatusOK)
			var end error
			if cause := recover(); cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				end = io.ErrUnexpectedEOF
			} else if cause != nil {
				end = io.ErrUnexpectedEOF
				i.api.Log.Error("a request of a command failed", "path", own.URL.Path, "panic", cause, "stack", string(debug.Stack()))
			}
			_ = to.CloseWithError(end)
		}()
		i.handler.ServeHTTP(w, own)
	})
	<-w.begun
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status, Proto: r.Proto, ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: text, ContentLength: -1, Request: r,
	}, nil
}

// inner is the context of a request inside: it ends with the request, and has the values of the caller's connection.
type inner struct {
	context.Context
	caller context.Context
}

func (c inner) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.caller.Value(key)
}

// written is the answer to a request inside.
type written struct {
	header http.Header
	status int
	to     *io.PipeWriter
	begun  chan struct{}
}

func (w *written) Header() http.Header { return w.header }

func (w *written) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.header = status, w.header.Clone()
		close(w.begun)
	}
}

func (w *written) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(text)
}

// The methods of http.ResponseController: nothing is kept back, and the caller's connection has the deadlines.
func (w *written) FlushError() error                { w.WriteHeader(http.StatusOK); return nil }
func (w *written) SetReadDeadline(time.Time) error  { return nil }
func (w *written) SetWriteDeadline(time.Time) error { return nil }
func (w *written) EnableFullDuplex() error          { return errors.ErrUnsupported }
