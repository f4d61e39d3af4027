package stdio

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

var noon = Envelope{ID: "res-1", At: time.Date(2026, 2, 4, 13, 0, 0, 123_456_789, time.FixedZone("", 3600))}

// keysOf returns the members of a line, and requires that it is one line.
func keysOf(t *testing.T, line []byte) map[string]json.RawMessage {
	t.Helper()
	require.Equal(t, byte('\n'), line[len(line)-1])
	require.NotContains(t, string(line[:len(line)-1]), "\n")
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(line, &members), "%s", line)
	return members
}

// requireValid validates a line with its schema.
func requireValid(t *testing.T, name string, line []byte) {
	t.Helper()
	require.NoError(t, validators(t)[name].Validate(decoded(t, line)), "%s", line)
}

var (
	fullTask = wire.Task{
		ID: "t1", Name: "n", Type: "review", Status: "completed", State: wire.TaskDone, Description: "d", Payload: wire.Raw(`{"a":1}`),
		RequiredRole: wire.RoleWorker, RequiredCapabilities: []string{"go"}, Dependencies: []string{"t0"}, WaitsFor: []string{"t0"},
		Priority: wire.Raw("2"), SubmittedBy: "agent:planner", AssignedTo: "coder", Progress: 1e-7, Message: "m", Attempts: 2,
		Result: wire.Raw(`{"success":true}`), Error: "e", Reason: "r",
		CreatedAt: object.Timestamp(noon.At), AssignedAt: object.Timestamp(noon.At), StartedAt: object.Timestamp(noon.At), EndedAt: object.Timestamp(noon.At),
		Links: []wire.Link{fullLink, {ID: "d2", On: "t0", Type: hub.DependsBlocks}}, Details: &fullDetails,
		ResolvedInputs: wire.Inputs{{Key: "k", From: "t0", Status: hub.ContractPartial, Data: wire.Raw(`{"n":1.0}`)}, {Key: "none", From: "t0", Status: hub.ContractFulfilled}},
	}
	fullLink    = wire.Link{ID: "d1", On: "t0", Type: hub.DependsRelated, Contract: "k", Soft: true, Resolved: true, ResolvedAt: object.Timestamp(noon.At)}
	fullDetails = wire.Details{
		StructuredSpec: wire.Raw(`{"a":1.0}`), Requirements: wire.Raw(`{}`), TargetRepo: "shop", AcceptanceCriteria: []string{"c"}, ProjectID: "p", SessionID: "s",
		ParentTaskID: "t9", Plan: wire.Raw(`"plan"`), PlanFeedback: "f",
		Help:          &wire.Help{QuestionID: "q1", Question: "?", Context: wire.Raw(`[1]`), Answer: "a", AnsweredAt: object.Timestamp(noon.At)},
		Context:       &delegation.Context{ConversationID: "c", ParentTaskID: "t9", User: "ada", Timestamp: "2026-11-20", Priority: delegation.PriorityUrgent},
		Routing:       &delegation.Routing{Source: "planner", Target: "coder", Chain: []string{"planner"}},
		Observability: &delegation.Trace{TraceID: "t", SpanID: "s", Baggage: wire.Raw(`{"n":1.0}`)},
	}
	fullServer = hub.Server{
		ServerID: "s1", Name: "attic", Status: "online", Role: wire.RoleWorker, Remote: true, Hostname: "h", IP: "i", OS: "o", Repos: wire.Raw(`{"a":{}}`),
		Capabilities: wire.Raw(`{}`), System: wire.Raw(`{}`), Running: 2, LastSeen: object.Timestamp(noon.At),
	}
	bareServer     = hub.Server{ServerID: "s1", Name: "coder", Status: "offline", Role: wire.RolePlanner, Repos: wire.Raw(`{}`)}
	fullCredential = wire.Credential{
		ID: "t1", Kind: "token", For: "ann", Role: wire.PersonViewer, Name: "attic", IssuedAt: object.Timestamp(noon.At), ExpiresAt: object.Timestamp(noon.At),
	}
	fullMail = mail.Message{
		Seq: 43, From: "GO", To: "HO:attic", Topic: mail.TopicTaskAssigned, Payload: wire.Raw(`{"n":1.0}`), ReplyTo: new(int64(42)), CreatedAt: object.Timestamp(noon.At),
	}
	bareMail  = mail.Message{Seq: 1, From: mail.Bus, To: mail.Broadcast, Topic: mail.TopicHeartbeat, Payload: wire.Raw(`{}`), CreatedAt: object.Timestamp(noon.At)}
	fullActor = mail.ActorView{
		Actor: "HO:attic", Agent: "attic", Status: mail.ActorActive, LastSeen: object.Timestamp(noon.At), LastBeat: object.Timestamp(noon.At), Cursor: 42, Latest: 43,
	}
	bareCredential = wire.Credential{ID: "r1", Kind: "registration", IssuedAt: object.Timestamp(noon.At)}
	bareTask       = wire.Task{ID: "t1", Name: "n", Type: "review", Status: "queued", State: wire.TaskPending, SubmittedBy: "agent:planner", CreatedAt: object.Timestamp(noon.At)}
	fullAgent      = wire.Agent{ID: "coder", Role: wire.RoleWorker, Status: "busy", Capabilities: []string{"go"}, CurrentTask: "t1"}
	fullQuestion   = wire.Question{
		ID: "q1", Agent: "coder", Task: "t1", Question: "?", Options: []wire.Option{{Label: "A", Value: "a"}}, Context: wire.Raw(`{}`), Blocking: true,
		AskedAt: object.Timestamp(noon.At), Deadline: object.Timestamp(noon.At),
	}
	bareQuestion = wire.Question{ID: "q1", Agent: "coder", Question: "?", AskedAt: object.Timestamp(noon.At)}
)

