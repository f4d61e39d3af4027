package agents

import (
	"context"

	"orchestrator/wire"
)

// UpdateCapabilities replaces the agent's capabilities. A Capacity of 0 in them means that the
// agent is assigned nothing.
func (c *Conn) UpdateCapabilities(ctx context.Context, now wire.UpdateCapabilities) (wire.Server, error) {
	var answer wire.Server
	err := c.Ask(ctx, "update-capabilities", now, &answer)
	return *tidyServer(&answer), err
}

// Servers lists all agents with what they can do, and whether they are online.
func (c *Conn) Servers(ctx context.Context) ([]wire.Server, error) {
	var answer wire.ServerList
	err := c.Ask(ctx, "query-servers", nil, &answer)
	for i := range answer.Servers {
		tidyServer(&answer.Servers[i])
	}
	return answer.Servers, err
}

// tidyServer sets capabilities that are the JSON value null to nil.
func tidyServer(server *wire.Server) *wire.Server {
	server.Capabilities = some(server.Capabilities)
	return server
}
