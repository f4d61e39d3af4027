package agents_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// TestOperations checks that the orchestrator can read the request of each method, and that the
// method returns the answer.
func TestOperations(t *testing.T) {
	task := taskNamed("one")
	for operation, each := range map[string]exchange{
		"query-agents": {
			ask: func(t *talk) (any, error) {
				return t.agent.QueryAgents(t.Context(), wire.QueryAgents{Role: wire.RoleWorker})
			},
			want:   &wire.QueryAgents{Role: wire.RoleWorker},
			answer: &wire.AgentList{Agents: []wire.Agent{{ID: "a", Status: "idle"}}},
			got:    []wire.Agent{{ID: "a", Status: "idle", Capabilities: []string{}}},
		},
		"query-tasks": {
			ask:    func(t *talk) (any, error) { return t.agent.QueryTasks(t.Context(), wire.QueryTasks{Limit: 2}) },
			want:   &wire.QueryTasks{Limit: 2},
			answer: &wire.TaskList{Tasks: []wire.Task{task.Task}},
			got:    []wire.Task{asHeard(task)},
		},
		"submit-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.SubmitTask(t.Context(), wire.SubmitTask{Type: "t", Name: "one", Payload: wire.Raw(delicate), Priority: wire.Raw("2.50")})
			},
			want:   &wire.SubmitTask{Type: "t", Name: "one", Payload: wire.Raw(delicate), Priority: wire.Raw("2.50")},
			answer: task,
			got:    asHeard(task),
		},
		"get-task": {
			ask:    func(t *talk) (any, error) { return t.agent.GetTask(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: task,
			got:    asHeard(task),
		},
		"ask-user": {
			ask: func(t *talk) (any, error) {
				return t.agent.AskUser(t.Context(), wire.AskUser{Question: "why?", Options: []wire.Option{{Label: "A", Value: "a"}}, Timeout: 1000})
			},
			want:   &wire.AskUser{Question: "why?", Options: []wire.Option{{Label: "A", Value: "a"}}, Timeout: 1000},
			answer: wire.UserAnswer{Answer: "a", Metadata: wire.AnswerMetadata{AnsweredAt: "2026-02-04T14:35:00Z"}},
			got:    wire.UserAnswer{Answer: "a", Metadata: wire.AnswerMetadata{AnsweredAt: "2026-02-04T14:35:00Z"}},
		},
		"start-task": {
			ask:    func(t *talk) (any, error) { return t.agent.StartTask(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: task,
			got:    asHeard(task),
		},
		"complete-task": {
			ask:    func(t *talk) (any, error) { return t.agent.CompleteTask(t.Context(), "task-one", "it went well") },
			want:   &wire.CompleteTask{TaskID: "task-one", Result: &hub.Result{Document: wire.Raw(`"it went well"`)}},
			answer: task,
			got:    asHeard(task),
		},
		"fail-task": {
			ask:    func(t *talk) (any, error) { return t.agent.FailTask(t.Context(), "task-one", "no luck") },
			want:   &wire.FailTask{TaskID: "task-one", Error: "no luck"},
			answer: task,
			got:    asHeard(task),
		},
		"cancel-task": {
			ask:    func(t *talk) (any, error) { return t.agent.CancelTask(t.Context(), "task-one", "changed my mind") },
			want:   &wire.CancelTask{TaskID: "task-one", Reason: "changed my mind"},
			answer: task,
			got:    asHeard(task),
		},
		"retry-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.RetryTask(t.Context(), wire.RetryTask{TaskID: "task-one", Keep: true})
			},
			want:   &wire.RetryTask{TaskID: "task-one", Keep: true},
			answer: task,
			got:    asHeard(task),
		},
	} {
		each.require(t, operation)
	}
}

// An exchange is a request, the payload that the orchestrator reads, its answer, and the value
// that the method returns.
type exchange struct {
	ask    func(t *talk) (any, error)
	want   any
	answer any
	got    any
}

func (e exchange) require(t *testing.T, operation string) {
	t.Helper()
	converse(t, func(t *talk) {
		type outcome struct {
			got any
			err error
		}
		done := make(chan outcome, 1)
		go func() {
			got, err := e.ask(t)
			done <- outcome{got, err}
		}()
		request := t.request(operation)
		body, wrong := readRequest(operation, request.Payload)
		require.Nil(t, wrong)
		require.Equal(t, e.want, body)
		t.answer(request, e.answer)
		o := <-done
		require.NoError(t, o.err)
		require.Equal(t, e.got, o.got)
	})
}

