package serve

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

// openHosts prepares for hosts to join.
func (t *Instance) openHosts(ctx context.Context, c *config.Config) *hosts.Hosts {
	o := hosts.Options{
		Hub:     c.Orchestrator.Name,
		Changed: func() { t.Super.HostsChanged() },
		Drain: func(host string, agents []string) {
			t.Super.NoteHost(events.HostDrained, host, "wants to leave", wire.Figures{})
			t.move(host, agents)
		},
		Committed: func(note func()) int64 { return t.Super.Committed(note) },
		Note:      func(kind, host, text string) { t.Super.NoteHost(kind, host, text, wire.Figures{}) },
	}
	if t.shared != nil {
		o.Hub, o.Team, o.Epoch = c.Store.Node, c.Store.Log, t.shared.epoch
		o.Confirmed = func() bool { return t.shared.writable() == nil }
	}
	if !t.endedInOrder(ctx) {
		longest := hostlink.Grace
		for _, h := range c.Hosts {
			longest = max(longest, h.Grace)
		}
		o.Settled = time.Now().Add(hostlink.GivenUp(longest))
	}
	t.hosts = hosts.New(o)
	t.hosts.SetRules(c.Hosts)
	return t.hosts
}

// endedInOrder reports whether no agent of an earlier life of the team can still run on a host: there was
// none, or it has stopped in order and left nothing running. Another hub has appended the facts before this one's epoch.
func (t *Instance) endedInOrder(ctx context.Context) bool {
	last := t.record.Last()
	if t.shared != nil {
		last = t.shared.epoch - 1
	}
	if last <= 0 {
		return true
	}
	for r, err := range t.record.Records(ctx, last-1) {
		var stopped struct {
			Figures wire.Figures `json:"figures"`
		}
		return err == nil && r.Kind == events.OrchestratorStopped && json.Unmarshal(r.Payload, &stopped) == nil && stopped.Figures.Ordered
	}
	return false
}

// listHosts returns the machines that run agents, and the hubs.
func (t *Instance) listHosts(ctx context.Context, _ struct{}) (control.HostsReply, error) {
	reply, err := t.listHubs(ctx, struct{}{})
	reply.Hosts = t.hosts.View()
	return reply, err
}

// drainHost lets a host run no more agents, and begins to stop those that are there. They start again
// where there is room.
func (t *Instance) drainHost(_ context.Context, r control.DrainRequest) (control.DrainReply, error) {
	agents, err := t.hosts.Drain(r.Host, r.Undo)
	if t.isHub(r.Host) && err != nil {
		return control.DrainReply{}, &wire.Error{
			Code: wire.CodeConflict, Message: r.Host + " is a hub, and only hosts are drained",
			Hint: "On its machine: orchestrator down. Another hub goes on, if that one is at work",
		}
	}
	if err != nil {
		return control.DrainReply{}, err
	}
	if r.Undo {
		t.Super.NoteHost(events.HostDrained, r.Host, "takes agents again", wire.Figures{Host: r.Host})
	} else {
		t.Super.NoteHost(events.HostDrained, r.Host, "is being drained", wire.Figures{Host: r.Host, Ordered: true})
		t.move(r.Host, agents)
	}
	return control.DrainReply{FormatVersion: wire.FormatVersion, Host: r.Host, Agents: agents}, nil
}

// isHub reports whether a name is one of a hub, with or without its port.
func (t *Instance) isHub(name string) bool {
	return t.shared != nil && slices.ContainsFunc(t.shared.peers, func(peer string) bool {
		host, _, err := net.SplitHostPort(peer)
		return peer == name || err == nil && host == name
	})
}

// move begins to stop agents that run on a host, and to start them elsewhere.
func (t *Instance) move(host string, agents []string) {
	if len(agents) == 0 {
		return
	}
	go func() { // it ends when they run again, or with the team
		if _, err := t.Super.RestartAgents(context.Background(), control.AgentsRequest{Agents: agents}); err != nil {
			t.log.Warn("a host cannot be drained", "host", host, "error", err)
		}
	}()
}
