package config

import (
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/config/storeurl"
)

// setting reads one of the blocks outside agents that may occur only once.
func (r *reader) setting(b *hcl.Block) {
	c := r.config
	s := section{title: "Block " + b.Type, path: b.Type}
	switch b.Type {
	case "orchestrator":
		s.attributes = []attribute{
			attr("name", word(&c.Orchestrator.Name)),
			attr("state_dir", path(&c.Orchestrator.StateDir, c.absolute)),
			attr("shutdown", duration(&c.Orchestrator.Shutdown)),
		}
	case "http":
		r.http(b)
		return
	case "log":
		s.attributes = []attribute{
			attr("level", choice(&c.Log.Level, "trace", "debug", "info", "warn", "error", "off")),
			attr("format", choice(&c.Log.Format, "auto", "console", "json")),
		}
	case "store":
		store(r, b)
		return
	case "protocol":
		s.attributes = protocolAttributes(&c.Protocol)
	case "scheduler":
		s.attributes = []attribute{
			attr("on_create", truth(&c.Scheduler.OnCreate)),
			attr("on_online", truth(&c.Scheduler.OnOnline)),
			attr("assign_offline", truth(&c.Scheduler.AssignOffline)),
			attr("count_assigned", truth(&c.Scheduler.CountAssigned)),
			attr("max_attempts", whole(&c.Scheduler.MaxAttempts, 1, math.MaxInt32)),
			attr("verify_attempts", whole(&c.Scheduler.VerifyAttempts, 1, math.MaxInt32)),
			attr("delegation_retries", whole(&c.Scheduler.DelegationRetries, 0, 100)),
		}
	case "bus":
		r.bus(b)
		return
	case "notify":
		notify(r, b)
		return
	case "merge":
		s.attributes = []attribute{attr("queue", truth(&c.Merge.Queue))}
	case "prices":
		prices(r, b)
		return
	}
	r.read(b.Body, r.scope, s)
}

// keep reads how much history a store keeps: a time, a size or "forever".
func keep(into *Store) func(value) {
	return func(v value) {
		s, ok := v.asText()
		if !ok {
			return
		}
		into.KeepFor, into.KeepBytes = 0, 0
		text, days := strings.CutSuffix(s, "d")
		n, err := strconv.ParseUint(text, 10, 16)
		age, timeErr := time.ParseDuration(s)
		bytes, sizeErr := parseSize(s)
		switch {
		case s == "forever":
		case days && err == nil && n > 0:
			into.KeepFor = time.Duration(n) * 24 * time.Hour
		case timeErr == nil && age > 0:
			into.KeepFor = age
		case sizeErr == nil && bytes >= mib:
			into.KeepBytes = bytes
		default:
			v.reject("bad-duration", "Bad duration",
				fmt.Sprintf("%s is a time such as \"30d\" or \"12h\", a size from 1 MiB such as \"10GiB\", or \"forever\", not %s.", v.name, v.quoted()), "")
		}
	}
}

func protocolAttributes(p *Protocol) []attribute {
	return []attribute{
		attr("max_line", sizeUpTo(&p.MaxLine, kib, maxSaid)),
		attr("max_depth", whole(&p.MaxDepth, 1, 10_000)),
		attr("rate", whole(&p.Rate, 1, math.MaxInt32)),
		attr("burst", whole(&p.Burst, 1, math.MaxInt32)),
		attr("request_timeout", longer(&p.RequestTimeout)),
		attr("on_dependency_failure", choice(&p.OnDependencyFailure, "auto", "block", "cancel")),
		attr("strict_results", truth(&p.StrictResults)),
	}
}

func (r *reader) bus(b *hcl.Block) {
	bus := &r.config.Bus
	r.read(b.Body, r.scope, section{title: "Block bus", path: "bus", attributes: []attribute{
		attr("heartbeat", longer(&bus.Heartbeat)),
		attr("stale", longer(&bus.Stale)),
		attr("topics", topics(&bus.Topics)),
	}})
	if bus.Stale <= bus.Heartbeat {
		r.report(b.DefRange, Problem{
			Severity: SeverityWarning, Code: "config/always-stale", Summary: "Actors would be stale between heartbeats",
			Detail: fmt.Sprintf("stale (%v) should be longer than heartbeat (%v).", bus.Stale, bus.Heartbeat),
		})
	}
}