func TestAResultOfNothing(t *testing.T) {
	for _, nothing := range []any{nil, wire.Raw(nil), (*wire.Task)(nil)} {
		converse(t, func(t *talk) {
			done := make(chan error, 1)
			go func() {
				_, err := t.agent.CompleteTask(t.Context(), "x", nothing)
				done <- err
			}()
			request := t.request("complete-task")
			require.Equal(t, `{"taskId":"x"}`, string(request.Payload))
			t.answer(request, taskNamed("x"))
			require.NoError(t, <-done)
		})
	}
	converse(t, func(t *talk) {
		_, err := t.agent.CompleteTask(t.Context(), "x", func() {})
		require.Error(t, err)
	})
}

// readRequest reads a payload as the orchestrator does.
func readRequest(operation string, payload []byte) (any, *wire.Error) {
	return wire.ReadRequest(operation, payload, 64)
}

// asHeard returns a task as the agent decodes it: its lists are never nil.
func asHeard(reply *wire.TaskReply) wire.Task {
	task := reply.Task
	task.RequiredCapabilities, task.Dependencies = []string{}, []string{}
	return task
}

// TestOperationsOnTasks is TestOperations for the requests on tasks that are extensions.
func TestOperationsOnTasks(t *testing.T) {
	task, name := taskNamed("one"), "new"
	list := &wire.TaskList{Tasks: []wire.Task{task.Task}}
	link := wire.Link{ID: "d1", On: "task-two", Type: hub.DependsInput, Contract: "k"}
	note := wire.Note{ID: "n1", TaskID: "task-one", Author: "agent:me", Content: "c", CreatedAt: "2026-02-04T14:30:00.000Z"}
	for operation, each := range map[string]exchange{
		"update-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.UpdateTask(t.Context(), wire.UpdateTask{TaskID: "task-one", Name: &name, Without: []string{"requirements"}})
			},
			want:   &wire.UpdateTask{TaskID: "task-one", Name: &name, Without: []string{"requirements"}},
			answer: task, got: asHeard(task),
		},
		"assign-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.AssignTask(t.Context(), wire.AssignTask{TaskID: "task-one", Agent: "coder", RequirePlan: true})
			},
			want:   &wire.AssignTask{TaskID: "task-one", Agent: "coder", RequirePlan: true},
			answer: task, got: asHeard(task),
		},
		"auto-assign": {
			ask:    func(t *talk) (any, error) { return t.agent.AutoAssign(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: wire.Assignment{Status: "no_match"}, got: wire.Assignment{Status: "no_match"},
		},
		"match-agents": {
			ask:    func(t *talk) (any, error) { return t.agent.MatchAgents(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: hub.Matches{Servers: []hub.Match{{ServerName: "a", Score: -1}}, Total: 1},
			got:    []hub.Match{{ServerName: "a", Score: -1, Reasons: []string{}}},
		},
		"poll-tasks": {
			ask:  func(t *talk) (any, error) { return t.agent.PollTasks(t.Context()) },
			want: &wire.Nothing{}, answer: list, got: []wire.Task{asHeard(task)},
		},
		"check-tasks": {
			ask:  func(t *talk) (any, error) { return t.agent.CheckTasks(t.Context(), "coder") },
			want: &wire.CheckTasks{SessionID: "coder"}, answer: list, got: []wire.Task{asHeard(task)},
		},
		"request-help": {
			ask:    func(t *talk) (any, error) { return t.agent.RequestHelp(t.Context(), "task-one", "?", []int{1}) },
			want:   &wire.RequestHelp{TaskID: "task-one", Question: "?", Context: wire.Raw(`[1]`)},
			answer: task, got: asHeard(task),
		},
		"submit-plan": {
			ask:    func(t *talk) (any, error) { return t.agent.SubmitPlan(t.Context(), "task-one", wire.Raw(delicate)) },
			want:   &wire.SubmitPlan{TaskID: "task-one", Plan: wire.Raw(delicate)},
			answer: task, got: asHeard(task),
		},
		"approve-plan": {
			ask:  func(t *talk) (any, error) { return t.agent.ApprovePlan(t.Context(), "task-one") },
			want: &wire.TaskID{TaskID: "task-one"}, answer: task, got: asHeard(task),
		},
		"revise-plan": {
			ask:  func(t *talk) (any, error) { return t.agent.RevisePlan(t.Context(), "task-one", "test first") },
			want: &wire.RevisePlan{TaskID: "task-one", Feedback: "test first"}, answer: task, got: asHeard(task),
		},
		"add-dependency": {
			ask: func(t *talk) (any, error) {
				return t.agent.AddDependency(t.Context(), "task-one", hub.Dependency{On: "task-two", Type: hub.DependsInput, Contract: "k"})
			},
			want:   &wire.AddDependency{TaskID: "task-one", Dependency: hub.Dependency{On: "task-two", Type: hub.DependsInput, Contract: "k"}},
			answer: &wire.LinkReply{Dependency: link}, got: link,
		},
		"remove-dependency": {
			ask:    func(t *talk) (any, error) { return t.agent.RemoveDependency(t.Context(), "task-one", "d1") },
			want:   &wire.RemoveDependency{TaskID: "task-one", DependencyID: "d1"},
			answer: &wire.LinkReply{Dependency: link}, got: link,
		},
		"add-note": {
			ask: func(t *talk) (any, error) {
				return t.agent.AddNote(t.Context(), wire.AddNote{TaskID: "task-one", Content: "c", Urgent: true})
			},
			want:   &wire.AddNote{TaskID: "task-one", Content: "c", Urgent: true},
			answer: wire.NoteReply{Note: note}, got: note,
		},
		"list-notes": {
			ask:  func(t *talk) (any, error) { return t.agent.ListNotes(t.Context(), "task-one") },
			want: &wire.TaskID{TaskID: "task-one"}, answer: wire.NoteList{Notes: []wire.Note{note}}, got: []wire.Note{note},
		},
	} {
		each.require(t, operation)
	}
}

// TestOperationsOfCodingAgents is TestOperations for requests about the current work.
func TestOperationsOfCodingAgents(t *testing.T) {
	task := taskNamed("task-one")
	for operation, each := range map[string]exchange{
		"current-task": {
			ask:  func(t *talk) (any, error) { return t.agent.CurrentTask(t.Context()) },
			want: &wire.Nothing{}, answer: task, got: asHeard(task),
		},
		"report-progress": {
			ask: func(t *talk) (any, error) {
				return t.agent.ReportProgress(t.Context(), wire.ReportProgress{TaskID: "task-one", Message: "m", Output: wire.Raw(`[1.0]`)})
			},
			want: &wire.ReportProgress{TaskID: "task-one", Message: "m", Output: wire.Raw(`[1.0]`)}, answer: task, got: asHeard(task),
		},
		"return-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.ReturnTask(t.Context(), wire.ReturnTask{TaskID: "task-one", Reason: "r"})
			},
			want: &wire.ReturnTask{TaskID: "task-one", Reason: "r"}, answer: task, got: asHeard(task),
		},
		"ask-permission": {
			ask: func(t *talk) (any, error) {
				return t.agent.AskPermission(t.Context(), wire.AskPermission{
					Tool: "Bash", Title: "t", Input: wire.Raw(`{"n":1.0}`), Choices: []activity.PermissionChoice{{ID: "y", Kind: activity.AllowOnce}},
				})
			},
			want: &wire.AskPermission{
				Tool: "Bash", Title: "t", Input: wire.Raw(`{"n":1.0}`), Choices: []activity.PermissionChoice{{ID: "y", Kind: activity.AllowOnce}},
			},
			answer: wire.UserAnswer{Answer: "y", Choice: "y"}, got: wire.UserAnswer{Answer: "y", Choice: "y"},
		},
		"withdraw-question": {
			ask: func(t *talk) (any, error) {
				return t.agent.WithdrawQuestion(t.Context(), wire.WithdrawQuestion{QuestionID: "q1"})
			},
			want: &wire.WithdrawQuestion{QuestionID: "q1"}, answer: activity.Withdrawn{Withdrawn: true}, got: activity.Withdrawn{Withdrawn: true},
		},
	} {
		each.require(t, operation)
	}
}

