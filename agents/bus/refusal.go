package bus

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Refusal is the error of a request that the bus refuses.
type Refusal struct {
	Status      int      `json:"-"`       // of HTTP
	Code        string   `json:"code"`    // for programs; "" if the answer is not from the bus
	Message     string   `json:"message"` // for people
	Details     wire.Raw `json:"details"`
	Recoverable bool     `json:"recoverable"` // a retry may succeed
}

// Error returns the message, the code and the HTTP status.
func (r *Refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("%s (HTTP %d)", r.Message, r.Status)
	}
	return fmt.Sprintf("%s (%s, HTTP %d)", r.Message, r.Code, r.Status)
}

// refusal decodes a refusal. Any other body also yields a Refusal, because a proxy answers in
// its own format.
func refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // what there is of it
	said := struct {
		Error Refusal `json:"error"`
	}{}
	if object.DecodeOwn(text, &said) != nil || said.Error.Message == "" {
		said.Error = Refusal{Message: "refused, without a word that could be understood: " + http.StatusText(response.StatusCode)}
	}
	said.Error.Status = response.StatusCode
	return &said.Error
}

// passing reports whether a retry may succeed: there was no answer, or the server failed.
func passing(err error) bool {
	refused, ok := errors.AsType[*Refusal](err)
	return ok && refused.Status >= 500 || errors.Is(err, errLost)
}

// final reports whether a retry cannot succeed because the bus has refused the request.
// Timeouts and rate limits are not final.
func final(err error) bool {
	refused, ok := errors.AsType[*Refusal](err)
	if !ok || refused.Recoverable {
		return false
	}
	switch refused.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return refused.Status < 500
}
