package wire

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// AssignTask is the payload of assign-task.
type AssignTask struct {
	TaskID      string `json:"taskId"`
	Agent       string `json:"agent"`                // a name, a server id or a run id
	RequirePlan bool   `json:"requirePlan,omitzero"` // it must submit a plan first
}

func (a *AssignTask) fields(f *fields) {
	f.need(&a.TaskID, "taskId", theTask)
	f.need(&a.Agent, "agent", "The agent: its name, its server_id, or the id of its run.")
	f.truth(&a.RequirePlan, "requirePlan", "Whether the agent must submit a plan first, with submit-plan. "+
		"It can also be set for the agent that has the task and has not started.")
}

// Assignment answers auto-assign.
type Assignment struct {
	// Whether an agent fits and has the task now.
	Status string `json:"status" schema:"enum=assigned|no_match"`
	// The server_id of the agent.
	ServerID string `json:"server_id,omitzero"`
	// The name of the agent.
	ServerName string `json:"server_name,omitzero"`
	// The score of the agent; a higher score is a better fit.
	MatchScore int `json:"match_score,omitzero"`
}

// UpdateTask is the payload of update-task. A nil field leaves the task unchanged.
type UpdateTask struct {
	TaskID             string    `json:"taskId"`
	Name               *string   `json:"name,omitzero"`
	Description        *string   `json:"description,omitzero"`
	Type               *string   `json:"type,omitzero"`
	Priority           Raw       `json:"priority,omitzero"`
	Payload            Raw       `json:"payload,omitzero"`
	TargetRepo         *string   `json:"targetRepo,omitzero"`
	ProjectID          *string   `json:"projectId,omitzero"`
	AcceptanceCriteria *[]string `json:"acceptanceCriteria,omitzero"`

	Spec         *hub.Spec         `json:"structured_spec,omitzero"`
	Requirements *hub.Requirements `json:"requirements,omitzero"`
	Without      []string          `json:"-"` // documents that are taken away: structured_spec, requirements
}

func (u *UpdateTask) fields(f *fields) {
	f.need(&u.TaskID, "taskId", theTask)
	f.object(&u.Payload, "payload", "The new payload.")
	f.wordsOrNil(&u.Name, "name", "The new name.")
	f.textOrNil(&u.Description, "description", "The new description; an empty text removes it.")
	f.textOrNil(&u.TargetRepo, "targetRepo", "The repository that the task is about.")
	f.textOrNil(&u.ProjectID, "projectId", "The project that the task belongs to.")
	if f.in != nil {
		u.common(f.in, "acceptanceCriteria")
		never(f.in, "state", "result", "assignedTo")
		return
	}
	f.wordsOrNil(&u.Type, "type", "The new type.")
	f.priority(&u.Priority)
	f.texts(nil, "acceptanceCriteria", "The new conditions under which the task counts as done.")
	f.document("structured_spec", "The new specification: a task-spec document. null removes it.", "task-spec")
	f.document("requirements", "The new requirements: a requirements document. null removes them.", "requirements")
	f.rule(`"description": "Members that are missing keep their values. id, status, state, result and assignedTo cannot be set: other operations change them."`)
	f.rule(`"allOf": [{"properties": {"id": {"type": "null"}, "status": {"type": "null"}, "state": {"type": "null"}, "result": {"type": "null"}, "assignedTo": {"type": "null"}}}]`)
}

// common reads the members that both spellings of an update have.
func (u *UpdateTask) common(o *object.Reader, criteria string) {
	u.Type = o.OptionalName("type")
	u.Priority = hub.PriorityIn(o, "priority")
	if o.Find(criteria) != nil {
		texts := o.Texts(criteria)
		u.AcceptanceCriteria = &texts
	}
	u.Spec, u.Requirements = hub.SpecIn(o, "structured_spec"), hub.RequirementsIn(o, "requirements")
	for _, key := range []string{"structured_spec", "requirements"} {
		if o.HasNull(key) {
			u.Without = append(u.Without, key)
		}
	}
	never(o, "id", "status")
}

