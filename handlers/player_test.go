package handlers

import (
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// player plays stories: it is the environment of a State.
type player struct {
	t        testing.TB
	rules    Rules
	state    *State
	at       time.Time
	chance   uint32
	runs     map[string]int           // of each agent, so far
	sent     map[string]*wire.Request // the latest of each sender and id that was accepted
	records  []wire.Record
	last     Outcome             // of the latest input
	able     map[string]wire.Raw // capabilities of agents, by name
	acts     map[string]string   // actors of agents, by name
	convened []session.Spec      // the sessions of the configuration
	lines    map[string]string   // session messages and task requests so far, by id
	token    string              // the latest registration token
	out      strings.Builder
}

// beginning is the time of the beginning of every story.
var beginning = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

func newPlayer(t testing.TB) *player {
	return &player{t: t, state: New(Rules{}), at: beginning, runs: make(map[string]int), sent: make(map[string]*wire.Request), able: make(map[string]wire.Raw), acts: make(map[string]string), lines: make(map[string]string)}
}

// saved returns a copy of the player, to continue from later.
func (p *player) saved() player {
	return player{
		t: p.t, rules: p.rules, state: restored(p.t, p.rules, spelled(p.t, p.state)), at: p.at, chance: p.chance,
		runs: maps.Clone(p.runs), sent: maps.Clone(p.sent), records: slices.Clip(p.records), able: maps.Clone(p.able), acts: maps.Clone(p.acts), convened: slices.Clip(p.convened), lines: maps.Clone(p.lines), token: p.token,
	}
}

// command returns the function of a script line that begins with word.
func command(word string) func(p *player, rest string) {
	switch word {
	case "rules:":
		return (*player).setRules
	case "agents:":
		return (*player).enlist
	case "able":
		return func(p *player, rest string) {
			name, document, _ := strings.Cut(rest, " ")
			p.able[name] = wire.Raw(document)
		}
	case "acts":
		return func(p *player, rest string) {
			name, actor, _ := strings.Cut(rest, " ")
			p.acts[name] = actor
		}
	case "up":
		return func(p *player, _ string) { p.happen(events.OrchestratorStarted, "") }
	case "stopping":
		return func(p *player, _ string) { p.happen(events.OrchestratorStopping, "") }
	case "restart":
		return (*player).restart
	case "start":
		return (*player).start
	case "exit":
		return (*player).exit
	case "stop":
		return (*player).stop
	case "event":
		return (*player).event
	case "checked":
		return (*player).checked
	case ">":
		return (*player).speak
	case "resend":
		return (*player).resend
	case "told":
		return func(p *player, rest string) { p.told(rest, false) }
	case "lost":
		return func(p *player, rest string) { p.told(rest, true) }
	case "session":
		return (*player).convene
	case "say":
		return (*player).say
	case "again":
		return (*player).again
	case "has":
		return func(p *player, rest string) { p.has(rest, false) }
	case "takes":
		return (*player).takes
	case "hasnot":
		return func(p *player, rest string) { p.has(rest, true) }
	case "request":
		return (*player).request
	case "act":
		return (*player).act
	case "respond":
		return (*player).respond
	case "gone":
		return func(p *player, who string) { p.do(Actor{}, &wire.AgentGone{Agent: who}) }
	case "show":
		return (*player).showSession
	case "at":
		return (*player).setTime
	case "late":
		return func(p *player, _ string) { p.do(Actor{}, wire.Tick{Late: true}) }
	case "clock":
		return (*player).setClock
	case "wait":
		return (*player).wait
	case "counts":
		return (*player).showCounts
	case "holds":
		return (*player).showHolds
	case "events":
		return (*player).showEvents
	}
	return nil
}

// do handles an input.
func (p *player) do(from Actor, m wire.Message) Outcome {
	p.chance++
	in := Input{At: p.at, From: from, Message: m}
	binary.BigEndian.PutUint32(in.Random[:], p.chance)
	shelf(p.records).lookUp(p.state, &in)
	p.last = shelf(p.records).handle(p.state, &in)
	p.records = append(p.records, p.last.Records...)
	for _, l := range p.last.Letters {
		if issued, ok := l.Payload.(*wire.IssuedRegistration); ok {
			p.token = issued.Token
		}
	}
	p.show(p.last)
	return p.last
}

// task returns the task with a name, or nil.
func (p *player) task(name string) *state.Task {
	for _, k := range p.state.Tasks.List {
		if k.View.Name == name {
			return k
		}
	}
	for _, k := range p.archived() {
		if k.View.Name == name {
			return k
		}
	}
	return nil
}

// archived returns the archived tasks.
func (p *player) archived() []*state.Task {
	var tasks []*state.Task
	for r := range shelf(p.records).Find(wire.Search{Archived: true}) {
		f, err := state.Decode(&r, new([]object.Member))
		require.NoError(p.t, err)
		var kept state.SnapshotTask
		require.NoError(p.t, object.DecodeOwn(f.(*state.TaskArchived).Task, &kept))
		tasks = append(tasks, kept.Restore())
	}
	return tasks
}

func (p *player) setRules(rest string) {
	for word := range strings.FieldsSeq(rest) {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "timeout":
			p.rules.RequestTimeout, err = time.ParseDuration(value)
		case "dependency-failure":
			p.rules.OnDependencyFailure = value
		case "retries":
			p.rules.DelegationRetries, err = strconv.Atoi(value)
		case "keep":
			p.rules.KeepFinished, err = strconv.Atoi(value)
		case "archive":
			p.rules.Archive, err = strconv.ParseBool(value)
		case "attempts":
			p.rules.MaxAttempts, err = strconv.Atoi(value)
		case "stale":
			p.rules.Stale, err = time.ParseDuration(value)
		case "topics":
			p.rules.Topics = strings.Split(value, ",")
		case "silence":
			p.rules.Silence, err = time.ParseDuration(value)
		case "on-create":
			p.rules.MatchOnCreate, err = strconv.ParseBool(value)
		case "lenient":
			p.rules.LenientResults, err = strconv.ParseBool(value)
		case "online-only":
			p.rules.OnlineOnly, err = strconv.ParseBool(value)
		case "queue":
			p.rules.MergeQueue, err = strconv.ParseBool(value)
		case "count-assigned":
			p.rules.CountAssigned, err = strconv.ParseBool(value)
		case "ignore-arrivals":
			p.rules.IgnoreArrivals, err = strconv.ParseBool(value)
		default:
			require.Fail(p.t, "no such rule", name)
		}
		require.NoError(p.t, err)
	}
	p.state.Adopt(p.rules)
}

