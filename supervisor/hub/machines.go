package hub

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"time"

	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hosts"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/hostlink"
)

// machines are the hosts of a hub.
type machines struct {
	*hosts.Hosts
	own    *requester
	record *record
}

// prepare prepares for hosts to join.
func (m *machines) prepare(ctx context.Context, c *config.Config) {
	o := hosts.Options{
		Hub:   c.Orchestrator.Name,
		Owner: m.own,
		Drain: func(host string, agents []string) {
			m.own.NoteHost(events.HostDrained, host, "wants to leave", wire.Figures{})
			m.move(host, agents)
		},
	}
	if m.record.shared != nil {
		o.Hub, o.Team, o.Epoch = c.Store.Node, c.Store.Log, m.record.shared.epoch
		o.Confirmed = func() bool { return m.record.shared.writable() == nil }
	}
	if !m.endedInOrder(ctx) {
		longest := hostlink.Grace
		for _, h := range c.Hosts {
			longest = max(longest, h.Grace)
		}
		o.Settled = time.Now().Add(hostlink.GivenUp(longest))
	}
	m.Hosts = hosts.New(o)
	m.SetRules(c.Hosts)
}

// endedInOrder reports whether no agent of an earlier life of the team can still run on a host: there was
// none, or it has stopped in order and left no process. Another hub has appended the facts before this one's epoch.
func (m *machines) endedInOrder(ctx context.Context) bool {
	last := m.record.ledger.Last()
	if m.record.shared != nil {
		last = m.record.shared.epoch - 1
	}
	if last <= 0 {
		return true
	}
	for r, err := range m.record.ledger.Records(ctx, last-1) {
		var stopped struct {
			Figures wire.Figures `json:"figures"`
		}
		return err == nil && r.Kind == events.OrchestratorStopped && json.Unmarshal(r.Payload, &stopped) == nil && stopped.Figures.Ordered
	}
	return false
}

// listHosts returns the machines that run agents, and the hubs.
func (m *machines) listHosts(ctx context.Context, _ struct{}) (control.HostsReply, error) {
	reply, err := m.record.listHubs(ctx, struct{}{})
	reply.Hosts = m.View()
	return reply, err
}

// drainHost lets a host run no more agents, and begins to stop its present ones. They start again
// where a host has room.
func (m *machines) drainHost(_ context.Context, r control.DrainRequest) (control.DrainReply, error) {
	agents, err := m.Hosts.Drain(r.Host, r.Undo)
	if m.isHub(r.Host) && err != nil {
		return control.DrainReply{}, &wire.Error{
			Code: wire.CodeConflict, Message: r.Host + " is a hub, and only hosts are drained",
			Hint: "On its machine, run orchestrator down. If it is the active hub, another one takes over",
		}
	}
	if err != nil {
		return control.DrainReply{}, err
	}
	if r.Undo {
		m.own.NoteHost(events.HostDrained, r.Host, "takes agents again", wire.Figures{Host: r.Host})
	} else {
		m.own.NoteHost(events.HostDrained, r.Host, "is being drained", wire.Figures{Host: r.Host, Ordered: true})
		m.move(r.Host, agents)
	}
	return control.DrainReply{FormatVersion: wire.FormatVersion, Host: r.Host, Agents: agents}, nil
}

// isHub reports whether a name is one of a hub, with or without its port.
func (m *machines) isHub(name string) bool {
	return m.record.shared != nil && slices.ContainsFunc(m.record.shared.peers, func(peer string) bool {
		host, _, err := net.SplitHostPort(peer)
		return peer == name || err == nil && host == name
	})
}

// move begins to stop agents that run on a host, and to start them elsewhere.
func (m *machines) move(host string, agents []string) {
	if len(agents) == 0 {
		return
	}
	go func() { // it ends when they run again, or with the team
		if _, err := m.own.RestartAgents(context.Background(), control.AgentsRequest{Agents: agents}); err != nil {
			m.own.log.Warn("a host cannot be drained", "host", host, "error", err)
		}
	}()
}
