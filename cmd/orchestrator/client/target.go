package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A Target is the orchestrator that a command uses.
type Target struct {
	Socket  string
	URL     string // of a remote orchestrator, instead of Socket
	Token   string // credential for URL
	Subject string // name in messages: a file, a folder or a socket
	Named   string // the flag that names it, as it was typed
	Inside  bool   // this process runs inside an agent and acts as that agent

	// Dial connects to the orchestrator; nil connects to Socket or URL.
	Dial func(context.Context) (net.Conn, error)
}

// Where returns the URL or the path of the socket.
func (t *Target) Where() string {
	if t.URL != "" {
		return t.URL
	}
	return t.Socket
}

// A Refusal is an error response of the API.
type Refusal wire.Error

// Error returns the message of the refusal.
func (r *Refusal) Error() string { return r.Message }

// An UnknownServerError is the response of a server that is not an orchestrator.
type UnknownServerError struct {
	Status string // as in "404 Not Found"
	Code   int
	Text   string // the start of the body
}

// Error returns the status of the response.
func (e *UnknownServerError) Error() string {
	return fmt.Sprintf("not an orchestrator (HTTP %s)", e.Status)
}

// refused returns the error for a response without an answer.
func refused(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	var refusal wire.Refusal
	if err := object.Decode(text, &refusal); err != nil || refusal.Error == nil {
		return &UnknownServerError{Status: response.Status, Code: response.StatusCode, Text: string(text)}
	}
	return (*Refusal)(refusal.Error)
}
