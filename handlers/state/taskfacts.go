package state

import (
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// TaskCreated records a new task.
type TaskCreated struct {
	ID                   string           `json:"task"`
	Name                 string           `json:"name"`
	Type                 string           `json:"type"`
	Description          string           `json:"description,omitzero"`
	Payload              wire.Raw         `json:"payload,omitzero"`
	RequiredRole         string           `json:"required_role,omitzero"`
	RequiredCapabilities []string         `json:"required_capabilities,omitzero"`
	Dependencies         []hub.Dependency `json:"dependencies,omitzero"`
	Priority             wire.Raw         `json:"priority,omitzero"`
	StructuredSpec       wire.Raw         `json:"structured_spec,omitzero"`
	Requirements         wire.Raw         `json:"requirements,omitzero"`
	TargetRepo           string           `json:"target_repo,omitzero"`
	AcceptanceCriteria   []string         `json:"acceptance_criteria,omitzero"`
	ProjectID            string           `json:"project,omitzero"`
	SessionID            string           `json:"session,omitzero"`
	Parent               string           `json:"parent,omitzero"`
	Verify               [][]string       `json:"verify,omitzero"`
	Patient              bool             `json:"patient,omitzero"`
	Block                *hub.TaskBlock   `json:"block,omitzero"`
	Request              *RequestKey      `json:"request,omitzero"`

	// The position of the task in a trace: the given one, and the ids of the span above it.
	Observability *delegation.Trace `json:"observability,omitzero"`
	TraceID       string            `json:"trace_id,omitzero"`
	SpanID        string            `json:"span_id,omitzero"`
	Delegated     *Delegated        `json:"delegated,omitzero"` // has its own payload and trace

	Decoded *delegation.Request `json:"-"` // the request of a delegated task, or nil
}

func (*TaskCreated) kind() string { return events.TaskCreated }

func (t *TaskCreated) apply(s *State, r *wire.Record) {
	s.confirmRead(AgentOf(r.From), r.At)
	t.Read()
	k := &Task{
		View: storedTask{
			ID: t.ID, Name: t.Name, Type: t.Type, Description: t.Description, Payload: t.payload(),
			RequiredRole: t.RequiredRole, RequiredCapabilities: t.RequiredCapabilities,
			Priority: t.Priority, SubmittedBy: r.From, CreatedAt: object.Timestamp(r.At), Details: t.details(),
			State: wire.TaskPending,
		},
		urgency: hub.Urgency(t.Priority),
		Number:  r.Seq,
	}
	if t.Patient {
		k.EnsureExtra().Patient = true
	}
	if t.Block != nil {
		k.EnsureExtra().Block = &hub.TaskBlock{Name: t.Block.Name, Sum: t.Block.Sum}
	}
	k.readDocuments()
	k.follow(t)
	k.lighten()
	s.Tasks.Include(k)
	s.Verifies.CompareAndSwap(false, t.Verify != nil)
	for _, d := range t.Dependencies {
		s.Tasks.link(k, s.Tasks.ByID[d.On], d, r.At)
	}
	s.Tasks.Owns(r.From, k)
	s.Count(k, +1)
	s.Agents.Opened(k, +1)
	if t.Decoded != nil {
		t.handOn(s, k, r.Seq)
	}
	s.Tasks.Enqueue(k)
	s.saveTaskReply(r, t.Request, k)
}

// follow sets the position of a task in its trace. It copies the texts, so that the rest of the
// fact can be freed.
func (t *Task) follow(f *TaskCreated) {
	said := f.Observability
	if f.Decoded != nil {
		said = &f.Decoded.Observability
	}
	if said != nil {
		t.EnsureExtra().Trace = &delegation.Trace{TraceID: said.TraceID, SpanID: said.SpanID, Baggage: slices.Clone(said.Baggage)}
	}
}

// Read decodes the request of a delegated task.
func (t *TaskCreated) Read() {
	if t.Delegated != nil && t.Decoded == nil {
		t.Decoded, _ = t.Delegated.Read() // see check
	}
}

func (t *TaskCreated) payload() wire.Raw {
	if t.Decoded != nil {
		return t.Decoded.Payload
	}
	return t.Payload
}

// admit adds a task, except to the lists.
func (ts *tasks) admit(t *Task) {
	t.Node = ts.Graph.Add()
	if int(t.Node) == len(ts.Nodes) {
		ts.Nodes = append(ts.Nodes, nil)
	}
	ts.Nodes[t.Node] = t
	ts.ByID[t.View.ID] = t
	if d := t.View.Details; d != nil && d.ParentTaskID != "" {
		if t.parent = ts.Find(d.ParentTaskID); t.parent != nil {
			t.parent.children++
		}
	}
}

// Include adds a task.
func (ts *tasks) Include(t *Task) {
	ts.admit(t)
	ts.List = append(ts.List, t)
	if t.Extra != nil && t.Extra.Block != nil {
		if before := ts.Blocks[t.Extra.Block.Name]; before == nil || before.Number < t.Number { // a snapshot has no order
			ts.Blocks[t.Extra.Block.Name] = t
		}
	}
}

// OfBlock returns the task of a task block of the configuration, its state, and the sum of the
// block when it was submitted. The id is empty if the block has no task.
func (s *State) OfBlock(name string) (id string, state wire.TaskState, sum uint64) {
	if t := s.Tasks.Blocks[name]; t != nil {
		return t.View.ID, t.View.State, t.Extra.Block.Sum
	}
	return "", "", 0
}

// details returns the parts of a task that few tasks have.
func (t *TaskCreated) details() *wire.Details {
	d := wire.Details{
		StructuredSpec: t.StructuredSpec, Requirements: t.Requirements, TargetRepo: t.TargetRepo,
		AcceptanceCriteria: t.AcceptanceCriteria, ProjectID: t.ProjectID, SessionID: t.SessionID, ParentTaskID: t.Parent,
		Observability: t.Observability, Verify: t.Verify,
	}
	if t.Block != nil {
		d.Block = t.Block.Name
	}
	if q := t.Decoded; q != nil {
		if q.Context != (delegation.Context{}) {
			d.Context = &q.Context
		}
		d.Routing, d.Observability = &q.Routing, &q.Observability
	}
	if d.Filled() == nil { // as of most tasks, and then d stays on the stack
		return nil
	}
	return d.Copy()
}

// readDocuments decodes the parts of a task's documents that decisions need.
func (t *Task) readDocuments() {
	d := t.View.Details
	if d == nil {
		return
	}
	if spec := hub.ReadSpec(d.StructuredSpec); spec != nil {
		m := t.EnsureExtra()
		m.Promises, m.MaxFiles = spec.Promises, spec.MaxFiles
	}
	if required := hub.ReadRequirements(d.Requirements); !required.Empty() {
		t.EnsureExtra().wants = newWants(required)
	}
}

// AgentOf returns the name of the agent that an actor of the log stands for, or "".
func AgentOf(actor string) string {
	name, _ := strings.CutPrefix(actor, AgentPrefix)
	if name == actor {
		return ""
	}
	return name
}

// TaskAssigned records that a task is assigned to an agent.
type TaskAssigned struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Run     string      `json:"run"`
	Attempt int         `json:"attempt"`
	Way     Way         `json:"way,omitzero"`
	Score   int         `json:"score,omitzero"` // of a matched task
	Plan    bool        `json:"plan,omitzero"`  // a plan is wanted first
	Request *RequestKey `json:"request,omitzero"`

	Mailed bool `json:"-"` // the bus already has it as a message
}

