package agents

import (
	"context"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
)

// QueryAgents lists the agents of the team that match the query.
func (s *sender) QueryAgents(ctx context.Context, query wire.QueryAgents) ([]wire.Agent, error) {
	answer, err := askFor[wire.AgentList](ctx, s, "query-agents", query)
	return answer.Agents, err
}

// QueryTasks lists matching tasks, oldest first, among the tasks that the agent submitted or is
// assigned to.
func (s *sender) QueryTasks(ctx context.Context, query wire.QueryTasks) ([]wire.Task, error) {
	return s.askTasks(ctx, "query-tasks", query)
}

// SubmitTask submits a task and returns it as stored.
func (s *sender) SubmitTask(ctx context.Context, task wire.SubmitTask) (wire.Task, error) {
	return s.askTask(ctx, "submit-task", task)
}

// GetTask returns everything about one of the agent's own tasks.
func (s *sender) GetTask(ctx context.Context, id string) (wire.Task, error) {
	return s.askTask(ctx, "get-task", wire.TaskID{TaskID: id})
}

// AskUser asks a person and waits for the answer, which may take as long as the question allows. If
// the question has a Wait that ends without an answer, it returns the QuestionID, and the answer
// comes as mail on the topic question.answered.
func (s *sender) AskUser(ctx context.Context, question wire.AskUser) (wire.UserAnswer, error) {
	return askFor[wire.UserAnswer](ctx, s, "ask-user", question)
}

// askFor asks for an operation and returns the answer.
func askFor[T any](ctx context.Context, s *sender, operation string, payload any) (answer T, err error) {
	err = s.Ask(ctx, operation, payload, &answer)
	return answer, err
}

// StartTask starts a task that is assigned to the agent. It also takes an unassigned task that
// the agent submitted.
func (s *sender) StartTask(ctx context.Context, id string) (wire.Task, error) {
	return s.askTask(ctx, "start-task", wire.TaskID{TaskID: id})
}

// CompleteTask reports that a task is done. The result is any JSON value, or nil for
// success without a result. Artifacts are as in Job.Artifact.
func (s *sender) CompleteTask(ctx context.Context, id string, result any, artifacts ...hub.Artifact) (wire.Task, error) {
	text, err := value(result)
	if err != nil {
		return wire.Task{}, err
	}
	return s.askTask(ctx, "complete-task", wire.CompleteTask{TaskID: id, Result: hub.ResultOf(text), Artifacts: artifacts})
}

// FailTask reports that a task cannot be done, with the reason.
func (s *sender) FailTask(ctx context.Context, id, why string) (wire.Task, error) {
	return s.askTask(ctx, "fail-task", wire.FailTask{TaskID: id, Error: why})
}

// CancelTask cancels a task that the agent submitted.
func (s *sender) CancelTask(ctx context.Context, id, reason string) (wire.Task, error) {
	return s.askTask(ctx, "cancel-task", wire.CancelTask{TaskID: id, Reason: reason})
}

// RetryTask tries a task again that has failed or was cancelled.
func (s *sender) RetryTask(ctx context.Context, retry wire.RetryTask) (wire.Task, error) {
	return s.askTask(ctx, "retry-task", retry)
}

// askTask asks for an operation that answers with a task.
func (s *sender) askTask(ctx context.Context, operation string, payload any) (wire.Task, error) {
	answer, err := askFor[wire.TaskReply](ctx, s, operation, payload)
	return *tidy(&answer.Task), err
}

// askTasks asks for an operation that answers with a list of tasks.
func (s *sender) askTasks(ctx context.Context, operation string, payload any) ([]wire.Task, error) {
	answer, err := askFor[wire.TaskList](ctx, s, operation, payload)
	for i := range answer.Tasks {
		tidy(&answer.Tasks[i])
	}
	return answer.Tasks, err
}

// tidy sets results and inputs that are the JSON value null to nil.
func tidy(task *wire.Task) *wire.Task {
	task.Result = some(task.Result)
	for i := range task.ResolvedInputs {
		task.ResolvedInputs[i].Data = some(task.ResolvedInputs[i].Data)
	}
	return task
}

// some returns text, or nil if text is null.
func some(text wire.Raw) wire.Raw {
	if string(text) == "null" {
		return nil
	}
	return text
}

// UpdateTask changes the text, documents or priority of a task and returns the updated task.
// Nil fields stay unchanged.
func (s *sender) UpdateTask(ctx context.Context, change wire.UpdateTask) (wire.Task, error) {
	return s.askTask(ctx, "update-task", change)
}

// AssignTask assigns an unassigned task to an agent.
func (s *sender) AssignTask(ctx context.Context, assignment wire.AssignTask) (wire.Task, error) {
	return s.askTask(ctx, "assign-task", assignment)
}

