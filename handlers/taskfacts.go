package handlers

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

// taskCreated records a new task.
type taskCreated struct {
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
	Request              *requestKey      `json:"request,omitzero"`

	// The position of the task in a trace: the given one, and the ids of the span above it.
	Observability *delegation.Trace `json:"observability,omitzero"`
	TraceID       string            `json:"trace_id,omitzero"`
	SpanID        string            `json:"span_id,omitzero"`
	Delegated     *delegated        `json:"delegated,omitzero"` // has its own payload and trace

	decoded *delegation.Request // the request of a delegated task, or nil
}

func (*taskCreated) kind() string { return events.TaskCreated }

func (t *taskCreated) apply(s *core, r *wire.Record) {
	settleGiven(s, agentOf(r.From), r.At)
	t.read()
	k := &task{
		view: storedTask{
			ID: t.ID, Name: t.Name, Type: t.Type, Description: t.Description, Payload: t.payload(),
			RequiredRole: t.RequiredRole, RequiredCapabilities: t.RequiredCapabilities,
			Priority: t.Priority, SubmittedBy: r.From, CreatedAt: object.Timestamp(r.At), Details: t.details(),
			State: wire.TaskPending,
		},
		urgency: hub.Urgency(t.Priority),
		created: r.Seq,
	}
	if t.Patient {
		k.needsMore().patient = true
	}
	if t.Block != nil {
		k.needsMore().block = &hub.TaskBlock{Name: t.Block.Name, Sum: t.Block.Sum}
	}
	k.readDocuments()
	k.follow(t)
	k.lighten()
	s.tasks.include(k)
	s.Verifies.CompareAndSwap(false, t.Verify != nil)
	for _, d := range t.Dependencies {
		s.tasks.link(k, s.tasks.byID[d.On], d, r.At)
	}
	s.tasks.owns(r.From, k)
	s.count(k, +1)
	s.agents.opened(k, +1)
	if t.decoded != nil {
		t.handOn(s, k, r.Seq)
	}
	s.tasks.enqueue(k)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// follow sets the position of a task in its trace. It copies the texts, so that the rest of the
// fact can be freed.
func (t *task) follow(f *taskCreated) {
	said := f.Observability
	if f.decoded != nil {
		said = &f.decoded.Observability
	}
	if said != nil {
		t.needsMore().trace = &delegation.Trace{TraceID: said.TraceID, SpanID: said.SpanID, Baggage: slices.Clone(said.Baggage)}
	}
}

// read decodes the request of a delegated task.
func (t *taskCreated) read() {
	if t.Delegated != nil && t.decoded == nil {
		t.decoded, _ = t.Delegated.read() // see check
	}
}

func (t *taskCreated) payload() wire.Raw {
	if t.decoded != nil {
		return t.decoded.Payload
	}
	return t.Payload
}

// admit adds a task, except to the lists.
func (t *tasks) admit(k *task) {
	k.node = t.graph.Add()
	if int(k.node) == len(t.nodes) {
		t.nodes = append(t.nodes, nil)
	}
	t.nodes[k.node] = k
	t.byID[k.view.ID] = k
	if d := k.view.Details; d != nil && d.ParentTaskID != "" {
		if k.parent = t.find(d.ParentTaskID); k.parent != nil {
			k.parent.children++
		}
	}
}

// include adds a task.
func (t *tasks) include(k *task) {
	t.admit(k)
	t.list = append(t.list, k)
	if k.more != nil && k.more.block != nil {
		if before := t.blocks[k.more.block.Name]; before == nil || before.created < k.created { // a snapshot has no order
			t.blocks[k.more.block.Name] = k
		}
	}
}

// OfBlock returns the task of a task block of the configuration, its state, and the sum of the
// block when it was submitted. The id is empty if there is none.
func (s *core) OfBlock(name string) (id string, state wire.TaskState, sum uint64) {
	if k := s.tasks.blocks[name]; k != nil {
		return k.view.ID, k.view.State, k.more.block.Sum
	}
	return "", "", 0
}

// details returns the parts of a task that few tasks have.
func (t *taskCreated) details() *wire.Details {
	d := wire.Details{
		StructuredSpec: t.StructuredSpec, Requirements: t.Requirements, TargetRepo: t.TargetRepo,
		AcceptanceCriteria: t.AcceptanceCriteria, ProjectID: t.ProjectID, SessionID: t.SessionID, ParentTaskID: t.Parent,
		Observability: t.Observability, Verify: t.Verify,
	}
	if t.Block != nil {
		d.Block = t.Block.Name
	}
	if q := t.decoded; q != nil {
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
func (t *task) readDocuments() {
	d := t.view.Details
	if d == nil {
		return
	}
	if spec := hub.ReadSpec(d.StructuredSpec); spec != nil {
		m := t.needsMore()
		m.promises, m.maxFiles = spec.Promises, spec.MaxFiles
	}
	if required := hub.ReadRequirements(d.Requirements); !required.Empty() {
		t.needsMore().wants = newWants(required)
	}
}

// agentOf returns the name of the agent that an actor of the log stands for, or "".
func agentOf(actor string) string {
	name, _ := strings.CutPrefix(actor, agentPrefix)
	if name == actor {
		return ""
	}
	return name
}

// taskAssigned records that a task is assigned to an agent.
type taskAssigned struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Run     string      `json:"run"`
	Attempt int         `json:"attempt"`
	Way     way         `json:"way,omitzero"`
	Score   int         `json:"score,omitzero"` // of a matched task
	Plan    bool        `json:"plan,omitzero"`  // a plan is wanted first
	Request *requestKey `json:"request,omitzero"`

	mailed bool // the bus already has it as a message
}

func (*taskAssigned) kind() string { return events.TaskAssigned }

func (t *taskAssigned) apply(s *core, r *wire.Record) {
	k, a := s.tasks.byID[t.ID], s.agents.byID[t.Agent]
	if before := k.view.AssignedTo; before != "" && before != t.Agent {
		defer s.updateStanding(s.agents.byID[before])
		defer s.tasks.disowns(agentPrefix+before, k)
	}
	s.release(k)
	detachParts(s, k)
	s.tasks.address(k, "")
	to := wire.TaskAssigned
	if t.Plan {
		to = wire.TaskPlanning
		k.needsMore().planFirst = true
	}
	s.move(k, to)
	k.view.AssignedTo, k.run, k.way, k.view.Attempts = t.Agent, t.Run, t.Way, t.Attempt
	k.view.AssignedAt = object.Timestamp(r.At)
	s.tasks.queue.removeIdle(a)
	a.holds = append(a.holds, k)
	a.given = r.Seq
	s.addIdle(a)
	s.tasks.owns(a.actor, k)
	if d := k.delegation(); d != nil {
		s.delegations.directed(d, a)
	}
	t.remember(s, r, k)
}

// taskStarted records that an agent works on its task.
type taskStarted struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Request *requestKey `json:"request,omitzero"`
}

func (*taskStarted) kind() string { return events.TaskStarted }

func (t *taskStarted) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	s.move(k, wire.TaskRunning)
	if k.more != nil {
		k.more.planFirst = false
	}
	if w := k.work(); w != nil {
		s.takeUp(w, r.At)
	}
	if k.view.StartedAt == "" {
		k.view.StartedAt = object.Timestamp(r.At)
	}
	s.updateStanding(s.agents.byID[k.view.AssignedTo])
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// taskProgress records the progress of a task.
type taskProgress struct {
	ID       string  `json:"task"`
	Name     string  `json:"name"`
	Agent    string  `json:"agent"`
	Progress float64 `json:"progress"`
	Message  string  `json:"message,omitzero"`
	Kind     string  `json:"kind,omitzero"` // of the message, if it came with report-progress

	Output  wire.Raw    `json:"output,omitzero"` // the partial result, which is only in the log
	Request *requestKey `json:"request,omitzero"`
}

func (*taskProgress) kind() string { return events.TaskProgress }

func (t *taskProgress) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	k.view.Progress, k.view.Message = t.Progress, t.Message
	if t.Output != nil {
		k.needsMore().output = r.Seq
	}
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
	if w := k.work(); w != nil && w.phase == session.PhaseWorking {
		s.enter(w, session.PhaseWorking, r.At)
	}
}

