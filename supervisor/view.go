package supervisor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"orchestrator/handlers"
	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// QuickStatus is like Status, but does not wait for the disk, and may show uncommitted changes. It
// omits the tasks of each agent and the figures that need a system call. It is cheap enough to
// be called often.
func (s *Supervisor) QuickStatus(ctx context.Context) (control.Status, error) {
	got, err := s.seen(ctx)
	if err != nil {
		return control.Status{}, err
	}
	s.dispatcher.Look(func(state *handlers.State) {
		got.status.Tasks, got.status.Questions, got.status.Used = state.Counts(), state.QuestionCount(), state.Used()
		for i := range got.status.Agents {
			showActivity(state, &got.status.Agents[i])
		}
	})
	return got.status, nil
}

// A Dashboard is the data of the full-screen view.
type Dashboard struct {
	Status    control.Status
	Tasks     []wire.Task     // the first open tasks
	Questions []wire.Question // the first open questions
}

// Dashboard returns the reply of QuickStatus, the first open tasks and questions, and the tasks of each agent. The
// audit does not record it.
func (s *Supervisor) Dashboard(ctx context.Context, tasks, questions int) (Dashboard, error) {
	got, err := s.seen(ctx)
	if err != nil {
		return Dashboard{}, err
	}
	v := Dashboard{Status: got.status}
	s.dispatcher.Look(func(state *handlers.State) {
		v.Status.Tasks, v.Status.Questions, v.Status.Used = state.Counts(), state.QuestionCount(), state.Used()
		v.Tasks, v.Questions = state.OpenTasks(tasks), state.Asked(questions)
		for i := range v.Status.Agents {
			showWork(state, &v.Status.Agents[i])
		}
	})
	return v, nil
}

// showWork adds the work of the agent, from the State, to a view.
func showWork(state *handlers.State, v *control.AgentView) {
	v.Tasks = state.TasksOf(v.Name)
	showActivity(state, v)
}

// showActivity adds the activity of a coding agent, from the State, to a view.
func showActivity(state *handlers.State, v *control.AgentView) {
	known := state.Activity(v.Name)
	if now := v.Activity; known != nil && now != nil {
		known.State, known.Since, known.What = now.State, now.Since, now.What
	}
	if known != nil {
		v.Activity = known
	}
}

// Left returns the first open tasks and the number of all open ones, or none if the record is broken. It may be
// called before Run and after it.
func (s *Supervisor) Left(most int) (tasks []wire.Task, open int) {
	if s.dispatcher.Broken() {
		return nil, 0
	}
	s.dispatcher.Look(func(state *handlers.State) { tasks, open = state.OpenTasks(most), state.Open() })
	return tasks, open
}

// Unmerged returns the done tasks with branches that the merge queue has not merged.
func (s *Supervisor) Unmerged() (tasks []wire.Task) {
	s.dispatcher.Look(func(state *handlers.State) { tasks = state.Unmerged() })
	return tasks
}

// Since returns the tasks that had not ended at a time, for a report at the end of Run.
func (s *Supervisor) Since(at time.Time) ([]wire.Task, error) {
	var list *wire.TaskList
	var pages []history.Page
	s.dispatcher.Look(func(state *handlers.State) { list, pages = state.Since(at) })
	whole, err := state.Complete(list, pages, s.dispatcher)
	if err != nil {
		return list.Tasks, fmt.Errorf("reading why tasks failed: %w", err)
	}
	return whole.(*wire.TaskList).Tasks, nil
}

// DroppedOutput counts the lost output of agents and the messages that they did not get.
type DroppedOutput struct {
	Cut      int64 // lines that were longer than the limit
	Unlogged int64 // lines that could not be written to the log files
	Refused  int64 // messages that a mailbox refused
}

// DroppedOutput returns the sums over all agents. It must be called after Run.
func (s *Supervisor) DroppedOutput() (l DroppedOutput) {
	for _, a := range s.life.order {
		said := a.voice.View()
		l.Cut, l.Unlogged, l.Refused = l.Cut+said.Cut, l.Unlogged+said.Unlogged, l.Refused+a.refused
	}
	return l
}

// seen is a copy of state of Run's goroutine.
type seen struct {
	status   control.Status
	children []Process
	mail     []*stdin.Mailbox
}

func (s *Supervisor) seen(ctx context.Context) (seen, error) {
	return ask(ctx, s, func() (seen, error) {
		v := seen{status: s.status()}
		for _, a := range s.life.order {
			v.status.Agents = append(v.status.Agents, view(a))
			v.children = append(v.children, a.child)
			v.mail = append(v.mail, a.mail)
		}
		s.nameAwaited(v.status.Agents)
		return v, nil
	})
}

// nameAwaited adds to the views the reasons why ExitWhenIdle waits for agents, if no task is
// open.
func (s *Supervisor) nameAwaited(views []control.AgentView) {
	if _, open := s.Left(0); !s.options.ExitWhenIdle || open > 0 {
		return
	}
	all, _ := s.life.idle.awaits()
	for _, w := range all {
		for i := range views {
			if views[i].Name == w.agent.Name {
				views[i].Awaited = w.why
			}
		}
	}
}

// SetStalled sets why the record takes no appends at the moment. A nil error ends the stall. During a stall, reads show
// the committed records.
func (s *Supervisor) SetStalled(why *wire.Error) { s.dispatcher.SetStalled(why) }