// AutoAssign assigns a task to the agent that matches its requirements best. If no agent matches,
// the error is nil and the status reports it.
func (s *sender) AutoAssign(ctx context.Context, id string) (wire.Assignment, error) {
	return askFor[wire.Assignment](ctx, s, "auto-assign", wire.TaskID{TaskID: id})
}

// MatchAgents reports how well each agent matches a task, the best first.
func (s *sender) MatchAgents(ctx context.Context, id string) ([]hub.Match, error) {
	answer, err := askFor[hub.Matches](ctx, s, "match-agents", wire.TaskID{TaskID: id})
	return answer.Servers, err
}

// PollTasks lists the tasks that the agent was assigned and has not begun.
func (s *sender) PollTasks(ctx context.Context) ([]wire.Task, error) {
	return s.askTasks(ctx, "poll-tasks", nil)
}

// CheckTasks is PollTasks for another session: an agent's name, its server id or the id of its
// run. "" means the agent itself.
func (s *sender) CheckTasks(ctx context.Context, sessionID string) ([]wire.Task, error) {
	return s.askTasks(ctx, "check-tasks", wire.CheckTasks{SessionID: sessionID})
}

// AddDependency makes a task depend on another one. The type defaults to wire.DependsBlocks.
func (s *sender) AddDependency(ctx context.Context, id string, on hub.Dependency) (wire.Link, error) {
	return s.askLink(ctx, "add-dependency", wire.AddDependency{TaskID: id, Dependency: on})
}

// RemoveDependency removes and returns a dependency, given its id or the id of the task depended
// on.
func (s *sender) RemoveDependency(ctx context.Context, id, dependency string) (wire.Link, error) {
	return s.askLink(ctx, "remove-dependency", wire.RemoveDependency{TaskID: id, DependencyID: dependency})
}

// AddNote adds a note to a task.
func (s *sender) AddNote(ctx context.Context, note wire.AddNote) (wire.Note, error) {
	answer, err := askFor[wire.NoteReply](ctx, s, "add-note", note)
	return answer.Note, err
}

// ListNotes returns the notes of a task, oldest first.
func (s *sender) ListNotes(ctx context.Context, id string) ([]wire.Note, error) {
	answer, err := askFor[wire.NoteList](ctx, s, "list-notes", wire.TaskID{TaskID: id})
	return answer.Notes, err
}

// askLink asks for an operation that answers with a dependency.
func (s *sender) askLink(ctx context.Context, operation string, payload any) (wire.Link, error) {
	answer, err := askFor[wire.LinkReply](ctx, s, operation, payload)
	return answer.Dependency, err
}

// RequestHelp reports that the agent needs a person to go on with a task, and returns without
// waiting. TaskUpdated announces the answer; Job.Help waits for it. The context about may be
// any value, or nil.
func (s *sender) RequestHelp(ctx context.Context, id, question string, about any) (wire.Task, error) {
	text, err := value(about)
	if err != nil {
		return wire.Task{}, err
	}
	return s.askTask(ctx, "request-help", wire.RequestHelp{TaskID: id, Question: question, Context: text})
}

// SubmitPlan submits the agent's plan for a task: an object or a text.
func (s *sender) SubmitPlan(ctx context.Context, id string, plan any) (wire.Task, error) {
	text, err := value(plan)
	if err != nil {
		return wire.Task{}, err
	}
	return s.askTask(ctx, "submit-plan", wire.SubmitPlan{TaskID: id, Plan: text})
}

// ApprovePlan approves the plan of another agent.
func (s *sender) ApprovePlan(ctx context.Context, id string) (wire.Task, error) {
	return s.askTask(ctx, "approve-plan", wire.TaskID{TaskID: id})
}

// RevisePlan sends the plan of another agent back, with feedback.
func (s *sender) RevisePlan(ctx context.Context, id, feedback string) (wire.Task, error) {
	return s.askTask(ctx, "revise-plan", wire.RevisePlan{TaskID: id, Feedback: feedback})
}

// CurrentTask returns the task that the agent works on. An agent without a task is refused with
// NOT_FOUND.
func (s *sender) CurrentTask(ctx context.Context) (wire.Task, error) {
	return s.askTask(ctx, "current-task", nil)
}

// ReportProgress reports the work on a task. The method Progress sends that event.
func (s *sender) ReportProgress(ctx context.Context, progress wire.ReportProgress) (wire.Task, error) {
	return s.askTask(ctx, "report-progress", progress)
}

// ReturnTask gives a task back, so that it waits for an agent again.
func (s *sender) ReturnTask(ctx context.Context, back wire.ReturnTask) (wire.Task, error) {
	return s.askTask(ctx, "return-task", back)
}