// taskTrouble records an error that does not end the task.
type taskTrouble struct {
	ID    string `json:"task,omitzero"`
	Agent string `json:"agent"`
	Error string `json:"error"`
	Stack string `json:"stack,omitzero"`
}

func (*taskTrouble) kind() string              { return events.TaskTrouble }
func (*taskTrouble) apply(*core, *wire.Record) {}

// taskRequeued records that a task has lost its agent and waits for another.
type taskRequeued struct {
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

	Request *requestKey `json:"request,omitzero"`
}

func (*taskRequeued) kind() string { return events.TaskRequeued }

// maxHistory is the maximum number of former agents that the error of a task names.
const maxHistory = 10

func (t *taskRequeued) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	if t.Death {
		k.deaths++
	}
	if t.Blameless {
		k.view.Attempts = max(0, k.view.Attempts-1)
	}
	if a := s.agents.byID[t.Agent]; a != nil && t.Deaf {
		s.tasks.queue.removeIdle(a)
		a.deaf = true
	}
	after, _ := object.ParseTime(t.After)
	s.unassign(k, t.Agent, t.Why, after)
	s.tasks.address(k, t.To)
	if a := s.agents.byID[t.Agent]; a != nil && t.Returned { // it runs, and may fit the task again
		s.tasks.required.gain(a)
	}
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// unassign takes a task from its agent and lets it wait for another, but not before a time.
func (s *core) unassign(k *task, agent, why string, after time.Time) {
	s.move(k, wire.TaskPending)
	s.release(k)
	s.tasks.disowns(agentPrefix+agent, k)
	if a := s.agents.byID[agent]; a != nil {
		a.memories.Forget(k.view.ID)
		s.addIdle(a)
	}
	if k.way != dispatched {
		m := k.needsMore()
		m.history = append(m.history, agent+": "+why)
		m.history = m.history[max(0, len(m.history)-maxHistory):]
	}
	if d := k.delegation(); d != nil {
		d.out, d.forwarded, d.said, d.returned = "", "", "", nil
		dropKeptResponse(s, d) // its last response is outdated
	}
	detachParts(s, k)
	k.view.AssignedTo, k.run, k.way = "", "", dispatched
	k.view.AssignedAt, k.view.StartedAt = "", ""
	k.view.Progress, k.view.Message = 0, ""
	s.tasks.postpone(k, after)
	s.tasks.enqueue(k)
}

