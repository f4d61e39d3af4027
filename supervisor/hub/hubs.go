package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// listHubs returns the machines that share the record, as far as this one knows.
func (r *record) listHubs(context.Context, struct{}) (control.HostsReply, error) {
	if r.shared == nil {
		return control.HostsReply{FormatVersion: wire.FormatVersion, Hosts: []control.HostView{}, Hubs: []control.HubView{}}, nil
	}
	return r.shared.view(), nil
}

// view returns the hubs, and whether most of them can be reached.
func (s *sharedStore) view() control.HostsReply {
	reply := control.HostsReply{FormatVersion: wire.FormatVersion, Hosts: []control.HostView{}, Hubs: s.hubs(), Degraded: s.degraded()}
	if why := s.writable(); why != nil {
		reply.NoQuorum = why.Message
	} else if away := s.away(); !s.atWork.Load() && 2*len(away) > len(s.peers) {
		reply.NoQuorum = s.lost(away)
	}
	return reply
}

// hubs returns the hubs in the order of the peers. If a server keeps the record, a hub is known after its first report.
func (s *sharedStore) hubs() (views []control.HubView) {
	reports, missing, names := s.roster.Latest(), s.Engine.Missing(), s.peers
	own := s.report()
	reports[own.Name] = own
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(reports))
	}
	for _, name := range names {
		r := reports[name]
		v := control.HubView{Name: name, State: "standing_by", URL: r.URL, Followed: r.Last}
		switch {
		case name != own.Name && slices.Contains(missing, name):
			v.State, v.Followed = "missing", 0
		case r.AtWork:
			v.State, v.Epoch = "at_work", r.Epoch
		}
		views = append(views, v)
	}
	return views
}

// report returns the report of this hub to all other hubs.
func (s *sharedStore) report() leadership.Report {
	r := leadership.Report{Hub: s.own, AtWork: s.atWork.Load() && !s.deposed.Load(), Last: s.Log.Last()}
	if r.AtWork {
		r.Epoch = s.epoch
	}
	return r
}

// away returns the hubs that cannot be reached.
func (s *sharedStore) away() []string {
	return slices.DeleteFunc(s.Engine.Missing(), func(name string) bool { return !slices.Contains(s.peers, name) })
}

// degraded reports whether the loss of one more hub stops the team.
func (s *sharedStore) degraded() bool {
	up := len(s.peers) - len(s.away())
	return len(s.peers) > 1 && up == len(s.peers)/2+1 && len(s.away()) > 0
}

// lost returns why recording fails if hubs cannot be reached.
func (s *sharedStore) lost(missing []string) string {
	return fmt.Sprintf("nothing can be recorded: of the %d hubs, these cannot be reached: %s", len(s.peers), strings.Join(missing, ", "))
}
