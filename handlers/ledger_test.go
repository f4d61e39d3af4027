package handlers

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// A sentKey is an idempotency key of a sender.
type sentKey struct{ from, key string }

// A ledger models the bus from its records alone: the actors, the messages, the cursors, and the
// silent actors.
type ledger struct {
	w        *world
	letters  []wire.Record
	keyed    map[sentKey]int64
	cursors  map[string]int64
	lives    map[string]*life     // agents, by name
	whose    map[string]string    // agents, by actor id
	beats    map[string]time.Time // the last heartbeat of each actor, or the start that counts as one
	expected map[string]bool      // actors with an expected heartbeat
	missed   map[string]bool      // actors that GO knows to be stale
	since    time.Time
	lost     int    // runs that ended with the previous orchestrator
	about    string // has an actor.stale record, and no alert yet
	tokens   map[string]*actorToken
}

// A life is an agent and the knowledge of GO about it.
type life struct {
	writes   string // its actor in the configuration
	actor    string // its actor in the latest run
	run      string
	runs     bool // started and not ended
	exited   bool // the process of that run is gone
	remote   bool
	farewell bool // its run reported its end to GO
	parted   bool // it did so before it ended
	crashed  bool // GO heard of it, and not of its end
}

// An actorToken is a token of an external actor.
type actorToken struct {
	id, actor string
	until     time.Time // zero: for ever
}

func newLedger(w *world) *ledger {
	return &ledger{
		w: w, keyed: make(map[sentKey]int64), cursors: make(map[string]int64), lives: make(map[string]*life), whose: make(map[string]string),
		beats: make(map[string]time.Time), expected: make(map[string]bool), missed: make(map[string]bool), tokens: make(map[string]*actorToken),
	}
}

// isOf reports whether an agent still has its actor, and no other agent has it.
func (l *ledger) isOf(name string) bool {
	return l.lives[name] != nil && l.whose[l.lives[name].actor] == name
}

// hear follows one record.
func (l *ledger) hear(r *wire.Record) {
	if r.Kind == events.MessageSent {
		l.hearMail(r)
		return
	}
	if r.IsMail() {
		l.letters = append(l.letters, *r)
	}
	switch r.Kind {
	case events.MessageAcked, events.ActorSeen, events.ActorStale, events.AgentKnown, events.AgentForgotten, events.ServerRegistered,
		events.OrchestratorStarted, events.AgentStarted, events.AgentExited, events.AgentEnded, events.ActorTokenIssued, events.TokenRevoked,
		events.OrchestratorStoodStill, events.OrchestratorClockSet:
	default:
		return
	}
	f, err := state.Decode(r, new([]object.Member))
	l.w.must(err == nil, "%v", err)
	switch f := f.(type) {
	case *state.MailAcked:
		before, known := l.cursors[f.Actor]
		l.w.must(r.From == f.Actor && (f.Seq > before || !known), "%s acks %d as %s, after %d", r.From, f.Seq, f.Actor, before)
		l.cursors[f.Actor] = f.Seq
	case *state.ActorSeen:
		l.w.must(r.From == f.Actor, "%s is there, says %s", f.Actor, r.From)
		l.beat(f.Actor, r.At)
	case *state.ActorStale:
		l.w.must(r.From == mail.Bus && l.about == "" && l.missed[f.Actor] == f.Over, "%s is stale, over: %t", f.Actor, f.Over)
		l.about = f.Actor
	case *state.ActorTokenIssued:
		l.admit(f)
	case *state.StoodStill:
		l.since = r.At
	case *state.ClockSet:
		by := time.Duration(f.By) * time.Millisecond
		l.since = l.since.Add(by)
		for id, expected := range l.expected {
			if expected {
				l.beats[id] = l.beats[id].Add(by)
			}
		}
	case *state.TokenRevoked:
		for hash, token := range l.tokens {
			if token.id == f.ID {
				delete(l.tokens, hash)
				l.forsake(token.actor, r.At)
			}
		}
	default:
		l.hearLife(f, r)
	}
}

