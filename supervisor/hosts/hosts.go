package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/hostlink"
	"orchestrator/wire/object"
)

// A Rule lets hosts join, and limits the agents that they run. Without any rule, each host may join and run all agents.
type Rule struct {
	Name   string            // of the block
	Names  []string          // patterns of the names of hosts, such as "gpu-*"; empty: the name of the block
	Labels map[string]string // of these hosts; they override labels that a host reports
	Agents []string          // patterns of the names of agents; empty: all
	Grace  time.Duration     // how long agents live there without a hub; 0: hostlink.Grace
}

// A Placement limits the hosts of an agent.
type Placement struct {
	Hosts  string            // a pattern; "": any
	Labels map[string]string // that the host has
	Spread bool              // the agents of one block are on different hosts if possible
	Only   string            // the name of the host, "" for any
}

// Options of Hosts.
type Options struct {
	Hub       string
	Team      string // the name of the shared log; "" without one
	Epoch     int64
	Settled   time.Time // until then, agents that an earlier hub has placed may still run
	Owner     Owner
	Confirmed func() bool                        // whether this hub is known to be the one at work; nil: it is
	Drain     func(host string, agents []string) // called when a host asks to be drained; it must not block
}

// An Owner is the team whose agents run on the hosts.
type Owner interface {
	// HostsChanged is called when a host has come or may take agents again. It must not block.
	HostsChanged()
	// Committed reads the number of the last record, and then calls note. It returns the number after all decisions
	// before it are committed and delivered.
	Committed(note func()) int64
	// NoteHost is called with each event of a host.
	NoteHost(kind, host, text string, f wire.Figures)
}

// Hosts has the hosts of a team. Its methods may be called concurrently.
type Hosts struct {
	options  Options
	instance string        // of this process
	open     chan struct{} // closed by Open

	noting sync.RWMutex // held during calls of NoteHost, and by Close
	silent bool         // NoteHost is no longer called

	mu     sync.Mutex
	closed bool
	rules  []Rule
	hosts  map[string]*host
}

// A host is a machine that has joined. It is kept after its link is gone.
type host struct {
	name     string
	address  string
	program  string
	labels   map[string]string
	capacity int
	since    time.Time
	heard    time.Time // when its last beat came
	instance string    // of its program's state directory
	grace    time.Duration
	link     *session          // nil if it has none
	drained  bool              // by an operator
	leaving  bool              // it has asked to be drained
	runs     map[string]*run   // that may have processes there
	chosen   map[string]string // the blocks of the agents that Find keeps room for until Start, by name
	unknown  map[string]bool   // agents that its file does not have; forgotten when it joins again
}

// ErrUnknownAgent reports that the file of a host does not have an agent. Find returns another host then, until
// that one has joined again.
var ErrUnknownAgent = errors.New("the file of the host does not have the agent")

// forgo notes that the file of a host does not have an agent.
func (host *host) forgo(h *Hosts, agent string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	host.unknown[agent] = true
}

// New returns Hosts that no host has joined.
func New(o Options) *Hosts {
	if wait := time.Until(o.Settled); wait > 0 {
		time.AfterFunc(wait, o.Owner.HostsChanged)
	}
	return &Hosts{options: o, instance: uuid.NewString(), open: make(chan struct{}), hosts: make(map[string]*host)}
}

// Open lets hosts join. Call Expect for the runs of an earlier hub before, because a host kills the runs that its
// hub does not know.
func (h *Hosts) Open() { close(h.open) }

// Close ends all links. Owner.NoteHost is not called afterwards.
func (h *Hosts) Close() {
	h.noting.Lock()
	h.silent = true
	h.noting.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, host := range h.hosts {
		if host.link != nil {
			_ = host.link.conn.Close()
		}
	}
}

