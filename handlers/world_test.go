package handlers

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// world is a random environment of a State: agents that work, die and restart, people, a
// configuration that changes, and sometimes the end of the orchestrator. It chooses each step
// from its random source and the replies of the State, and checks every reply.
type world struct {
	t      *testing.T
	rules  Rules
	chance *rand.Rand
	state  *State
	shadow *State // follows only the records
	at     time.Time
	steps  int
	ids    int

	members []*inhabitant
	mail    []Letter                  // notices of tasks, on their way
	waits   map[string]bool           // requests that wait for a reply, by run and id
	asks    map[string]string         // the request that asks a question, as in waits
	left    map[string]bool           // requests of callers that gave up waiting
	sent    []sent                    // the latest requests that were granted
	ended   map[string]wire.TaskState // of final tasks
	recent  []string                  // the latest tasks
	gone    []string                  // the latest archived tasks

	states   map[string]wire.TaskState // of all tasks, by the records
	archived map[string]wire.Record    // of archived tasks, the newest of each
	later    map[string]time.Time      // postponed tasks, by the records
	missed   map[string]bool           // contracts reported as missing, by task and key
	keys     map[string]*key           // of agents, by hash
	servers  map[string]bool           // agents that have registered themselves
	bus      *ledger

	sessions  assembly
	minutes   *minutes
	handovers *handovers
	voice     hash.Hash // all records and letters
	saw       map[string]int
}

// inhabitant is an agent and its process.
type inhabitant struct {
	wire.Member
	listed bool // in the configuration
	run    string
	runs   int
	up     bool
	dying  bool // it has exited, and its last lines are still read
	counts bool // its ids restart with each run
	ids    int
	far    bool // a registered server; then up means that it is online
	yields bool // its actor goes to another agent when it ends
}

// sent is a granted request with its answer.
type sent struct {
	from    Actor
	request *wire.Request
	answer  string
}

func newWorld(t *testing.T, seed uint64) *world {
	rules := rulesOf(seed)
	w := &world{
		t: t, rules: rules, chance: rand.New(rand.NewPCG(seed, 1)), state: New(rules), shadow: New(rules), at: beginning,
		waits: make(map[string]bool), asks: make(map[string]string), left: make(map[string]bool), ended: make(map[string]wire.TaskState), voice: sha256.New(), saw: make(map[string]int),
		states: make(map[string]wire.TaskState), archived: make(map[string]wire.Record), later: make(map[string]time.Time), missed: make(map[string]bool), keys: make(map[string]*key), servers: make(map[string]bool),
	}
	w.bus, w.minutes, w.handovers = newLedger(w), newMinutes(w), newHandovers(w)
	exits := []string{"auto", "fail", "requeue"}
	for i := range 14 {
		m := &inhabitant{listed: true, counts: i%2 == 0}
		m.ID, m.Role, m.OnExit, m.Capacity = fmt.Sprintf("a%d", i), wire.Roles[i%3], exits[i%len(exits)], 1+i%3
		m.Deaf, m.listed = i == 13, i != 12
		m.christen(i)
		w.members = append(w.members, m)
		w.retrain(m)
	}
	w.found(seed)
	w.enlist()
	w.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	for _, m := range w.members {
		if m.listed {
			w.launch(m)
		} else {
			w.enroll(m)
		}
	}
	return w
}

var skills = []string{"go", "sql", "css", "ops"}

func (w *world) retrain(m *inhabitant) {
	m.Capabilities = nil
	for _, skill := range skills {
		if w.chance.IntN(2) == 0 {
			m.Capabilities = append(m.Capabilities, skill)
		}
	}
	m.Abilities = nil
	if w.chance.IntN(4) > 0 {
		m.Abilities = w.abilities(m.Capacity)
	}
}

func (w *world) enlist() {
	roster := &wire.AgentSet{Sessions: w.convened()}
	for _, m := range w.members {
		if m.listed {
			roster.Agents = append(roster.Agents, m.Member)
		}
	}
	w.do(Actor{}, roster)
}

