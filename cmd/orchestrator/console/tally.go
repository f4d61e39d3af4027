package console

import (
	"slices"
	"time"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// A tally counts the events of a team. It remembers only what is still open, and a few
// of the failed tasks.
type tally struct {
	options Options
	began   time.Time
	before  int // open tasks at the start

	created, done, failed, cancelled int
	wrong                            []string // descriptions of the first failed or cancelled ones

	deeds  map[string]*agentStats
	names  []string // agents in the order of their first events
	jobs   map[string]job
	ended  job // the last ended job, of the task
	task   string
	asked  map[string]time.Time // open questions, with their times
	asks   int
	said   int // answers
	vain   int // questions without an answer
	waited time.Duration

	undelivered int64
	missed      int64 // lines not shown
	trouble     bool  // lost lines were reported
}

// A job is a task that an agent works on.
type job struct {
	agent string
	since time.Time
	until time.Time
}

// agentStats counts what an agent has done.
type agentStats struct {
	done, failed      int
	approved, changes int
	rejected          int
	crashes, returned int
	gaveUp            bool
	holds             int // current tasks
	since             time.Time
	worked            time.Duration
}

// wrongNamed is how many failed tasks the summary names.
const wrongNamed = 3

func newTally(o Options) *tally {
	_, open := o.Team.Left(0)
	return &tally{
		options: o, began: time.Now(), before: open, deeds: make(map[string]*agentStats), jobs: make(map[string]job),
		asked: make(map[string]time.Time),
	}
}

// of returns the statistics of an agent.
func (r *tally) of(agent string) *agentStats {
	d := r.deeds[agent]
	if d == nil {
		d = new(agentStats)
		r.deeds[agent], r.names = d, append(r.names, agent)
	}
	return d
}

// see counts a line. It has no effect on nil.
func (r *tally) see(l output.Line) {
	if r == nil {
		return
	}
	r.missed += l.Missed
	if e := l.Event; e != nil {
		r.agent(e)
		r.work(e, l.At)
		r.question(e, l.At)
	}
}

// agent counts events of agents and their messages.
func (r *tally) agent(e *wire.Event) {
	switch e.Kind {
	case events.AgentExited:
		if code := e.Figures.ExitCode; code == nil || *code != 0 {
			r.of(e.Agent).crashes++
		}
	case events.AgentGaveUp:
		r.of(e.Agent).gaveUp = true
	case events.AgentStarted:
		if d := r.deeds[e.Agent]; d != nil {
			d.gaveUp = false
		}
	case events.ReviewDecided:
		decided, err := client.Decode[struct {
			Verdict string `json:"verdict"`
		}](e.Payload)
		switch {
		case err != nil || decided.Verdict == "":
		case decided.Verdict == session.VerdictApproved:
			r.of(e.Agent).approved++
		case decided.Verdict == session.VerdictRejected:
			r.of(e.Agent).rejected++
		default:
			r.of(e.Agent).changes++
		}
	case events.AgentUndelivered:
		r.undelivered += e.Figures.Count
	case events.SessionUndelivered:
		r.undelivered++
	case events.AgentLineCut, events.AgentUnlogged:
		r.trouble = true
	}
}

// work counts events of tasks.
func (r *tally) work(e *wire.Event, at time.Time) {
	switch e.Kind {
	case events.TaskCreated:
		r.created++
	case events.TaskStarted:
		r.put(e.Task, at)
		r.take(e.Task, e.Agent, at)
	case events.TaskRequeued:
		r.put(e.Task, at)
		r.of(e.Agent).returned++
	case events.TaskDone:
		r.put(e.Task, at)
		r.done++
		if e.Agent != "" {
			r.of(e.Agent).done++
		}
	case events.TaskFailed, events.TaskCancelled:
		r.put(e.Task, at)
		if len(r.wrong) < wrongNamed {
			r.wrong = append(r.wrong, e.Text)
		}
		if e.Kind == events.TaskCancelled {
			r.cancelled++
			return
		}
		r.failed++
		if e.Agent != "" {
			r.of(e.Agent).failed++
		}
	}
}

// take records that an agent begins to work on a task, and put that it has stopped. Time
// with several tasks counts once.
func (r *tally) take(task, agent string, at time.Time) {
	r.jobs[task] = job{agent: agent, since: at}
	d := r.of(agent)
	if d.holds++; d.holds == 1 {
		d.since = at
	}
}

func (r *tally) put(task string, at time.Time) {
	j, there := r.jobs[task]
	if !there {
		return
	}
	delete(r.jobs, task)
	j.until = at
	r.ended, r.task = j, task
	d := r.of(j.agent)
	if d.holds--; d.holds == 0 {
		d.worked += at.Sub(d.since)
	}
}

// took returns how long a task took if it is the last that ended, or else -1.
func (r *tally) took(task string) time.Duration {
	if r == nil || r.task != task {
		return -1
	}
	return r.ended.until.Sub(r.ended.since)
}

// question counts questions and the time they waited.
func (r *tally) question(e *wire.Event, at time.Time) {
	switch e.Kind {
	case events.QuestionAsked, events.TaskHelpWanted, events.ReviewEscalated, events.QuestionAnswered, events.QuestionExpired,
		events.QuestionWithdrawn:
	default:
		return
	}
	id, _ := asked(e)
	if id == "" {
		return
	}
	since, open := r.asked[id]
	delete(r.asked, id)
	switch e.Kind {
	case events.QuestionAnswered:
		r.said++
	case events.QuestionExpired:
		if r.vain++; open {
			r.waited = max(r.waited, at.Sub(since))
		}
	case events.QuestionWithdrawn:
	default:
		r.asks++
		r.asked[id] = at
	}
}

// busiest returns the agents with the most results, in that order.
func (r *tally) busiest() []string {
	var names []string
	for _, name := range r.names {
		if d := r.deeds[name]; d.weight() > 0 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return r.deeds[b].weight() - r.deeds[a].weight() })
	return names
}

// weight returns the number of results of an agent.
func (a *agentStats) weight() int {
	n := a.done + a.failed + a.approved + a.changes + a.rejected + a.crashes + a.returned
	if a.gaveUp {
		n++
	}
	return n
}
