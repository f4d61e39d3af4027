package handlers

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// assembly holds the sessions of a world: their configuration, their messages, and the lines on
// their way.
type assembly struct {
	specs  []session.Spec  // that the configuration may have
	out    map[string]bool // currently removed
	lines  []Letter        // not known to be written yet
	spoken []spoken        // the latest, to be sent again
	number int64           // of the latest message
	full   map[string]bool // agents that do not read now
}

// spoken is a message that was sent.
type spoken struct {
	from string
	line string
}

// seating lists the members of each session: architects, developers, reviewers. Some are in two
// sessions, a12 begins as a server, and a13 takes no messages.
var seating = [][3]string{
	{"a0", "a1 a2 a13", "a3 a4"},
	{"a5", "a1 a6", "a3"},
	{"a7 a0", "a9 a12", "a10"},
	{"a8", "a11 a2", "a10"}, // of the session created by request
}

const byHandSession = "s3"

// found makes the sessions of a world.
func (w *world) found(seed uint64) {
	w.sessions = assembly{out: make(map[string]bool), full: make(map[string]bool)}
	for i, seats := range seating {
		spec := session.Spec{ID: fmt.Sprint("s", i), Validation: session.ValidationStandard}
		for j, names := range seats {
			for name := range strings.FieldsSeq(names) {
				spec.Members = append(spec.Members, session.Member{AgentID: name, AgentType: session.AgentTypes[j]})
			}
		}
		if (uint64(i)+seed)%4 == 0 {
			spec.Validation = session.ValidationStrict
		}
		w.rule(&spec)
		spec.OnMax = session.Escalations[(uint64(i)+seed)%3]
		w.sessions.specs = append(w.sessions.specs, spec)
	}
	w.sessions.out[byHandSession] = true
}

// rule gives a session random rules.
func (w *world) rule(spec *session.Spec) {
	spec.RequireReview = w.chance.IntN(2) == 0
	spec.OnMax = w.one(session.Escalations...)
	spec.MaxIterations = 1 + w.chance.Int64N(3)
	spec.TaskTimeout = []int64{0, 0, 30_000, 90_000}[w.chance.IntN(4)]
	spec.ProgressAfter, spec.ProgressEvery = session.ProgressAfter, session.ProgressEvery
	if w.chance.IntN(2) == 0 {
		spec.ProgressAfter, spec.ProgressEvery = 20_000, 5_000
	}
}

// convened returns the sessions in the configuration.
func (w *world) convened() (specs []session.Spec) {
	for _, spec := range w.sessions.specs {
		if !w.sessions.out[spec.ID] {
			spec.Members = slices.Clone(spec.Members)
			specs = append(specs, spec)
		}
	}
	return specs
}

// reseat changes a session: its rules or members, or removes or adds it.
func (w *world) reseat() {
	spec := &w.sessions.specs[w.chance.IntN(len(w.sessions.specs))]
	switch n := w.chance.IntN(8); {
	case spec.ID == byHandSession:
		payload, err := object.Encode(spec)
		w.must(err == nil, "%v", err)
		open := w.minutes.sitting(spec.ID).open
		out := w.request(Actor{Kind: Operator}, "create-session", string(payload))
		w.must((out.Refused == nil) == !open, "a session is made that is open already, or is not: %v", out.Refused)
		return
	case n < 2:
		w.sessions.out[spec.ID] = !w.sessions.out[spec.ID]
	case n < 4:
		w.sessions.out[spec.ID] = false
		w.rule(spec)
	case n < 6 && len(spec.Members) > 3:
		at := w.chance.IntN(len(spec.Members))
		spec.Members = slices.Delete(slices.Clone(spec.Members), at, at+1)
	default:
		m := session.Member{AgentID: w.members[w.chance.IntN(len(w.members))].ID, AgentType: w.one(session.AgentTypes...)}
		spec.Members = slices.DeleteFunc(slices.Clone(spec.Members), func(o session.Member) bool { return o.AgentID == m.AgentID })
		spec.Members = append(spec.Members, m)
	}
	w.enlist()
}

