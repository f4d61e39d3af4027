package stdio

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
	"orchestrator/wire/session"
)

// TestRequestsAreReadAsTheyAreSaid checks that an encoded request is decoded to the same value.
func TestRequestsAreReadAsTheyAreSaid(t *testing.T) {
	spec, needs := hub.ReadSpec(wire.Raw(specWith(`{"k":{"description":"d","required":true}}`))), hub.ReadRequirements(wire.Raw(`{"repo":"shop","tools":["sh"]}`))
	can := hub.ReadCapabilities(wire.Raw(`{"languages":["go"],"max_concurrent_tasks":2}`))
	id := &wire.TaskID{TaskID: "a"}
	said := map[string][]any{
		"query-agents": {&wire.QueryAgents{Role: wire.RoleWorker, Status: "idle", Capabilities: []string{"go"}}, &wire.QueryAgents{}},
		"query-tasks":  {&wire.QueryTasks{Status: "queued", RequiredRole: wire.RoleWorker, Limit: 3, ProjectID: "p", ConversationID: "c"}, &wire.QueryTasks{}},
		"submit-task": {
			&wire.SubmitTask{Type: "t", Name: "n"},
			&wire.SubmitTask{
				Type: "t", Name: "n", Description: "d", Payload: wire.Raw(`{"n":1.0}`), RequiredRole: wire.RoleWorker, RequiredCapabilities: []string{"go"},
				Dependencies: []hub.Dependency{{On: "a", Type: hub.DependsBlocks}, {On: "b", Type: hub.DependsInput, Contract: "k"}, {On: "c", Type: hub.DependsRelated}},
				Priority:     wire.Raw(`"high"`), Spec: spec, Requirements: needs, Observability: &delegation.Trace{TraceID: "t", Baggage: wire.Raw(`{"n":1.0}`)},
				TargetRepo: "shop", AcceptanceCriteria: []string{"c"}, ProjectID: "p", SessionID: "s",
			},
		},
		"get-task": {id}, "start-task": {id}, "auto-assign": {id}, "match-agents": {id}, "approve-plan": {id}, "list-notes": {id},
		"ask-user":      {&wire.AskUser{Question: "?", Options: []wire.Option{{Label: "A", Value: "a"}}, Timeout: 5}, &wire.AskUser{Question: "?"}},
		"complete-task": {&wire.CompleteTask{TaskID: "a"}, &wire.CompleteTask{TaskID: "a", Result: hub.ResultOf(wire.Raw(`"text"`))}, &wire.CompleteTask{TaskID: "a", Result: hub.ReadResult(wire.Raw(`{"$schema":"orchestratia/task-result/v1","summary":"s"}`))}},
		"fail-task":     {&wire.FailTask{TaskID: "a", Error: "e"}},
		"cancel-task":   {&wire.CancelTask{TaskID: "a", Reason: "r"}, &wire.CancelTask{TaskID: "a"}},
		"update-task": {
			&wire.UpdateTask{TaskID: "a"},
			&wire.UpdateTask{
				TaskID: "a", Name: new("n"), Description: new(""), Type: new("t"), Priority: wire.Raw("1.50"), Payload: wire.Raw(`{}`), TargetRepo: new(""),
				ProjectID: new("p"), AcceptanceCriteria: &[]string{}, Spec: spec, Requirements: needs,
			},
			&wire.UpdateTask{TaskID: "a", Spec: spec, Without: []string{"requirements"}},
			&wire.UpdateTask{TaskID: "a", Without: []string{"structured_spec", "requirements"}},
		},
		"assign-task": {&wire.AssignTask{TaskID: "a", Agent: "b", RequirePlan: true}, &wire.AssignTask{TaskID: "a", Agent: "b"}},
		"add-dependency": {
			&wire.AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: hub.DependsBlocks}},
			&wire.AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: hub.DependsInput, Contract: "k"}},
		},
		"remove-dependency":   {&wire.RemoveDependency{TaskID: "a", DependencyID: "d1"}},
		"add-note":            {&wire.AddNote{TaskID: "a", Content: "c", Urgent: true}, &wire.AddNote{TaskID: "a", Content: "c"}},
		"submit-plan":         {&wire.SubmitPlan{TaskID: "a", Plan: wire.Raw(`{"n":1.0}`)}},
		"revise-plan":         {&wire.RevisePlan{TaskID: "a", Feedback: "f"}},
		"request-help":        {&wire.RequestHelp{TaskID: "a", Question: "?", Context: wire.Raw(`[1.0]`)}, &wire.RequestHelp{TaskID: "a", Question: "?"}},
		"check-tasks":         {&wire.CheckTasks{SessionID: "s"}, &wire.CheckTasks{}},
		"update-capabilities": {&wire.UpdateCapabilities{Capabilities: can, System: wire.Raw(`{"n":1.0}`)}, &wire.UpdateCapabilities{}},
		"register-agent":      {&wire.Register{Name: "n", Hostname: "h", IP: "i", OS: "o", Token: "t", Repos: wire.Raw(`{}`), Capabilities: can}},
		"answer-question":     {&wire.AnswerQuestion{QuestionID: "q1", Answer: ""}},
		"issue-key":           {&wire.IssueKey{Agent: "a"}}, "rotate-key": {&wire.IssueKey{Agent: "a", Overlap: 5}},
		"revoke-key": {&wire.Revoke{ID: "k1"}}, "revoke-token": {&wire.Revoke{ID: "t1"}},
		"issue-registration": {&wire.IssueRegistration{Name: "n", TTL: 5}, &wire.IssueRegistration{}},
		"issue-token": {
			&wire.IssueToken{Subject: "ann", Role: wire.PersonViewer, TTL: 5}, &wire.IssueToken{Subject: "ann"},
			&wire.IssueToken{Actor: "HO:attic"}, &wire.IssueToken{Actor: "S:db:1", TTL: 5, Overlap: 6},
		},
		"send-message": {
			&wire.SendMessage{To: mail.Global, Topic: mail.TopicHeartbeat, Payload: wire.Raw(`{}`)},
			&wire.SendMessage{From: "W:1", To: mail.Broadcast, Topic: "a.b", Payload: wire.Raw(`{"n":1.0}`), ReplyTo: 42, Key: "k"},
		},
		"poll-messages": {&wire.PollMessages{}, &wire.PollMessages{Actor: mail.Governor, Cursor: new(int64(0)), Limit: mail.MaxPage}},
		"ack-messages":  {&wire.AckMessages{}, &wire.AckMessages{Actor: "HO:attic", Seq: 45}},
		"heartbeat":     {&wire.Heartbeat{}, &wire.Heartbeat{Actor: "IO:ann"}},
		"get-session": {
			&wire.GetSession{}, &wire.GetSession{SessionID: "kitchen", After: 41, Limit: session.MaxPage, CorrelationID: "kettle", TaskID: "kettle-1", To: "coder"},
		},
		"list-reviews": {&wire.ListReviews{}, &wire.ListReviews{SessionID: "kitchen", TaskID: "kettle-1", ReviewID: "kettle-1-a"}},
		"create-session": {
			&wire.CreateSession{
				ID: "attic", Members: []session.Member{}, Validation: session.ValidationStandard, MaxIterations: session.DefaultIterations, OnMax: session.EscalateHumanReview,
				ProgressAfter: session.ProgressAfter, ProgressEvery: session.ProgressEvery,
			},
			&wire.CreateSession{
				ID: "kitchen", Members: []session.Member{{AgentID: "lead", AgentType: session.AgentArchitect}}, Validation: session.ValidationStrict, MaxIterations: 1, OnMax: session.EscalateAbort,
				RequireReview: true, TaskTimeout: 1, ProgressAfter: 2, ProgressEvery: 3,
			},
		},
		"submit-task-request":  {requested(t, `{"id":"1","type":"t","payload":{"n":1.0},"later":1}`), requested(t, string(encoded(t, fullRequest(t))))},
		"get-task-response":    {&wire.GetTaskResponse{TaskID: "a"}},
		"update-task-request":  {&wire.UpdateTaskRequest{TaskID: "a", Input: wire.Raw(`{"n":1.0}`)}, &wire.UpdateTaskRequest{TaskID: "a", Input: wire.Raw("null")}},
		"send-session-message": {saying(t, "", shortAssignment), saying(t, "kitchen", `{"message_type":"abort","message_id":7}`)},
	}
	compiled := validators(t)
	for _, name := range schema.Names() {
		operation, ok := strings.CutPrefix(name, "request:")
		if !ok {
			continue
		}
		bodies := said[operation]
		if bodies == nil { // the examples have all members
			for _, example := range wire.OperationNamed(operation).Examples {
				body, wrong := wire.ReadRequest(operation, []byte(cmp.Or(example, "{}")), 64)
				require.Nil(t, wrong, "%s: an example cannot be read", operation)
				bodies = append(bodies, body)
			}
		}
		for _, body := range bodies {
			text, err := object.Encode(body)
			require.NoError(t, err, operation)
			back, wrong := wire.ReadRequest(operation, text, 64)
			require.Nil(t, wrong, "%s %s", operation, text)
			require.Equal(t, body, back, "%s %s", operation, text)
			line := append(append([]byte(`{"type":"`+name+`","id":"1","timestamp":"2026-01-01","payload":`), text...), '}')
			require.NoError(t, compiled[name].Validate(decoded(t, line)), "%s", line)
		}
	}
}

