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
	"orchestrator/wire/session"
)

// settings returns the blocks outside agents that may occur only once. A name in the records, the lock and
// the listeners cannot change while the orchestrator runs.
func (r *reader) settings(at hcl.Range) []child {
	c := r.config
	o, p, s := &c.Orchestrator, &c.Protocol, &c.Scheduler
	return []child{
		{kind: "orchestrator", attributes: []attribute{
			attr("name", &o.Name, word).refused(nil),
			attr("state_dir", &o.StateDir, path(c.absolute)).refused(derived(".orchestrator")),
			attr("shutdown", &o.Shutdown, duration).refused("40s"),
		}},
		r.http(&c.HTTP),
		{kind: "log", attributes: []attribute{
			attr("level", &c.Log.Level, choice("trace", "debug", "info", "warn", "error", "off")).live("info"),
			attr("format", &c.Log.Format, choice("auto", "console", "json")).refused("auto"),
		}},
		{kind: "store", attributes: r.storeAttributes(&c.Store, at), check: func(b *hcl.Block, set map[string]hcl.Range) { r.checkStore(b, set) }},
		{kind: "protocol", attributes: []attribute{
			attr("max_line", &p.MaxLine, sizeUpTo(kib, maxSaid)).refused("16MiB"),
			attr("max_depth", &p.MaxDepth, whole(1, 10_000)).refused(64),
			attr("rate", &p.Rate, whole(1, math.MaxInt32)).refused(100),
			attr("burst", &p.Burst, whole(1, math.MaxInt32)).refused(100),
			attr("request_timeout", &p.RequestTimeout, longer).live("30s"),
			attr("on_dependency_failure", &p.OnDependencyFailure, choice("auto", "block", "cancel")).live("auto"),
			attr("strict_results", &p.StrictResults, truth).live(true),
		}},
		{kind: "scheduler", attributes: []attribute{
			attr("on_create", &s.OnCreate, truth).live(false),
			attr("on_online", &s.OnOnline, truth).live(true),
			attr("assign_offline", &s.AssignOffline, truth).live(true),
			attr("count_assigned", &s.CountAssigned, truth).live(false),
			attr("max_attempts", &s.MaxAttempts, whole(1, math.MaxInt32)).live(3),
			attr("verify_attempts", &s.VerifyAttempts, whole(1, math.MaxInt32)).live(2),
			attr("delegation_retries", &s.DelegationRetries, whole(0, 100)).live(0),
		}},
		r.bus(&c.Bus),
		r.notify(&c.Notify),
		r.prices(),
		{kind: "merge", attributes: []attribute{attr("queue", &c.Merge.Queue, truth).live(nil)}},
	}
}

// keep reads how much history a store keeps: a time, a size or "forever".
func keep(into *Store, v value) {
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
			fmt.Sprintf("%s must be a time such as \"30d\" or \"12h\", a size from 1 MiB such as \"10GiB\", or \"forever\", not %s.", v.name, v.quoted()), "")
	}
}

func (r *reader) bus(bus *Bus) child {
	return child{kind: "bus", attributes: []attribute{
		attr("heartbeat", &bus.Heartbeat, longer).live("60s"),
		attr("stale", &bus.Stale, longer).live("180s"),
		attr("topics", &bus.Topics, topics).live([]string{}),
	}, check: func(b *hcl.Block, _ map[string]hcl.Range) {
		if bus.Stale <= bus.Heartbeat {
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/always-stale", Summary: "Actors would be stale between heartbeats",
				Detail: fmt.Sprintf("stale (%v) should be longer than heartbeat (%v).", bus.Stale, bus.Heartbeat),
			})
		}
	}}
}

