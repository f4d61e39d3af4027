package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// A Report is the result of a simulation.
type Report struct {
	Seed      uint64        `json:"seed"`
	Lasted    time.Duration `json:"lasted_ns"` // in the time of the simulation
	Tasks     int           `json:"tasks"`
	Done      int           `json:"done"`
	Failed    int           `json:"failed"`
	Questions int           `json:"questions"`  // that people have answered
	Waited    time.Duration `json:"waited_ns"`  // half of the tasks were given out after this time
	Longest   time.Duration `json:"longest_ns"` // and all that were, after this time
	Agents    []AgentReport `json:"agents"`
	Findings  []Finding     `json:"findings"`
}

// An AgentReport is about one agent.
type AgentReport struct {
	Name    string `json:"name"`
	Done    int    `json:"done"`    // tasks
	Busy    int    `json:"busy"`    // percent of the time, for each task that it can work on at once
	Crashes int    `json:"crashes"` // of the model
}

// A Finding is a problem of the configuration.
type Finding struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The kinds of findings.
const (
	Unmatched = "unmatched" // no agent could ever get it
	Starved   = "starved"   // it waited very long
	Loops     = "loops"     // it went round in circles
	Lost      = "failed"    // it failed, whatever was tried
	Idle      = "idle"      // an agent without tasks
	Session   = "session"   // a session without progress
)

// Assumptions describes the model agents and people to the reader of a report.
func Assumptions() string {
	return fmt.Sprintf("Assumed: %.0fm for a task and %.0fm for an answer, on average. %.0f%% of attempts crash, %.0f%% fail, %.0f%%\n"+
		"ask a person, and %.0f%% are refused where work is verified. %.0f%% of reviews want changes.\n",
		meanWork.Minutes(), meanAnswer.Minutes(), 100*crashes, 100*fails, 100*asks, 100*wrong, 100*changes)
}

// report returns the Report of the simulation.
func (w *world) report() Report {
	r := Report{Seed: w.team.Seed, Lasted: w.now.Sub(began), Questions: len(w.people), Agents: []AgentReport{}, Findings: []Finding{}}
	var waits []time.Duration
	for _, f := range w.listed {
		r.Tasks++
		switch f.state {
		case wire.TaskDone:
			r.Done++
		case wire.TaskFailed:
			r.Failed++
		}
		if !f.given.IsZero() {
			waits = append(waits, f.given.Sub(f.created))
		}
	}
	if slices.Sort(waits); len(waits) > 0 {
		r.Waited, r.Longest = waits[len(waits)/2], waits[len(waits)-1]
	}
	w.reportTasks(&r)
	w.reportAgents(&r)
	w.reportSessions(&r)
	return r
}

func (r *Report) found(kind, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// A group is a finding about several tasks.
type group struct {
	Finding
	first   string // the name of the first task
	tasks   int
	longest time.Duration // that one has waited
}

// reportTasks reports tasks that were not done, or not in time. Tasks with the same fate are reported together.
func (w *world) reportTasks(r *Report) {
	var groups []*group
	for _, f := range w.listed {
		found, ok := w.judged(f, r.Waited)
		if !ok {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.Finding == found })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{Finding: found, first: f.name})
		}
		groups[i].tasks++
		groups[i].longest = max(groups[i].longest, f.given.Sub(f.created))
	}
	for _, g := range groups {
		text := g.Text
		if g.Text == late {
			text += " " + g.longest.Round(time.Minute).String()
		}
		if g.tasks == 1 {
			r.found(g.Kind, "task %q %s", g.first, text)
		} else {
			r.found(g.Kind, "task %q and %d more %s", g.first, g.tasks-1, text)
		}
	}
}

const late = "waited for an agent for up to"

