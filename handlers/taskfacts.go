package handlers

import (
	"slices"
	"strings"

	"orchestrator/wire"
)

// taskCreated says that there is a task.
type taskCreated struct {
	ID                   string   `json:"task"`
	Name                 string   `json:"name"`
	Type                 string   `json:"type"`
	Description          string   `json:"description,omitzero"`
	Payload              wire.Raw `json:"payload,omitzero"`
	RequiredRole         string   `json:"required_role,omitzero"`
	RequiredCapabilities []string `json:"required_capabilities,omitzero"`
	Dependencies         []string `json:"dependencies,omitzero"`
	Priority             wire.Raw `json:"priority,omitzero"`
	Request              *mark    `json:"request,omitzero"`
}

func (*taskCreated) kind() string { return wire.EventTaskCreated }

func (f *taskCreated) apply(s *State, r *wire.Record) {
	k := &task{
		view: wire.Task{
			ID: f.ID, Name: f.Name, Type: f.Type, Description: f.Description, Payload: f.Payload,
			RequiredRole: f.RequiredRole, RequiredCapabilities: f.RequiredCapabilities, Dependencies: f.Dependencies,
			Priority: f.Priority, SubmittedBy: r.From, CreatedAt: wire.Timestamp(r.At),
			State: wire.TaskPending, Status: wire.TaskPending.Status(),
		},
		urgency: urgencyOf(f.Priority),
		created: r.Seq,
	}
	if len(f.Description)+len(f.Payload) > heavy {
		k.view.Description, k.view.Payload, k.stub = "", nil, true
	}
	for _, id := range f.Dependencies {
		k.depend(s.tasks[id])
	}
	s.tasks[k.view.ID] = k
	s.list = append(s.list, k)
	s.owns(r.From, k)
	s.count(k, +1)
	s.enqueue(k)
	s.remember(agentOf(r.From), f.Request, reply(k), nil)
}

// depend lets a task wait for another, if that is not done.
func (k *task) depend(d *task) {
	if d.view.State == wire.TaskDone {
		return
	}
	k.open++
	if !d.view.State.Final() {
		d.dependents = append(d.dependents, k)
	}
}

// agentOf is the name of the agent that an actor of the log is; "" if it is
// none.
func agentOf(actor string) string {
	name, _ := strings.CutPrefix(actor, agentPrefix)
	if name == actor {
		return ""
	}
	return name
}

// taskAssigned says that an agent has a task, and is to be told.
type taskAssigned struct {
	ID      string `json:"task"`
	Name    string `json:"name"`
	Agent   string `json:"agent"`
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
}

func (*taskAssigned) kind() string { return wire.EventTaskAssigned }

func (f *taskAssigned) apply(s *State, r *wire.Record) {
	k, a := s.tasks[f.ID], s.agents[f.Agent]
	s.release(k)
	s.move(k, wire.TaskAssigned)
	k.view.AssignedTo, k.run, k.view.Attempts = f.Agent, f.Run, f.Attempt
	k.view.AssignedAt = wire.Timestamp(r.At)
	s.market.withdraw(a)
	a.holds = append(a.holds, k)
	a.given = r.Seq
	s.market.offer(a)
	s.owns(a.actor, k)
}

// taskStarted says that an agent works on its task.
type taskStarted struct {
	ID      string `json:"task"`
	Name    string `json:"name"`
	Agent   string `json:"agent"`
	Request *mark  `json:"request,omitzero"`
}

func (*taskStarted) kind() string { return wire.EventTaskStarted }

func (f *taskStarted) apply(s *State, r *wire.Record) {
	k := s.tasks[f.ID]
	s.move(k, wire.TaskRunning)
	k.view.StartedAt = wire.Timestamp(r.At)
	s.remember(agentOf(r.From), f.Request, reply(k), nil)
}

// taskProgress says how far a task is.
type taskProgress struct {
	ID       string  `json:"task"`
	Name     string  `json:"name"`
	Agent    string  `json:"agent"`
	Progress float64 `json:"progress"`
	Message  string  `json:"message,omitzero"`
}

func (*taskProgress) kind() string { return wire.EventTaskProgress }

func (f *taskProgress) apply(s *State, _ *wire.Record) {
	k := s.tasks[f.ID]
	k.view.Progress, k.view.Message = f.Progress, f.Message
}