// TestDocumentsAreMadeOfWhatTheySay checks that a value without a document is encoded from its
// fields.
func TestDocumentsAreMadeOfWhatTheySay(t *testing.T) {
	needs := &hub.Requirements{Repo: "shop", Languages: []string{"go"}, Environments: []string{"linux"}, Tools: []string{"sh"}, Tags: []string{"x"}, Prefer: "coder"}
	can := &hub.Capabilities{
		Repos: []hub.Repo{{Name: "docs"}, {Name: "shop", Path: "/srv", Languages: []string{"go"}, Tools: []string{"make"}}}, Languages: []string{"go"},
		Environments: []string{"linux"}, Tools: []string{"sh"}, Tags: []string{"x"}, Capacity: 2,
	}
	spec := hub.ReadSpec(wire.Raw(taskSpec(``)))
	text, err := object.Encode(wire.SubmitTask{Type: "t", Name: "n", Requirements: needs, Spec: spec})
	require.NoError(t, err)
	body, wrong := wire.ReadRequest("submit-task", text, 64)
	require.Nil(t, wrong)
	read := body.(*wire.SubmitTask)
	require.Equal(t, spec, read.Spec)
	read.Requirements.Document = nil
	require.Equal(t, needs, read.Requirements)

	text, err = object.Encode(wire.UpdateCapabilities{Capabilities: can})
	require.NoError(t, err)
	body, wrong = wire.ReadRequest("update-capabilities", text, 64)
	require.Nil(t, wrong)
	heard := body.(*wire.UpdateCapabilities).Capabilities
	heard.Document = nil
	require.Equal(t, can, heard)

	text, err = object.Encode(wire.UpdateCapabilities{Capabilities: &hub.Capabilities{}})
	require.NoError(t, err)
	require.Equal(t, `{"capabilities":{}}`, string(text))
	_, err = object.Encode(wire.UpdateTask{TaskID: "a", Spec: &hub.Spec{}})
	require.Error(t, err, "a spec is its document")
}