// note calls Owner.NoteHost, unless the hosts are closed.
func (h *Hosts) note(kind, host, text string) {
	h.noting.RLock()
	defer h.noting.RUnlock()
	if !h.silent {
		h.options.Owner.NoteHost(kind, host, text, wire.Figures{})
	}
}

// Leave ends all links, and all runs as far as this hub is concerned. It does not notify the hosts, so that another hub
// can go on with the runs.
func (h *Hosts) Leave() {
	h.Close()
	h.mu.Lock()
	var runs []*run
	for _, host := range h.hosts {
		runs = slices.AppendSeq(runs, maps.Values(host.runs))
	}
	h.mu.Unlock()
	for _, r := range runs {
		r.giveUp()
	}
}

// SetRules replaces the rules. Hosts that have joined stay.
func (h *Hosts) SetRules(rules []Rule) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rules = rules
}

// matches reports whether a name matches a pattern of path.Match.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// ruleOf returns the rule of a host, and whether it may join.
func (h *Hosts) ruleOf(name string) (Rule, bool) {
	for _, r := range h.rules {
		if anyMatches(r.Names, name) || len(r.Names) == 0 && matches(r.Name, name) {
			return r, true
		}
	}
	return Rule{}, len(h.rules) == 0
}

// Find returns a host that can run an agent now, and keeps room there until Start. If no host can, it returns the
// reason, in words that complete "waits for ".
func (h *Hosts) Find(agent, block string, p Placement) (name, why string) {
	if time.Until(h.options.Settled) > 0 {
		return "", "the agents of the hub before this one to have ended on all hosts"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var fit []*host
	var refused []string // why other hosts do not fit
	for _, name := range slices.Sorted(maps.Keys(h.hosts)) {
		host := h.hosts[name]
		if why := h.unfit(host, agent, p); why != "" {
			refused = append(refused, name+" "+why)
			continue
		}
		fit = append(fit, host)
	}
	if len(fit) == 0 {
		return "", p.waitsFor(refused)
	}
	slices.SortStableFunc(fit, func(a, b *host) int {
		if p.Spread {
			if c := cmp.Compare(a.ofBlock(block), b.ofBlock(block)); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.load(), b.load())
	})
	fit[0].chosen[agent] = block
	return fit[0].name, ""
}

// waitsFor describes the host that a placement asks for, and why the hosts that have joined do not fit.
func (p *Placement) waitsFor(refused []string) string {
	text := "a host"
	if strings.Trim(p.Hosts, "*") != "" {
		text += " called " + p.Hosts
	}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		text += fmt.Sprintf(" with %s=%s", key, p.Labels[key])
	}
	if len(refused) > 0 {
		text += ": " + strings.Join(refused, ", ")
	}
	return text
}

// unfit returns why a host cannot run an agent, or "".
func (h *Hosts) unfit(host *host, agent string, p Placement) string {
	rule, ok := h.ruleOf(host.name)
	switch {
	case p.Hosts != "" && !matches(p.Hosts, host.name):
		return "has another name"
	case !ok, len(rule.Agents) > 0 && !anyMatches(rule.Agents, agent):
		return "may not run it"
	case p.Only != "" && p.Only != host.name:
		return "is not " + p.Only + ", which has it"
	case host.link == nil:
		return "is not connected"
	case host.unknown[agent]:
		return "does not have it in its configuration (change the file there, and join again)"
	case host.draining():
		return "is being drained"
	case host.capacity > 0 && host.load() >= host.capacity:
		return "is full"
	}
	for key, value := range p.Labels {
		if has := cmp.Or(rule.Labels[key], host.labels[key]); has != value {
			return fmt.Sprintf("lacks %s=%s", key, value)
		}
	}
	return ""
}

// load returns how many agents run on a host, or will.
func (h *host) load() int { return len(h.runs) + len(h.chosen) }