func (w *world) launch(m *inhabitant) {
	m.runs++
	m.up, m.dying, m.ids = true, false, 0
	delete(w.sessions.full, m.ID)
	m.run = fmt.Sprintf("%s.%d", m.ID, m.runs)
	w.do(Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: m.ID, Run: m.run})
}

func (m *inhabitant) actor() Actor { return Actor{Kind: Agent, Name: m.ID, Run: m.run} }

// says reports whether an actor is the current run of the member.
func (m *inhabitant) says(a Actor) bool { return a.Kind == Agent && a.Name == m.ID && a.Run == m.run }

// do handles an input and checks the outcome.
func (w *world) do(from Actor, message wire.Message) Outcome {
	in := Input{At: w.at, From: from, Message: message}
	before := w.rooms()
	for i := 0; i < len(in.Random); i += 8 {
		binary.LittleEndian.PutUint64(in.Random[i:], w.chance.Uint64())
	}
	out := w.decide(&in)
	w.must(out.Fault == nil, "%v", out.Fault)
	w.minutes.turn.begin()
	w.handovers.begin(message)
	for i := range out.Records {
		w.hearRecord(&out.Records[i])
	}
	for i := range out.Letters {
		w.hearLetter(in, &out.Letters[i])
	}
	w.lookAtTurn(out.Records, before)
	w.lookAtMail(&in, &out)
	w.minutes.lookAtTurn(&in, &out)
	w.handovers.lookAtTurn(&in)
	if r, ok := message.(*wire.Request); ok {
		w.requireAnswered(from, r, out)
	}
	return out
}

// decide handles an input. For a message with a key it looks into the log before; sometimes that
// lookup is out of date.
func (w *world) decide(in *Input) Outcome {
	m, from, key := w.state.IdempotencyKey(in)
	if m == nil {
		return w.handle(in)
	}
	w.lookUp(m, from, key)
	if late := w.chance.Int64N(w.state.Seq() + 1); w.chance.IntN(3) == 0 {
		if m.Looked = late; m.Before > late {
			m.Before = 0
		}
	}
	out := w.handle(in)
	if !out.Again {
		return out
	}
	w.saw["a look that is too old"]++
	w.must(len(out.Records)+len(out.Letters) == 0 && out.Refused == nil && !out.Waits, "nothing was decided, and something is told")
	w.lookUp(m, from, key)
	out = w.handle(in)
	w.must(!out.Again, "a fresh look is too old")
	return out
}

// handle handles an input, with the archived tasks that it needs.
func (w *world) handle(in *Input) Outcome {
	for {
		out := w.state.Handle(*in)
		if len(out.Missing) == 0 {
			w.must(out.Again || len(w.state.Tasks.Archive.Missing) == 0, "a turn has recorded something before it missed %v", w.state.Tasks.Archive.Missing)
			return out
		}
		w.must(out.Again && len(out.Records)+len(out.Letters) == 0, "something is decided without an archived task")
		if in.Absent == nil {
			in.Absent = make(map[string]bool)
		}
		for _, id := range out.Missing {
			in.Absent[id] = true
			if r, there := w.archived[id]; there {
				in.Archived = append(in.Archived, r)
				w.saw["an archived task"]++
			}
		}
	}
}

// task returns a task, also an archived one.
func (w *world) task(id string) *state.Task {
	r, archived := w.archived[id]
	if k := w.state.Tasks.ByID[id]; k != nil || !archived {
		return k
	}
	f, err := state.Decode(&r, new([]object.Member))
	w.must(err == nil, "%v", err)
	var kept state.SnapshotTask
	err = object.DecodeOwn(f.(*state.TaskArchived).Task, &kept)
	w.must(err == nil, "%v", err)
	k := kept.Restore()
	k.Node = w.state.Tasks.Graph.Add() // without dependencies
	w.state.Tasks.Graph.RemoveNode(k.Node)
	return k
}

// must is a cheap require for frequent checks.
func (w *world) must(sound bool, message string, args ...any) {
	if !sound {
		require.Failf(w.t, "after some steps", message, args...)
	}
}