var memberForm = regexp.MustCompile(`([\w-]+)\(([^)]*)\)`)

func (p *player) enlist(rest string) {
	roster := &wire.AgentSet{Sessions: p.convened}
	for _, found := range memberForm.FindAllStringSubmatch(rest, -1) {
		m := wire.Member{ID: found[1], Capacity: 1, OnExit: "auto", Abilities: p.able[found[1]], Actor: p.acts[found[1]]}
		for i, field := range strings.Split(found[2], ";") {
			field = strings.TrimSpace(field)
			switch {
			case field == "":
			case i == 0:
				m.Role = field
			case i == 1:
				m.Capabilities = strings.Split(field, ",")
			case i == 2:
				m.Capacity, _ = strconv.Atoi(field)
			case field == "raw":
				m.Deaf = true
			case field == "manual":
				m.Manual = true
			case field == "fixed":
				m.Fixed = true
			case field == "manage":
				m.Manage = true
			case field == "two open":
				m.OpenTasks = 2
			default:
				m.OnExit = field
			}
		}
		roster.Agents = append(roster.Agents, m)
	}
	p.do(Actor{}, roster)
}

func (p *player) happen(kind, who string) {
	e := &wire.Event{Kind: kind}
	if who != "" {
		e.Agent, e.Run = p.actor(who).Name, p.actor(who).Run
	}
	p.do(Actor{}, e)
}

func (p *player) event(rest string) {
	kind, who, _ := strings.Cut(rest, " ")
	p.happen(kind, who)
}

// checked reports work that was done for a task: its workspace was made, or its branch was merged.
func (p *player) checked(rest string) {
	kind, name, _ := strings.Cut(rest, " ")
	k := p.state.Tasks.ByID[p.withIDs(name)]
	m := &wire.TaskChecked{Kind: "task." + kind, Task: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Text: "is checked"}
	if kind == "workspace" {
		m.Workspace = &wire.Workspace{Path: "/w/" + k.View.Name, Branch: "task/" + k.View.Name, Base: "main"}
	}
	p.do(Actor{}, m)
}

func (p *player) restart(string) { p.state = p.replayed() }

func (p *player) start(who string) {
	p.runs[who]++
	p.happen(events.AgentStarted, who)
}

func (p *player) exit(rest string) {
	who, how, _ := strings.Cut(rest, " ")
	figures, text := ending(how)
	a := p.actor(who)
	p.do(Actor{}, &wire.Event{Kind: events.AgentExited, Agent: a.Name, Run: a.Run, Text: text, Figures: figures})
	p.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: a.Name, Run: a.Run, Text: text, Figures: figures})
}