// hearMail follows a message.
func (l *ledger) hearMail(r *wire.Record) {
	l.letters = append(l.letters, *r)
	if r.Key != "" {
		l.w.must(l.keyed[sentKey{r.From, r.Key}] == 0, "%s has sent something with the key %s already", r.From, r.Key)
		l.keyed[sentKey{r.From, r.Key}] = r.Seq
	}
	v := l.lives[l.whose[r.From]]
	switch {
	case r.From == mail.Bus && (r.Topic == mail.TopicAlertFired || r.Topic == mail.TopicAlertResolved):
		l.hearAlert(r)
	case r.Topic == mail.TopicHeartbeat:
		l.beat(r.From, r.At)
	case r.Topic == mail.TopicAgentTerminated && r.To == mail.Global && v != nil:
		v.farewell = true
	case r.Topic == mail.TopicAgentTerminated && r.To == mail.Global:
		delete(l.expected, r.From) // it is gone
	}
}

// beat records a heartbeat. The next one is expected, unless the process of the agent is gone.
func (l *ledger) beat(id string, at time.Time) {
	l.beats[id] = at
	if v := l.lives[l.whose[id]]; v == nil || v.remote || v.runs && !v.exited {
		l.expected[id] = true
	}
}

// hearAlert checks that GO hears once of each problem, and once of its end.
func (l *ledger) hearAlert(r *wire.Record) {
	var a mail.Alert
	l.w.must(json.Unmarshal(r.Payload, &a) == nil, "%s", r.Payload)
	fired := r.Topic == mail.TopicAlertFired
	switch a.Alert {
	case mail.AlertStale:
		l.w.must(l.about == a.Actor && l.missed[a.Actor] != fired, "%s %s", r.Topic, r.Payload)
		if fired {
			v := l.lives[l.whose[a.Actor]]
			late := v != nil && v.runs && v.exited && !l.beats[a.Actor].IsZero() // its last message may count
			l.w.must(l.expected[a.Actor] || late, "nobody expects that %s sends heartbeats: it is %q, %+v", a.Actor, l.whose[a.Actor], v)
			l.w.must(r.At.Sub(l.heard(a.Actor)) > l.w.rules.Stale, "%s is missed too soon: %v", a.Actor, r.At.Sub(l.heard(a.Actor)))
		}
		l.missed[a.Actor], l.about = fired, ""
	case mail.AlertCrashed:
		v := l.lives[a.Agent]
		l.w.must(v != nil && v.crashed != fired, "%s %s", r.Topic, r.Payload)
		v.crashed = fired
	}
	l.w.saw[r.Topic+": "+a.Alert]++
}

// heard returns the time since which an actor is silent. It is not before the start of the
// orchestrator.
func (l *ledger) heard(id string) time.Time {
	if l.since.After(l.beats[id]) {
		return l.since
	}
	return l.beats[id]
}

// hearLife follows the agents and their actors.
func (l *ledger) hearLife(f state.Fact, r *wire.Record) {
	switch f := f.(type) {
	case *state.AgentKnown:
		l.know(f)
	case *state.AgentForgotten:
		l.lose(f.ID)
		delete(l.lives, f.ID)
	case *state.ServerRegistered:
		if l.lives[f.Agent] == nil {
			l.lives[f.Agent] = new(life)
		}
		l.lives[f.Agent].remote = true
		l.become(f.Agent, "W:"+hub.ServerID(f.Agent))
	case *state.LifecycleEvent:
		if f.What == events.OrchestratorStarted {
			l.lost = 0
			for _, v := range l.lives {
				if v.runs && !v.remote {
					l.lost++
				}
			}
			l.awake(r.At)
		} else if v := l.lives[f.Agent]; v != nil && !v.remote {
			l.live(v, f, r)
		}
	}
}

// know adds or changes an agent of the configuration. A running agent keeps its actor.
func (l *ledger) know(f *state.AgentKnown) {
	if l.lives[f.ID] == nil {
		l.lives[f.ID] = new(life)
	}
	v := l.lives[f.ID]
	if v.remote {
		l.lose(f.ID)
		v.remote = false
	}
	v.writes = cmp.Or(f.Actor, "W")
	switch {
	case v.runs && l.isOf(f.ID):
	case mail.PerRun(v.writes), l.taken(v.writes, f.ID):
		l.lose(f.ID)
	default:
		l.become(f.ID, v.writes)
	}
}