// each returns bare, bare with one field of full at a time, and full.
func each[T any](bare, full T) []T {
	all := []T{bare, full}
	from := reflect.ValueOf(full)
	for i := range from.NumField() {
		mixed := bare
		reflect.ValueOf(&mixed).Elem().Field(i).Set(from.Field(i))
		all = append(all, mixed)
	}
	return all
}

// detailed returns tasks with one detail each.
func detailed() []wire.Task {
	var tasks []wire.Task
	for _, d := range append(each(wire.Details{}, fullDetails), wire.Details{Plan: wire.Raw(`{}`), Help: &wire.Help{QuestionID: "q1", Question: "?"}}, wire.Details{Context: &delegation.Context{}, Routing: &delegation.Routing{}, Observability: &delegation.Trace{}}) {
		task := bareTask
		task.Details = &d
		tasks = append(tasks, task)
	}
	return tasks
}

// TestAnswersAreAsTheirSchemasSay checks that every answer is valid, with and without its
// optional members.
//
// Rows: B-22, B-36, B-41, B-61.
func TestAnswersAreAsTheirSchemasSay(t *testing.T) {
	answers := []any{
		&wire.AgentList{}, &wire.AgentList{Agents: []wire.Agent{fullAgent, {ID: "a", Role: wire.RolePlanner, Status: "idle"}}},
		&wire.TaskList{}, &wire.TaskList{Tasks: []wire.Task{bareTask}, More: 3, Cursor: "t\"1"}, &wire.TaskList{Tasks: []wire.Task{bareTask, fullTask}},
		&wire.UserAnswer{Answer: "oauth", Metadata: wire.AnswerMetadata{AnsweredAt: object.Timestamp(noon.At)}},
		&wire.QuestionList{}, &wire.QuestionReply{Question: fullQuestion, Answer: "a", Told: true}, &wire.QuestionReply{Question: bareQuestion},
		&wire.IssuedKey{ID: "k1", Agent: "coder", Key: "orc_1"},
	}
	for _, task := range append(each(bareTask, fullTask), detailed()...) {
		answers = append(answers, &wire.TaskReply{Task: task})
	}
	for _, question := range each(bareQuestion, fullQuestion) {
		answers = append(answers, &wire.QuestionList{Questions: []wire.Question{question}})
	}
	for _, status := range wire.AgentStatuses {
		answers = append(answers, &wire.AgentList{Agents: []wire.Agent{{ID: "a", Role: "reviewer", Status: status}}})
	}
	answers = append(answers, otherAnswers()...)
	compiled := validators(t)
	for _, answer := range answers {
		line := noon.AppendAnswer(nil, "req-1", answer, nil)
		require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, slices.Sorted(maps.Keys(keysOf(t, line))))
		require.NoError(t, compiled["response:success"].Validate(decoded(t, line)), "%s", line)
	}
}

