// Package simulate plays a team with model agents, on a simulated clock, and finds problems of its configuration: tasks
// that no agent can get, tasks that wait too long, work that goes round in circles, and people who are asked all the
// time.
//
// The decisions are the real ones, of package handlers. Only the agents and the people are models: an agent takes some
// minutes for a task, and sometimes it crashes, fails, hands in a wrong result, or asks a person, who answers within an
// hour. All chance comes from a seed, so that a run can be repeated.
package simulate

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A Team is the input of a simulation.
type Team struct {
	Rules    handlers.Rules
	Agents   []Agent
	Sessions []session.Spec
	Tasks    []wire.SubmitTask // of the task blocks
	Load     int               // how many more tasks there are, of all kinds that agents can do
	Seed     uint64
}

// An Agent is one of the team.
type Agent struct {
	wire.Member
	Waits    bool          // it does not start by itself
	Delay    time.Duration // before it starts again after a crash
	Stays    bool          // it does not start again after a crash
	Verified bool          // its work is checked when it is completed
	Attempts int           // failed checks before a person is asked
}

// Behavior of model agents and people. Shares count attempts at a task.
const (
	meanWork   = 10 * time.Minute
	meanAnswer = 30 * time.Minute
	crashes    = 0.03
	fails      = 0.03 // may go better with another attempt
	wrong      = 0.08 // a result that is refused when it is checked
	asks       = 0.02
	changes    = 0.4 // reviews that want changes

	utilization = 0.7                 // of the agents, by the tasks of Load
	longest     = 60 * 24 * time.Hour // then a simulation ends
	tick        = time.Minute
)

// began is the start of each simulation.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A world is one simulation.
type world struct {
	team   Team
	state  *handlers.State
	chance *rand.Rand
	now    time.Time
	future plan
	number uint64

	agents map[string]*model
	order  []*model
	tasks  map[string]*fate
	listed []*fate
	asked  map[string]bool // questions that a person has seen
	people []time.Duration // how long answers took
	talks  []*talk
}

// A model is a model agent.
type model struct {
	Agent
	run     string
	runs    int
	up      bool
	gone    bool
	done    int
	crashed int
	busy    time.Duration
	work    map[string]int // the number of the attempt at each task
}

// A fate is the history of a task.
type fate struct {
	name    string
	role    string
	needs   []string // capabilities
	created time.Time
	given   time.Time // the first time
	times   int       // that it was given out
	state   wire.TaskState
	why     string
}

// A moment is a future event.
type moment struct {
	at     time.Time
	number uint64
	do     func()
}

// A plan is the future, as a heap.
type plan []moment

func (p plan) Len() int { return len(p) }
func (p plan) Less(i, j int) bool {
	return cmp.Or(p[i].at.Compare(p[j].at), cmp.Compare(p[i].number, p[j].number)) < 0
}
func (p plan) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *plan) Push(x any)   { *p = append(*p, x.(moment)) }
func (p *plan) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// after schedules a call.
func (w *world) after(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.future, moment{at: w.now.Add(d), number: w.number, do: do})
}

// about returns a time around a mean, as long as it mostly takes people and programs.
func (w *world) about(mean time.Duration) time.Duration {
	return max(time.Second, time.Duration(w.chance.ExpFloat64()*float64(mean))).Round(time.Second)
}

