package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
)

func (r *reader) session(b *hcl.Block) {
	s := Session{
		Name: b.Labels[0], Validation: "standard", MaxIterations: 3, OnMax: "human_review",
		ProgressAfter: 2 * time.Minute, ProgressEvery: 30 * time.Second,
	}
	members := map[string]hcl.Range{}
	r.read(b.Body, r.scope, section{
		title: fmt.Sprintf("Session %q", s.Name),
		path:  "session." + s.Name,
		attributes: []attribute{
			attr("validation", choice(&s.Validation, "standard", "strict")),
			attr("max_iterations", whole(&s.MaxIterations, 1, math.MaxInt32)),
			attr("on_max", choice(&s.OnMax, "abort", "force_approve", "human_review")),
			attr("require_review", truth(&s.RequireReview)),
			attr("task_timeout", duration(&s.TaskTimeout)),
			attr("progress_after", longer(&s.ProgressAfter)),
			attr("progress_every", longer(&s.ProgressEvery)),
		},
		children: []child{{kind: "member", label: "name", many: true, read: func(b *hcl.Block) {
			if r.unique(members, b) {
				s.Members = append(s.Members, r.member(b, s.Name))
			}
		}}},
	})
	if r.checkName(b, "A session") {
		r.addSession(b, s)
	}
}

func (r *reader) addSession(b *hcl.Block, s Session) {
	if slices.ContainsFunc(r.config.Sessions, func(o Session) bool { return o.Name == s.Name }) {
		r.report(b.LabelRanges[0], Problem{
			Code: "config/duplicate-session", Summary: "Duplicate session",
			Detail: fmt.Sprintf("The name %q is taken.", s.Name),
		})
		return
	}
	r.config.Sessions = append(r.config.Sessions, s)
	r.config.places["session."+s.Name] = place(b.DefRange)
}

func (r *reader) member(b *hcl.Block, sessionID string) Member {
	m := Member{Name: b.Labels[0]}
	set := r.read(b.Body, r.scope, section{
		title: fmt.Sprintf("Member %q", m.Name),
		path:  "session." + sessionID + ".member." + m.Name,
		attributes: []attribute{
			attr("type", choice(&m.Type, "architect", "developer", "reviewer")),
		},
	})
	if _, ok := set["type"]; !ok {
		r.report(b.DefRange, Problem{
			Code: "config/missing-attribute", Summary: "Missing attribute",
			Detail: fmt.Sprintf("Member %q needs a type: \"architect\", \"developer\" or \"reviewer\".", m.Name),
		})
	}
	r.memberPlaces = append(r.memberPlaces, b.LabelRanges[0])
	r.memberNames = append(r.memberNames, m.Name)
	return m
}

// sessionMembers warns about members that are not agents of this file. They may be remote
// agents, so it is not an error.
func (r *reader) sessionMembers() {
	known := map[string]bool{}
	for _, b := range r.agents {
		for _, name := range b.names {
			known[name] = true
		}
	}
	names := slices.Collect(maps.Keys(known))
	for i, name := range r.memberNames {
		_, isBlock := r.agents[name]
		if known[name] || isBlock && r.agents[name].broken {
			continue
		}
		r.report(r.memberPlaces[i], Problem{
			Severity: SeverityWarning, Code: "config/unknown-member", Summary: "Unknown member",
			Detail: fmt.Sprintf("No agent of this file is called %q; it can join only from elsewhere.", name),
			Hint:   didYouMean(name, names),
		})
	}
}