// otherAnswers returns the answers to operations that are not published.
func otherAnswers() []any {
	note := wire.Note{ID: "n1", TaskID: "t1", Author: "agent:planner", Content: "c", Urgent: true, CreatedAt: object.Timestamp(noon.At)}
	answers := []any{
		&wire.Assignment{Status: "no_match"}, &wire.Assignment{Status: "assigned", ServerID: "s1", ServerName: "coder", MatchScore: 75},
		&hub.Matches{}, &hub.Matches{Servers: []hub.Match{{ServerID: "s1", ServerName: "coder", Score: -1, Status: "offline", Reasons: []string{"r"}}}, Total: 1},
		&wire.LinkReply{Dependency: fullLink}, &wire.NoteReply{Note: note}, &wire.NoteList{}, &wire.NoteList{Notes: []wire.Note{note}},
		&hub.Registered{ServerID: "s1", Name: "attic", Key: "orc_1"}, &wire.CredentialList{},
		&wire.IssuedRegistration{ID: "r1", Token: "orcreg_1", ExpiresAt: object.Timestamp(noon.At)},
		&wire.IssuedToken{ID: "t1", Subject: "ann", Role: wire.PersonAdmin, IssuedAt: object.Timestamp(noon.At), ExpiresAt: object.Timestamp(noon.At)},
		&wire.IssuedToken{ID: "t1", Actor: "HO:attic", IssuedAt: object.Timestamp(noon.At), Token: "orcact_1"},
		&mail.Sent{Message: bareMail}, &mail.Sent{Message: fullMail, Duplicate: true, Warnings: []string{"w"}},
		&mail.List{}, &mail.List{Actor: "HO:attic", Messages: []mail.Message{bareMail, fullMail}, Cursor: 42, More: true},
		&mail.Acked{Actor: "HO:attic", Cursor: 42}, &mail.Beat{Actor: "HO:attic", LastSeen: object.Timestamp(noon.At), Every: 60_000},
		&mail.ActorList{}, &mail.TopicList{}, &mail.TopicList{Topics: []mail.TopicView{{Topic: "a.b"}, {Topic: mail.TopicHeartbeat, Standard: true, From: "any", To: mail.Bus, Summary: "s"}}},
		&wire.Credential{ID: "a1", Kind: "actor", For: "HO:attic", IssuedAt: object.Timestamp(noon.At)},
	}
	for _, actor := range each(mail.ActorView{Actor: "GO", Status: mail.ActorQuiet}, fullActor) {
		answers = append(answers, &mail.ActorList{Actors: []mail.ActorView{actor}})
	}
	for _, server := range each(bareServer, fullServer) {
		answers = append(answers, &server, &hub.ServerList{Servers: []hub.Server{server}})
	}
	for _, credential := range each(bareCredential, fullCredential) {
		answers = append(answers, &credential, &wire.CredentialList{Credentials: []wire.Credential{credential}})
	}
	return answers
}

// TestTasksHaveOneSpelling checks that a task has the same encoding by hand and by reflection.
func TestTasksHaveOneSpelling(t *testing.T) {
	schema := validators(t)["task"]
	for _, task := range append(each(bareTask, fullTask), detailed()...) {
		text, err := object.Encode(&task)
		require.NoError(t, err)
		require.Equal(t, string(task.Append(nil)), string(text))
		require.NoError(t, schema.Validate(decoded(t, text)), "%s", text)
		var back wire.Task
		require.NoError(t, object.Decode(text, &back))
		require.Equal(t, string(text), string(back.Append(nil)), "it can be read again")
	}
}