func (p *player) stop(rest string) {
	who, how, _ := strings.Cut(rest, " ")
	figures, text := ending(how)
	figures.Ordered = true
	a := p.actor(who)
	p.happen(events.AgentStopping, who)
	p.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: a.Name, Run: a.Run, Text: text, Figures: figures})
	p.happen(events.AgentStopped, who)
}

// ending returns the end of a process, given an exit code or a signal.
func ending(how string) (figures wire.Figures, text string) {
	if code, err := strconv.Atoi(how); err == nil {
		return wire.Figures{ExitCode: &code}, "exit " + how
	}
	return wire.Figures{Signal: how}, how
}

// speak sends a request or an event of an agent.
func (p *player) speak(rest string) {
	who, rest, _ := strings.Cut(rest, " ")
	id, rest, _ := strings.Cut(rest, " ")
	if name, isEvent := strings.CutPrefix(id, "event:"); isEvent {
		p.report(who, name, p.withIDs(rest))
		return
	}
	operation, payload, _ := strings.Cut(rest, " ")
	r := &wire.Request{
		ID: id, Operation: operation, Timestamp: object.Timestamp(p.at), Payload: []byte(p.withIDs(payload)),
	}
	if err := prepare(r); err != nil { // the reader of the line answers
		p.showLine(who, stdio.Envelope{At: p.at}.AppendAnswer(nil, id, nil, err))
		return
	}
	if p.do(p.actor(who), r).Refused == nil {
		p.sent[p.actor(who).Name+" "+id] = r
	}
}

// prepare decodes a request, or a new task in the form of the hub.
func prepare(r *wire.Request) *wire.Error {
	name, hub := strings.CutPrefix(r.Operation, "hub:")
	if r.Operation = name; !hub {
		return Prepare(r, 64)
	}
	var o object.Reader
	if err := o.Read(r.Payload, 64, ""); err != nil {
		return err
	}
	r.Body = wire.ReadHubTask(&o)
	return o.Err()
}

func (p *player) resend(rest string) {
	who, id, _ := strings.Cut(rest, " ")
	r := p.sent[p.actor(who).Name+" "+id]
	require.NotNil(p.t, r, "nothing was sent under that id")
	p.do(p.actor(who), r)
}

func (p *player) report(who, name, payload string) {
	body, err := wire.ReadReport(name, []byte(payload), 64)
	if err != nil {
		fmt.Fprintf(&p.out, "(ignored: %s)\n", err.Message)
		return
	}
	p.do(p.actor(who), &wire.AgentEvent{Name: name, Body: body})
}

func (p *player) told(rest string, lost bool) {
	who, task, _ := strings.Cut(rest, " ")
	a, said := p.actor(who), int64(0)
	if what, id, found := strings.Cut(task, " "); found {
		task, said = id, p.carriedAs(what, id)
	}
	p.do(Actor{}, &wire.Delivered{Agent: a.Name, Run: a.Run, Task: p.withIDs(task), Said: said, Lost: lost})
}

// actor returns the actor of a script: the operator, the current run of an agent, or AGENT@RUN.
func (p *player) actor(who string) Actor {
	switch who {
	case "operator":
		return Actor{Kind: Operator}
	case "newcomer":
		return Actor{Kind: Anonymous}
	}
	if name, ok := strings.CutPrefix(who, "operator:"); ok {
		return Actor{Kind: Operator, Name: name}
	}
	if id, ok := strings.CutPrefix(who, "actor:"); ok {
		return Actor{Kind: External, Name: id}
	}
	who, strict := strings.CutPrefix(who, "strict:")
	who, wide := strings.CutPrefix(who, "wide:")
	name, run, given := strings.Cut(who, "@")
	if !given {
		run = p.run(name)
	}
	return Actor{Kind: Agent, Name: name, Run: run, ActsForOthers: wide, ExplicitSteps: strict}
}

// run returns the current run of an agent.
func (p *player) run(name string) string {
	if p.runs[name] == 0 {
		return ""
	}
	return fmt.Sprintf("%s.%d", name, p.runs[name])
}

func (p *player) setTime(rest string) {
	p.at = beginning.Add(p.duration(strings.TrimPrefix(rest, "+")))
}

func (p *player) setClock(rest string) {
	by := p.duration(rest)
	p.at = p.at.Add(by)
	p.do(Actor{}, wire.ClockSet{By: by})
}

func (p *player) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(p.t, err)
	return d
}

func (p *player) wait(string) {
	due, some := p.state.Due()
	if !some {
		p.out.WriteString("(nothing is due)\n")
		return
	}
	if due.After(p.at) {
		p.at = due
	}
	fmt.Fprintf(&p.out, "(at %s)\n", object.Timestamp(p.at))
	p.do(Actor{}, wire.Tick{})
}