// hearQuestion notes the request that asks a question. After question.kept, it no longer waits: it
// gets the id of the question, unless its caller has gone.
func (w *world) hearQuestion(r *wire.Record) {
	id, _ := object.TextOf(r.Payload, "question_id")
	request := object.MemberOf(r.Payload, "request")
	switch r.Kind {
	case events.QuestionAsked, events.QuestionRejoined:
		run, _ := object.TextOf(request, "run")
		number, _ := object.TextOf(request, "id")
		w.asks[id] = run + " " + number
	case events.QuestionKept:
		w.left[w.asks[id]] = true
	}
}

// hearRecord applies a record to the shadow, and checks it.
func (w *world) hearRecord(r *wire.Record) {
	fmt.Fprintln(w.voice, r.Seq, r.At, r.From, r.To, r.Kind, r.Correlation, r.Topic, r.ReplyTo, r.Key)
	w.voice.Write(r.Payload)
	err := w.shadow.Apply(nil, *r)
	w.must(err == nil, "%v", err)
	w.saw[r.Kind]++
	if r.Kind == events.TaskArchived {
		w.archived[r.Correlation] = *r
		w.gone = append(w.gone, r.Correlation)
		w.gone = w.gone[max(0, len(w.gone)-64):]
	}
	w.hearQuestion(r)
	w.hearKey(r)
	w.bus.hear(r)
	w.minutes.hear(r)
	isHandedOn := w.handovers.hear(r)
	k := w.task(r.Correlation)
	if k == nil {
		return
	}
	if r.Kind == events.TaskReopened {
		delete(w.ended, k.View.ID)
	}
	w.must(isHandedOn && slices.Contains(afterHandovers, r.Kind) || slices.Contains(afterwards, r.Kind) || ofSessions(r.Kind) || w.ended[k.View.ID] == "", "%s after %s is %s", r.Kind, k.View.ID, w.ended[k.View.ID])
	if !isHandedOn {
		w.follow(k.View.ID, r)
	}
	switch r.Kind {
	case events.TaskCreated:
		w.recent = append(w.recent, k.View.ID)
		if len(w.recent) > 64 {
			w.recent = w.recent[1:]
		}
	case events.TaskAssigned:
		w.must(k.Way != state.Dispatched || w.state.Tasks.Graph.Open(k.Node) == 0, "%s depends on what is not done", k.View.ID)
		a := w.state.Agents.ByID[assignee(r)]
		w.must(k.Way != state.Dispatched || len(a.Holds) <= a.Capacity, "%s has too many tasks", a.ID)
		w.must(k.Way != state.Dispatched || k.View.SubmittedBy != a.ActorID || r.From == a.ActorID, "%s has its own task, and did not take it", a.ID)
	case events.TaskDone, events.TaskFailed, events.TaskCancelled:
		w.ended[k.View.ID] = k.View.State
	}
}

// afterwards lists the kinds of record that may follow the end of a task.
var afterwards = []string{
	events.TaskArchived, events.TaskRecalled, events.DependencyResolved, events.TaskAnnounced, events.TaskNoted, events.ContractFulfilled, events.ContractMissing,
	events.DocumentOdd, events.SchemaVersionUnknown, events.QuestionAnswered, events.QuestionWithdrawn, // of a review
	events.TaskDeadlinePassed, // the task is revised
}

// hearLetter checks a letter.
func (w *world) hearLetter(in Input, l *Letter) {
	envelope := stdio.Envelope{At: w.at}
	switch {
	case l.Line == nil && l.Kept == 0:
	case l.Task != "" || l.Said == 0:
		w.handovers.hearLine(&in, l)
		return
	default:
		w.minutes.hearLine(l)
		return
	}
	if l.Notice != "" {
		w.saw["notify:"+l.Notice]++
		a := w.state.Agents.ByID[l.To.Name]
		w.must(a == nil || a.Remote == nil, "%s is a server and cannot be told", l.To.Name)
		w.voice.Write(envelope.AppendNotice(nil, l.Notice, l.Payload))
		if l.Task != "" {
			w.mail = append(w.mail, *l)
		}
		return
	}
	w.voice.Write(envelope.AppendReply(nil, l.Form, l.Request, l.Payload, l.Refusal))
	if _, ok := l.Payload.(*session.DeliveryError); ok {
		return // lookAtPost counts it
	}
	if r, ok := in.Message.(*wire.Request); ok && r.ID == l.Request && l.To == in.From {
		return // requireAnswered counts it
	}
	if l.To.Run != "" && !w.hears(l.To) {
		return // its process has exited; only its last lines are read
	}
	key := l.To.Run + " " + l.Request
	w.must(w.waits[key], "%s is answered, and did not wait", key)
	delete(w.waits, key)
	w.saw["late answer"]++
}