// ofBlock returns how many agents of a block run on a host, or will.
func (h *host) ofBlock(block string) (n int) {
	for _, chosen := range h.chosen {
		if chosen == block {
			n++
		}
	}
	for _, r := range h.runs {
		if r.order.Block == block {
			n++
		}
	}
	return n
}

func (h *host) draining() bool { return h.drained || h.leaving }

// Drain keeps agents away from a host, or with undo lets it get agents again. It returns the agents that run there.
func (h *Hosts) Drain(name string, undo bool) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	host := h.hosts[name]
	if host == nil {
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("no host %.80q has joined", name),
			Hint: "List the hosts: orchestrator hosts     To take a hub out of use, run orchestrator down on its machine",
		}
	}
	host.drained = !undo
	if undo {
		h.options.Owner.HostsChanged()
	}
	return host.agents(), nil
}

// Drained marks a host that was drained in an earlier life of the team.
func (h *Hosts) Drained(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host(name).drained = true
}

// leave keeps agents away from a host that wants to leave. It returns the agents that run there, and whether the
// host had not asked before.
func (h *host) leave() (agents []string, first bool) {
	first = !h.leaving
	h.leaving = true
	return h.agents(), first
}

// agents returns the names of the agents that run on a host, in order.
func (h *host) agents() []string {
	agents := []string{}
	for _, r := range h.runs {
		agents = append(agents, r.order.Agent)
	}
	slices.Sort(agents)
	return agents
}

// View returns the hosts, by name.
func (h *Hosts) View() []control.HostView {
	h.mu.Lock()
	defer h.mu.Unlock()
	views := []control.HostView{}
	for _, name := range slices.Sorted(maps.Keys(h.hosts)) {
		host := h.hosts[name]
		labels := maps.Clone(host.labels)
		if rule, _ := h.ruleOf(name); len(rule.Labels) > 0 {
			labels = maps.Clone(rule.Labels)
			for key, value := range host.labels {
				labels[key] = cmp.Or(labels[key], value)
			}
		}
		v := control.HostView{
			Name: name, Address: host.address, Version: host.program, Labels: labels, Capacity: host.capacity, Agents: host.agents(),
			State: "gone",
		}
		if !host.since.IsZero() {
			v.Since, v.HeardAt = object.Timestamp(host.since), object.Timestamp(host.heard)
		}
		switch {
		case host.link != nil && host.draining():
			v.State = "draining"
		case host.link != nil:
			v.State = "joined"
		}
		views = append(views, v)
	}
	return views
}

// host returns the host with a name, and adds it if it is not there. h.mu must be held.
func (h *Hosts) host(name string) *host {
	found := h.hosts[name]
	if found == nil {
		found = &host{name: name, runs: make(map[string]*run), chosen: make(map[string]string), unknown: make(map[string]bool)}
		h.hosts[name] = found
	}
	return found
}

// hello adds the host that has said hello, or returns why it is refused. The session becomes its link.
func (h *Hosts) hello(name string, s *session, l *hostlink.Line) (*host, *wire.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rule, ok := h.ruleOf(name)
	if !ok {
		return nil, &wire.Error{
			Code: wire.CodeDenied, Message: fmt.Sprintf("no host block allows %.80q to join", name),
			Hint: "Add it to the file of the hub: host \"" + name + "\" {}",
		}
	}
	if h.closed {
		return nil, &wire.Error{Code: wire.CodeConflict, Message: "the team is being stopped"}
	}
	host := h.host(name)
	if host.link != nil {
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("another program has joined as %s, from %s", name, host.link.address),
			Hint: "Give each host its own name and token, or wait until the hub notices that the other one is gone",
		}
	}
	host.leaving = false
	clear(host.unknown)
	now := time.Now()
	host.link, host.since, host.heard, host.grace = s, now, now, cmp.Or(rule.Grace, hostlink.Grace)
	host.address, host.program, host.labels, host.capacity = s.address, l.Program, l.Labels, l.Capacity
	host.instance = l.Instance
	return host, nil
}