// never refuses members that cannot be set, although a sender may expect it.
func never(o *object.Reader, keys ...string) {
	for _, key := range keys {
		if o.Find(key) != nil {
			o.Refuse(key, "cannot be set: there are operations for what changes it")
		}
	}
}

// AddDependency is the payload of add-dependency.
type AddDependency struct {
	TaskID     string         `json:"taskId"`
	Dependency hub.Dependency `json:"-"`
}

func (a *AddDependency) fields(f *fields) {
	f.need(&a.TaskID, "taskId", "The id of the task that is to wait.")
	if f.in != nil {
		a.Dependency = hub.NewDependency(f.in, "dependsOnTaskId", "dependencyType", "contractKey")
		return
	}
	f.need(nil, "dependsOnTaskId", "The id of the other task.")
	f.oneOf(nil, "dependencyType", "blocks: the other task must be done first; the default. input: a part of its result is needed too. "+
		"related: for information only.", hub.DependsBlocks, hub.DependsInput, hub.DependsRelated)
	f.text(nil, "contractKey", "The part of the result that an input needs. With another type it has no meaning and causes a warning.")
	f.rule(`"if": {"properties": {"dependencyType": {"const": "input"}}, "required": ["dependencyType"]}`)
	f.rule(`"then": {"properties": {"contractKey": {"type": "string", "pattern": "^[A-Za-z0-9_]+$"}}, "required": ["contractKey"]}`)
}

// RemoveDependency is the payload of remove-dependency.
type RemoveDependency struct {
	TaskID       string `json:"taskId"`
	DependencyID string `json:"dependencyId"` // the id of the dependency, or of the task that it names
}

func (r *RemoveDependency) fields(f *fields) {
	f.need(&r.TaskID, "taskId", "The id of the task that depends on another one.")
	f.need(&r.DependencyID, "dependencyId", "The id of the dependency, or of the task that it names.")
}

// AddNote is the payload of add-note.
type AddNote struct {
	TaskID  string `json:"taskId"`
	Content string `json:"content"`
	Urgent  bool   `json:"urgent,omitzero"` // the agent of the task is notified at once
}

func (n *AddNote) fields(f *fields) {
	f.need(&n.TaskID, "taskId", theTask)
	f.need(&n.Content, "content", "The text of the note.")
	f.truth(&n.Urgent, "urgent", "Whether the agent of the task is notified at once, with notify:task-updated.")
}

// Note is a note on a task.
type Note struct {
	// The id of the note.
	ID string `json:"id"`
	// The id of the task.
	TaskID string `json:"task_id"`
	// The author, such as agent:planner.
	Author string `json:"author"`
	// The text of the note. It is untrusted: escape it before you show it.
	Content string `json:"content"`
	// Whether the agent of the task was notified at once.
	Urgent bool `json:"urgent"`
	// When the note was written.
	CreatedAt string `json:"created_at" schema:"stamp"`
}

// NoteReply answers add-note.
type NoteReply struct {
	Note Note `json:"note"`
}

// NoteList answers list-notes, oldest first.
type NoteList struct {
	Notes []Note `json:"notes"`
}

// SubmitPlan is the payload of submit-plan.
type SubmitPlan struct {
	TaskID string `json:"taskId"`
	Plan   Raw    `json:"plan"` // an object or a text
}

func (s *SubmitPlan) fields(f *fields) {
	f.need(&s.TaskID, "taskId", theTask)
	if !f.describe("plan", "The plan: an object or a text.", `"type": ["object", "string"], `+wordsPattern, true) {
		s.Plan = readPlan(f.in)
	}
}

func readPlan(o *object.Reader) Raw {
	plan := o.Value("plan")
	switch {
	case plan == nil:
		o.Refuse("plan", "is missing")
	case plan[0] == '"' && object.IsBlank(o.Text("plan")):
		o.Refuse("plan", "must not be empty")
	case plan[0] != '"' && plan[0] != '{':
		o.Refuse("plan", "must be an object or a text")
	}
	return plan
}

// RevisePlan is the payload of revise-plan.
type RevisePlan struct {
	TaskID   string `json:"taskId"`
	Feedback string `json:"feedback"`
}