// forsake forgets an actor that no agent has and no valid token names.
func (l *ledger) forsake(id string, at time.Time) {
	for _, token := range l.tokens {
		if token.actor == id && (token.until.IsZero() || token.until.After(at)) {
			return
		}
	}
	if l.whose[id] != "" {
		return
	}
	delete(l.expected, id)
	l.w.must(!l.missed[id], "%s cannot come back, and GO waits for it", id)
	if mail.Passing(id) {
		delete(l.cursors, id)
		delete(l.beats, id)
	}
}

// taken reports whether another running agent has an actor. It keeps the actor until it ends.
func (l *ledger) taken(id, name string) bool {
	o := l.lives[l.whose[id]]
	return o != nil && l.whose[id] != name && o.runs && !o.remote
}

// live follows the process of an agent.
func (l *ledger) live(v *life, f *state.LifecycleEvent, r *wire.Record) {
	switch f.What {
	case events.AgentStarted:
		v.run, v.runs, v.exited, v.farewell = f.Run, true, false, false
		l.become(f.Agent, mail.ActorOfRun(v.writes, f.Run))
		if v.writes != "W" {
			l.beats[v.actor], l.expected[v.actor] = r.At, true
		}
	case events.AgentExited:
		v.exited = true
	case events.AgentEnded:
		v.runs, v.parted = false, v.farewell
		if l.isOf(f.Agent) {
			delete(l.expected, v.actor)
		}
	}
}

// awake follows a start of the orchestrator: no agent runs.
func (l *ledger) awake(at time.Time) {
	l.since = at
	for name, v := range l.lives {
		if v.runs = false; !v.remote && l.isOf(name) {
			delete(l.expected, v.actor)
		}
	}
}

// become gives an agent an actor and takes it from the agent that had it.
func (l *ledger) become(name, id string) {
	v := l.lives[name]
	if v.actor == id && l.isOf(name) {
		return
	}
	l.lose(name)
	if l.whose[id] != "" {
		l.w.saw["a name moves"]++
	}
	delete(l.expected, id)
	for hash, token := range l.tokens {
		if token.actor == id {
			delete(l.tokens, hash)
		}
	}
	l.whose[id], v.actor = name, id
}

// lose takes the actor from an agent. An actor of a single run is forgotten, so that GO does not
// miss it forever.
func (l *ledger) lose(name string) {
	if !l.isOf(name) {
		return
	}
	v := l.lives[name]
	delete(l.whose, v.actor)
	delete(l.expected, v.actor)
	if v.run != "" && v.actor != v.writes && !v.remote && ofRun(v) {
		l.w.must(!l.missed[v.actor], "%s is forgotten, and GO waits for it", v.actor)
		delete(l.cursors, v.actor)
		delete(l.beats, v.actor)
	}
	v.actor = ""
}

// ofRun reports whether an agent's actor belongs to its run.
func ofRun(v *life) bool {
	return len(v.actor) > len(v.run) && v.actor[len(v.actor)-len(v.run)-1:] == ":"+v.run
}

// admit follows the tokens of actors.
func (l *ledger) admit(f *state.ActorTokenIssued) {
	until, _ := object.ParseTime(f.Until)
	for _, token := range l.tokens {
		if token.actor == f.Actor && (token.until.IsZero() || until.Before(token.until)) {
			token.until = until
		}
	}
	expires, _ := object.ParseTime(f.ExpiresAt)
	l.tokens[f.Hash] = &actorToken{id: f.ID, actor: f.Actor, until: expires}
}

// Record returns a message. Record and Find make the ledger the archive of the mail.
func (l *ledger) Record(seq int64) (wire.Record, error) {
	at, there := slices.BinarySearchFunc(l.letters, seq, func(r wire.Record, seq int64) int { return cmp.Compare(r.Seq, seq) })
	if !there { // a record of another kind
		return wire.Record{Seq: seq}, nil
	}
	return l.letters[at], nil
}

func (l *ledger) After(seq int64) iter.Seq2[wire.Record, error] { return shelf(l.letters).After(seq) }

func (l *ledger) Find(search wire.Search) iter.Seq2[wire.Record, error] {
	at, _ := slices.BinarySearchFunc(l.letters, search.After+1, func(r wire.Record, seq int64) int { return cmp.Compare(r.Seq, seq) })
	return shelf(l.letters[at:]).Find(search)
}
