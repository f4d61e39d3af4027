package wire

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
	"orchestrator/wire/session"
)

// TestRequestsAreReadAsTheyAreSaid checks that an encoded request is decoded to the same value.
func TestRequestsAreReadAsTheyAreSaid(t *testing.T) {
	spec, needs := hub.ReadSpec(Raw(specWith(`{"k":{"description":"d","required":true}}`))), hub.ReadRequirements(Raw(`{"repo":"shop","tools":["sh"]}`))
	can := hub.ReadCapabilities(Raw(`{"languages":["go"],"max_concurrent_tasks":2}`))
	id := &TaskID{TaskID: "a"}
	said := map[string][]any{
		"query-agents": {&QueryAgents{Role: RoleWorker, Status: "idle", Capabilities: []string{"go"}}, &QueryAgents{}},
		"query-tasks":  {&QueryTasks{Status: "queued", RequiredRole: RoleWorker, Limit: 3, ProjectID: "p", ConversationID: "c"}, &QueryTasks{}},
		"submit-task": {
			&SubmitTask{Type: "t", Name: "n"},
			&SubmitTask{
				Type: "t", Name: "n", Description: "d", Payload: Raw(`{"n":1.0}`), RequiredRole: RoleWorker, RequiredCapabilities: []string{"go"},
				Dependencies: []hub.Dependency{{On: "a", Type: hub.DependsBlocks}, {On: "b", Type: hub.DependsInput, Contract: "k"}, {On: "c", Type: hub.DependsRelated}},
				Priority:     Raw(`"high"`), Spec: spec, Requirements: needs, Observability: &delegation.Trace{TraceID: "t", Baggage: Raw(`{"n":1.0}`)}, Details: Details{
					StructuredSpec: spec.Document, Requirements: needs.Document, TargetRepo: "shop", AcceptanceCriteria: []string{"c"}, ProjectID: "p", SessionID: "s",
				},
			},
		},
		"get-task": {id}, "start-task": {id}, "auto-assign": {id}, "match-agents": {id}, "approve-plan": {id}, "list-notes": {id},
		"ask-user":      {&AskUser{Question: "?", Options: []Option{{Label: "A", Value: "a"}}, Timeout: 5}, &AskUser{Question: "?"}},
		"complete-task": {&CompleteTask{TaskID: "a"}, &CompleteTask{TaskID: "a", Result: hub.ResultOf(Raw(`"text"`))}, &CompleteTask{TaskID: "a", Result: hub.ReadResult(Raw(`{"$schema":"orchestratia/task-result/v1","summary":"s"}`))}},
		"fail-task":     {&FailTask{TaskID: "a", Error: "e"}},
		"cancel-task":   {&CancelTask{TaskID: "a", Reason: "r"}, &CancelTask{TaskID: "a"}},
		"update-task": {
			&UpdateTask{TaskID: "a"},
			&UpdateTask{
				TaskID: "a", Name: new("n"), Description: new(""), Type: new("t"), Priority: Raw("1.50"), Payload: Raw(`{}`), TargetRepo: new(""),
				ProjectID: new("p"), AcceptanceCriteria: &[]string{}, Spec: spec, Requirements: needs,
			},
			&UpdateTask{TaskID: "a", Spec: spec, Without: []string{"requirements"}},
			&UpdateTask{TaskID: "a", Without: []string{"structured_spec", "requirements"}},
		},
		"assign-task": {&AssignTask{TaskID: "a", Agent: "b", RequirePlan: true}, &AssignTask{TaskID: "a", Agent: "b"}},
		"add-dependency": {
			&AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: hub.DependsBlocks}},
			&AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: hub.DependsInput, Contract: "k"}},
		},
		"remove-dependency":   {&RemoveDependency{TaskID: "a", DependencyID: "d1"}},
		"add-note":            {&AddNote{TaskID: "a", Content: "c", Urgent: true}, &AddNote{TaskID: "a", Content: "c"}},
		"submit-plan":         {&SubmitPlan{TaskID: "a", Plan: Raw(`{"n":1.0}`)}},
		"revise-plan":         {&RevisePlan{TaskID: "a", Feedback: "f"}},
		"request-help":        {&RequestHelp{TaskID: "a", Question: "?", Context: Raw(`[1.0]`)}, &RequestHelp{TaskID: "a", Question: "?"}},
		"check-tasks":         {&CheckTasks{SessionID: "s"}, &CheckTasks{}},
		"update-capabilities": {&UpdateCapabilities{Capabilities: can, System: Raw(`{"n":1.0}`)}, &UpdateCapabilities{}},
		"register-agent":      {&Register{Name: "n", Hostname: "h", IP: "i", OS: "o", Token: "t", Repos: Raw(`{}`), Capabilities: can}},
		"answer-question":     {&AnswerQuestion{QuestionID: "q1", Answer: ""}},
		"issue-key":           {&IssueKey{Agent: "a"}}, "rotate-key": {&IssueKey{Agent: "a", Overlap: 5}},
		"revoke-key": {&Revoke{ID: "k1"}}, "revoke-token": {&Revoke{ID: "t1"}},
		"issue-registration": {&IssueRegistration{Name: "n", TTL: 5}, &IssueRegistration{}},
		"issue-token": {
			&IssueToken{Subject: "ann", Role: PersonViewer, TTL: 5}, &IssueToken{Subject: "ann"},
			&IssueToken{Actor: "HO:attic"}, &IssueToken{Actor: "S:db:1", TTL: 5, Overlap: 6},
		},
		"send-message": {
			&SendMessage{To: mail.Global, Topic: mail.TopicHeartbeat, Payload: Raw(`{}`)},
			&SendMessage{From: "W:1", To: mail.Broadcast, Topic: "a.b", Payload: Raw(`{"n":1.0}`), ReplyTo: 42, Key: "k"},
		},
		"poll-messages": {&PollMessages{}, &PollMessages{Actor: mail.Governor, Cursor: new(int64(0)), Limit: mail.MaxPage}},
		"ack-messages":  {&AckMessages{}, &AckMessages{Actor: "HO:attic", Seq: 45}},
		"heartbeat":     {&Heartbeat{}, &Heartbeat{Actor: "IO:ann"}},
		"get-session": {
			&GetSession{}, &GetSession{SessionID: "kitchen", After: 41, Limit: session.MaxPage, CorrelationID: "kettle", TaskID: "kettle-1", To: "coder"},
		},
		"list-reviews": {&ListReviews{}, &ListReviews{SessionID: "kitchen", TaskID: "kettle-1", ReviewID: "kettle-1-a"}},
		"create-session": {
			&CreateSession{Spec: session.Spec{
				ID: "attic", Members: []session.Member{}, Validation: session.ValidationStandard, MaxIterations: session.DefaultIterations, OnMax: session.EscalateHumanReview,
				ProgressAfter: session.ProgressAfter, ProgressEvery: session.ProgressEvery,
			}},
			&CreateSession{Spec: session.Spec{
				ID: "kitchen", Members: []session.Member{{AgentID: "lead", AgentType: session.AgentArchitect}}, Validation: session.ValidationStrict, MaxIterations: 1, OnMax: session.EscalateAbort,
				RequireReview: true, TaskTimeout: 1, ProgressAfter: 2, ProgressEvery: 3,
			}},
		},
		"submit-task-request":  {requested(t, `{"id":"1","type":"t","payload":{"n":1.0},"later":1}`), requested(t, string(encoded(t, fullRequest(t))))},
		"get-task-response":    {&GetTaskResponse{TaskID: "a"}},
		"update-task-request":  {&UpdateTaskRequest{TaskID: "a", Input: Raw(`{"n":1.0}`)}, &UpdateTaskRequest{TaskID: "a", Input: Raw("null")}},
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
			for _, example := range OperationNamed(operation).Examples {
				body, wrong := ReadRequest(operation, []byte(cmp.Or(example, "{}")), 64)
				require.Nil(t, wrong, "%s: an example cannot be read", operation)
				bodies = append(bodies, body)
			}
		}
		for _, body := range bodies {
			text, err := object.Encode(body)
			require.NoError(t, err, operation)
			back, wrong := ReadRequest(operation, text, 64)
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
	spec := hub.ReadSpec(Raw(taskSpec(``)))
	text, err := object.Encode(SubmitTask{Type: "t", Name: "n", Requirements: needs, Spec: spec})
	require.NoError(t, err)
	body, wrong := ReadRequest("submit-task", text, 64)
	require.Nil(t, wrong)
	read := body.(*SubmitTask)
	require.Equal(t, spec, read.Spec)
	read.Requirements.Document = nil
	require.Equal(t, needs, read.Requirements)

	text, err = object.Encode(UpdateCapabilities{Capabilities: can})
	require.NoError(t, err)
	body, wrong = ReadRequest("update-capabilities", text, 64)
	require.Nil(t, wrong)
	heard := body.(*UpdateCapabilities).Capabilities
	heard.Document = nil
	require.Equal(t, can, heard)

	text, err = object.Encode(UpdateCapabilities{Capabilities: &hub.Capabilities{}})
	require.NoError(t, err)
	require.Equal(t, `{"capabilities":{}}`, string(text))
	_, err = object.Encode(UpdateTask{TaskID: "a", Spec: &hub.Spec{}})
	require.Error(t, err, "a spec is its document")
}