func (r *reader) http(h *HTTP) child {
	var listeners []value
	return child{kind: "http", attributes: []attribute{
		attr("listen", &h.Listen, func(into *[]string, v value) {
			words(into, v)
			if *into != nil {
				listeners, _ = v.items("a list of words")
			}
		}).refused([]string{}),
		attr("hosts", &h.Hosts, words).refused([]string{"localhost", "127.0.0.1", "::1"}),
		attr("max_body", &h.MaxBody, sizeUpTo(kib, maxSaid)).refused("16MiB"),
		attr("rate", &h.Rate, whole(1, math.MaxInt32)).refused(200),
		attr("certificate", &h.Certificate, existingFile).refused(nil),
		attr("key", &h.Key, existingFile).refused(nil),
	}, check: func(_ *hcl.Block, set map[string]hcl.Range) { r.checkListeners(h, listeners, set) }}
}

// checkListeners checks the addresses, and that a certificate has a key.
func (r *reader) checkListeners(h *HTTP, listeners []value, set map[string]hcl.Range) {
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
			fmt.Sprintf("An address must be host:port, for example \"127.0.0.1:7433\", not %s.", v.quoted()), "")
		return
	}
	if !encrypted && !storeurl.IsLoopback(host) {
		v.reject("listener-without-tls", "Listener without certificate",
			fmt.Sprintf("%s can be reached from other machines, so it needs certificate and key.", v.quoted()),
			"For this machine only, use \"127.0.0.1:"+port+"\".")
	}
}

// existingFile reads the path of a file of hubs. The file must exist, unless the configuration is
// checked for another machine, or this one is a host.
func existingFile(into *string, v value) {
	var file string
	path(v.r.config.absolute)(&file, v)
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
	s := Session{Spec: session.Spec{ID: b.Labels[0]}}
	members := map[string]hcl.Range{}
	r.readFresh(b.Body, r.scope, section{
		title: fmt.Sprintf("Session %q", s.ID),
		path:  "session." + s.ID,
		attributes: []attribute{
			attr("validation", &s.Validation, choice("standard", "strict")).initially("standard"),
			attr("max_iterations", &s.MaxIterations, count(1, math.MaxInt32)).initially(3),
			attr("on_max", &s.OnMax, choice("abort", "force_approve", "human_review")).initially("human_review"),
			attr("require_review", &s.RequireReview, truth),
			attr("task_timeout", &s.TaskTimeout, milliseconds(duration)),
			attr("progress_after", &s.ProgressAfter, milliseconds(longer)).initially("2m"),
			attr("progress_every", &s.ProgressEvery, milliseconds(longer)).initially("30s"),
			attr("verify", &s.Work.Verify, argvs),
		},
		children: []child{r.workspace("session."+s.ID, &s.Workspace, r.scope), {kind: "member", label: "name", many: true, read: func(b *hcl.Block) {
			if r.unique(members, b) {
				s.Members = append(s.Members, r.member(b, s.ID))
			}
		}}},
	})
	if r.checkName(b, "A session") {
		r.addSession(b, s)
	}
}

func (r *reader) addSession(b *hcl.Block, s Session) {
	if slices.ContainsFunc(r.config.Sessions, func(o Session) bool { return o.ID == s.ID }) {
		r.report(b.LabelRanges[0], Problem{
			Code: "config/duplicate-session", Summary: "Duplicate session",
			Detail: fmt.Sprintf("The name %q is taken.", s.ID),
		})
		return
	}
	r.config.Sessions = append(r.config.Sessions, s)
	r.config.places["session."+s.ID] = place(b.DefRange)
}

func (r *reader) member(b *hcl.Block, sessionID string) session.Member {
	m := session.Member{AgentID: b.Labels[0]}
	set := r.read(b.Body, r.scope, section{
		title: fmt.Sprintf("Member %q", m.AgentID),
		path:  "session." + sessionID + ".member." + m.AgentID,
		attributes: []attribute{
			attr("type", &m.AgentType, choice("architect", "developer", "reviewer")),
		},
	})
	if _, ok := set["type"]; !ok {
		r.missing(b, fmt.Sprintf("Member %q needs a type: \"architect\", \"developer\" or \"reviewer\".", m.AgentID), "")
	}
	r.memberPlaces = append(r.memberPlaces, b.LabelRanges[0])
	r.memberNames = append(r.memberNames, m.AgentID)
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
