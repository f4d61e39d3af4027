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
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The agent: its name, its server_id, or the id of its run.
	Agent string `json:"agent" schema:"nonblank"`
	// Whether the agent must submit a plan first, with submit-plan. It can also be set for the agent
	// that has the task and has not started.
	RequirePlan bool `json:"requirePlan,omitzero"`
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
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The new payload.
	Payload Raw `json:"payload,omitzero" schema:"type=object"`
	// The new name.
	Name *string `json:"name,omitzero" schema:"nonblank"`
	// The new description; an empty text removes it.
	Description *string `json:"description,omitzero"`
	// The repository that the task is about.
	TargetRepo *string `json:"targetRepo,omitzero"`
	// The project that the task belongs to.
	ProjectID *string `json:"projectId,omitzero"`
	// The new type.
	Type *string `json:"type,omitzero" schema:"nonblank"`
	// A number or a word. 1 is the most urgent; the default is 3, and all above 3 are equal. The words
	// are critical, high, normal and low; any other counts as normal.
	Priority Raw `json:"priority,omitzero" schema:"type=number|string,priority"`
	// The new conditions under which the task counts as done.
	AcceptanceCriteria *[]string `json:"acceptanceCriteria,omitzero" schema:"each:nonblank"`
	// The new specification: a task-spec document. null removes it.
	Spec *hub.Spec `json:"structured_spec,omitzero" schema:"type=object,ref=task-spec"`
	// The new requirements: a requirements document. null removes them.
	Requirements *hub.Requirements `json:"requirements,omitzero" schema:"type=object,ref=requirements"`
	Without      []string          `json:"-"` // documents that are taken away: structured_spec, requirements
}

func (u *UpdateTask) read(o *object.Reader) {
	u.removed(o)
	never(o, "state", "result", "assignedTo")
}

// removed finds the documents that are taken away, and refuses members that cannot be set.
func (u *UpdateTask) removed(o *object.Reader) {
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
			o.Refuse(key, "cannot be set: other operations change it")
		}
	}
}

// AddDependency is the payload of add-dependency.
type AddDependency struct {
	// The id of the task that depends on another one.
	TaskID     string         `json:"taskId" schema:"nonblank"`
	Dependency hub.Dependency `json:",embed"` // with other keys: see MarshalJSONTo
}

func (a *AddDependency) read(o *object.Reader) {
	a.Dependency = hub.NewDependency(o, "dependsOnTaskId", "dependencyType", "contractKey")
}

// RemoveDependency is the payload of remove-dependency.
type RemoveDependency struct {
	// The id of the task that depends on another one.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The id of the dependency, or of the task that it names.
	DependencyID string `json:"dependencyId" schema:"nonblank"`
}

// AddNote is the payload of add-note.
type AddNote struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The text of the note.
	Content string `json:"content" schema:"nonblank"`
	// Whether the agent of the task is notified at once, with notify:task-updated.
	Urgent bool `json:"urgent,omitzero"`
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
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The plan: an object or a text.
	Plan Raw `json:"plan" schema:"type=object|string,nonblank"`
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
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The objections to the plan.
	Feedback string `json:"feedback" schema:"nonblank"`
}

// RequestHelp is the payload of request-help.
type RequestHelp struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The question.
	Question string `json:"question" schema:"nonblank"`
	// Further facts about the question: any value.
	Context Raw       `json:"context,omitzero" schema:"any"`
	Options []Option  `json:"-"` // of the orchestrator itself: the answers to choose from
	Recall  string    `json:"-"` // of the orchestrator itself: why the agent is to stop working on the task
	Until   time.Time `json:"-"` // of the orchestrator itself: the question is about the agent, not a task, and ends then
}

// CheckTasks is the payload of check-tasks.
type CheckTasks struct {
	// The session: the name of an agent, its server_id, or the id of its run. The default is your own.
	SessionID string `json:"sessionId,omitzero"`
}

// The answers.
var (
	answerAssignment = &Answer{Name: "assignment", Of: Assignment{}}
	answerMatches    = &Answer{Name: "matches", Of: hub.Matches{}, About: ", best first"}
	answerDependency = &Answer{Name: "dependency", Of: LinkReply{}, Asked: "add-dependency with the new dependency, and remove-dependency with the removed one"}
	answerNote       = &Answer{Name: "note", Of: NoteReply{}}
	answerNotes      = &Answer{Name: "notes", Of: NoteList{}, About: ", oldest first"}
)

