package serve

import (
	"slices"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// A runSummary counts the events of a team. It remembers only what is still open, and a few
// of the failed tasks.
type runSummary struct {
	team   *Instance
	began  time.Time
	before int // open tasks at the start

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

func newAccount(t *Instance) *runSummary {
	_, open := t.Super.Left(0)
	return &runSummary{
		team: t, began: time.Now(), before: open, deeds: make(map[string]*agentStats), jobs: make(map[string]job),
		asked: make(map[string]time.Time),
	}
}

// of returns the statistics of an agent.
func (y *runSummary) of(agent string) *agentStats {
	d := y.deeds[agent]
	if d == nil {
		d = new(agentStats)
		y.deeds[agent], y.names = d, append(y.names, agent)
	}
	return d
}

// see counts a line. It has no effect on nil.
func (y *runSummary) see(l output.Line) {
	if y == nil {
		return
	}
	y.missed += l.Missed
	if e := l.Event; e != nil {
		y.agent(e)
		y.work(e, l.At)
		y.question(e, l.At)
	}
}

// agent counts events of agents and their messages.
func (y *runSummary) agent(e *wire.Event) {
	switch e.Kind {
	case events.AgentExited:
		if code := e.Figures.ExitCode; code == nil || *code != 0 {
			y.of(e.Agent).crashes++
		}
	case events.AgentGaveUp:
		y.of(e.Agent).gaveUp = true
	case events.AgentStarted:
		if d := y.deeds[e.Agent]; d != nil {
			d.gaveUp = false
		}
	case events.ReviewDecided:
		decided, err := cli.Decode[struct {
			Verdict string `json:"verdict"`
		}](e.Payload)
		switch {
		case err != nil || decided.Verdict == "":
		case decided.Verdict == session.VerdictApproved:
			y.of(e.Agent).approved++
		case decided.Verdict == session.VerdictRejected:
			y.of(e.Agent).rejected++
		default:
			y.of(e.Agent).changes++
		}
	case events.AgentUndelivered:
		y.undelivered += e.Figures.Count
	case events.SessionUndelivered:
		y.undelivered++
	case events.AgentLineCut, events.AgentUnlogged:
		y.trouble = true
	}
}

// work counts events of tasks.
func (y *runSummary) work(e *wire.Event, at time.Time) {
	switch e.Kind {
	case events.TaskCreated:
		y.created++
	case events.TaskStarted:
		y.put(e.Task, at)
		y.take(e.Task, e.Agent, at)
	case events.TaskRequeued:
		y.put(e.Task, at)
		y.of(e.Agent).returned++
	case events.TaskDone:
		y.put(e.Task, at)
		y.done++
		if e.Agent != "" {
			y.of(e.Agent).done++
		}
	case events.TaskFailed, events.TaskCancelled:
		y.put(e.Task, at)
		if len(y.wrong) < wrongNamed {
			y.wrong = append(y.wrong, e.Text)
		}
		if e.Kind == events.TaskCancelled {
			y.cancelled++
			return
		}
		y.failed++
		if e.Agent != "" {
			y.of(e.Agent).failed++
		}
	}
}

// take records that an agent begins to work on a task, and put that it has stopped. Time
// with several tasks counts once.
func (y *runSummary) take(task, agent string, at time.Time) {
	y.jobs[task] = job{agent: agent, since: at}
	d := y.of(agent)
	if d.holds++; d.holds == 1 {
		d.since = at
	}
}

func (y *runSummary) put(task string, at time.Time) {
	j, there := y.jobs[task]
	if !there {
		return
	}
	delete(y.jobs, task)
	j.until = at
	y.ended, y.task = j, task
	d := y.of(j.agent)
	if d.holds--; d.holds == 0 {
		d.worked += at.Sub(d.since)
	}
}

// took returns how long a task took if it is the last that ended, or else -1.
func (y *runSummary) took(task string) time.Duration {
	if y == nil || y.task != task {
		return -1
	}
	return y.ended.until.Sub(y.ended.since)
}

// question counts questions and the time they waited.
func (y *runSummary) question(e *wire.Event, at time.Time) {
	switch e.Kind {
	case events.QuestionAsked, events.TaskHelpWanted, events.ReviewEscalated, events.QuestionAnswered, events.QuestionExpired,
		events.QuestionWithdrawn:
	default:
		return
	}
	about, err := cli.Decode[struct {
		ID string `json:"question_id"`
	}](e.Payload)
	if err != nil || about.ID == "" {
		return
	}
	since, open := y.asked[about.ID]
	delete(y.asked, about.ID)
	switch e.Kind {
	case events.QuestionAnswered:
		y.said++
	case events.QuestionExpired:
		if y.vain++; open {
			y.waited = max(y.waited, at.Sub(since))
		}
	case events.QuestionWithdrawn:
	default:
		y.asks++
		y.asked[about.ID] = at
	}
}

// busiest returns the agents with the most results, in that order.
func (y *runSummary) busiest() []string {
	var names []string
	for _, name := range y.names {
		if d := y.deeds[name]; d.weight() > 0 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return y.deeds[b].weight() - y.deeds[a].weight() })
	return names
}

// weight returns the number of results of an agent.
func (d *agentStats) weight() int {
	n := d.done + d.failed + d.approved + d.changes + d.rejected + d.crashes + d.returned
	if d.gaveUp {
		n++
	}
	return n
}
