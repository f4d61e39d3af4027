package wire

import (
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// Details holds the members that few tasks have. A Details is never modified in place.
type Details struct {
	// The specification in a form for programs: a task-spec document.
	StructuredSpec Raw `json:"structured_spec,omitzero" schema:"type=object"`
	// The demands of the task on an agent: a requirements document.
	Requirements Raw `json:"requirements,omitzero" schema:"type=object"`
	// The repository that the task is about.
	TargetRepo string `json:"targetRepo,omitzero"`
	// The conditions under which the task counts as done.
	AcceptanceCriteria []string `json:"acceptanceCriteria,omitzero"`
	// Who changed the name, the description or another text of the task last, such as agent:planner.
	ChangedBy string `json:"changedBy,omitzero"`
	// The project that the task belongs to.
	ProjectID string `json:"projectId,omitzero"`
	// The session that the task came from.
	SessionID string `json:"sessionId,omitzero"`
	// The task that the submitter was working on.
	ParentTaskID string `json:"parentTaskId,omitzero"`
	// The plan of the agent.
	Plan Raw `json:"plan,omitzero" schema:"type=object|string"`
	// The objections to the plan.
	PlanFeedback string `json:"planFeedback,omitzero"`
	// The last question of the agent to a person.
	Help *Help `json:"help,omitzero"`
	// The usage of coding agents for the task, in the answer to get-task.
	Used *activity.Used `json:"used,omitzero"`
	// When the task may be given to an agent; missing if it may be given to one now.
	After string `json:"after,omitzero" schema:"stamp"`
	// The agent that gets the task again when it can. The task was assigned by hand, and has no
	// requirements for finding another agent.
	Addressee string `json:"addressee,omitzero"`
	// The last partial result that an agent reported, in the answers to get-task and current-task. The
	// task keeps it when it fails or goes to another agent; the result replaces it.
	Output Raw `json:"output,omitzero"`
	// The artifacts that the agent delivered with the result, without the content, in the answers to
	// get-task. The task response has the content.
	Artifacts []hub.Artifact `json:"artifacts,omitzero"`
	// The commands that must succeed before the task is done, besides the commands of its agent.
	Verify [][]string `json:"verify,omitzero"`
	// How often its verification has failed.
	Unverified int `json:"unverified,omitzero" schema:"min=1"`
	// The task block of the configuration that declares the task.
	Block string `json:"block,omitzero"`
	// The workspace of the task, if it has one.
	Workspace *Workspace `json:"workspace,omitzero"`
	// How often the task was restarted on a fresh branch.
	Restarts int `json:"restarts,omitzero" schema:"min=1"`
	// The class of the failure, if its agent named one.
	FailureClass string `json:"failureClass,omitzero" schema:"enum=wire.FailureClasses"`
	// The context of the task request that submitted the task.
	Context *delegation.Context `json:"context,omitzero"`
	// The route of the task request.
	Routing *delegation.Routing `json:"routing,omitzero"`
	// The trace that the task belongs to.
	Observability *delegation.Trace `json:"observability,omitzero"`
}

// A Workspace is a folder for one task, which no other task uses.
type Workspace struct {
	// The folder.
	Path string `json:"path"`
	// The last commit of its branch, once the task was completed.
	Commit string `json:"commit,omitzero"`
	// The host of the workspace; missing if it is the machine of the orchestrator.
	Host string `json:"host,omitzero"`
	// The Git branch that is checked out there; missing if the folder is a copy.
	Branch string `json:"branch,omitzero"`
	// The branch that it started from.
	Base string `json:"base,omitzero"`
	// The base commit of its branch. It holds the work of the tasks that this one depends on.
	Began string `json:"began,omitzero"`
	// The state of the branch after the task was done, with a merge queue.
	Merge string `json:"merge,omitzero" schema:"enum=hub.MergeStates"`
}

// Holds reports whether tasks that depend on the one of this workspace wait for its branch.
func (w *Workspace) Holds() bool {
	return w != nil && (w.Merge == hub.MergeWaiting || w.Merge == hub.MergeRefused)
}

// Help is a question that the agent of a task asked a person, and its answer.
type Help struct {
	// The id of the question.
	QuestionID string `json:"questionId"`
	// The question. It is untrusted: escape it before you show it.
	Question string `json:"question"`
	// Further facts about the question: any value.
	Context Raw `json:"context,omitzero"`
	// The answer of the person.
	Answer string `json:"answer,omitzero"`
	// When the person answered; missing before that.
	AnsweredAt string `json:"answeredAt,omitzero" schema:"stamp"`
}

// empty reports whether d has no members.
func (d *Details) empty() bool {
	return d == nil || d.StructuredSpec == nil && d.Requirements == nil && d.TargetRepo == "" &&
		len(d.AcceptanceCriteria) == 0 && d.ChangedBy == "" && d.ProjectID == "" && d.SessionID == "" && d.ParentTaskID == "" &&
		d.Plan == nil && d.PlanFeedback == "" && d.Help == nil && d.Used == nil && d.After == "" && d.Addressee == "" && d.Output == nil && d.Artifacts == nil &&
		d.Verify == nil && d.Unverified == 0 && d.Block == "" && d.Workspace == nil && d.FailureClass == "" && d.Restarts == 0 &&
		d.Context == nil && d.Routing == nil && d.Observability == nil
}

// InBlock returns d with the block of the configuration that the task comes from.
func (d *Details) InBlock(name string) *Details {
	if name == "" {
		return d
	}
	in := Details{Block: name}
	if d != nil {
		in = *d
		in.Block = name
	}
	return &in
}

// Filled returns d, or nil if d is empty.
func (d *Details) Filled() *Details {
	if d.empty() {
		return nil
	}
	return d
}

// Brief returns d without the members that can be large, or nil if no member is left.
func (d *Details) Brief() *Details {
	if d == nil {
		return nil
	}
	brief := *d
	brief.StructuredSpec, brief.Requirements, brief.Plan, brief.Help, brief.Output, brief.Artifacts = nil, nil, nil, nil, nil, nil
	brief.Context, brief.Routing, brief.Observability = nil, nil, nil
	return brief.Filled()
}

// IsPart reports whether a task is a part of another one: its submitter has the other one, and a
// member of its session does this one for it. People see both as one request.
func (d *Details) IsPart() bool { return d != nil && d.SessionID != "" && d.ParentTaskID != "" }

// Copy returns a shallow copy of d that may be modified. The copy of nil is empty.
func (d *Details) Copy() *Details {
	if d == nil {
		return new(Details)
	}
	whole := *d
	return &whole
}

func (d *Details) append(b []byte) []byte {
	if d == nil {
		return b
	}
	b = object.AppendRaw(b, "structured_spec", d.StructuredSpec)
	b = object.AppendRaw(b, "requirements", d.Requirements)
	b = object.AppendOptional(b, "targetRepo", d.TargetRepo)
	if len(d.AcceptanceCriteria) > 0 {
		b = object.AppendTexts(b, "acceptanceCriteria", d.AcceptanceCriteria)
	}
	b = object.AppendOptional(b, "changedBy", d.ChangedBy)
	b = object.AppendOptional(b, "projectId", d.ProjectID)
	b = object.AppendOptional(b, "sessionId", d.SessionID)
	b = object.AppendOptional(b, "parentTaskId", d.ParentTaskID)
	b = object.AppendRaw(b, "plan", d.Plan)
	b = object.AppendOptional(b, "planFeedback", d.PlanFeedback)
	if d.Help != nil {
		b = appendEncoded(b, "help", d.Help)
	}
	if d.Used != nil {
		b = appendEncoded(b, "used", d.Used)
	}
	b = object.AppendOptional(b, "after", d.After)
	b = object.AppendOptional(b, "addressee", d.Addressee)
	b = object.AppendRaw(b, "output", d.Output)
	if len(d.Artifacts) > 0 {
		b = hub.AppendArtifacts(object.AppendKey(b, "artifacts"), d.Artifacts)
	}
	if d.Verify != nil {
		b = appendEncoded(b, "verify", d.Verify)
	}
	if d.Unverified != 0 {
		b = appendEncoded(b, "unverified", d.Unverified)
	}
	b = object.AppendOptional(b, "block", d.Block)
	if d.Workspace != nil {
		b = appendEncoded(b, "workspace", d.Workspace)
	}
	if d.Restarts != 0 {
		b = appendEncoded(b, "restarts", d.Restarts)
	}
	b = object.AppendOptional(b, "failureClass", d.FailureClass)
	if d.Context != nil {
		b = appendEncoded(b, "context", d.Context)
	}
	if d.Routing != nil {
		b = appendEncoded(b, "routing", d.Routing)
	}
	if d.Observability != nil {
		b = appendEncoded(b, "observability", d.Observability)
	}
	return b
}

// appendEncoded appends a member by reflection. Few tasks have such members.
func appendEncoded(b []byte, key string, value any) []byte {
	spelled, err := object.Encode(value)
	if err != nil {
		return b // strings and decoded values can always be encoded
	}
	return object.AppendRaw(b, key, spelled)
}
