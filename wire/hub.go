package wire

import (
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// This file reads and writes protocol A, which runs over HTTP. It calls the orchestrator a hub
// and agents servers. The operations behind it are the same.

// hubNoReason is the error of a task that failed without a reason.
const hubNoReason = "no reason was given"

// ReadHubTask reads a new task.
func ReadHubTask(o *object.Reader) *SubmitTask {
	s := &SubmitTask{
		Name:         o.NeedText("title"),
		Description:  o.NeedText("spec"),
		Type:         o.Text("type"),
		Priority:     hub.PriorityIn(o, "priority"),
		Dependencies: mergeDependencies(hub.DependenciesIn(o, "dependencies"), hub.DependencyIDsIn(o, "dependency_ids")),
		Patient:      true,
	}
	switch {
	case o.Find("type") == nil:
		s.Type = "feature"
	case object.IsBlank(s.Type):
		o.Refuse("type", "must not be empty")
	}
	if s.TargetRepo = o.Text("target_repo"); s.TargetRepo == "" {
		s.TargetRepo = o.Text("repo")
	}
	s.AcceptanceCriteria = o.Texts("acceptance_criteria")
	s.ProjectID, s.SessionID = o.Text("project_id"), o.Text("session_id")
	s.Spec, s.Requirements = hub.SpecIn(o, "structured_spec"), hub.RequirementsIn(o, "requirements")
	return s
}

// mergeDependencies puts bare ids behind typed dependencies. A bare id holds the task back. It is
// redundant only beside a typed dependency that does the same.
func mergeDependencies(typed, bare []hub.Dependency) []hub.Dependency {
	if len(bare) == 0 {
		return typed
	}
	known := make(map[string]bool, len(typed))
	for _, d := range typed {
		known[d.On] = known[d.On] || d.Type == hub.DependsBlocks || d.Type == hub.DependsInput
	}
	for _, d := range bare {
		if !known[d.On] {
			known[d.On] = true
			typed = append(typed, d)
		}
	}
	return typed
}

// ReadHubUpdate reads changes of a task.
func ReadHubUpdate(o *object.Reader, task string) *UpdateTask {
	u := &UpdateTask{TaskID: task, Name: o.OptionalName("title"), Description: o.OptionalName("spec")}
	u.TargetRepo, u.ProjectID = o.OptionalText("target_repo"), o.OptionalText("project_id")
	if u.TargetRepo == nil {
		u.TargetRepo = o.OptionalText("repo")
	}
	u.Type, u.Priority = o.OptionalName("type"), hub.PriorityIn(o, "priority")
	if o.Find("acceptance_criteria") != nil {
		texts := o.Texts("acceptance_criteria")
		u.AcceptanceCriteria = &texts
	}
	u.Spec, u.Requirements = hub.SpecIn(o, "structured_spec"), hub.RequirementsIn(o, "requirements")
	u.removed(o)
	never(o, "dependencies", "dependency_ids", "result", "resolved_inputs")
	return u
}

// ReadHubComplete reads the end of a task.
func ReadHubComplete(o *object.Reader, task string) *CompleteTask {
	c := &CompleteTask{TaskID: task, Result: hub.ResultIn(o, "result"), Artifacts: readArtifacts(o)}
	if c.Result == nil && o.Err() == nil {
		o.Refuse("result", "is missing")
	}
	return c
}

// ReadHubFail reads why a task failed.
func ReadHubFail(o *object.Reader, task string) *FailTask {
	f := &FailTask{TaskID: task, Error: o.Text("error")}
	if object.IsBlank(f.Error) {
		f.Error = hubNoReason
	}
	return f
}

// unspecified is the question of a call for help that has none.
const unspecified = "The agent asks for help, but gave no question"

// ReadHubHelp reads a call for help. It may be empty.
func ReadHubHelp(o *object.Reader, task string) *RequestHelp {
	r := &RequestHelp{TaskID: task, Question: o.Text("question"), Context: o.Value("context")}
	if object.IsBlank(r.Question) {
		r.Question = unspecified
	}
	return r
}

// ReadHubAssign reads the assignment of a task.
func ReadHubAssign(o *object.Reader, task string) *AssignTask {
	plan, _ := o.Bool("require_plan")
	a := &AssignTask{TaskID: task, RequirePlan: plan}
	for _, key := range []string{"session_name", "server_name", "session_id", "server_id"} {
		if a.Agent == "" && o.Find(key) != nil {
			a.Agent = o.NeedText(key)
		}
	}
	if a.Agent == "" {
		o.Refuse("session_name", "is missing")
	}
	return a
}

// ReadHubDependency reads a dependency of a task.
func ReadHubDependency(o *object.Reader, task string) *AddDependency {
	return &AddDependency{TaskID: task, Dependency: hub.NewDependency(o, "depends_on_task_id", "dependency_type", "contract_key")}
}

// ReadHubHeartbeat reads a heartbeat and the capabilities in it. The other members of body
// describe the machine.
func ReadHubHeartbeat(o *object.Reader, body Raw) *UpdateCapabilities {
	return &UpdateCapabilities{Capabilities: hub.CapabilitiesIn(o, "capabilities"), System: systemOf(o, body)}
}

// systemOf returns a heartbeat without the capabilities, or nil if it had no other members.
func systemOf(o *object.Reader, body Raw) Raw {
	var rest []byte
	for i := range o.Members {
		key := string(o.Members[i].Key)
		if key == "capabilities" || key == "$schema" {
			continue
		}
		rest = append(append(object.AppendText(append(rest, ','), key), ':'), o.Members[i].Value...)
	}
	if rest == nil || len(body) == 0 {
		return nil
	}
	rest[0] = '{'
	return object.Clone(append(rest, '}'))
}

// HubTask is a task as the hub shows it.
type HubTask struct {
	// The id of the task.
	ID string `json:"id"`
	// The title of the task.
	Title string `json:"title"`
	// The work to do, for people.
	Spec string `json:"spec"`
	// The input data of the task: the payload of submit-task or of a task request. It is missing if
	// the task has none.
	Payload Raw `json:"payload,omitzero" schema:"type=object"`
	// The specification in a form for programs: a task-spec document.
	StructuredSpec Raw `json:"structured_spec" schema:"type=object,null"`
	// The state of the task. The last three are final.
	Status string `json:"status" schema:"enum=wire.HubStates"`
	// The kind of task.
	Type string `json:"type"`
	// critical, high, normal or low, or another word that was given.
	Priority string `json:"priority"`
	// The repository that the task is about.
	TargetRepo *string `json:"target_repo" schema:"null"`
	// The conditions under which the task counts as done.
	AcceptanceCriteria []string `json:"acceptance_criteria"`
	// The project that the task belongs to.
	ProjectID *string `json:"project_id" schema:"null"`
	// The session that the task came from.
	SessionID *string `json:"session_id" schema:"null"`
	// The task that the submitter was working on.
	ParentTaskID *string `json:"parent_task_id" schema:"null"`
	// The demands of the task on an agent: a requirements document.
	Requirements Raw `json:"requirements" schema:"type=object,null"`
	// All dependencies of the task, of any type.
	Dependencies []Link `json:"dependencies"`
	// The delivered inputs, by contract key. An input is null if it has no data.
	ResolvedInputs Inputs `json:"resolved_inputs" schema:"type=object"`
	// The status of each delivered input, by contract key: fulfilled, partial or skipped.
	InputStatus map[string]string `json:"resolved_input_status,omitzero"`
	// The result; null before the task is done.
	Result Raw `json:"result" schema:"null"`
	// Why the task failed.
	Error *string `json:"error" schema:"null"`
	// Why the task was cancelled.
	Reason *string `json:"cancel_reason,omitzero"`
	// The plan of the agent.
	Plan Raw `json:"plan" schema:"type=object|string,null"`
	// The objections to the plan.
	PlanFeedback *string `json:"plan_feedback" schema:"null"`
	// The last question of the agent to a person.
	Help *Help `json:"help,omitzero"`
	// The context of the task request that submitted the task.
	Context *delegation.Context `json:"context,omitzero"`
	// The route of the task request.
	Routing *delegation.Routing `json:"routing,omitzero"`
	// The trace that the task belongs to.
	Observability *delegation.Trace `json:"observability,omitzero"`
	// The progress, from 0 to 1; 0 when it is missing.
	Progress float64 `json:"progress,omitzero" schema:"min=0,max=1"`
	// The submitter, such as agent:planner.
	CreatedBy string `json:"created_by"`
	// Who changed the title, the spec or another text of the task last, such as agent:planner.
	ChangedBy *string `json:"changed_by,omitzero"`
	// The server_id of the agent that has the task, or had it when it ended; null without an agent.
	AssignedServerID *string `json:"assigned_server_id" schema:"null"`
	// The name of that agent.
	AssignedServerName *string `json:"assigned_server_name" schema:"null"`
	// When the task was submitted.
	CreatedAt string `json:"created_at" schema:"stamp"`
	// When the task was last assigned.
	AssignedAt *string `json:"assigned_at" schema:"stamp,null"`
	// When the task was last started.
	StartedAt *string `json:"started_at" schema:"stamp,null"`
	// When the task was done, failed or was cancelled.
	CompletedAt *string `json:"completed_at" schema:"stamp,null"`
}

// Hub returns the task as the hub shows it.
func (t *Task) Hub() *HubTask {
	h := &HubTask{
		ID: t.ID, Title: t.Name, Spec: t.Description, Payload: t.Payload, Status: t.State.Hub(), Type: t.Type, Priority: hub.PriorityWord(t.Priority),
		Dependencies: t.Links, ResolvedInputs: t.ResolvedInputs, Result: t.Result, Progress: t.Progress,
		Error: orNull(t.Error), Reason: orNull(t.Reason), CreatedBy: t.SubmittedBy, CreatedAt: t.CreatedAt,
		AssignedServerID: orNull(hub.ServerID(t.AssignedTo)), AssignedServerName: orNull(t.AssignedTo),
		AssignedAt: orNull(t.AssignedAt), StartedAt: orNull(t.StartedAt), CompletedAt: orNull(t.EndedAt),
	}
	for _, in := range t.ResolvedInputs {
		if h.InputStatus == nil {
			h.InputStatus = make(map[string]string)
		}
		h.InputStatus[in.Key] = in.Status
	}
	if d := t.Details; d != nil {
		h.StructuredSpec, h.Requirements, h.Plan, h.Help = d.StructuredSpec, d.Requirements, d.Plan, d.Help
		h.AcceptanceCriteria, h.TargetRepo, h.ProjectID = d.AcceptanceCriteria, orNull(d.TargetRepo), orNull(d.ProjectID)
		h.Context, h.Routing, h.Observability = d.Context, d.Routing, d.Observability
		h.SessionID, h.ParentTaskID, h.PlanFeedback = orNull(d.SessionID), orNull(d.ParentTaskID), orNull(d.PlanFeedback)
		h.ChangedBy = orNull(d.ChangedBy)
	}
	return h
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Hub returns the state in the words of the hub, which has none for a review and a verification.
func (s TaskState) Hub() string {
	if s == TaskInReview || s == TaskVerifying {
		return string(TaskRunning)
	}
	return string(s)
}
