package join

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A turn is a prompt of the editor, and the tasks that come from it.
type turn struct {
	editor    *editor
	team      *client.Client
	session   string
	text      string
	cancelled atomic.Bool
	asking    sync.WaitGroup
	asked     map[string]bool // questions that the editor has seen

	mu    sync.Mutex // held to change tasks, and to read them elsewhere than in run
	tasks []teamTask // the task of the prompt, and those below it
}

// A teamTask is a task of the team as the editor shows it.
type teamTask struct {
	id, name, status string // the status as in a tool call
}

// A block is a part of a prompt.
type block struct {
	Text     string `json:"text"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// begin returns the turn of a prompt. A session has one prompt at a time.
func (e *editor) begin(params wire.Raw) (*turn, error) {
	var p struct {
		Session string  `json:"sessionId"`
		Prompt  []block `json:"prompt"`
	}
	if err := object.Decode(params, &p); err != nil {
		return nil, &rpcError{Code: invalidParams, Message: "the prompt cannot be read"}
	}
	var parts []string
	for _, b := range p.Prompt {
		for _, text := range []string{b.Text, b.URI, b.Resource.URI, b.Resource.Text} {
			if text != "" {
				parts = append(parts, text)
			}
		}
	}
	text := strings.TrimSpace(strings.Join(parts, "\n"))
	if text == "" {
		return nil, &rpcError{Code: invalidParams, Message: "the prompt has no text"}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.turn[p.Session]
	switch {
	case !known:
		return nil, &rpcError{Code: invalidParams, Message: "the session does not exist"}
	case before != nil:
		return nil, &rpcError{Code: invalidRequest, Message: "the session already has a prompt: cancel it, or wait"}
	}
	t := &turn{editor: e, session: p.Session, text: text, asked: map[string]bool{}}
	e.turn[p.Session] = t
	return t, nil
}

// cancel cancels the open tasks of the prompt of a session.
func (e *editor) cancel(ctx context.Context, params wire.Raw) {
	var p struct {
		Session string `json:"sessionId"`
	}
	_ = object.Decode(params, &p)
	e.mu.Lock()
	t := e.turn[p.Session]
	e.mu.Unlock()
	if t != nil {
		t.cancelled.Store(true)
		t.cancel(ctx)
	}
}

// cancel cancels the open tasks. A task that has already ended does not change.
func (t *turn) cancel(ctx context.Context) {
	t.mu.Lock()
	tasks := slices.Clone(t.tasks)
	t.mu.Unlock()
	for _, task := range tasks {
		_, _ = t.team.Ask(ctx, "cancel-task", wire.CancelTask{TaskID: task.id, Reason: "cancelled in the editor"})
	}
}

// team returns a client of the running orchestrator.
func (e *editor) team(ctx context.Context) (*client.Client, error) {
	d, err := e.app.Connect()
	if err != nil {
		return nil, err
	}
	_, err = d.Ask(ctx, "list-questions", wire.Nothing{})
	return d, err
}

// run gives the prompt to the team and reports its progress. It returns why the prompt ended.
func (t *turn) run(ctx context.Context) (reason string, err error) {
	ctx, over := context.WithCancel(ctx)
	defer t.asking.Wait()
	defer over()
	if t.team, err = t.editor.team(ctx); err != nil {
		return "", err
	}
	status, err := ask[control.Status](ctx, t.team, "status", wire.Nothing{})
	if err != nil {
		return "", err
	}
	task, err := t.submit(ctx)
	if err != nil {
		return "", err
	}
	t.add(task.ID, task.Name)
	if t.cancelled.Load() { // before there was a task
		t.cancel(ctx)
	}
	body, err := t.team.Get(ctx, "events", url.Values{"follow": {"true"}, "since": {strconv.FormatInt(status.Seq, 10)}})
	if err != nil {
		return "", err
	}
	for line, err := range t.team.Lines(ctx, body) {
		if err != nil {
			return "", err
		}
		event, err := client.Decode[wire.Event](line)
		if err != nil {
			return "", err
		}
		if over, err := t.heard(ctx, &event, task.ID); over || err != nil {
			return t.end(), err
		}
	}
	return "", &cli.Failure{Message: "the orchestrator has stopped", Hint: "The task continues after a restart: orchestrator up"}
}

// end returns why the prompt has ended.
func (t *turn) end() string {
	if t.cancelled.Load() {
		return "cancelled"
	}
	return "end_turn"
}

// ask calls an operation and decodes the answer.
func ask[T any](ctx context.Context, d *client.Client, operation string, request any) (answer T, err error) {
	text, err := d.Ask(ctx, operation, request)
	if err != nil {
		return answer, err
	}
	return client.Decode[T](text)
}

// submit submits the task of the prompt. Its name is the first line.
func (t *turn) submit(ctx context.Context) (wire.Task, error) {
	first, _, _ := strings.Cut(t.text, "\n")
	request := wire.SubmitTask{Type: "task", Name: term.Clip(first, 80), Description: t.text, AssignTo: t.editor.flags.agent}
	if request.AssignTo == "" {
		var err error
		if request.RequiredRole, err = t.role(ctx); err != nil {
			return wire.Task{}, err
		}
	}
	reply, err := ask[wire.TaskReply](ctx, t.team, "submit-task", request)
	return reply.Task, err
}

// role returns the role for a task: the role of the flag, or planner or worker if an agent has it,
// or else the role of the first agent.
func (t *turn) role(ctx context.Context) (string, error) {
	if role := t.editor.flags.role.Value; role != "" {
		return role, nil
	}
	list, err := ask[wire.AgentList](ctx, t.team, "query-agents", wire.Nothing{})
	if err != nil {
		return "", err
	}
	for _, role := range []string{wire.RolePlanner, wire.RoleWorker} {
		if slices.ContainsFunc(list.Agents, func(a wire.Agent) bool { return a.Role == role }) {
			return role, nil
		}
	}
	if len(list.Agents) == 0 {
		return "", &rpcError{Code: internalError, Message: "the team has no agents"}
	}
	return list.Agents[0].Role, nil
}

// heard reports an event to the editor. It returns true when the task of the prompt has ended.
func (t *turn) heard(ctx context.Context, e *wire.Event, prompt string) (over bool, err error) {
	var fact struct {
		Name    string `json:"name"`
		Parent  string `json:"parent"`
		Message string `json:"message"`
	}
	if e.Payload != nil {
		_ = object.DecodeOwn(e.Payload, &fact) // it is of many kinds
	}
	switch {
	case e.Kind == events.OrchestratorGap:
		return t.result(ctx, prompt)
	case e.Kind == events.QuestionAsked, e.Kind == events.TaskHelpWanted, e.Kind == events.ReviewEscalated:
		return false, t.questions(ctx) // the list names the task of each
	case e.Kind == events.TaskCreated && t.has(fact.Parent):
		t.add(e.Task, fact.Name)
		if t.cancelled.Load() {
			t.cancel(ctx)
		}
		return false, nil
	case !t.has(e.Task):
		return false, nil
	}
	switch e.Kind {
	case events.TaskAssigned, events.TaskRequeued:
		t.update(e.Task, "pending", e.Text)
	case events.TaskStarted:
		t.update(e.Task, "in_progress", "")
	case events.TaskProgress:
		t.update(e.Task, "in_progress", fact.Message)
	case events.TaskDone:
		t.update(e.Task, "completed", "")
	case events.TaskFailed, events.TaskCancelled:
		t.update(e.Task, "failed", e.Text)
	default:
		return false, nil
	}
	if e.Task == prompt {
		return t.result(ctx, prompt)
	}
	return false, nil
}

// result reports the result of the task of the prompt, if it has ended.
func (t *turn) result(ctx context.Context, prompt string) (over bool, err error) {
	reply, err := ask[wire.TaskReply](ctx, t.team, "get-task", wire.TaskID{TaskID: prompt})
	if err != nil || !reply.Task.State.Final() {
		return false, err
	}
	switch task := &reply.Task; task.State {
	case wire.TaskDone:
		t.say(words(task.Result))
	case wire.TaskFailed:
		t.say("The task failed: " + task.Error)
	default:
		t.say("The task was cancelled: " + task.Reason)
	}
	return true, nil
}

// words returns a result as text: its summary if it has one.
func words(result wire.Raw) string {
	var text string
	var document struct {
		Summary string `json:"summary"`
	}
	if object.DecodeOwn(result, &text) == nil {
		return text
	}
	if object.DecodeOwn(result, &document) == nil && document.Summary != "" {
		return document.Summary
	}
	return string(result)
}

// has reports whether a task belongs to the turn.
func (t *turn) has(id string) bool {
	return id != "" && slices.ContainsFunc(t.tasks, func(k teamTask) bool { return k.id == id })
}

// content is a text for the editor.
func content(text string) map[string]string { return map[string]string{"type": "text", "text": text} }

// say shows a text as the words of the team.
func (t *turn) say(text string) {
	t.editor.notify(t.session, map[string]any{"sessionUpdate": "agent_message_chunk", "content": content(text)})
}

// add adds a task, which the editor shows as a tool call. The tasks below the task of the prompt
// are also its plan.
func (t *turn) add(id, name string) {
	t.mu.Lock()
	t.tasks = append(t.tasks, teamTask{id: id, name: name, status: "pending"})
	t.mu.Unlock()
	t.editor.notify(t.session, map[string]any{
		"sessionUpdate": "tool_call", "toolCallId": id, "title": name, "kind": "other", "status": "pending",
	})
	t.plan()
}

// update shows the state of a task, with a text if there is one.
func (t *turn) update(id, status, text string) {
	i := slices.IndexFunc(t.tasks, func(k teamTask) bool { return k.id == id })
	changed := t.tasks[i].status != status
	t.mu.Lock()
	t.tasks[i].status = status
	t.mu.Unlock()
	update := map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status}
	if text != "" {
		update["content"] = []any{map[string]any{"type": "content", "content": content(text)}}
	}
	t.editor.notify(t.session, update)
	if changed {
		t.plan()
	}
}

// plan shows the tasks below the task of the prompt.
func (t *turn) plan() {
	if len(t.tasks) < 2 {
		return
	}
	entries := []map[string]string{}
	for _, k := range t.tasks[1:] {
		status := k.status
		if status == "failed" {
			status = "completed" // a plan has no other end
		}
		entries = append(entries, map[string]string{"content": k.name, "priority": "medium", "status": status})
	}
	t.editor.notify(t.session, map[string]any{"sessionUpdate": "plan", "entries": entries})
}

// questions asks the editor the open questions about the tasks of the turn.
func (t *turn) questions(ctx context.Context) error {
	list, err := ask[wire.QuestionList](ctx, t.team, "list-questions", wire.Nothing{})
	if err != nil {
		return err
	}
	for _, q := range list.Questions {
		if t.asked[q.ID] || !t.has(q.Task) {
			continue
		}
		t.asked[q.ID] = true
		if len(q.Options) == 0 {
			t.say(fmt.Sprintf("%s asks: %s\nAnswer it: orchestrator inbox answer %s TEXT\n", q.Agent, q.Question, q.ID))
			continue
		}
		t.asking.Go(func() { t.ask(ctx, &q) })
	}
	return nil
}

// ask asks the editor a question and passes the answer on. If the question was answered
// elsewhere, the answer of the editor has no effect.
func (t *turn) ask(ctx context.Context, q *wire.Question) {
	options := []map[string]string{}
	for _, o := range q.Options {
		label := o.Label
		if label == "" {
			label = o.Value
		}
		options = append(options, map[string]string{"optionId": o.Value, "name": label, "kind": kindOf(q.Permission, o.Value)})
	}
	call := map[string]any{"toolCallId": q.ID, "title": q.Agent + " asks: " + q.Question, "kind": "other", "status": "pending"}
	if q.Permission != nil {
		call["rawInput"] = q.Permission.Input
	}
	result, err := t.editor.ask(ctx, "session/request_permission", map[string]any{"sessionId": t.session, "toolCall": call, "options": options})
	var chosen struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	if err != nil || object.DecodeOwn(result, &chosen) != nil || chosen.Outcome.Outcome != "selected" {
		return // it stays in the inbox
	}
	_, _ = t.team.Ask(ctx, "answer-question", wire.AnswerQuestion{QuestionID: q.ID, Answer: chosen.Outcome.Option})
}

// kindOf returns the kind of an option in the words of the protocol.
func kindOf(p *activity.Permission, option string) string {
	if p != nil {
		for _, c := range p.Choices {
			switch {
			case c.ID != option:
			case c.Kind == activity.Deny:
				return "reject_once"
			case c.Kind != activity.AllowOnce:
				return "allow_always"
			}
		}
	}
	return "allow_once"
}
