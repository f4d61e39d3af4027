package supervisor

import (
	"context"
	"fmt"
	"os"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// Glance is Status for those who look often, and want figures more than the truth:
// it does not wait for the disk, and may show what is not yet recorded. It asks the
// kernel nothing, and does not say what each agent works on.
func (s *Supervisor) Glance(ctx context.Context) (wire.Status, error) {
	got, err := s.seen(ctx)
	if err != nil {
		return wire.Status{}, err
	}
	s.dispatcher.look(func(state *handlers.State) {
		got.status.Tasks, got.status.Questions = state.Counts(), state.Questions()
	})
	return got.status, nil
}

// Dashboard is what the full screen shows of a team.
type Dashboard struct {
	Status    wire.Status
	Tasks     []wire.Task     // the first that are open
	Questions []wire.Question // the first that wait for a person
}

// Scene is Glance with what there is to do and to answer, a little of each, and with
// what each agent works on. The audit does not hear of it.
func (s *Supervisor) Scene(ctx context.Context, tasks, questions int) (Dashboard, error) {
	got, err := s.seen(ctx)
	if err != nil {
		return Dashboard{}, err
	}
	v := Dashboard{Status: got.status}
	s.dispatcher.look(func(state *handlers.State) {
		v.Status.Tasks, v.Status.Questions = state.Counts(), state.Questions()
		v.Tasks, v.Questions = state.OpenTasks(tasks), state.Asked(questions)
		for i := range v.Status.Agents {
			v.Status.Agents[i].Tasks = state.TasksOf(v.Status.Agents[i].Name)
		}
	})
	return v, nil
}

// Left are the first of the tasks that are open, and how many are in all. It may be
// asked before Run and after it.
func (s *Supervisor) Left(most int) (tasks []wire.Task, open int) {
	s.dispatcher.look(func(state *handlers.State) { tasks, open = state.OpenTasks(most), state.Open() })
	return tasks, open
}

// Since returns the tasks that had not ended at a time, for a report at the end of Run.
func (s *Supervisor) Since(at time.Time) ([]wire.Task, error) {
	var list *wire.TaskList
	var pages []handlers.Page
	s.dispatcher.look(func(state *handlers.State) { list, pages = state.Since(at) })
	whole, err := handlers.Complete(list, pages, s.dispatcher)
	if err != nil {
		return list.Tasks, fmt.Errorf("reading why tasks failed: %w", err)
	}
	return whole.(*wire.TaskList).Tasks, nil
}

// DroppedOutput are what was lost of what agents said and of what they were told.
type DroppedOutput struct {
	Cut      int64 // lines that were longer than the limit
	Unlogged int64 // lines that the log files did not take
	Refused  int64 // messages that no mailbox took
}

// Losses sums up the agents that there are when Run has ended.
func (s *Supervisor) Losses() (l DroppedOutput) {
	for _, a := range s.order {
		said := a.voice.View()
		l.Cut, l.Unlogged, l.Refused = l.Cut+said.Cut, l.Unlogged+said.Unlogged, l.Refused+a.refused
	}
	return l
}

// seen is what Run knows of everything.
type seen struct {
	status   wire.Status
	children []Process
}

func (s *Supervisor) seen(ctx context.Context) (seen, error) {
	return ask(ctx, s, func() (seen, error) {
		v := seen{status: s.status()}
		for _, a := range s.order {
			v.status.Agents = append(v.status.Agents, s.view(a))
			v.children = append(v.children, a.child)
		}
		s.nameAwaited(v.status.Agents)
		return v, nil
	})
}

// nameAwaited adds to views of all agents why ExitWhenIdle waits for them, where no task
// is open any more.
func (s *Supervisor) nameAwaited(views []wire.AgentView) {
	if _, open := s.Left(0); !s.options.ExitWhenIdle || open > 0 {
		return
	}
	all, _ := s.awaits()
	for _, w := range all {
		for i := range views {
			if views[i].Name == w.agent.Name {
				views[i].Awaited = w.why
			}
		}
	}
}

// Status is everything as it is now.
func (s *Supervisor) Status(ctx context.Context) (wire.Status, error) {
	got, err := s.seen(ctx)
	if err != nil {
		return wire.Status{}, err
	}
	s.dispatcher.settle()
	got.status.Seq = s.Seq() // a reader that goes on from there misses nothing of what is not seen here
	s.dispatcher.look(func(state *handlers.State) {
		got.status.Tasks, got.status.Questions = state.Counts(), state.Questions()
		for i := range got.status.Agents {
			got.status.Agents[i].Tasks = state.TasksOf(got.status.Agents[i].Name)
		}
	})
	s.dispatcher.settle()            // nothing is shown that is not recorded
	for i, c := range got.children { // reading /proc is not for Run
		if v := &got.status.Agents[i]; c != nil {
			v.CPUMS, v.RSSBytes = c.Usage()
			v.Mailbox.Unread = c.Unread()
		}
	}
	return got.status, nil
}

func (s *Supervisor) status() wire.Status {
	state := "running"
	if s.stopping != nil {
		state = "stopping"
	}
	return wire.Status{
		FormatVersion: wire.FormatVersion,
		Name:          s.options.Name,
		Version:       s.options.Version,
		PID:           os.Getpid(),
		State:         state,
		Config:        s.options.Config,
		StateDir:      s.options.StateDir,
		StartedAt:     wire.Timestamp(s.began),
		UpMS:          time.Since(s.began).Milliseconds(),
	}
}

func (s *Supervisor) view(a *agent) wire.AgentView {
	v := wire.AgentView{
		Name:        a.Name,
		Block:       a.Block,
		Description: a.Description,
		State:       a.state,
		Reason:      a.reason,
		Command:     a.Command,
		Dir:         a.Dir,
		Role:        a.Role,
		DependsOn:   a.DependsOn,
		Run:         a.run,
		Starts:      a.starts,
		Restarts:    a.restarts,
		LastExit:    a.lastExit,
		Output:      a.voice.View(),
		Mailbox:     wire.MailboxView{Refused: a.refused},
	}
	if a.child != nil {
		v.PID = a.child.PID()
		v.StartedAt = wire.Timestamp(a.child.StartedAt())
		v.UpMS = time.Since(a.child.StartedAt()).Milliseconds()
		var refused int64
		v.Mailbox.Messages, v.Mailbox.Bytes, refused = a.mail.Waiting()
		v.Mailbox.Refused += refused
	}
	if a.state == wire.StateBackoff {
		v.NextStartMS = max(0, time.Until(a.due.at).Milliseconds())
	}
	return v
}
