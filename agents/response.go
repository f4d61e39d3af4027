package agents

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Response is what is said of work that was delegated: how it stands, or what came
// of it. The last one is wire.ResponseCompleted, wire.ResponseFailed or
// wire.ResponseCancelled.
type Response struct {
	*wire.TaskResponse
	Message string // what is said with it in words; "" for nothing
}

// Read decodes the result.
func (r *Response) Read(into any) error { return reply{payload: r.Result}.into(into) }

// Err is why the work came to nothing, which is a *Fault as far as one was said
// why, and ErrCancelled if it was cancelled. It is nil as long as the work goes on,
// and when it is completed.
func (r *Response) Err() error {
	var why error
	if r.Fault != nil {
		why = (*Fault)(r.Fault)
	}
	switch {
	case r.Status != wire.ResponseFailed && r.Status != wire.ResponseCancelled:
		return nil
	case r.Status == wire.ResponseCancelled && why == nil && r.Message != "":
		why = fmt.Errorf("%w: %s", ErrCancelled, r.Message)
	case r.Status == wire.ResponseCancelled && why == nil:
		why = ErrCancelled
	case r.Status == wire.ResponseCancelled:
		why = fmt.Errorf("%w: %w", ErrCancelled, why)
	}
	return fmt.Errorf("task %s: %w", r.ID, why)
}

// final reports whether nothing follows.
func (r *Response) final() bool {
	return r.Status == wire.ResponseCompleted || r.Status == wire.ResponseFailed || r.Status == wire.ResponseCancelled
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
	return &Response{TaskResponse: read, Message: whole.Text("message")}, nil
}

// Fault is why work that was delegated came to nothing, as an error: that of the agent
// waits for it, and that which a Skill returns.
type Fault struct {
	Code        string   // such as wire.FaultInvalidInput; the list is open
	Message     string   // for people
	Details     wire.Raw // an object, or nil
	Recoverable bool     // another try may go well
}

// Error makes it an error.
func (f *Fault) Error() string { return fmt.Sprintf("%s (%s)", f.Message, f.Code) }