// TestOperationsOnServers is TestOperations for requests of servers.
func TestOperationsOnServers(t *testing.T) {
	server := hub.Server{ServerID: "s1", Name: "a", Status: "online", Repos: wire.Raw(`{}`)}
	can := &hub.Capabilities{Document: wire.Raw(`{"languages":["go"]}`)}
	exchange{
		ask: func(t *talk) (any, error) {
			return t.agent.UpdateCapabilities(t.Context(), wire.UpdateCapabilities{Capabilities: can, System: wire.Raw(`{"load":0.50}`)})
		},
		want: &wire.UpdateCapabilities{
			Capabilities: &hub.Capabilities{Document: wire.Raw(`{"languages":["go"]}`), Languages: []string{"go"}, Capacity: 1},
			System:       wire.Raw(`{"load":0.50}`),
		},
		answer: server, got: server,
	}.require(t, "update-capabilities")
	exchange{
		ask:  func(t *talk) (any, error) { return t.agent.Servers(t.Context()) },
		want: &wire.Nothing{}, answer: hub.ServerList{Servers: []hub.Server{server}}, got: []hub.Server{server},
	}.require(t, "query-servers")
}

func TestPlansAndQuestionsThatCannotBeTold(t *testing.T) {
	converse(t, func(t *talk) {
		_, err := t.agent.SubmitPlan(t.Context(), "x", func() {})
		require.Error(t, err)
		_, err = t.agent.RequestHelp(t.Context(), "x", "?", func() {})
		require.Error(t, err)
	})
}