func (*TaskAssigned) kind() string { return events.TaskAssigned }

func (t *TaskAssigned) apply(s *State, r *wire.Record) {
	k, a := s.Tasks.ByID[t.ID], s.Agents.ByID[t.Agent]
	if before := k.View.AssignedTo; before != "" && before != t.Agent {
		defer s.updateStanding(s.Agents.ByID[before])
		defer s.Tasks.disowns(AgentPrefix+before, k)
	}
	s.release(k)
	s.detachParts(k)
	s.Tasks.address(k, "")
	to := wire.TaskAssigned
	if t.Plan {
		to = wire.TaskPlanning
		k.EnsureExtra().PlanFirst = true
	}
	s.move(k, to)
	k.View.AssignedTo, k.Run, k.Way, k.View.Attempts = t.Agent, t.Run, t.Way, t.Attempt
	k.View.AssignedAt = object.Timestamp(r.At)
	s.Tasks.Queue.removeIdle(a)
	a.Holds = append(a.Holds, k)
	a.Given = r.Seq
	s.AddIdle(a)
	s.Tasks.Owns(a.ActorID, k)
	if d := k.Delegation(); d != nil {
		s.Delegations.directed(d, a)
	}
	t.remember(s, r, k)
}

// TaskStarted records that an agent works on its task.
type TaskStarted struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Request *RequestKey `json:"request,omitzero"`
}

func (*TaskStarted) kind() string { return events.TaskStarted }