func (r *RevisePlan) fields(f *fields) {
	f.need(&r.TaskID, "taskId", theTask)
	f.need(&r.Feedback, "feedback", "What is wrong with the plan.")
}

// RequestHelp is the payload of request-help.
type RequestHelp struct {
	TaskID   string `json:"taskId"`
	Question string `json:"question"`
	Context  Raw    `json:"context,omitzero"`

	Options []Option `json:"-"` // of the orchestrator itself: the answers to choose from
	Recall  string   `json:"-"` // of the orchestrator itself: why the agent is to stop working on the task

	Until time.Time `json:"-"` // of the orchestrator itself: the question is about the agent, not a task, and ends then
}

func (r *RequestHelp) fields(f *fields) {
	f.need(&r.TaskID, "taskId", theTask)
	f.need(&r.Question, "question", "The question.")
	if !f.describe("context", "What belongs to the question: any value.", "", false) {
		r.Context = f.in.Value("context")
	}
}

// CheckTasks is the payload of check-tasks.
type CheckTasks struct {
	SessionID string `json:"sessionId,omitzero"` // a name, a server id or a run id; by default the caller's
}

func (c *CheckTasks) fields(f *fields) {
	f.text(&c.SessionID, "sessionId", "The session: the name of an agent, its server_id, or the id of its run. The default is your own.")
}

// The answers.
var (
	answerAssignment = &Answer{Name: "assignment", Of: Assignment{}}
	answerMatches    = &Answer{Name: "matches", Of: hub.Matches{}, About: ", best first"}
	answerDependency = &Answer{Name: "dependency", Of: LinkReply{}, Asked: "add-dependency with the dependency as it is, and remove-dependency with the dependency as it was"}
	answerNote       = &Answer{Name: "note", Of: NoteReply{}}
	answerNotes      = &Answer{Name: "notes", Of: NoteList{}, About: ", oldest first"}
)