// workOperations are the other operations on tasks.
var workOperations = []Operation{
	request[UpdateTask](Operation{
		Name: "update-task", Answer: answerTask, Writes: true, OfTask: true,
		Rules: []string{
			`"description": "Members that are missing keep their values. id, status, state, result and assignedTo cannot be set: other operations change them."`,
			`"allOf": [{"properties": {"id": {"type": "null"}, "status": {"type": "null"}, "state": {"type": "null"}, "result": {"type": "null"}, "assignedTo": {"type": "null"}}}]`,
		},
		Summary: "Change the text, the documents or the priority of a task",
		About:   "The task must not have ended. Allowed for the submitter and for planners.",
		HTTP:    []string{"PUT /api/v1/tasks/{id}", "PUT /api/v1/server/tasks/{id}"},
		Examples: []string{
			`{"taskId": "task-123", "name": "Fix the login form", "description": "It forgets the name.", "type": "bug", "priority": "high", "payload": {"file": "src/login.ts"}, "targetRepo": "shop", "projectId": "spring", "acceptanceCriteria": ["The name stays"], "structured_spec": {"$schema": "orchestratia/task-spec/v1", "requirements": [{"description": "The form keeps the name", "priority": "must"}]}, "requirements": {"repo": "shop", "languages": ["typescript"]}}`,
			`{"taskId": "task-123", "priority": 1.5, "requirements": null}`,
		},
	}),
	request[AssignTask](Operation{
		Name: "assign-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Assign a task to an agent, which may have to submit a plan first",
		About:   "The agent need not fit the requirements. It is notified and starts the task itself. Allowed for the submitter and for planners.",
		HTTP:    []string{"POST /api/v1/server/tasks/{id}/assign"},
		Examples: []string{
			`{"taskId": "task-123", "agent": "coder", "requirePlan": true}`,
			`{"taskId": "task-123", "agent": "coder"}`,
		},
	}),
	request[TaskID](Operation{
		Name: "auto-assign", Answer: answerAssignment, Writes: true,
		Summary:  "Assign a task to the agent that fits its requirements best",
		About:    "The agent starts the task itself.",
		HTTP:     []string{"POST /api/v1/tasks/{id}/auto-assign"},
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[TaskID](Operation{
		Name: "match-agents", Answer: answerMatches,
		Summary:  "Show how each agent fits the requirements of a task",
		About:    "The answer gives the reasons. Nothing is assigned.",
		HTTP:     []string{"GET /api/v1/tasks/{id}/matching-agents"},
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[Nothing](Operation{
		Name: "poll-tasks", Answer: answerTasks, Audience: ForAgents,
		Summary:  "List the tasks that are assigned to you and not started",
		About:    "The answer has the tasks in full.",
		HTTP:     []string{"GET /api/v1/servers/tasks/poll"},
		Examples: []string{`{}`, ""},
	}),
	request[CheckTasks](Operation{
		Name: "check-tasks", Answer: answerTasks,
		Summary:  "List the tasks that are assigned to a session and not started",
		About:    "Only planners may ask for other sessions.",
		HTTP:     []string{"GET /api/v1/server/tasks/check"},
		Examples: []string{`{"sessionId": "coder"}`, ""},
	}),
	request[RequestHelp](Operation{
		Name: "request-help", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Ask a person for help with a task",
		About:   "The task waits. When a person answers, you get notify:task-updated, and the task has the answer.",
		HTTP:    []string{"POST /api/v1/servers/tasks/{id}/help", "POST /api/v1/server/tasks/{id}/help"},
		Examples: []string{
			`{"taskId": "task-123", "question": "Which database shall I write for?", "context": {"file": "src/db.ts"}}`,
			`{"taskId": "task-123", "question": "May I drop the column?"}`,
		},
	}),
	request[SubmitPlan](Operation{
		Name: "submit-plan", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Submit the plan that a task requires",
		About:   "The task is in the state planning. Its agent may start when the plan is approved.",
		HTTP:    []string{"POST /api/v1/server/tasks/{id}/plan"},
		Examples: []string{
			`{"taskId": "task-123", "plan": {"steps": ["Read the form", "Keep the name"]}}`,
			`{"taskId": "task-123", "plan": "I keep the name in the session."}`,
		},
	}),
	request[TaskID](Operation{
		Name: "approve-plan", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Approve the plan of a task",
		About:    "Its agent may start. An agent cannot approve its own plan.",
		HTTP:     []string{"POST /api/v1/tasks/{id}/approve-plan"},
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[RevisePlan](Operation{
		Name: "revise-plan", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Reject the plan of a task with feedback",
		About:    "The agent must submit another plan. An agent cannot reject its own plan.",
		HTTP:     []string{"POST /api/v1/tasks/{id}/revise-plan"},
		Examples: []string{`{"taskId": "task-123", "feedback": "Write the test first."}`},
	}),
	request[AddDependency](Operation{
		Name: "add-dependency", Answer: answerDependency, Writes: true,
		Rules: []string{
			`"if": {"properties": {"dependencyType": {"const": "input"}}, "required": ["dependencyType"]}`,
			`"then": {"properties": {"contractKey": {"type": "string", "pattern": "^[A-Za-z0-9_]+$"}}, "required": ["contractKey"]}`,
		},
		Summary: "Add a dependency to a task",
		About:   "The task must not have started. A dependency that closes a cycle is refused.",
		HTTP:    []string{"POST /api/v1/server/tasks/{id}/dependencies"},
		Examples: []string{
			`{"taskId": "task-123", "dependsOnTaskId": "task-7", "dependencyType": "input", "contractKey": "form_fields"}`,
			`{"taskId": "task-123", "dependsOnTaskId": "task-8"}`,
		},
	}),
	request[RemoveDependency](Operation{
		Name: "remove-dependency", Answer: answerDependency, Writes: true,
		Summary:  "Remove a dependency from a task",
		About:    "A task without other open dependencies may start.",
		HTTP:     []string{"DELETE /api/v1/server/tasks/{id}/dependencies/{dep_id}"},
		Examples: []string{`{"taskId": "task-123", "dependencyId": "d5"}`},
	}),
	request[AddNote](Operation{
		Name: "add-note", Answer: answerNote, Writes: true,
		Summary: "Add a note to a task",
		About:   "Everyone who may see the task can read the note.",
		HTTP:    []string{"POST /api/v1/tasks/{id}/notes", "POST /api/v1/server/tasks/{id}/notes"},
		Examples: []string{
			`{"taskId": "task-123", "content": "The designer is back on Monday.", "urgent": true}`,
			`{"taskId": "task-123", "content": "See also the other form."}`,
		},
	}),
	request[TaskID](Operation{
		Name: "list-notes", Answer: answerNotes,
		Summary:  "List the notes of a task, oldest first",
		HTTP:     []string{"GET /api/v1/tasks/{id}/notes"},
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