func (t *TaskStarted) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	s.move(k, wire.TaskRunning)
	if k.Extra != nil {
		k.Extra.PlanFirst = false
	}
	if w := k.Work(); w != nil {
		s.takeUp(w, r.At)
	}
	if k.View.StartedAt == "" {
		k.View.StartedAt = object.Timestamp(r.At)
	}
	s.updateStanding(s.Agents.ByID[k.View.AssignedTo])
	s.saveTaskReply(r, t.Request, k)
}

// TaskProgress records the progress of a task.
type TaskProgress struct {
	ID       string  `json:"task"`
	Name     string  `json:"name"`
	Agent    string  `json:"agent"`
	Progress float64 `json:"progress"`
	Message  string  `json:"message,omitzero"`
	Kind     string  `json:"kind,omitzero"` // of the message, if it came with report-progress

	Output  wire.Raw    `json:"output,omitzero"` // the partial result, which is only in the log
	Request *RequestKey `json:"request,omitzero"`
}

func (*TaskProgress) kind() string { return events.TaskProgress }

func (t *TaskProgress) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	k.View.Progress, k.View.Message = t.Progress, t.Message
	if t.Output != nil {
		k.EnsureExtra().Output = r.Seq
	}
	s.saveTaskReply(r, t.Request, k)
	if w := k.Work(); w != nil && w.Phase == session.PhaseWorking {
		s.enter(w, session.PhaseWorking, r.At)
	}
}

// TaskTrouble records an error that does not end the task.
type TaskTrouble struct {
	ID    string `json:"task,omitzero"`
	Agent string `json:"agent"`
	Error string `json:"error"`
	Stack string `json:"stack,omitzero"`
}

func (*TaskTrouble) kind() string               { return events.TaskTrouble }
func (*TaskTrouble) apply(*State, *wire.Record) {}

// TaskRequeued records that a task has lost its agent and waits for another.
type TaskRequeued struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"` // that had it
	Why   string `json:"why"`
	Death bool   `json:"death,omitzero"` // it may be the task's fault
	Deaf  bool   `json:"deaf,omitzero"`  // the agent does not read, and gets no tasks for now

	// Blameless is set if the agent never began the task, was stopped by the
	// orchestrator or died with it. The attempt is not counted.
	Blameless bool `json:"blameless,omitzero"`
	Returned  bool `json:"returned,omitzero"` // by the agent

	Class string `json:"class,omitzero"` // of the failure after which it is tried again
	After string `json:"after,omitzero"` // it is not given out before
	To    string `json:"to,omitzero"`    // the agent that gets it again; see addressee

	Request *RequestKey `json:"request,omitzero"`
}

func (*TaskRequeued) kind() string { return events.TaskRequeued }

// maxHistory is the maximum number of former agents that the error of a task names.
const maxHistory = 10

func (t *TaskRequeued) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	if t.Death {
		k.Deaths++
	}
	if t.Blameless {
		k.View.Attempts = max(0, k.View.Attempts-1)
	}
	if a := s.Agents.ByID[t.Agent]; a != nil && t.Deaf {
		s.Tasks.Queue.removeIdle(a)
		a.Unreachable = true
	}
	after, _ := object.ParseTime(t.After)
	s.unassign(k, t.Agent, t.Why, after)
	s.Tasks.address(k, t.To)
	if a := s.Agents.ByID[t.Agent]; a != nil && t.Returned { // it runs, and may fit the task again
		s.Tasks.Required.markChanged(a)
	}
	s.saveTaskReply(r, t.Request, k)
}

// unassign takes a task from its agent and lets it wait for another, but not before a time.
func (s *State) unassign(t *Task, agent, why string, after time.Time) {
	s.move(t, wire.TaskPending)
	s.release(t)
	s.Tasks.disowns(AgentPrefix+agent, t)
	if a := s.Agents.ByID[agent]; a != nil {
		a.Memories.Forget(t.View.ID)
		s.AddIdle(a)
	}
	if t.Way != Dispatched {
		m := t.EnsureExtra()
		m.History = append(m.History, agent+": "+why)
		m.History = m.History[max(0, len(m.History)-maxHistory):]
	}
	if d := t.Delegation(); d != nil {
		d.Out, d.Forwarded, d.Said, d.Returned = "", "", "", nil
		s.dropKeptResponse(d) // its last response is outdated
	}
	s.detachParts(t)
	t.View.AssignedTo, t.Run, t.Way = "", "", Dispatched
	t.View.AssignedAt, t.View.StartedAt = "", ""
	t.View.Progress, t.View.Message = 0, ""
	s.Tasks.postpone(t, after)
	s.Tasks.Enqueue(t)
}