// workOperations are the other operations on tasks.
var workOperations = []Operation{
	request[UpdateTask](Operation{
		Name: "update-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Change the text, the documents or the priority of a task",
		About:   "The task must not have ended. Allowed for the submitter and for planners.",
		Examples: []string{
			`{"taskId": "task-123", "name": "Fix the login form", "description": "It forgets the name.", "type": "bug", "priority": "high", "payload": {"file": "src/login.ts"}, "targetRepo": "shop", "projectId": "spring", "acceptanceCriteria": ["The name stays"], "structured_spec": {"$schema": "orchestratia/task-spec/v1", "requirements": [{"description": "The form keeps the name", "priority": "must"}]}, "requirements": {"repo": "shop", "languages": ["typescript"]}}`,
			`{"taskId": "task-123", "priority": 1.5, "requirements": null}`,
		},
	}),
	request[AssignTask](Operation{
		Name: "assign-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Assign a task to an agent, which may have to submit a plan first",
		About:   "The agent need not fit the requirements. It is notified and starts the task itself. Allowed for the submitter and for planners.",
		Examples: []string{
			`{"taskId": "task-123", "agent": "coder", "requirePlan": true}`,
			`{"taskId": "task-123", "agent": "coder"}`,
		},
	}),
	request[TaskID](Operation{
		Name: "auto-assign", Answer: answerAssignment, Writes: true,
		Summary:  "Assign a task to the agent that fits its requirements best",
		About:    "The agent starts the task itself.",
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[TaskID](Operation{
		Name: "match-agents", Answer: answerMatches,
		Summary:  "Show how each agent fits the requirements of a task",
		About:    "The answer gives the reasons. Nothing is assigned.",
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[Nothing](Operation{
		Name: "poll-tasks", Answer: answerTasks, Audience: ForAgents,
		Summary:  "List the tasks that are assigned to you and not started",
		About:    "The answer has the tasks in full.",
		Examples: []string{`{}`, ""},
	}),
	request[CheckTasks](Operation{
		Name: "check-tasks", Answer: answerTasks,
		Summary:  "List the tasks that are assigned to a session and not started",
		About:    "Only planners may ask for the sessions of others.",
		Examples: []string{`{"sessionId": "coder"}`, ""},
	}),
	request[RequestHelp](Operation{
		Name: "request-help", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Ask a person for help with a task",
		About:   "The task waits. When a person has answered, notify:task-updated says so, and the answer is in the task.",
		Examples: []string{
			`{"taskId": "task-123", "question": "Which database shall I write for?", "context": {"file": "src/db.ts"}}`,
			`{"taskId": "task-123", "question": "May I drop the column?"}`,
		},
	}),
	request[SubmitPlan](Operation{
		Name: "submit-plan", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Submit the plan that a task requires",
		About:   "The task is in the state planning. Its agent may start when the plan is approved.",
		Examples: []string{
			`{"taskId": "task-123", "plan": {"steps": ["Read the form", "Keep the name"]}}`,
			`{"taskId": "task-123", "plan": "I keep the name in the session."}`,
		},
	}),
	request[TaskID](Operation{
		Name: "approve-plan", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Approve the plan of a task",
		About:    "Its agent may start. An agent cannot approve its own plan.",
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[RevisePlan](Operation{
		Name: "revise-plan", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Reject the plan of a task with feedback",
		About:    "The agent must submit another plan. An agent cannot reject its own plan.",
		Examples: []string{`{"taskId": "task-123", "feedback": "Write the test first."}`},
	}),
	request[AddDependency](Operation{
		Name: "add-dependency", Answer: answerDependency, Writes: true,
		Summary: "Add a dependency to a task",
		About:   "The task must not have started. A dependency that closes a cycle is refused.",
		Examples: []string{
			`{"taskId": "task-123", "dependsOnTaskId": "task-7", "dependencyType": "input", "contractKey": "form_fields"}`,
			`{"taskId": "task-123", "dependsOnTaskId": "task-8"}`,
		},
	}),
	request[RemoveDependency](Operation{
		Name: "remove-dependency", Answer: answerDependency, Writes: true,
		Summary:  "Remove a dependency from a task",
		About:    "A task that waits for nothing else may start.",
		Examples: []string{`{"taskId": "task-123", "dependencyId": "d5"}`},
	}),
	request[AddNote](Operation{
		Name: "add-note", Answer: answerNote, Writes: true,
		Summary: "Add a note to a task",
		About:   "The note can be read by all who may see the task.",
		Examples: []string{
			`{"taskId": "task-123", "content": "The designer is back on Monday.", "urgent": true}`,
			`{"taskId": "task-123", "content": "See also the other form."}`,
		},
	}),
	request[TaskID](Operation{
		Name: "list-notes", Answer: answerNotes,
		Summary:  "List the notes of a task, oldest first",
		Examples: []string{`{"taskId": "task-123"}`},
	}),
}

// MarshalJSONTo implements json.MarshalerTo. A document to be removed is encoded as null.
func (u UpdateTask) MarshalJSONTo(e *jsontext.Encoder) error {
	type plain UpdateTask // without this method
	said := struct {
		Plain        plain `json:",embed"`
		Spec         any   `json:"structured_spec,omitzero"`
		Requirements any   `json:"requirements,omitzero"`
	}{Plain: plain(u)}
	switch {
	case u.Spec != nil:
		said.Spec = u.Spec
	case slices.Contains(u.Without, "structured_spec"):
		said.Spec = object.Raw("null")
	}
	switch {
	case u.Requirements != nil:
		said.Requirements = u.Requirements
	case slices.Contains(u.Without, "requirements"):
		said.Requirements = object.Raw("null")
	}
	return json.MarshalEncode(e, said)
}

// MarshalJSONTo implements the encoder's interface.
func (a AddDependency) MarshalJSONTo(e *jsontext.Encoder) error {
	b := object.AppendText([]byte(`{"taskId":`), a.TaskID)
	b = object.AppendMember(b, "dependsOnTaskId", a.Dependency.On)
	b = object.AppendOptional(b, "dependencyType", a.Dependency.Type)
	b = object.AppendOptional(b, "contractKey", a.Dependency.Contract)
	return e.WriteValue(append(b, '}'))
}
