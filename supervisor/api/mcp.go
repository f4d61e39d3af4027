package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// mcpPath is where clients of the Model Context Protocol send their messages.
const mcpPath = "/mcp"

// AskAs performs an operation for the caller of an HTTP request, if the caller may ask for it. The request of the
// operation and its answer are JSON. Handlers of other protocols use AskAs, so their callers have the same rights
// there.
func (api *API) AskAs(ctx context.Context, r *http.Request, operation string, request []byte) ([]byte, error) {
	c := callerOf(r.Context())
	c.account.decide() // the operation has the line
	c.account = api.open(c.who, operation, !declared(operation).IsWrite())
	defer c.account.close()
	if refusal := toOperation(operation)(c.who, r); refusal != nil {
		c.account.refuse(refusal)
		return nil, refusal
	}
	answer, err := api.ask(withCaller(ctx, c), operation, request)
	if err != nil {
		if refusal, ok := errors.AsType[*wire.Error](err); ok {
			c.account.refuse(refusal)
		}
		return nil, err
	}
	return object.Encode(answer)
}

// mcp passes a message on to the handler in the field MCP. The protocol requires that messages are
// refused that a browser sends for a page of another origin.
func (api *API) mcp(w http.ResponseWriter, r *http.Request) {
	if new(http.CrossOriginProtection).Check(r) != nil {
		api.refuse(w, r, denied("the request is from a page of another origin"))
		return
	}
	body, err := api.body(w, r)
	if err != nil {
		api.refuse(w, r, err)
		return
	}
	accountOf(r.Context()).Reads = true // whatever the message writes, an operation does
	r.Body = io.NopCloser(bytes.NewReader(body))
	api.MCP.ServeHTTP(w, r)
}