// TestResults checks that the orchestrator reads the results built by the SDK.
func TestResults(t *testing.T) {
	for name, each := range map[string]struct {
		result agents.Result
		want   string
	}{
		"all of it": {
			result: agents.Result{
				Summary: "it went <well>",
				Changes: agents.Changes{Modified: []string{"a"}, Created: []string{"b"}, Deleted: []string{"c"}, LinesAdded: 3, LinesRemoved: 1},
				Contracts: map[string]agents.Contract{
					"all": agents.Fulfilled(wire.Raw(`{"n":1.0}`)), "some": agents.Partial(map[string]int{"n": 1}), "none": agents.Skipped("no time"),
				},
				Tests:     agents.Tests{Framework: "go", Total: 3, Passed: 2, Skipped: 1, Coverage: 87.5},
				Artifacts: map[string]any{"log": "out.log"},
			},
			want: `{"$schema":"orchestratia/task-result/v1","summary":"it went <well>",` +
				`"changes":{"files_modified":["a"],"files_created":["b"],"files_deleted":["c"],"lines_added":3,"lines_removed":1},` +
				`"contracts":{"all":{"status":"fulfilled","data":{"n":1.0}},"none":{"status":"skipped","data":{"reason":"no time"}},"some":{"status":"partial","data":{"n":1}}},` +
				`"tests":{"framework":"go","total":3,"passed":2,"failed":0,"skipped":1,"coverage_percent":87.5},"artifacts":{"log":"out.log"}}`,
		},
		"a summary": {
			result: agents.Result{Summary: "nothing to do"},
			want:   `{"$schema":"orchestratia/task-result/v1","summary":"nothing to do"}`,
		},
	} {
		text, err := object.Encode(each.result)
		require.NoError(t, err, name)
		require.Equal(t, each.want, string(text))
		read := hub.ReadResult(text)
		require.True(t, read.Structured)
		require.Nil(t, read.Breach)
		require.Len(t, read.Contracts, len(each.result.Contracts))
	}
}

// Rows: B-18.
func TestEventsOnTheLine(t *testing.T) {
	for name, event := range map[string]struct {
		tell func(t *talk) error
		want string
	}{
		"progress": {
			tell: func(t *talk) error { return t.agent.Progress("task-1", 0.75, "nearly <there>") },
			want: `{"taskId":"task-1","progress":0.75,"message":"nearly <there>"}`,
		},
		"log": {
			tell: func(t *talk) error { return t.agent.Log("warn", "", wire.Raw(delicate)) },
			want: `{"level":"warn","message":"","context":` + delicate + `}`,
		},
		"error": {
			tell: func(t *talk) error { return t.agent.Trouble("task-1", errors.New("no \xff luck"), false) },
			want: `{"taskId":"task-1","error":"no ` + "\ufffd" + ` luck","recoverable":false}`,
		},
		"question": {
			tell: func(t *talk) error { return t.agent.Wonder("why?", nil) },
			want: `{"question":"why?"}`,
		},
		"of our own": {
			tell: func(t *talk) error { return t.agent.Tell("of our own", nil) },
			want: `{}`,
		},
	} {
		converse(t, func(t *talk) {
			told := make(chan error, 1)
			go func() { told <- event.tell(t) }()
			require.Equal(t, event.want, string(t.report(name).Payload))
			require.NoError(t, <-told)
		})
	}
}