// Rows: B-13, B-24, T-06.
func TestIDsAreGivenBackLetterForLetter(t *testing.T) {
	for _, id := range []string{"req-7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100", "1", " ", "é\u2028😀", `"\`, "\u0000\u001b", "<&>"} {
		request := encoded(t, map[string]any{"type": "request:query-agents", "id": id, "timestamp": "2026-11-20T09:15:00Z"})
		m, ok := reader().Parse(request).(*wire.Request)
		require.True(t, ok, "%s", request)
		var correlation string
		require.NoError(t, json.Unmarshal(keysOf(t, noon.AppendAnswer(nil, m.ID, &wire.AgentList{}, nil))["correlationId"], &correlation))
		require.Equal(t, id, correlation)
		require.NoError(t, json.Unmarshal(keysOf(t, noon.AppendAnswer(nil, m.ID, nil, &wire.Error{Code: wire.CodeTimeout}))["correlationId"], &correlation))
		require.Equal(t, id, correlation)
	}
}

// Rows: B-46, T-48.
func TestPayloadsLeaveAsTheyCame(t *testing.T) {
	const verbatim = `{"n":12345678901234567890,"x":1.0,"y":1e400,"html":"<a&b>","u":"\u00e9\/","payload":{"payload":{}}}`
	body, err := wire.ReadRequest("submit-task", []byte(`{"type":"t","name":"<n> & \u2028","payload":`+verbatim+`,"priority":1.50}`), 64)
	require.Nil(t, err)
	asked := body.(*wire.SubmitTask)
	task := bareTask
	task.Name, task.Payload, task.Priority, task.Result = asked.Name, asked.Payload, asked.Priority, wire.Raw(verbatim)
	for _, line := range [][]byte{
		noon.AppendAnswer(nil, "req-1", &wire.TaskReply{Task: task}, nil),
		noon.AppendAnswer(nil, "req-1", &wire.QuestionList{Questions: []wire.Question{{Context: wire.Raw(verbatim)}}}, nil),
	} {
		require.Contains(t, string(line), verbatim)
		require.NotContains(t, string(line), `\u003c`)
		keysOf(t, line)
	}
	line := string(noon.AppendAnswer(nil, "req-1", &wire.TaskReply{Task: task}, nil))
	require.Contains(t, line, `"priority":1.50`)
	require.Contains(t, line, `"name":"<n> & `)
	require.Equal(t, 2, strings.Count(line, verbatim), "the result as well")
}

// Rows: B-14, B-22.
func TestAnAnswer(t *testing.T) {
	require.Equal(t,
		`{"type":"response:success","id":"res-1","correlationId":"req-1","timestamp":"2026-02-04T12:00:00.123Z",`+
			`"payload":{"agents":[{"id":"coder","role":"worker","status":"busy","capabilities":["go"],"currentTask":"t1"},`+
			`{"id":"a","role":"planner","status":"idle","capabilities":[],"currentTask":null}]}}`+"\n",
		string(noon.AppendAnswer(nil, "req-1", &wire.AgentList{Agents: []wire.Agent{fullAgent, {ID: "a", Role: "planner", Status: "idle"}}}, nil)))
}

// Rows: B-23, B-27.
func TestARefusal(t *testing.T) {
	refused := object.Invalid("/payload/role", "Invalid <role>")
	refused.Hint = "roles are …"
	line := noon.AppendAnswer(nil, "req-1", nil, refused)
	require.Equal(t,
		`{"type":"response:error","id":"res-1","correlationId":"req-1","timestamp":"2026-02-04T12:00:00.123Z",`+
			`"error":{"code":"INVALID_REQUEST","message":"Invalid <role>","details":{"hint":"roles are …","pointer":"/payload/role"}}}`+"\n", string(line))
	requireValid(t, "response:error", line)
	require.NotContains(t, keysOf(t, line), "payload")
	// A request without a usable id is answered too; a number is returned digit for digit.
	for id, want := range map[string]string{"": "null", `9007199254740993`: `9007199254740993`, `""`: `""`} {
		var raw []byte
		if id != "" {
			raw = []byte(id)
		}
		line := noon.AppendRefusal(nil, raw, refused)
		require.Equal(t, want, string(keysOf(t, line)["correlationId"]))
		requireValid(t, "response:error", line)
	}
}

// TestAnAnswerThatCannotBeSpelled checks that an answer that cannot be encoded is an internal
// error, in whole lines.
func TestAnAnswerThatCannotBeSpelled(t *testing.T) {
	answer := noon.AppendAnswer([]byte("before\n"), "req-1", func() {}, nil)
	line, found := strings.CutPrefix(string(answer), "before\n")
	require.True(t, found)
	require.Contains(t, line, `"code":"INTERNAL_ERROR"`)
	requireValid(t, "response:error", []byte(line))
}

// Rows: B-69, B-70, B-71, B-72, B-14.
func TestNotices(t *testing.T) {
	for name, test := range map[string]struct {
		payload any
		want    string
	}{
		wire.NoticeAssigned:  {&wire.TaskNotice{TaskID: "t1", Message: wire.AssignedMessage}, `{"taskId":"t1","message":"Task assigned. Use TaskGet to view details."}`},
		wire.NoticeCancelled: {&wire.TaskNotice{TaskID: "t1", Reason: wire.DependencyFailed}, `{"taskId":"t1","reason":"Dependency failed"}`},
		wire.NoticeUpdated:   {&wire.TaskNotice{TaskID: "t1", Message: "Answer: a"}, `{"taskId":"t1","message":"Answer: a"}`},
		"shutdown":           {wire.ShutdownNotice{GracePeriod: 30000, Reason: "Orchestrator stopping"}, `{"gracePeriod":30000,"reason":"Orchestrator stopping"}`},
	} {
		line := noon.AppendNotice(nil, name, test.payload)
		members := keysOf(t, line)
		require.Equal(t, []string{"id", "payload", "timestamp", "type"}, slices.Sorted(maps.Keys(members)))
		require.Equal(t, `"notify:`+name+`"`, string(members["type"]))
		require.Equal(t, test.want, string(members["payload"]))
		requireValid(t, "notify:"+name, line)
		require.IsType(t, wire.Log{}, reader().Parse(line), "said back, it is a line for people")
	}
}

// TestCodesAreClosed checks that every code is written as one of six.
//
// Rows: B-74.
func TestCodesAreClosed(t *testing.T) {
	spoken := map[string]bool{}
	for _, code := range codes(t) {
		word, _ := spokenCode(code)
		spoken[word] = true
		requireValid(t, "response:error", noon.AppendRefusal(nil, nil, &wire.Error{Code: code, Message: "m"}))
	}
	want := []string{"INTERNAL_ERROR", "INVALID_MESSAGE_TYPE", "INVALID_REQUEST", "NOT_FOUND", "TIMEOUT", "UNAUTHORIZED"}
	require.Equal(t, want, slices.Sorted(maps.Keys(spoken)))
	schema := at(schemaOf(t, "response:error"), "properties", "error", "properties", "code", "enum")
	require.ElementsMatch(t, words(want), schema)
	word, _ := spokenCode(wire.Code("one of a later day"))
	require.Equal(t, "INTERNAL_ERROR", word)
	for code, reason := range map[wire.Code]string{wire.CodeConflict: "conflict", wire.CodeLimited: "rate_limited"} {
		line := string(noon.AppendRefusal(nil, nil, &wire.Error{Code: code}))
		require.Contains(t, line, `"code":"INVALID_REQUEST"`)
		require.Contains(t, line, `"reason":"`+reason+`"`)
	}
}

// codes returns the constants of type Code in the source, so that an added one is tested.
func codes(t *testing.T) []wire.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../object/error.go", nil, 0)
	require.NoError(t, err)
	var found []wire.Code
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			found = append(found, wire.Code(strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)))
		}
		return true
	})
	require.Greater(t, len(found), 7)
	return found
}