// TaskDone records the result of a task.
type TaskDone struct {
	ID     string   `json:"task"`
	Name   string   `json:"name"`
	Agent  string   `json:"agent,omitzero"`
	Result wire.Raw `json:"result"`
	Plain  bool     `json:"plain,omitzero"`  // the result is not decoded
	Merges bool     `json:"merges,omitzero"` // its branch will be merged, and its dependents wait for that

	Artifacts []hub.Artifact `json:"artifacts,omitzero"`

	Actor   string      `json:"actor,omitzero"` // its agent on the bus
	Request *RequestKey `json:"request,omitzero"`

	Read   *hub.Result `json:"-"` // the result, if it was read already
	Mailed bool        `json:"-"` // the bus already has it as a message
}

func (*TaskDone) kind() string { return events.TaskDone }

func (t *TaskDone) apply(s *State, r *wire.Record) {
	if t.Request != nil {
		s.confirmRead(AgentOf(r.From), r.At)
	}
	k := s.Tasks.ByID[t.ID]
	if t.Read == nil && !t.Plain {
		t.Read = hub.ReadResult(t.Result)
	}
	if t.Read != nil && t.Read.Structured && len(t.Read.Contracts) > 0 {
		k.EnsureExtra().delivered = delivered(t.Read)
	}
	k.View.Details = t.listed(k.View.Details)
	if k.Extra != nil {
		k.Extra.Output = 0 // the result replaces it
	}
	k.result = object.CompactLen(t.Result) // the record has no spaces of agents
	if k.View.Result = t.Result; k.result > Heavy {
		k.View.Result, k.Stub = nil, true
		k.leaveDelivered()
	}
	if t.Merges {
		k.setMerge(hub.MergeWaiting)
	}
	s.end(k, wire.TaskDone, r)
	s.saveTaskReply(r, t.Request, k)
}

// listed returns the details of the task with the artifacts, without their content.
func (t *TaskDone) listed(before *wire.Details) *wire.Details {
	if len(t.Artifacts) == 0 {
		return before
	}
	d := before.Copy()
	d.Artifacts = nil
	for _, a := range t.Artifacts {
		if a.Content = ""; delegation.IsArtifactRef(a.Ref) {
			a.Ref = ""
		}
		d.Artifacts = append(d.Artifacts, a)
	}
	return d
}

// Made implements history.Success.
func (t *TaskDone) Made() []delegation.Artifact { return MadeOf(t.Artifacts) }

// MadeOf returns artifacts as a task response has them.
func MadeOf(all []hub.Artifact) []delegation.Artifact {
	var made []delegation.Artifact
	for _, a := range all {
		made = append(made, delegation.Artifact{Name: a.Name, Type: a.Type, Content: a.Content, Ref: a.Ref})
	}
	return made
}

// TaskFailed records that a task has failed.
type TaskFailed struct {
	ID        string      `json:"task"`
	Name      string      `json:"name"`
	Agent     string      `json:"agent,omitzero"`
	Error     string      `json:"error"`
	Stack     string      `json:"stack,omitzero"`
	Class     string      `json:"class,omitzero"`
	Retryable bool        `json:"retryable,omitzero"` // another attempt might succeed, but none is left
	Actor     string      `json:"actor,omitzero"`     // its agent on the bus
	Request   *RequestKey `json:"request,omitzero"`

	Mailed bool `json:"-"` // the bus already has it as a message
}

func (*TaskFailed) kind() string { return events.TaskFailed }

func (f *TaskFailed) apply(s *State, r *wire.Record) {
	t := s.Tasks.ByID[f.ID]
	if t.View.Error = f.Error; len(f.Error) > Heavy {
		t.View.Error, t.Stub = "", true
	}
	if f.Class != "" {
		t.View.Details = t.View.Details.Copy()
		t.View.FailureClass = f.Class
	}
	s.end(t, wire.TaskFailed, r)
	s.saveTaskReply(r, f.Request, t)
}

// TaskCancelled records that a task is no longer wanted.
type TaskCancelled struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent,omitzero"` // that had it
	Reason  string      `json:"reason"`
	Request *RequestKey `json:"request,omitzero"`
}

func (*TaskCancelled) kind() string { return events.TaskCancelled }

func (t *TaskCancelled) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	k.View.Reason = t.Reason
	s.end(k, wire.TaskCancelled, r)
	s.saveTaskReply(r, t.Request, k)
}

// TaskBlocked records that a task waits for one that will never be done. It is a warning: only a
// person can resolve it.
type TaskBlocked struct {
	ID       string `json:"task"`
	Name     string `json:"name"`
	Upstream string `json:"upstream"`
}

func (*TaskBlocked) kind() string               { return events.TaskBlocked }
func (*TaskBlocked) apply(*State, *wire.Record) {}