// TestWrongEventsAreSaidHere checks that the SDK refuses invalid events, because the
// orchestrator does not answer them.
func TestWrongEventsAreSaidHere(t *testing.T) {
	converse(t, func(t *talk) {
		require.EqualError(t, t.agent.Progress("task-1", 75, ""), "event progress: progress must be from 0 to 1")
		require.EqualError(t, t.agent.Progress("", 0.5, ""), "event progress: taskId must not be empty")
		require.Error(t, t.agent.Progress("task-1", math.NaN(), ""))
		require.EqualError(t, t.agent.Log("info", "x", []int{1}), "event log: context must be an object")
		require.Error(t, t.agent.Log("info", "x", func() {}))
		require.Error(t, t.agent.Wonder("", nil))
		require.Error(t, t.agent.Tell("anything", "text"))
	})
}

func TestWhoeverIsNotAnsweredMayStillTell(t *testing.T) {
	converse(t, func(t *talk) {
		t.peer.End()
		require.NoError(t, t.agent.Wait())
		told := make(chan error, 1)
		go func() { told <- t.agent.Log("info", "goodbye", nil) }()
		t.report("log")
		require.NoError(t, <-told)
	})
}

// letter is a message as the bus stores it.
var letter = mail.Message{
	Seq: 42, From: "GO", To: "HO:h1", Topic: "task.assigned", Payload: wire.Raw(delicate), ReplyTo: number(41),
	CreatedAt: "2026-03-30T09:15:00.123Z",
}

//go:fix inline
func number(n int64) *int64 { return new(n) }

// TestOperationsOnMail is TestOperations for mail.
func TestOperationsOnMail(t *testing.T) {
	received := wire.SendMessage{To: "GO", Topic: "task.completed", Payload: wire.Raw(delicate), ReplyTo: 42, Key: "k-1"}
	for operation, each := range map[string]exchange{
		"send-message": {
			ask:    func(t *talk) (any, error) { return t.agent.SendMessage(t.Context(), received) },
			want:   &received,
			answer: &mail.Sent{Message: letter, Duplicate: true, Warnings: []string{"w"}},
			got:    mail.Sent{Message: letter, Duplicate: true, Warnings: []string{"w"}},
		},
		"poll-messages": {
			ask: func(t *talk) (any, error) {
				return t.agent.PollMessages(t.Context(), wire.PollMessages{Cursor: number(0), Limit: 2})
			},
			want:   &wire.PollMessages{Cursor: number(0), Limit: 2},
			answer: &mail.List{Messages: []mail.Message{letter}, Cursor: 41, More: true},
			got:    mail.List{Messages: []mail.Message{letter}, Cursor: 41, More: true},
		},
		"ack-messages": {
			ask:    func(t *talk) (any, error) { return t.agent.AckMessages(t.Context(), 0) },
			want:   &wire.AckMessages{},
			answer: &mail.Acked{Actor: "HO:h1", Cursor: 45},
			got:    mail.Acked{Actor: "HO:h1", Cursor: 45},
		},
		"heartbeat": {
			ask:    func(t *talk) (any, error) { return t.agent.Heartbeat(t.Context()) },
			want:   &wire.Heartbeat{},
			answer: &mail.Beat{Actor: "HO:h1", LastSeen: "2026-03-30T09:15:00.123Z"},
			got:    mail.Beat{Actor: "HO:h1", LastSeen: "2026-03-30T09:15:00.123Z"},
		},
	} {
		each.require(t, operation)
	}
}

func TestMailAsANotice(t *testing.T) {
	converse(t, func(t *talk) {
		require.NoError(t, t.peer.Notify(agents.Message, letter))
		t.peer.End()
		for notice := range t.agent.News(t.Context()) {
			require.Equal(t, agents.Message, notice.Name)
			var received mail.Message
			require.NoError(t, notice.Read(&received))
			require.Equal(t, letter, received)
		}
	})
}