// AskPermission asks a person whether a tool may be used, and waits for the answer.
func (s *sender) AskPermission(ctx context.Context, permission wire.AskPermission) (wire.UserAnswer, error) {
	return askFor[wire.UserAnswer](ctx, s, "ask-permission", permission)
}

// WithdrawQuestion withdraws a question of the agent.
func (s *sender) WithdrawQuestion(ctx context.Context, question wire.WithdrawQuestion) (activity.Withdrawn, error) {
	return askFor[activity.Withdrawn](ctx, s, "withdraw-question", question)
}

// SendMessage sends mail from the agent's actor and returns the stored message. Mail with a key
// is stored once, however often it is sent.
func (s *sender) SendMessage(ctx context.Context, message wire.SendMessage) (mail.Sent, error) {
	return askFor[mail.Sent](ctx, s, "send-message", message)
}

// PollMessages lists the agent's mail, oldest first: the unacknowledged messages, or all after
// a given number. Only AckMessages acknowledges them.
func (s *sender) PollMessages(ctx context.Context, query wire.PollMessages) (mail.List, error) {
	return askFor[mail.List](ctx, s, "poll-messages", query)
}

// AckMessages acknowledges all mail up to a number.
func (s *sender) AckMessages(ctx context.Context, seq int64) (mail.Acked, error) {
	return askFor[mail.Acked](ctx, s, "ack-messages", wire.AckMessages{Seq: seq})
}

// Heartbeat reports that the agent's actor is present.
func (s *sender) Heartbeat(ctx context.Context) (mail.Beat, error) {
	return askFor[mail.Beat](ctx, s, "heartbeat", nil)
}

// UpdateCapabilities replaces the agent's capabilities. An agent with a Capacity of 0 gets no
// tasks.
func (s *sender) UpdateCapabilities(ctx context.Context, now wire.UpdateCapabilities) (hub.Server, error) {
	answer, err := askFor[hub.Server](ctx, s, "update-capabilities", now)
	return *tidyServer(&answer), err
}

// Servers lists all agents with their capabilities, and whether they are online.
func (s *sender) Servers(ctx context.Context) ([]hub.Server, error) {
	answer, err := askFor[hub.ServerList](ctx, s, "query-servers", nil)
	for i := range answer.Servers {
		tidyServer(&answer.Servers[i])
	}
	return answer.Servers, err
}

// tidyServer sets capabilities that are the JSON value null to nil.
func tidyServer(server *hub.Server) *hub.Server {
	server.Capabilities = some(server.Capabilities)
	return server
}

// Tell sends an event, such as "progress". Events have no answer, so Tell itself validates the
// events of the protocol; the orchestrator would ignore an invalid one.
func (s *sender) Tell(event string, payload any) error {
	if err := s.tell(event, payload); err != nil {
		return fmt.Errorf("event %s: %w", event, err)
	}
	return nil
}

func (s *sender) tell(event string, payload any) error {
	body, err := asObject(payload)
	if err != nil {
		return err
	}
	_, wrong := wire.ReadReport(event, body, depth)
	if wrong != nil && wrong.Code != wire.CodeUnknownType {
		return wrong
	}
	_, line, err := spell("event:"+event, body)
	if err != nil {
		return err
	}
	return s.write(context.Background(), line)
}

// Progress reports how much of a task is done, from 0 to 1. It does not complete the task;
// CompleteTask does.
func (s *sender) Progress(taskID string, fraction float64, message string) error {
	return s.Tell("progress", activity.Progress{TaskID: taskID, Progress: fraction, Message: message})
}

// PartialResult is Progress with the output so far: any value, up to 64 KiB of JSON. The task shows
// the last one until it is done.
func (s *sender) PartialResult(taskID string, fraction float64, message string, output any) error {
	text, err := value(output)
	if err != nil {
		return fmt.Errorf("event progress: %w", err)
	}
	return s.Tell("progress", activity.Progress{TaskID: taskID, Progress: fraction, Message: message, Output: text})
}

// Log writes to the agent's log, at level info, warn or error. The context is an object, or
// nil.
func (s *sender) Log(level, message string, context any) error {
	about, err := value(context)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return s.Tell("log", activity.LogEntry{Level: level, Message: message, Context: about})
}

// Trouble reports an error. An error that is not recoverable fails the task.
func (s *sender) Trouble(taskID string, trouble error, recoverable bool) error {
	return s.Tell("error", activity.Trouble{TaskID: taskID, Error: trouble.Error(), Recoverable: recoverable})
}

// Wonder shows people a question without waiting for an answer. The context is an object, or
// nil.
func (s *sender) Wonder(question string, context any) error {
	about, err := value(context)
	if err != nil {
		return fmt.Errorf("event question: %w", err)
	}
	return s.Tell("question", activity.OpenQuestion{Question: question, Context: about})
}