// say sends a message: as a line of its agent, as a request, or by a person in the agent's name.
func (w *world) say(from, line string) Outcome {
	i := slices.IndexFunc(w.members, func(m *inhabitant) bool { return m.ID == from })
	var m *inhabitant
	if i >= 0 {
		m = w.members[i]
	}
	w.sessions.spoken = append(w.sessions.spoken, spoken{from: from, line: line})
	w.sessions.spoken = w.sessions.spoken[max(0, len(w.sessions.spoken)-60):]
	switch {
	case m == nil || !m.up && !m.dying || w.chance.IntN(12) == 0:
		return w.request(Actor{Kind: Operator}, "send-session-message", `{"message":`+line+`}`)
	case m.far || w.chance.IntN(10) == 0:
		return w.request(m.actor(), "send-session-message", `{"message":`+line+`}`)
	}
	return w.print(m, line)
}

// print has an agent print a line that is a session message.
func (w *world) print(m *inhabitant, line string) Outcome {
	reader := stdio.Reader{Agent: m.ID, Depth: 64}
	s, ok := reader.Parse([]byte(line)).(*wire.Session)
	if !ok {
		w.saw["an echo"]++ // of its message, in the name of another
		return Outcome{}
	}
	return w.do(m.actor(), &wire.Request{
		ID: s.ID, Operation: "send-session-message", Form: dialect.Session, Body: &wire.SaySession{Session: *s},
	})
}

// carry delivers or loses a line: its run may have ended, or not read for a while. Lines mostly
// keep their order.
func (w *world) carry() {
	lines := w.sessions.lines
	if len(lines) == 0 {
		return
	}
	i := 0
	if w.chance.IntN(8) == 0 {
		i = w.chance.IntN(len(lines))
	}
	l := lines[i]
	w.sessions.lines = slices.Delete(lines, i, i+1)
	lost := true
	for _, m := range w.members {
		if m.ID == l.To.Name && m.run == l.To.Run && m.up && !m.far {
			lost = w.sessions.full[m.ID]
			if w.chance.IntN(60) == 0 {
				w.sessions.full[m.ID], lost = true, true
			}
		}
	}
	if lost && w.chance.IntN(4) == 0 && !w.sessions.full[l.To.Name] {
		return // lost with its run, without a report
	}
	w.do(Actor{}, &wire.Delivered{Agent: l.To.Name, Run: l.To.Run, Said: l.Said, Lost: lost})
}

// drain makes an agent read again.
func (w *world) drain(m *inhabitant) {
	if !w.sessions.full[m.ID] {
		return
	}
	delete(w.sessions.full, m.ID)
	w.do(Actor{}, &wire.Event{Kind: events.AgentRecovered, Agent: m.ID, Run: m.run, Text: "it reads again"})
}

// part stops agents after the end of their session.
func (w *world) part(names []string) {
	for _, m := range w.members {
		if !slices.Contains(names, m.ID) || !m.up || m.far || w.chance.IntN(2) == 0 {
			continue
		}
		w.stop(m, wire.Figures{})
	}
}

// stop stops an agent.
func (w *world) stop(m *inhabitant, figures wire.Figures) {
	m.up = false
	w.do(Actor{}, &wire.Event{Kind: events.AgentStopping, Agent: m.ID, Run: m.run, Text: events.AgentStopping})
	w.forget(func(run string) bool { return run == m.run })
	figures.Ordered = true
	w.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: m.ID, Run: m.run, Text: events.AgentEnded, Figures: figures})
	w.do(Actor{}, &wire.Event{Kind: events.AgentStopped, Agent: m.ID, Run: m.run, Text: events.AgentStopped})
	w.yield(m)
}

// lookUp looks up the message sent with a key in the log.
func (w *world) lookUp(l *wire.Lookup, from, key string) {
	*l = wire.Lookup{Before: w.bus.keyed[sentKey{from, key}], Looked: w.state.Seq(), Sender: from}
	if sessionID, ok := strings.CutPrefix(from, state.SessionPrefix); ok {
		said := w.minutes.sitting(sessionID).said[key]
		l.Before, l.Sum = said.seq, said.sum
	}
}
