package bus

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Refusal is the bus's no, as an error.
type Refusal struct {
	Status      int      `json:"-"`       // of HTTP
	Code        string   `json:"code"`    // for programs; "" when it was not the bus that answered
	Message     string   `json:"message"` // for people
	Details     wire.Raw `json:"details"`
	Recoverable bool     `json:"recoverable"` // the same may be granted later
}

// Error makes it an error.
func (r *Refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("%s (HTTP %d)", r.Message, r.Status)
	}
	return fmt.Sprintf("%s (%s, HTTP %d)", r.Message, r.Code, r.Status)
}

// refusal reads a refusal. One that says nothing is still a no: what stands
// between us and the bus answers in its own way.
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

// passing reports whether the next attempt may fare better: there was no answer, or
// one who has trouble.
func passing(err error) bool {
	refused, ok := errors.AsType[*Refusal](err)
	return ok && refused.Status >= 500 || errors.Is(err, errLost)
}

// final reports whether there is no use in asking again, ever: the bus has
// understood, and said no. One who asks too often, or too slowly, may ask later.
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