// judged returns the problem of a task, if it has one.
func (w *world) judged(f *fate, usual time.Duration) (Finding, bool) {
	most := max(3, w.team.Rules.MaxAttempts)
	switch {
	case f.state == wire.TaskFailed:
		why := cmp.Or(f.why, "its agents have failed")
		if strings.Contains(why, "ended while it had the task") {
			why += "; on_exit = \"requeue\" would try it again"
		}
		return Finding{Lost, "failed: " + why}, true
	case f.state == wire.TaskPending && f.times == 0:
		return Finding{Unmatched, "was never assigned: " + w.whyNot(f)}, true
	case f.state != wire.TaskDone:
		return Finding{Starved, "was not done at the end"}, true
	case f.times > most:
		return Finding{Loops, fmt.Sprintf("was assigned more than %d times", most)}, true
	case f.given.Sub(f.created) > max(time.Hour, 20*usual):
		return Finding{Starved, late}, true
	}
	return Finding{}, false
}

// whyNot returns why a task was never given out.
func (w *world) whyNot(f *fate) string {
	if f.why != "" {
		return f.why
	}
	fits := func(m *model) bool {
		return (f.role == "" || m.Role == f.role) && !slices.ContainsFunc(f.needs, func(name string) bool { return !slices.Contains(m.Capabilities, name) })
	}
	i := slices.IndexFunc(w.order, fits)
	switch {
	case i < 0 && len(f.needs) == 0:
		return "no agent has the role " + f.role
	case i < 0 && f.role == "":
		return "no agent has " + strings.Join(f.needs, " and ")
	case i < 0:
		return "no agent with the role " + f.role + " has " + strings.Join(f.needs, " and ")
	case w.order[i].Waits:
		return w.order[i].ID + " could do it, but has autostart = false"
	case w.order[i].Deaf:
		return w.order[i].ID + " could do it, but gets no messages (protocol = \"raw\" or stdin = \"null\")"
	case w.order[i].gone:
		return w.order[i].ID + " could do it, but crashed for good"
	}
	return "it waits for another task"
}

// reportAgents reports the work of agents.
func (w *world) reportAgents(r *Report) {
	worked := len(w.listed)+len(w.talks) > 0
	for _, m := range w.order {
		a := AgentReport{Name: m.ID, Done: m.done, Crashes: m.crashed}
		if r.Lasted > 0 {
			a.Busy = int(100 * m.busy / r.Lasted / time.Duration(max(1, m.Capacity)))
		}
		r.Agents = append(r.Agents, a)
		seated := slices.ContainsFunc(w.team.Sessions, func(s session.Spec) bool {
			return slices.ContainsFunc(s.Members, func(member session.Member) bool { return member.AgentID == m.ID })
		})
		switch {
		case m.gone:
			r.found(Lost, "%s crashed for good: its restart policy is never", m.ID)
		case worked && m.done == 0 && !seated && !m.Waits && !m.Deaf:
			r.found(Idle, "%s never had a task to do", m.ID)
		}
	}
}

// reportSessions reports the outcome of tasks of sessions.
func (w *world) reportSessions(r *Report) {
	for i := range w.team.Sessions {
		s := &w.team.Sessions[i]
		ends := make(map[string]int)
		all := 0
		for _, t := range w.talks {
			if t.of == s {
				ends[cmp.Or(t.ended, "it was not done at the end")]++
				all++
			}
		}
		types := make(map[string]bool)
		for _, m := range s.Members {
			types[m.AgentType] = types[m.AgentType] || w.agents[m.AgentID] != nil
		}
		for _, kind := range []string{session.AgentArchitect, session.AgentDeveloper} {
			if !types[kind] {
				r.found(Session, "%s: no agent of the file is its %s, so the session can do nothing", s.ID, kind)
			}
		}
		if s.RequireReview && !types[session.AgentReviewer] {
			r.found(Session, "%s: a task is done only when it is approved, and no agent of the file is its reviewer", s.ID)
		}
		for _, how := range slices.Sorted(maps.Keys(ends)) {
			switch n := ends[how]; how {
			case "approved", "done":
			case exhausted:
				r.found(Loops, "%s: %d of %d tasks still needed changes after %d reviews, if each review requests changes with a chance of %.0f%%; then on_max = %q decides",
					s.ID, n, all, s.MaxIterations, 100*changes, s.OnMax)
			default:
				r.found(Session, "%s: %d of %d tasks were not done: %s", s.ID, n, all, how)
			}
		}
	}
}