// Rows: B-72.
func TestShutdownNotice(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("", 3600))
	line := Envelope{ID: "n1", At: at}.AppendNotice(nil, wire.NoticeShutdown, &wire.ShutdownNotice{GracePeriod: 30_000, Reason: "Orchestrator stopping"})
	require.Equal(t, `{"type":"notify:shutdown","id":"n1","timestamp":"2026-01-02T02:04:05.006Z","payload":{"gracePeriod":30000,"reason":"Orchestrator stopping"}}`+"\n", string(line))
}

// TestHubTasksAreAsTheirSchemaSays checks that every task in the form of the hub is valid.
//
// Rows.
func TestHubTasksAreAsTheirSchemaSays(t *testing.T) {
	schema := validators(t)["hub-task"]
	for _, task := range append(each(bareTask, fullTask), detailed()...) {
		for _, state := range wire.TaskStates {
			task.State = state
			text, err := object.Encode(task.Hub())
			require.NoError(t, err)
			require.NoError(t, schema.Validate(decoded(t, text)), "%s", text)
		}
	}
	text, err := object.Encode(fullTask.Hub())
	require.NoError(t, err)
	require.Contains(t, string(text), `"resolved_inputs":{"k":{"n":1.0},"none":null},"resolved_input_status":{"k":"partial","none":"fulfilled"}`)
	require.Contains(t, string(text), `"assigned_server_name":"coder"`)
}