func (r *reader) http(b *hcl.Block) {
	h := &r.config.HTTP
	var listeners []value
	set := r.read(b.Body, r.scope, section{title: "Block http", path: "http", attributes: []attribute{
		attr("listen", func(v value) {
			words(&h.Listen)(v)
			if h.Listen != nil {
				listeners, _ = v.items("a list of words")
			}
		}),
		attr("hosts", words(&h.Hosts)),
		attr("max_body", sizeUpTo(&h.MaxBody, kib, maxSaid)),
		attr("rate", whole(&h.Rate, 1, math.MaxInt32)),
		attr("certificate", existingFile(&h.Certificate)),
		attr("key", existingFile(&h.Key)),
	}})
	_, hasCertificate := set["certificate"]
	_, hasKey := set["key"]
	if hasCertificate != hasKey {
		have, miss, at := "certificate", "key", set["certificate"]
		if hasKey {
			have, miss, at = "key", "certificate", set["key"]
		}
		r.report(at, Problem{
			Code: "config/half-certificate", Summary: "Certificate and key belong together",
			Detail: fmt.Sprintf("http has a %s but no %s.", have, miss),
		})
	}
	for i, v := range listeners {
		v.listener(h.Listen[i], hasCertificate || hasKey)
	}
}

// listener checks one address. An address that other machines can reach requires TLS, because
// the credentials of agents would be sent unencrypted.
func (v value) listener(address string, encrypted bool) {
	host, port, err := net.SplitHostPort(address)
	if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || n < 0 || n > math.MaxUint16 {
		v.reject("bad-address", "Bad address",
			fmt.Sprintf("An address is host:port, such as \"127.0.0.1:7433\", not %s.", v.quoted()), "")
		return
	}
	if !encrypted && !storeurl.IsLoopback(host) {
		v.reject("listener-without-tls", "Listener without certificate",
			fmt.Sprintf("%s can be reached from other machines, so it needs certificate and key.", v.quoted()),
			"For this machine alone use \"127.0.0.1:"+port+"\".")
	}
}

// existingFile reads the path of a file of hubs. The file must exist, unless the configuration is
// checked for another machine, or this one is a host.
func existingFile(into *string) func(value) {
	return func(v value) {
		var file string
		path(&file, v.r.config.absolute)(v)
		if file == "" {
			return
		}
		info, err := os.Stat(file)
		if err == nil && info.IsDir() {
			err = errIsFolder
		}
		if err != nil && !v.r.options.NoEnv && !v.r.options.Host {
			v.reject("unreadable", "File cannot be read", fmt.Sprintf("%s: %v.", v.quoted(), cause(err)), "")
		}
		*into = file
	}
}

// settle sets values that depend on more than one attribute.
func (r *reader) settle() {
	c := r.config
	if r.options.StateDir != "" {
		c.Orchestrator.StateDir = r.options.StateDir
	}
	c.Store.Path = within(c.Orchestrator.StateDir, c.Store.Path)
	c.Orchestrator.StateDir = filepath.Clean(c.Orchestrator.StateDir)
	for _, peer := range c.Store.Peers { // hubs may call each other by these names, unless the file has a list
		name, _, err := net.SplitHostPort(peer)
		if err == nil && c.places["http.hosts"] == "" && !slices.Contains(c.HTTP.Hosts, name) {
			c.HTTP.Hosts = append(c.HTTP.Hosts, name)
		}
	}
}

func (r *reader) session(b *hcl.Block) {
	s := standardSession()
	s.Name = b.Labels[0]
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
			attr("verify", argvs(&s.Verify)),
		},
		children: []child{workspace(r, "session."+s.Name, &s.Workspace, r.scope), {kind: "member", label: "name", many: true, read: func(b *hcl.Block) {
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
		missing(r, b, fmt.Sprintf("Member %q needs a type: \"architect\", \"developer\" or \"reviewer\".", m.Name), "")
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