// Run simulates a team.
func Run(t Team) Report {
	w := &world{
		team: t, state: handlers.New(t.Rules), chance: rand.New(rand.NewPCG(t.Seed, 1)), now: began,
		agents: make(map[string]*model), tasks: make(map[string]*fate), asked: make(map[string]bool),
	}
	roster := &wire.AgentSet{Sessions: t.Sessions}
	for _, a := range t.Agents {
		m := &model{Agent: a, work: make(map[string]int)}
		w.agents[a.ID], w.order = m, append(w.order, m)
		roster.Agents = append(roster.Agents, a.Member)
	}
	w.do(handlers.Actor{}, roster)
	w.do(handlers.Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	for _, m := range w.order {
		if !m.Waits {
			w.start(m)
		}
	}
	for i := range t.Tasks {
		w.submit(&t.Tasks[i])
	}
	w.load()
	for i := range t.Sessions {
		w.hold(&t.Sessions[i])
	}
	w.after(tick, w.tick)
	for len(w.future) > 0 && w.now.Sub(began) < longest && !w.over() {
		m := heap.Pop(&w.future).(moment)
		w.now = m.at
		m.do()
	}
	return w.report()
}

// over reports whether only ticks are left.
func (w *world) over() bool {
	return len(w.future) == 1 && len(w.asked) == 0 && w.now.Sub(began) > time.Hour
}

// do decides about a message, and has the models react.
func (w *world) do(from handlers.Actor, m wire.Message) *wire.Error {
	in := handlers.Input{At: w.now, From: from, Message: m}
	binary.BigEndian.PutUint64(in.Random[:], w.chance.Uint64())
	binary.BigEndian.PutUint64(in.Random[8:], w.chance.Uint64())
	out := w.state.Handle(in)
	for i := range out.Records {
		w.see(&out.Records[i])
	}
	letters, refused := slices.Clone(out.Letters), out.Refused // further decisions change them
	for _, l := range letters {
		if notice, ok := l.Payload.(*wire.TaskNotice); ok && l.To.Kind == handlers.Agent && l.Notice != "" {
			w.hear(w.agents[l.To.Name], l.Notice, notice.TaskID)
		}
	}
	for _, q := range w.state.Asked(1000) {
		w.answer(q)
	}
	return refused
}

// request decides about a request of from, and returns why it is refused.
func (w *world) request(from handlers.Actor, operation string, body any) *wire.Error {
	w.number++
	return w.do(from, &wire.Request{ID: fmt.Sprint(w.number), Operation: operation, Timestamp: w.now.Format(time.RFC3339), Body: body})
}

// see updates the fate of a task from a record.
func (w *world) see(r *wire.Record) {
	var said struct {
		Task    string   `json:"task"`
		Name    string   `json:"name"`
		Role    string   `json:"required_role"`
		Needs   []string `json:"required_capabilities"`
		Session string   `json:"session"`
		Error   string   `json:"error"`
		Reason  string   `json:"reason"`
	}
	if object.DecodeOwn(r.Payload, &said) != nil || said.Task == "" {
		return
	}
	f := w.tasks[said.Task]
	if r.Kind == events.TaskCreated && said.Session == "" {
		f = &fate{name: said.Name, role: said.Role, needs: said.Needs, created: w.now, state: wire.TaskPending}
		w.tasks[said.Task], w.listed = f, append(w.listed, f)
	}
	if f == nil {
		return
	}
	switch r.Kind {
	case events.TaskAssigned:
		if f.times++; f.given.IsZero() {
			f.given = w.now
		}
		f.state = wire.TaskAssigned
	case events.TaskDone:
		f.state = wire.TaskDone
	case events.TaskFailed, events.TaskCancelled:
		f.state, f.why = wire.TaskFailed, cmp.Or(said.Error, said.Reason)
	case events.TaskBlocked:
		f.why = "a task that it needs was not done"
	case events.TaskRequeued:
		f.state = wire.TaskPending
	}
}

// tick lets time pass for the decisions.
func (w *world) tick() {
	w.do(handlers.Actor{}, wire.Tick{})
	w.after(tick, w.tick)
}

// submit has a person submit a task.
func (w *world) submit(s *wire.SubmitTask) {
	body := *s
	if refused := w.request(handlers.Actor{Kind: handlers.Operator}, "submit-task", &body); refused != nil {
		w.listed = append(w.listed, &fate{name: s.Name, created: w.now, state: wire.TaskFailed, why: "refused: " + refused.Message})
	}
}

// load has people submit tasks of all kinds that agents can do, at random times.
func (w *world) load() {
	type kind struct {
		role string
		need string
	}
	var kinds []kind
	room := 0
	for _, m := range w.order {
		if m.Deaf || m.Waits {
			continue
		}
		room += max(1, m.Capacity)
		for _, k := range append([]kind{{role: m.Role}}, kindsOf(m.Capabilities, func(name string) kind { return kind{need: name} })...) {
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	at := time.Duration(0)
	for n := range w.team.Load {
		if len(kinds) == 0 {
			return
		}
		k := kinds[n%len(kinds)]
		s := wire.SubmitTask{Type: "task", Name: fmt.Sprintf("%s %d", cmp.Or(k.need, k.role), n+1), RequiredRole: k.role}
		if k.need != "" {
			s.RequiredCapabilities = []string{k.need}
		}
		at += time.Duration(w.chance.ExpFloat64() * float64(meanWork) / utilization / float64(room))
		w.after(at, func() { w.submit(&s) })
	}
}

func kindsOf[K any](names []string, of func(string) K) (all []K) {
	for _, name := range names {
		all = append(all, of(name))
	}
	return all
}

// start starts a model agent.
func (w *world) start(m *model) {
	m.runs++
	m.up, m.run = true, uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %d", m.ID, m.runs)).String()
	w.do(handlers.Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: m.ID, Run: m.run})
}

// hear has a model agent react to a notice.
func (w *world) hear(m *model, notice, task string) {
	if m == nil || !m.up {
		return
	}
	if m.work[task]++; notice != wire.NoticeAssigned {
		return // its planned steps for the task are dropped
	}
	run, attempt := m.run, m.work[task]
	w.after(time.Second, func() {
		if !m.up || m.run != run || m.work[task] != attempt {
			return
		}
		w.do(handlers.Actor{}, &wire.Delivered{Agent: m.ID, Run: m.run, Task: task})
		w.request(m.actor(), "start-task", &wire.TaskID{TaskID: task})
		w.attempt(m, task)
	})
}

func (m *model) actor() handlers.Actor {
	return handlers.Actor{Kind: handlers.Agent, Name: m.ID, Run: m.run}
}

// attempt has a model agent work on a task.
func (w *world) attempt(m *model, task string) {
	run, attempt, took := m.run, m.work[task], w.about(meanWork)
	w.after(took, func() {
		if !m.up || m.run != run || m.work[task] != attempt {
			return
		}
		m.busy += took
		switch p := w.chance.Float64(); {
		case p < crashes:
			w.crash(m)
		case p < crashes+fails:
			w.request(m.actor(), "fail-task", &wire.FailTask{TaskID: task, Error: "the model agent has failed", Retryable: true})
		case p < crashes+fails+asks:
			w.request(m.actor(), "request-help", &wire.RequestHelp{TaskID: task, Question: "Which way?"})
		case p < crashes+fails+asks+wrong && m.Verified:
			w.refuse(m, task)
		default:
			if w.request(m.actor(), "complete-task", &wire.CompleteTask{TaskID: task}) == nil {
				m.done++
			}
		}
	})
}

// refuse has the work of a model agent refused when it is checked.
func (w *world) refuse(m *model, task string) {
	for _, kind := range []string{events.TaskVerifying, events.TaskUnverified} {
		w.do(handlers.Actor{}, &wire.TaskChecked{Kind: kind, Agent: m.ID, Task: task, Failed: true})
	}
	t, _ := w.state.Held(m.ID, task)
	if t.Details != nil && t.Unverified%max(1, m.Attempts) == 0 {
		w.request(m.actor(), "request-help", &wire.RequestHelp{TaskID: task, Question: "It is not verified"})
		return
	}
	w.attempt(m, task)
}

// crash ends a model agent, and starts it again.
func (w *world) crash(m *model) {
	m.up = false
	m.crashed++
	code := 1
	for _, kind := range []string{events.AgentExited, events.AgentEnded} {
		w.do(handlers.Actor{}, &wire.Event{Kind: kind, Agent: m.ID, Run: m.run, Text: "exit 1", Figures: wire.Figures{ExitCode: &code}})
	}
	if m.Stays {
		m.gone = true
		w.do(handlers.Actor{}, &wire.AgentGone{Agent: m.ID})
		return
	}
	w.after(max(m.Delay, time.Second), func() { w.start(m) })
}

// answer has a person answer a question.
func (w *world) answer(q wire.Question) {
	if w.asked[q.ID] {
		return
	}
	w.asked[q.ID] = true
	took := w.about(meanAnswer)
	w.after(took, func() {
		delete(w.asked, q.ID)
		choice := "go on"
		if len(q.Options) > 0 {
			choice = cmp.Or(q.Options[0].Value, q.Options[0].Label)
		}
		if w.request(handlers.Actor{Kind: handlers.Operator}, "answer-question", &wire.AnswerQuestion{QuestionID: q.ID, Answer: choice}) != nil {
			return
		}
		w.people = append(w.people, took)
		if m := w.agents[q.Agent]; m != nil && m.up && q.Task != "" {
			m.work[q.Task]++ // its planned steps are dropped
			w.attempt(m, q.Task)
		}
	})
}
