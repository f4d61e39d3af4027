package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"orchestrator/agents"
	"orchestrator/agents/mcp"
	"orchestrator/cmd/orchestrator/build"
	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// serveMCP returns the handler that serves MCP clients over HTTP. A request acts as the agent with
// its credential.
func serveMCP(d *api.API) http.Handler {
	boxes := &mailboxes{of: make(map[string]*mcp.Mailbox)}
	return mcp.Handler(func(r *http.Request) (mcp.Team, mcp.Options) {
		from := api.CallerOf(r.Context())
		box := boxes.get(from.Name + " " + from.Run)
		return &httpMember{api: d, request: r}, mcp.Options{Version: build.Version, Agent: from.Name, Mailbox: box}
	})
}

// An httpMember is the agent that sends a request.
type httpMember struct {
	api     *api.API
	request *http.Request
}

// Ask performs an operation as the agent.
func (m *httpMember) Ask(ctx context.Context, operation string, payload, answer any) error {
	if payload == nil {
		payload = wire.Nothing{}
	}
	text, err := object.Encode(payload)
	if err != nil {
		return err
	}
	text, err = m.api.AskAs(ctx, m.request, operation, text)
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		return &agents.Refusal{Code: agents.Code(strings.ToUpper(string(refusal.Code))), Message: refusal.Message}
	}
	if err != nil || answer == nil {
		return err
	}
	return object.DecodeOwn(text, answer)
}

// mailboxes remembers which mail the results of each member had.
type mailboxes struct {
	mu sync.Mutex
	of map[string]*mcp.Mailbox
}

// maxMailboxes is how many members are remembered. Mail may be shown again to one that was
// forgotten.
const maxMailboxes = 10_000

func (b *mailboxes) get(member string) *mcp.Mailbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.of[member]
	if box == nil {
		if len(b.of) >= maxMailboxes {
			clear(b.of)
		}
		box = new(mcp.Mailbox)
		b.of[member] = box
	}
	return box
}