// taskDone records the result of a task.
type taskDone struct {
	ID     string   `json:"task"`
	Name   string   `json:"name"`
	Agent  string   `json:"agent,omitzero"`
	Result wire.Raw `json:"result"`
	Plain  bool     `json:"plain,omitzero"`  // the result is not decoded
	Merges bool     `json:"merges,omitzero"` // its branch will be merged, and its dependents wait for that

	Artifacts []hub.Artifact `json:"artifacts,omitzero"`

	Actor   string      `json:"actor,omitzero"` // its agent on the bus
	Request *requestKey `json:"request,omitzero"`

	read   *hub.Result // the result, if it was read already
	mailed bool        // the bus already has it as a message
}

func (*taskDone) kind() string { return events.TaskDone }

func (t *taskDone) apply(s *core, r *wire.Record) {
	if t.Request != nil {
		settleGiven(s, agentOf(r.From), r.At)
	}
	k := s.tasks.byID[t.ID]
	if t.read == nil && !t.Plain {
		t.read = hub.ReadResult(t.Result)
	}
	if t.read != nil && t.read.Structured && len(t.read.Contracts) > 0 {
		k.needsMore().delivered = delivered(t.read)
	}
	k.view.Details = t.listed(k.view.Details)
	if k.more != nil {
		k.more.output = 0 // the result replaces it
	}
	k.result = object.CompactLen(t.Result) // the record has no spaces of agents
	if k.view.Result = t.Result; k.result > heavy {
		k.view.Result, k.stub = nil, true
		k.leaveDelivered()
	}
	if t.Merges {
		k.setMerge(hub.MergeWaiting)
	}
	s.end(k, wire.TaskDone, r)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// listed returns the details of the task with the artifacts, without their content.
func (t *taskDone) listed(before *wire.Details) *wire.Details {
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
func (t *taskDone) Made() []delegation.Artifact { return madeOf(t.Artifacts) }

// madeOf returns artifacts as a task response has them.
func madeOf(all []hub.Artifact) []delegation.Artifact {
	var made []delegation.Artifact
	for _, a := range all {
		made = append(made, delegation.Artifact{Name: a.Name, Type: a.Type, Content: a.Content, Ref: a.Ref})
	}
	return made
}

// taskFailed records that a task has failed.
type taskFailed struct {
	ID        string      `json:"task"`
	Name      string      `json:"name"`
	Agent     string      `json:"agent,omitzero"`
	Error     string      `json:"error"`
	Stack     string      `json:"stack,omitzero"`
	Class     string      `json:"class,omitzero"`
	Retryable bool        `json:"retryable,omitzero"` // another attempt might succeed, but there is none
	Actor     string      `json:"actor,omitzero"`     // its agent on the bus
	Request   *requestKey `json:"request,omitzero"`

	mailed bool // the bus already has it as a message
}

func (*taskFailed) kind() string { return events.TaskFailed }

func (f *taskFailed) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[f.ID]
	if k.view.Error = f.Error; len(f.Error) > heavy {
		k.view.Error, k.stub = "", true
	}
	if f.Class != "" {
		k.view.Details = k.view.Details.Copy()
		k.view.FailureClass = f.Class
	}
	s.end(k, wire.TaskFailed, r)
	s.saveReply(agentOf(r.From), f.Request, s.tasks.reply(k), nil)
}

// taskCancelled records that a task is not wanted any more.
type taskCancelled struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent,omitzero"` // that had it
	Reason  string      `json:"reason"`
	Request *requestKey `json:"request,omitzero"`
}

func (*taskCancelled) kind() string { return events.TaskCancelled }

func (t *taskCancelled) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	k.view.Reason = t.Reason
	s.end(k, wire.TaskCancelled, r)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// taskBlocked records that a task waits for one that will never be done. It is a warning: only a
// person can resolve it.
type taskBlocked struct {
	ID       string `json:"task"`
	Name     string `json:"name"`
	Upstream string `json:"upstream"`
}

func (*taskBlocked) kind() string              { return events.TaskBlocked }
func (*taskBlocked) apply(*core, *wire.Record) {}
