package wire

// AssignTask is the payload of assign-task.
type AssignTask struct {
	TaskID      string `json:"taskId"`
	Agent       string `json:"agent"`                // its name, its server id, or the id of its run
	RequirePlan bool   `json:"requirePlan,omitzero"` // it is to say first how it will go about it
}

// readAssignTask reads an AssignTask.
func readAssignTask(o *Object) *AssignTask {
	plan, _ := o.Truth("requirePlan")
	return &AssignTask{TaskID: o.NeedText("taskId"), Agent: o.NeedText("agent"), RequirePlan: plan}
}

// Assignment answers auto-assign.
type Assignment struct {
	Status     string `json:"status"` // Assigned or NoMatch
	ServerID   string `json:"server_id,omitzero"`
	ServerName string `json:"server_name,omitzero"`
	MatchScore int    `json:"match_score,omitzero"`
}

// What auto-assign comes to.
const (
	Assigned = "assigned"
	NoMatch  = "no_match" // no agent fits, or none has room
)

// Matches answers match-agents, the best first.
type Matches struct {
	Servers []Match `json:"servers"`
	Total   int     `json:"total"`
}

// Match is how an agent fits a task.
type Match struct {
	ServerID   string   `json:"server_id"`
	ServerName string   `json:"server_name"`
	Score      int      `json:"score"`  // -1: it does not
	Status     string   `json:"status"` // ServerOnline or ServerOffline
	Reasons    []string `json:"reasons"`
}

// UpdateTask is the payload of update-task. What is nil stays as it is.
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

	Spec         *Spec         `json:"structured_spec,omitzero"`
	Requirements *Requirements `json:"requirements,omitzero"`
	Without      []string      `json:"-"` // documents that are taken away: structured_spec, requirements
}

// readUpdateTask reads an UpdateTask.
func readUpdateTask(o *Object) *UpdateTask {
	u := &UpdateTask{TaskID: o.NeedText("taskId"), Payload: o.Document("payload")}
	u.Name, u.Description = o.someText("name"), o.anyText("description")
	u.TargetRepo, u.ProjectID = o.anyText("targetRepo"), o.anyText("projectId")
	u.common(o, "acceptanceCriteria")
	o.never("state", "result", "assignedTo")
	return u
}

// common reads what both spellings of an update have.
func (u *UpdateTask) common(o *Object, criteria string) {
	u.Type = o.someText("type")
	u.Priority = o.Priority("priority")
	if o.find(criteria) != nil {
		texts := o.Texts(criteria)
		u.AcceptanceCriteria = &texts
	}
	u.Spec, u.Requirements = o.Spec("structured_spec"), o.Requirements("requirements")
	for _, key := range []string{"structured_spec", "requirements"} {
		if o.isNull(key) {
			u.Without = append(u.Without, key)
		}
	}
	o.never("id", "status")
}

// someText is an optional text that says something, nil when it is missing.
func (o *Object) someText(key string) *string {
	if o.find(key) == nil {
		return nil
	}
	text := o.NeedText(key)
	return &text
}

// anyText is an optional text, nil when it is missing.
func (o *Object) anyText(key string) *string {
	if o.find(key) == nil {
		return nil
	}
	text := o.Text(key)
	return &text
}

// refuseNulls refuses members that are null, where null is not the same as missing.
func (o *Object) refuseNulls(why string) {
	for i := range o.members {
		if isNull(o.members[i].value) {
			o.Refuse(string(o.members[i].key), why)
		}
	}
}

// isNull reports whether a member is there, and null.
func (o *Object) isNull(key string) bool {
	for i := range o.members {
		if string(o.members[i].key) == key {
			return isNull(o.members[i].value)
		}
	}
	return false
}

// never refuses members that a sender may think can be set.
func (o *Object) never(keys ...string) {
	for _, key := range keys {
		if o.find(key) != nil {
			o.Refuse(key, "cannot be set: there are operations for what changes it")
		}
	}
}

// AddDependency is the payload of add-dependency.
type AddDependency struct {
	TaskID     string     `json:"taskId"`
	Dependency Dependency `json:"-"`
}

// readAddDependency reads an AddDependency.
func readAddDependency(o *Object) *AddDependency {
	a := &AddDependency{TaskID: o.NeedText("taskId")}
	a.Dependency = o.oneDependency("dependsOnTaskId", "dependencyType", "contractKey")
	return a
}

// RemoveDependency is the payload of remove-dependency.
type RemoveDependency struct {
	TaskID       string `json:"taskId"`
	DependencyID string `json:"dependencyId"` // its id, or that of the task that is depended on
}

// readRemoveDependency reads a RemoveDependency.
func readRemoveDependency(o *Object) *RemoveDependency {
	return &RemoveDependency{TaskID: o.NeedText("taskId"), DependencyID: o.NeedText("dependencyId")}
}

// AddNote is the payload of add-note.
type AddNote struct {
	TaskID  string `json:"taskId"`
	Content string `json:"content"`
	Urgent  bool   `json:"urgent,omitzero"` // the agent of the task is told at once
}

// readAddNote reads an AddNote.
func readAddNote(o *Object) *AddNote {
	urgent, _ := o.Truth("urgent")
	return &AddNote{TaskID: o.NeedText("taskId"), Content: o.NeedText("content"), Urgent: urgent}
}

// Note is a note on a task.
type Note struct {
	ID        string `json:"id"`
	TaskID    string `json:"task_id"`
	Author    string `json:"author"` // such as agent:planner
	Content   string `json:"content"`
	Urgent    bool   `json:"urgent"`
	CreatedAt string `json:"created_at"`
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

// readSubmitPlan reads a SubmitPlan.
func readSubmitPlan(o *Object) *SubmitPlan {
	return &SubmitPlan{TaskID: o.NeedText("taskId"), Plan: o.plan()}
}

func (o *Object) plan() Raw {
	plan := o.Value("plan")
	switch {
	case plan == nil:
		o.Refuse("plan", "is missing")
	case plan[0] == '"' && blank(o.Text("plan")):
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

// readRevisePlan reads a RevisePlan.
func readRevisePlan(o *Object) *RevisePlan {
	return &RevisePlan{TaskID: o.NeedText("taskId"), Feedback: o.NeedText("feedback")}
}

// RequestHelp is the payload of request-help.
type RequestHelp struct {
	TaskID   string `json:"taskId"`
	Question string `json:"question"`
	Context  Raw    `json:"context,omitzero"`
}

// readRequestHelp reads a RequestHelp.
func readRequestHelp(o *Object) *RequestHelp {
	return &RequestHelp{TaskID: o.NeedText("taskId"), Question: o.NeedText("question"), Context: o.Value("context")}
}

// CheckTasks is the payload of check-tasks.
type CheckTasks struct {
	SessionID string `json:"sessionId,omitzero"` // an agent's name, its server id or the id of its run; your own when it is missing
}

// readCheckTasks reads a CheckTasks.
func readCheckTasks(o *Object) *CheckTasks { return &CheckTasks{SessionID: o.Text("sessionId")} }
