package agents

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// Response is a status or the outcome of delegated work. The status of the final response is
// wire.ResponseCompleted, wire.ResponseFailed or wire.ResponseCancelled.
type Response struct {
	*delegation.Response
	Message string // free text; may be ""
}

// Read decodes the result.
func (r *Response) Read(into any) error { return reply{payload: r.Result}.into(into) }

// Err returns the error of failed or cancelled work, otherwise nil. It wraps a *Fault if the
// response has one, and ErrCancelled if the work was cancelled.
func (r *Response) Err() error {
	var why error
	if r.Fault != nil {
		why = (*Fault)(r.Fault)
	}
	switch {
	case r.Status != delegation.Failed && r.Status != delegation.Cancelled:
		return nil
	case r.Status == delegation.Cancelled && why == nil && r.Message != "":
		why = fmt.Errorf("%w: %s", ErrCancelled, r.Message)
	case r.Status == delegation.Cancelled && why == nil:
		why = ErrCancelled
	case r.Status == delegation.Cancelled:
		why = fmt.Errorf("%w: %w", ErrCancelled, why)
	}
	return fmt.Errorf("task %s: %w", r.ID, why)
}

// final reports whether this is the last response.
func (r *Response) final() bool {
	return r.Status == delegation.Completed || r.Status == delegation.Failed || r.Status == delegation.Cancelled
}

// readResponse reads a response as the orchestrator does.
func readResponse(line []byte) (*Response, error) {
	read, wrong := wire.ReadTaskResponse(line, depth)
	if wrong != nil {
		return nil, wrong
	}
	var whole object.Reader
	if wrong := whole.Read(read.Document, depth, ""); wrong != nil {
		return nil, wrong
	}
	return &Response{Response: read, Message: whole.Text("message")}, nil
}

// Fault is the error of failed delegated work. A Skill can return one; the delegating agent
// gets it from Response.Err.
type Fault struct {
	Code        string   // such as wire.FaultInvalidInput; the list is open
	Message     string   // for people
	Details     wire.Raw // an object, or nil
	Recoverable bool     // a retry may succeed
}

// Error returns the message and the code.
func (f *Fault) Error() string { return fmt.Sprintf("%s (%s)", f.Message, f.Code) }