// taskTrouble says that an agent met an error that it can live with.
type taskTrouble struct {
	ID    string `json:"task,omitzero"`
	Agent string `json:"agent"`
	Error string `json:"error"`
	Stack string `json:"stack,omitzero"`
}

func (*taskTrouble) kind() string               { return wire.EventTaskTrouble }
func (*taskTrouble) apply(*State, *wire.Record) {}

// taskRequeued says that a task has lost its agent and waits for another.
type taskRequeued struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"` // that had it
	Why   string `json:"why"`
	Death bool   `json:"death,omitzero"` // it may be the task's fault
	Deaf  bool   `json:"deaf,omitzero"`  // the agent could not be told, and takes nothing for now
}

func (*taskRequeued) kind() string { return wire.EventTaskRequeued }

func (f *taskRequeued) apply(s *State, _ *wire.Record) {
	k := s.tasks[f.ID]
	s.release(k)
	s.disowns(agentPrefix+f.Agent, k)
	s.move(k, wire.TaskPending)
	if f.Death {
		k.deaths++
	}
	if a := s.agents[f.Agent]; a != nil && f.Deaf {
		s.market.withdraw(a)
		a.deaf = true
	}
	k.view.AssignedTo, k.run = "", ""
	k.view.AssignedAt, k.view.StartedAt = "", ""
	k.view.Progress, k.view.Message = 0, ""
	s.enqueue(k)
}

// taskDone says that a task has come to its result.
type taskDone struct {
	ID      string   `json:"task"`
	Name    string   `json:"name"`
	Agent   string   `json:"agent,omitzero"`
	Result  wire.Raw `json:"result"`
	Request *mark    `json:"request,omitzero"`
}

func (*taskDone) kind() string { return wire.EventTaskDone }

func (f *taskDone) apply(s *State, r *wire.Record) {
	k := s.tasks[f.ID]
	waiting := k.dependents
	if k.view.Result = f.Result; len(f.Result) > heavy {
		k.view.Result, k.stub = nil, true
	}
	s.end(k, wire.TaskDone, r)
	for _, d := range waiting {
		if d.view.State.Final() {
			continue
		}
		s.count(d, -1)
		d.open--
		s.count(d, +1)
		s.enqueue(d)
	}
	s.remember(agentOf(r.From), f.Request, reply(k), nil)
}

// taskFailed says that a task has come to nothing.
type taskFailed struct {
	ID      string `json:"task"`
	Name    string `json:"name"`
	Agent   string `json:"agent,omitzero"`
	Error   string `json:"error"`
	Stack   string `json:"stack,omitzero"`
	Request *mark  `json:"request,omitzero"`
}

func (*taskFailed) kind() string { return wire.EventTaskFailed }

func (f *taskFailed) apply(s *State, r *wire.Record) {
	k := s.tasks[f.ID]
	if k.view.Error = f.Error; len(f.Error) > heavy {
		k.view.Error, k.stub = "", true
	}
	s.end(k, wire.TaskFailed, r)
	s.remember(agentOf(r.From), f.Request, reply(k), nil)
}

// taskCancelled says that nobody wants a task any more.
type taskCancelled struct {
	ID      string `json:"task"`
	Name    string `json:"name"`
	Agent   string `json:"agent,omitzero"` // that had it
	Reason  string `json:"reason"`
	Request *mark  `json:"request,omitzero"`
}

func (*taskCancelled) kind() string { return wire.EventTaskCancelled }

func (f *taskCancelled) apply(s *State, r *wire.Record) {
	k := s.tasks[f.ID]
	k.view.Reason = f.Reason
	s.end(k, wire.TaskCancelled, r)
	s.remember(agentOf(r.From), f.Request, reply(k), nil)
}

// taskBlocked says that a task waits for one that will never be done. It is a
// warning: only a person can help.
type taskBlocked struct {
	ID       string `json:"task"`
	Name     string `json:"name"`
	Upstream string `json:"upstream"`
}

func (*taskBlocked) kind() string               { return wire.EventTaskBlocked }
func (*taskBlocked) apply(*State, *wire.Record) {}

// waiting are the tasks that wait for one, as they are before it ends.
func (k *task) waiting() []*task { return slices.Clone(k.dependents) }