// Status returns the present state of the supervisor and its agents.
func (s *Supervisor) Status(ctx context.Context) (control.Status, error) {
	got, err := s.seen(ctx)
	if err != nil {
		return control.Status{}, err
	}
	stalled, err := dispatch.See(ctx, s.dispatcher, func(state *handlers.State, seq int64) {
		got.status.Seq, got.status.Tasks, got.status.Questions, got.status.Used = seq, state.Counts(), state.QuestionCount(), state.Used()
		for i := range got.status.Agents {
			showWork(state, &got.status.Agents[i])
		}
	})
	if err != nil {
		return control.Status{}, err
	}
	if stalled != nil {
		got.status.NoQuorum = stalled.Message
	}
	for i, c := range got.children { // reads /proc outside Run's goroutine
		if v := &got.status.Agents[i]; c != nil {
			v.CPUMS, v.RSSBytes = c.Usage()
			v.Mailbox.Unread = c.Unread()
			v.Mailbox.TaskUnread = got.mail[i] != nil && got.mail[i].TaskUnread(v.Mailbox.Unread)
		}
	}
	return got.status, nil
}

func (s *Supervisor) status() control.Status {
	state := "running"
	if s.life.stopping != nil {
		state = "stopping"
	}
	return control.Status{
		FormatVersion: wire.FormatVersion,
		Name:          s.options.Name,
		Version:       s.options.Version,
		PID:           os.Getpid(),
		State:         state,
		Config:        s.options.Config,
		StateDir:      s.options.StateDir,
		StartedAt:     object.Timestamp(s.began),
		UpMS:          time.Since(s.began).Milliseconds(),
	}
}

func view(a *agent) control.AgentView {
	v := control.AgentView{
		Name:      a.Name,
		Block:     a.Block,
		Profile:   a.Profile,
		State:     a.state,
		Reason:    a.reason,
		Command:   a.Command,
		Dir:       a.Dir,
		Role:      a.Role,
		DependsOn: a.DependsOn,
		Run:       a.run,
		Starts:    a.starts,
		Restarts:  a.restarts,
		LastExit:  a.lastExit,
		Output:    a.voice.View(),
		Mailbox:   control.MailboxView{Refused: a.refused},
	}
	if there, ok := a.child.(*hosts.Process); ok {
		v.Host = there.Host()
	}
	if a.child != nil {
		v.PID = a.child.PID()
		v.StartedAt = object.Timestamp(a.child.StartedAt())
		v.UpMS = time.Since(a.child.StartedAt()).Milliseconds()
		var refused int64
		v.Mailbox.Messages, v.Mailbox.Bytes, refused = a.mail.Waiting()
		v.Mailbox.Refused += refused
	}
	if turn := a.turn(); turn != nil {
		v.Activity = &control.Activity{State: turn.State, Since: turn.Since, What: turn.What}
	}
	if a.state == control.StateBackoff {
		v.NextStartMS = max(0, time.Until(a.due.at).Milliseconds())
	}
	return v
}

// short formats a duration: 0.4s, 31.2s, 12m05s, 1h02m.
func short(d time.Duration) string {
	switch {
	case d < 59950*time.Millisecond: // longer ones round to a minute
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		d = max(d, time.Minute)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// count formats a number with its noun.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// leftOvers formats processes: "2 left-overs (41290 node, 41311 esbuild)".
func leftOvers(processes []child.Process) string {
	return fmt.Sprintf("%s (%s)", count(len(processes), "left-over"), names(processes))
}

// names formats a list of processes and elides all but the first few.
func names(processes []child.Process) string {
	const few = 8
	var words []string
	for _, p := range processes[:min(len(processes), few)] {
		word := fmt.Sprintf("%d %s", p.PID, wire.Visible(p.Program))
		if p.Held {
			word += " holding its output open"
		}
		words = append(words, word)
	}
	if len(processes) > few {
		words = append(words, fmt.Sprintf("and %d more", len(processes)-few))
	}
	return strings.Join(words, ", ")
}

func heldBy(processes []child.Process) string {
	if len(processes) == 0 {
		return ""
	}
	return " (by " + names(processes) + ")"
}

// views converts processes to their form in documents.
func views(processes []child.Process) []wire.LeftOver {
	var list []wire.LeftOver
	for _, p := range processes {
		list = append(list, wire.LeftOver{PID: p.PID, Program: p.Program, HeldOpen: p.Held})
	}
	return list
}

// Held returns a task that an agent holds, and whether the agent could complete it now.
func (s *Supervisor) Held(agent, task string) (t wire.Task, completable bool) {
	s.dispatcher.Look(func(state *handlers.State) { t, completable = state.Held(agent, task) })
	return t, completable
}

// FolderOf returns the folder of the latest run of an agent.
func (s *Supervisor) FolderOf(agent string) dispatch.Folder {
	return s.dispatcher.FolderOf(agent)
}

// Questions returns the first open questions.
func (s *Supervisor) Questions(most int) (all []wire.Question) {
	s.dispatcher.Look(func(state *handlers.State) { all = state.Asked(most) })
	return all
}

// Spending returns the tasks that an agent works on, and the use of the agent and of the team.
func (s *Supervisor) Spending(agent string) (tasks []wire.Task, ofAgent, ofTeam activity.Used) {
	s.dispatcher.Look(func(state *handlers.State) {
		for _, label := range state.TasksOf(agent) {
			if t, _ := state.Held(agent, label.ID); t.State == wire.TaskRunning {
				tasks = append(tasks, t)
			}
		}
		if a := state.Activity(agent); a != nil {
			ofAgent = activity.Used{Input: a.Input, Output: a.Output, Cost: a.Cost, Currency: a.Currency}
		}
		if all := state.Used(); all != nil {
			ofTeam = *all
		}
	})
	return tasks, ofAgent, ofTeam
}
