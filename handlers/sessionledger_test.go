package handlers

import (
	"maps"
	"slices"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// minutes models the sessions from their records and letters alone: the members, the messages,
// their delivery, and the phases of tasks.
type minutes struct {
	w        *world
	sittings map[string]*sitting
	order    []*sitting
	closed   []*sitting // in the order of their ends
	past     []*sitting // forgotten by the State
	jobs     map[string]*job
	posts    []*missive // not delivered yet, in order
	turn     sessionTurn
}

// sitting is a session.
type sitting struct {
	spec     session.Spec
	open     bool
	said     map[string]uttered
	reviews  map[string]*judged
	asked    []*judged // the open ones
	live     []*job    // the open ones
	messages int64
	refused  int64
}

// uttered is a message that was accepted.
type uttered struct {
	seq int64
	sum uint64
}

// judged is a review.
type judged struct {
	id       string
	reviewer string
	job      *job
	verdict  string // "": open
}

// sessionTurn holds the effects of a turn.
type sessionTurn struct {
	said     []*state.SessionSaid
	seqs     []int64
	refused  []*state.SessionRefused
	troubles int
	ended    []*job                  // with an ended task
	over     []*job                  // which are over
	words    map[string]bool         // tasks with an outcome that a caller has decided
	spoken   map[string]int          // tasks with a completion sent for their developers
	closed   map[string]bool         // sessions that were closed
	errands  []*missive              // each must have a letter
	late     map[int64]*missive      // dropped, but may have a letter
	tidings  []session.DeliveryError // to be sent to the senders
}

func newMinutes(w *world) *minutes {
	m := &minutes{w: w, sittings: make(map[string]*sitting), jobs: make(map[string]*job)}
	m.turn.begin()
	return m
}

func (t *sessionTurn) begin() {
	*t = sessionTurn{
		said: t.said[:0], words: make(map[string]bool), spoken: make(map[string]int), closed: make(map[string]bool), late: make(map[int64]*missive),
	}
}

// sitting returns a session, or an empty one.
func (m *minutes) sitting(id string) *sitting {
	if s := m.sittings[id]; s != nil {
		return s
	}
	return new(sitting)
}

// key returns the key under which the messages of a session are kept.
func (s *sitting) key() string { return "session:" + s.spec.ID }

// typeOf returns the type of an agent in a session, or "" if it is not a member.
func (s *sitting) typeOf(name string) string {
	for _, m := range s.spec.Members {
		if m.AgentID == name {
			return m.AgentType
		}
	}
	return ""
}

// hear follows one record.
func (m *minutes) hear(r *wire.Record) {
	switch r.Kind {
	case events.AgentStarted, events.AgentEnded, events.AgentRecovered, events.OrchestratorStarted, events.AgentForgotten:
	case events.TaskStarted, events.TaskDone, events.TaskFailed, events.TaskCancelled, events.QuestionAnswered:
		if m.jobs[r.Correlation] == nil {
			return
		}
	default:
		if !ofSessions(r.Kind) {
			return
		}
	}
	f, err := state.Decode(r, new([]object.Member))
	m.w.must(err == nil, "%v", err)
	switch f := f.(type) {
	case *state.SessionOpened:
		m.open(f)
	case *state.SessionClosed:
		m.close(f)
	case *state.SessionSaid:
		m.hearSaid(f, r)
	case *state.SessionRefused:
		s := m.sittings[f.Session]
		s.messages++
		s.refused++
		m.turn.refused = append(m.turn.refused, f)
	case *state.SessionDelivered, *state.SessionDeferred, *state.SessionUndelivered, *state.LifecycleEvent, *state.AgentForgotten:
		m.hearPost(f, r.At)
	default:
		m.hearJob(f, r)
	}
}

func (m *minutes) open(f *state.SessionOpened) {
	s := m.sittings[f.ID]
	if s == nil {
		s = &sitting{said: make(map[string]uttered), reviews: make(map[string]*judged)}
		m.sittings[f.ID] = s
		m.order = append(m.order, s)
	}
	s.spec, s.open = f.Spec, true
	m.closed = slices.DeleteFunc(m.closed, func(o *sitting) bool { return o == s })
	m.leave(func(p *missive) bool { return p.Session == f.ID && s.typeOf(p.To) == "" })
}

// close follows the end of a session: no message of it waits then.
func (m *minutes) close(f *state.SessionClosed) {
	s := m.sittings[f.ID]
	m.w.must(s.open, "%s is closed twice", f.ID)
	s.open = false
	m.turn.closed[f.ID] = true
	m.w.must(len(s.live) == 0, "%s is closed, and %d tasks of it go on", f.ID, len(s.live))
	m.w.must(len(s.asked) == 0, "%s is closed, and %d reviews are open", f.ID, len(s.asked))
	m.leave(func(p *missive) bool { return p.Session == f.ID })
	if f.By != "" {
		return // it was aborted, and reopens at the next start
	}
	if m.closed = append(m.closed, s); len(m.closed) > m.w.rules.KeepClosed {
		m.forgetSitting(m.closed[0])
		m.closed = m.closed[1:]
	}
}

// forgetSitting forgets a session that closed long ago.
func (m *minutes) forgetSitting(s *sitting) {
	m.w.saw["a session is forgotten"]++
	delete(m.sittings, s.spec.ID)
	m.order = slices.DeleteFunc(m.order, func(o *sitting) bool { return o == s })
	m.past = append(m.past, s)
	maps.DeleteFunc(m.jobs, func(_ string, j *job) bool { return j.sitting == s })
}

// hearSaid follows a message. It must be new, and in the log as it was sent.
func (m *minutes) hearSaid(f *state.SessionSaid, r *wire.Record) {
	s := m.sittings[f.Session]
	m.w.must(s.open, "%s is said in %s, which is closed", f.Type, f.Session)
	key, ours := f.ID, f.By == (Actor{}).String()
	if ours {
		key = ownKey + key
	}
	m.w.must(s.said[key].seq == 0, "%s is said twice", key)
	m.w.must(r.Key == key && r.From == s.key() && r.To == r.From, "%+v", r)
	m.w.must(s.typeOf(f.From) != "" && s.typeOf(f.To) != "", "%s -> %s in %s, where they are not members", f.From, f.To, f.Session)
	s.said[key] = uttered{seq: r.Seq, sum: f.Sum}
	s.messages++
	m.turn.said = append(m.turn.said, f)
	m.turn.seqs = append(m.turn.seqs, r.Seq)
	m.w.saw["say "+f.Type]++
	m.w.saw["fate "+string(f.Fate)]++
	switch {
	case ours && f.Type == session.TypeTaskCompletion:
		m.turn.spoken[f.Task]++
		m.w.saw["a completion is said for anyRecipient"]++
	case ours:
	case f.Type == session.TypeTaskProgress:
		m.hearDone(f)
	case f.Type == session.TypeTaskCompletion:
		m.hearDone(f)
		m.turn.words[f.Task] = true
	case f.Type == session.TypeReviewResult, f.Type == session.TypeAbort:
		m.turn.words[f.Task] = true
	}
	m.lodge(f, r)
}

// lookAtTurn checks all records and letters of a turn.
func (m *minutes) lookAtTurn(in *Input, out *Outcome) {
	if r, ok := in.Message.(*wire.Request); ok {
		if said, ok := r.Body.(*wire.SaySession); ok {
			m.lookAtSaid(in, r, said, out)
		}
	}
	m.lookAtEnds()
	m.lookAtPost(out)
}

// look compares everything with the State.
func (m *minutes) look() {
	m.lookAtParcels()
	m.lookAtJobs()
}

// ofSessions reports whether a kind of record is about sessions.
func ofSessions(kind string) bool {
	return slices.Contains(sessionKinds, kind)
}

var sessionKinds = []string{
	events.SessionOpened, events.SessionClosed, events.SessionMessage, events.SessionRefused, events.SessionDelivered,
	events.SessionDeferred, events.SessionUndelivered, events.SessionAssigned, events.SessionMoved, events.SessionReassigned,
	events.SessionCompleted, events.SessionTrouble, events.TaskProgressOverdue, events.ReviewRequested, events.ReviewDecided,
	events.ReviewEscalated, events.ReviewExtended,
}

// lookAtSaid checks that an accepted message is in the log once, as it was sent. A refused one
// leaves only its refusal, except for files outside the scope. A repeated one has no effect.
func (m *minutes) lookAtSaid(in *Input, r *wire.Request, said *wire.SaySession, out *Outcome) {
	records, letters := 0, len(out.Letters)
	for i := range out.Records {
		if kind := out.Records[i].Kind; kind != events.TaskArchived && kind != events.TaskRecalled { // about other tasks
			records++
		}
	}
	if slices.ContainsFunc(out.Records, func(r wire.Record) bool { return r.Kind == events.ServerSeen }) { // and its effects
		records, letters = len(m.turn.refused)+m.turn.troubles, 1
	}
	if out.Refused != nil {
		m.w.saw["message refused: "+reasonOf(out.Refused)]++
		m.w.must(len(m.turn.refused) <= 1 && len(m.turn.said) == 0, "%d refusals, and %d messages are accepted", len(m.turn.refused), len(m.turn.said))
		m.w.must(records == len(m.turn.refused)+m.turn.troubles && m.turn.troubles <= 1, "it was refused, and %d records tell of it", records)
		m.w.must(letters == 1, "it was refused, and there are %d letters", letters)
		if len(m.turn.refused) == 1 && said.Message != nil {
			m.w.must(string(m.turn.refused[0].Document) == string(said.Message.Document), "another message is in the log")
		}
		return
	}
	message := said.Message
	m.w.must(message != nil, "a message that cannot be read is accepted")
	if len(m.turn.said) == 0 {
		m.w.saw["said again"]++
		known := false
		for _, s := range slices.Concat(m.order, m.past) {
			known = known || s.said[message.MessageID].sum == message.Sum && s.said[message.MessageID].seq != 0
		}
		m.w.must(known, "nothing is said, and %s was not said before", message.MessageID)
		m.w.must(records == 0, "what was said before has an effect")
		for _, l := range out.Letters {
			m.w.must(l.Line == nil, "what was said before is told: %+v", l)
		}
		return
	}
	first := m.turn.said[0]
	m.w.must(first.ID == message.MessageID && string(first.Document) == string(message.Document), "another message is in the log")
	m.w.must(first.From == message.From.AgentID && (first.By == "") == (in.From.Kind == Agent), "%v says it, by %q", in.From, first.By)
	for _, f := range m.turn.said[1:] {
		m.w.must(f.By == (Actor{}).String(), "%q says %s", f.By, f.Type)
	}
}

func reasonOf(err *wire.Error) string {
	if reason, ok := err.Details["reason"].(string); ok {
		return reason
	}
	return string(err.Code)
}
