package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// maxNamed is how many agents the summary names.
const maxNamed = 5

// text returns the summary of a run, or "" for an empty one.
func (r *tally) text(p term.Paint) string {
	var b strings.Builder
	b.WriteString(r.outcome(p))
	b.WriteString(r.byWhom())
	b.WriteString(r.unfinished(p))
	b.WriteString(r.unmerged(p))
	b.WriteString(r.talk())
	return b.String()
}

// outcome returns the number of tasks by result.
func (r *tally) outcome(p term.Paint) string {
	_, open := r.options.Team.Left(0)
	all := r.before + r.created
	took := term.Duration(time.Since(r.began))
	switch {
	case all == 0:
		return ""
	case r.done == all && len(r.options.Team.Unmerged()) == 0:
		return p.Good("Done in "+took) + fmt.Sprintf(": %d of %s%s\n", r.done, term.Count(all, "task"), r.branches())
	}
	var parts []string
	add := func(n int, word string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	add(r.done, "done")
	add(r.failed, "failed")
	add(r.cancelled, "cancelled")
	add(open, "not done")
	if len(parts) == 0 { // the record is broken, so the open tasks are not known
		parts = append(parts, "none done")
	}
	head := fmt.Sprintf("%s in %s: ", term.Count(all, "task"), took)
	if r.failed+r.cancelled > 0 {
		head = p.Bad(head)
	}
	return head + strings.Join(parts, ", ") + r.branches() + "\n"
}

// branches returns the number of branches by their state, or "" without a merge queue.
func (r *tally) branches() (said string) {
	if r.merged > 0 {
		said = ", " + term.Count(r.merged, "branch") + " merged"
	}
	if left := len(r.options.Team.Unmerged()); left > 0 {
		said += fmt.Sprintf(", %d not merged", left)
	}
	return said
}

// unmerged returns the branches of done tasks that are not merged, with the reasons.
func (r *tally) unmerged(p term.Paint) string {
	var b strings.Builder
	left := r.options.Team.Unmerged()
	for i := range left[:min(wrongNamed, len(left))] {
		t := &left[i]
		text := r.unmergedWhy[t.ID]
		if text == "" {
			text = fmt.Sprintf("%s %q is not merged yet", wire.ShortID(t.ID), t.Name)
		}
		first, _, _ := strings.Cut(text, "\n")
		fmt.Fprintf(&b, "  %s %s\n", p.Bad("x"), term.Clip(term.OneLine(first), 120))
	}
	if more := len(left) - wrongNamed; more > 0 {
		fmt.Fprintf(&b, "    … %d more\n", more)
	}
	if len(left) > 0 && !r.options.Volatile {
		fmt.Fprintf(&b, "  Why: orchestrator why %s    Merge one: orchestrator task merge %[1]s\n", term.ID(left[0].ID))
	}
	return b.String()
}

// byWhom returns a table of agents with their results.
func (r *tally) byWhom() string {
	names := r.busiest()
	var rows [][]term.Cell
	for _, name := range names[:min(maxNamed, len(names))] {
		d := r.deeds[name]
		worked := ""
		if d.worked >= 100*time.Millisecond {
			worked = term.Duration(d.worked) + " at work"
		}
		rows = append(rows, []term.Cell{term.Text("  " + term.OneLine(name)), term.Text(d.count()), term.Figure(worked), term.Text(strings.Join(d.remarks(), ", "))})
	}
	said := term.Table(rows)
	if more := len(names) - maxNamed; more > 0 {
		said += fmt.Sprintf("  … %s\n", term.Count(more, "more agent"))
	}
	return said
}

// count returns how many tasks and reviews an agent has finished.
func (a *agentStats) count() string {
	var parts []string
	if n := a.done + a.failed; n > 0 {
		parts = append(parts, term.Count(n, "task"))
	}
	if n := a.approved + a.changes + a.rejected; n > 0 {
		parts = append(parts, term.Count(n, "review"))
	}
	return strings.Join(parts, ", ")
}

func (a *agentStats) remarks() (said []string) {
	if a.changes > 0 {
		said = append(said, fmt.Sprintf("%d asked for changes", a.changes))
	}
	if a.rejected > 0 {
		said = append(said, fmt.Sprintf("%d rejected", a.rejected))
	}
	if a.approved > 0 {
		said = append(said, fmt.Sprintf("%d approved", a.approved))
	}
	if a.failed > 0 {
		said = append(said, fmt.Sprintf("%d failed", a.failed))
	}
	switch {
	case a.crashes == 1:
		said = append(said, "1 crash")
	case a.crashes > 1:
		said = append(said, fmt.Sprintf("%d crashes", a.crashes))
	}
	switch {
	case a.returned == 1 && a.crashes == 1:
		said = append(said, "its task came back")
	case a.returned > 0:
		said = append(said, term.Count(a.returned, "task")+" came back")
	}
	if a.gaveUp {
		said = append(said, "gave up")
	}
	return said
}

// unfinished returns the failed and open tasks, and the next command.
func (r *tally) unfinished(p term.Paint) string {
	var b strings.Builder
	for _, text := range r.wrong {
		fmt.Fprintf(&b, "  %s %s\n", p.Bad("x"), term.Clip(term.OneLine(text), 120))
	}
	if more := r.failed + r.cancelled - len(r.wrong); more > 0 {
		fmt.Fprintf(&b, "    … %d more\n", more)
	}
	left, open := r.options.Team.Left(wrongNamed)
	for i := range left {
		fmt.Fprintf(&b, "  %s %s\n", term.Mark(left[i].State), term.Clip(labelCell(&left[i])+", "+openWords(&left[i]), 120))
	}
	if more := open - len(left); more > 0 {
		fmt.Fprintf(&b, "    … %d more\n", more)
	}
	var about string
	switch {
	case len(left) > 0:
		about = term.ID(left[0].ID)
	case r.task != "" && len(r.wrong) > 0:
		about, _, _ = strings.Cut(r.wrong[0], " ")
	}
	if about != "" && !r.options.Volatile { // a record in memory is lost with the process
		fmt.Fprintf(&b, "  Why: orchestrator why %s\n", wire.Visible(about))
	}
	return b.String()
}

// openWords returns the reason for the wait of an open task at the end, or its state.
func openWords(t *wire.Task) string {
	return cmp.Or(waitWords(t), string(t.State))
}

// talk returns the number of questions and messages, and the losses.
func (r *tally) talk() string {
	var parts []string
	if said := r.questions(); said != "" {
		parts = append(parts, said)
	}
	heard, refused := r.options.Messages()
	losses := r.losses()
	if heard == 0 && len(losses) == 0 {
		return strings.Join(append(parts, ""), ".\n")
	}
	said := term.Count(int(heard), "message")
	if refused > 0 {
		said += fmt.Sprintf(", %d refused", refused)
	} else {
		said += ", none refused"
	}
	if len(losses) == 0 && len(r.options.Team.Unmerged()) == 0 {
		losses = []string{"nothing lost"}
	}
	parts = append(parts, strings.Join(append([]string{said}, losses...), ", "))
	return strings.Join(parts, ". ") + ".\n"
}

// questions returns how many questions were answered.
func (r *tally) questions() string {
	if r.asks == 0 && r.said == 0 && r.vain == 0 {
		return ""
	}
	var parts []string
	if r.said > 0 {
		parts = append(parts, fmt.Sprintf("%d answered", r.said))
	}
	if r.vain > 0 {
		text := "no answer"
		if r.asks > 1 {
			text = fmt.Sprintf("%d without an answer", r.vain)
		}
		if r.waited > 0 {
			text += " within " + term.Duration(r.waited.Round(100*time.Millisecond))
		}
		parts = append(parts, text)
	}
	if open := len(r.asked); open > 0 {
		parts = append(parts, fmt.Sprintf("%d still open", open))
	}
	asked := term.Count(max(r.asks, r.said+r.vain), "question")
	return asked + ": " + cmp.Or(strings.Join(parts, ", "), "no longer needed")
}

// losses returns the losses, from the counters of the supervisor and of this summary.
func (r *tally) losses() (said []string) {
	l := r.options.Team.DroppedOutput()
	add := func(n int64, noun, what string) {
		if n > 0 {
			said = append(said, term.Count(int(n), noun)+" "+what)
		}
	}
	add(max(l.Refused, r.undelivered), "message", "not delivered")
	add(l.Cut, "line", "cut")
	add(l.Unlogged, "line", "missing in the log file")
	add(r.missed, "line", "not shown here")
	if r.trouble && l.Cut+l.Unlogged == 0 {
		said = append(said, "lines of ended agents were lost")
	}
	return said
}

// A tally counts the events of a team. It remembers only open tasks, and a few of the failed ones.
type tally struct {
	options Options
	began   time.Time
	before  int // open tasks at the start

	created, done, failed, cancelled int
	merged                           int               // branches
	unmergedWhy                      map[string]string // tasks with unmerged branches, with the latest reason
	wrong                            []string          // descriptions of the first failed or cancelled ones

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

// agentStats counts the work of an agent.
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
		asked: make(map[string]time.Time), unmergedWhy: make(map[string]string),
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
	case events.TaskReopened:
		r.reopen(e)
	case events.TaskMerged:
		r.merged++
		delete(r.unmergedWhy, e.Task)
	case events.TaskUnmerged:
		r.unmergedWhy[e.Task] = e.Text
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

// reopen takes back that a task has failed or was cancelled.
func (r *tally) reopen(e *wire.Event) {
	was, _ := client.Decode[struct {
		State wire.TaskState `json:"was"`
	}](e.Payload)
	ended := &r.failed
	if was.State == wire.TaskCancelled {
		ended = &r.cancelled
	}
	if *ended == 0 { // it ended before this run
		r.before++
		return
	}
	*ended--
	r.wrong = slices.DeleteFunc(r.wrong, func(text string) bool { return strings.HasPrefix(text, wire.ShortID(e.Task)+" ") })
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