// requireAnswered requires that every request has one answer, or waits for it.
func (w *world) requireAnswered(from Actor, r *wire.Request, out Outcome) {
	answers := 0
	for _, l := range out.Letters {
		if l.Request == r.ID && l.To == from {
			answers++
			w.must(out.Refused == l.Refusal, "%s has another verdict than answer", r.Operation)
			if l.Refusal == nil && w.remembers(from, r) {
				w.keep(sent{from: from, request: r, answer: w.text(&l)})
			}
		}
	}
	if (r.Form == dialect.Session || r.Form == dialect.TaskRequest || r.Form == dialect.TaskAct) && out.Refused == nil {
		w.must(answers == 0, "%s is told that all is well", from.Name)
		return
	}
	if !out.Waits {
		w.must(answers == 1, "%s of %s has %d answers", r.Operation, from.Name, answers)
		return
	}
	w.must(answers == 0, "%s of %s waits, and has an answer", r.Operation, from.Name)
	if w.hears(from) {
		w.waits[from.Run+" "+r.ID] = true
	}
	w.keep(sent{from: from, request: r})
}

// remembers reports whether a granted request is remembered. A request without an effect is not,
// and is decided anew.
func (w *world) remembers(from Actor, r *wire.Request) bool {
	a := w.state.Agents.ByID[from.Name]
	if from.Kind != Agent || a == nil {
		return false
	}
	kept := a.Memories.Find(r.ID)
	return kept != nil && kept.Run == from.Run && kept.Sum == r.Sum && kept.Timestamp == r.Timestamp && wire.OperationNamed(r.Operation).IsWrite()
}

// hears reports whether a caller can still receive its answer.
func (w *world) hears(from Actor) bool {
	for _, m := range w.members {
		if m.says(from) {
			return m.up
		}
	}
	return strings.HasPrefix(from.Run, "door:")
}

// text returns an answer as sent to its caller. Content in the log is filled in.
func (w *world) text(l *Letter) string {
	answer := l.Payload
	var err error
	switch answer.(type) {
	case *mail.Sent:
		answer, err = state.Complete(answer, l.Pages, w.bus)
	case *wire.TaskAnswer:
		answer, err = state.Complete(answer, l.Pages, w.handovers)
	}
	w.must(err == nil, "%v", err)
	return string(stdio.Envelope{}.AppendAnswer(nil, l.Request, answer, l.Refusal))
}

func (w *world) keep(s sent) {
	w.sent = slices.DeleteFunc(w.sent, func(o sent) bool { return o.request == s.request }) // the latest answer counts
	w.sent = append(w.sent, s)
	if len(w.sent) > 40 {
		w.sent = w.sent[1:]
	}
}

// forget drops the waiting requests of ended runs.
func (w *world) forget(gone func(run string) bool) {
	for key := range w.waits {
		run, _, _ := strings.Cut(key, " ")
		if gone(run) {
			delete(w.waits, key)
		}
	}
}

// end checks everything once more.
func (w *world) end() {
	requireSound(w.t, w.state)
	w.lookAtBus()
	w.minutes.look()
	w.handovers.look()
	requireSameText(w.t, spelled(w.t, w.state), spelled(w.t, w.shadow)) // only the records give an equal State
	for id, st := range w.ended {
		now := w.task(id).View.State
		w.must(now == st, "%s was %s and is %s", id, st, now)
	}
	open := make(map[string]bool)
	for _, q := range w.state.Questions.Open {
		if q.Request != nil {
			open[q.Run+" "+q.Request.ID] = true
		}
	}
	for key := range w.waits {
		require.True(w.t, open[key] || w.left[key], "%s waits for nothing", key)
	}
}
