package sdk

import (
	"cmp"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
)

var update = flag.Bool("update", false, "write the generated files of the SDKs")

// The beginnings of the paths of definitions: of answers, and of session messages.
const (
	answered       = "response:success#"
	sessionMessage = "session-message#"
)

// A method is a method of the SDKs for Python and TypeScript. It sends the request of an operation
// and returns the answer.
type method struct {
	operation string
	answer    string            // the path of the schema of the answer
	part      string            // the member of the answer that is returned; "": all
	first     string            // the members that may be given by position, in order
	whole     string            // in TypeScript, the parameters if they are not the members in first
	name      string            // in TypeScript; "": as in the operation
	more      string            // more for its documentation
	python    map[string]string // members that are not sent as they are given
	payload   string            // in TypeScript, the payload if it is not sent as it is given
}

// methods lists the methods. The members of their payloads come from the operations.
var methods = []method{
	{operation: "query-agents", answer: answered + "agents", part: "agents", first: "role status capabilities", whole: "query: QueryAgents = {}"},
	{operation: "query-tasks", answer: answered + "tasks", part: "tasks", first: "status", whole: "query: QueryTasks = {}"},
	{operation: "submit-task", answer: answered + "task", part: "task", first: "type name", whole: "task: SubmitTask", payload: "submission(task)"},
	{operation: "get-task", answer: answered + "task", part: "task", first: "taskId"},
	{
		operation: "ask-user", answer: answered + "answer", first: "question options", whole: "question: AskUser", payload: "asking(question)",
		more: "An option may be a text.", python: map[string]string{"options": "each_option(options)"},
	},
	{operation: "start-task", answer: answered + "task", part: "task", first: "taskId"},
	{operation: "complete-task", answer: answered + "task", part: "task", first: "taskId result artifacts"},
	{operation: "fail-task", answer: answered + "task", part: "task", first: "taskId error"},
	{operation: "cancel-task", answer: answered + "task", part: "task", first: "taskId reason"},
	{operation: "retry-task", answer: answered + "task", part: "task", first: "taskId agent", whole: "retry: RetryTask", python: map[string]string{"dependents": "dependents"}},
	{operation: "update-task", answer: answered + "task", part: "task", first: "taskId", whole: "change: UpdateTask"},
	{operation: "assign-task", answer: answered + "task", part: "task", first: "taskId agent requirePlan", whole: "assignment: AssignTask"},
	{operation: "auto-assign", answer: answered + "assignment", first: "taskId", more: "If no agent fits, the status of the answer is no_match."},
	{operation: "match-agents", answer: answered + "matches", part: "servers", first: "taskId", more: "The best fit comes first."},
	{operation: "poll-tasks", answer: answered + "tasks", part: "tasks"},
	{operation: "check-tasks", answer: answered + "tasks", part: "tasks", first: "sessionId", python: map[string]string{"sessionId": "session_id or None"}},
	{
		operation: "request-help", answer: answered + "task", part: "task", first: "taskId question context",
		more: "This returns without waiting; the method help of a job waits for the answer.",
	},
	{operation: "submit-plan", answer: answered + "task", part: "task", first: "taskId plan"},
	{operation: "approve-plan", answer: answered + "task", part: "task", first: "taskId"},
	{operation: "revise-plan", answer: answered + "task", part: "task", first: "taskId feedback"},
	{
		operation: "add-dependency", answer: answered + "dependency", part: "dependency",
		first: "taskId dependsOnTaskId dependencyType contractKey", whole: "taskId: string, on: Dependency", payload: "dependency(taskId, on)",
	},
	{operation: "remove-dependency", answer: answered + "dependency", part: "dependency", first: "taskId dependencyId"},
	{
		operation: "add-note", answer: answered + "note", part: "note", first: "taskId content urgent", whole: "note: AddNote",
		payload: "{ ...note, urgent: note.urgent || undefined }",
	},
	{operation: "list-notes", answer: answered + "notes", part: "notes", first: "taskId"},
	{operation: "update-capabilities", answer: "server", first: "capabilities system", whole: "now: UpdateCapabilities"},
	{operation: "query-servers", answer: answered + "servers", part: "servers", name: "servers"},
	{
		operation: "send-message", answer: answered + "sent", first: "to_actor topic payload", whole: "mail: SendMessage",
		python: map[string]string{"payload": "{} if payload is None else payload"},
	},
	{operation: "poll-messages", answer: answered + "messages", first: "cursor limit", whole: "query: PollMessages = {}"},
	{operation: "ack-messages", answer: answered + "acked", first: "seq"},
	{operation: "heartbeat", answer: answered + "seen"},
	{
		operation: "current-task", answer: answered + "task", part: "task",
		more: "An agent without a task is refused with NOT_FOUND.",
	},
	{
		operation: "report-progress", answer: answered + "task", part: "task", first: "taskId message progress", whole: "progress: ReportProgress",
		more: "The method progress sends that event.",
	},
	{operation: "return-task", answer: answered + "task", part: "task", first: "taskId reason after"},
	{operation: "ask-permission", answer: answered + "answer", first: "tool title input choices", whole: "permission: AskPermission"},
	{operation: "withdraw-question", answer: answered + "withdrawn", first: "questionId requestId", whole: "question: WithdrawQuestion"},
}

// events lists the methods that send the events of coding agents. Their payloads come from the
// schemas. The methods for the other events are written by hand.
var events = []method{
	{operation: "event:usage", name: "reportUsage", first: "input output", whole: "usage: Usage"},
	{operation: "event:session", name: "reportConversation", first: "id", whole: "conversation: Conversation"},
	{operation: "event:turn", name: "reportTurn", first: "state what", whole: "turn: Turn"},
	{operation: "event:limited", name: "reportLimit", first: "until scope", whole: "limit: Limited"},
	{operation: "event:receipt", name: "reportReceipt", first: "seq state", whole: "receipt: Receipt"},
}

// A document is a type of the SDKs that is generated from a schema.
type document struct {
	python, typescript string // its names; "": none in this language
	schema             string // the path of its schema
	extends            string // the document that it has all members of
	sent               bool   // agents send it
	about              string // its description, if the schema has none
	needed             string // in Python, the keys that are always present if the others may be filled in
}

// documents lists the documents that the methods send and return.
var documents = []document{
	{python: "Task", typescript: "Task", schema: "task"},
	{python: "Help", typescript: "Help", schema: "task/help"},
	{python: "Link", typescript: "Link", schema: "link"},
	{python: "TaskArtifact", typescript: "TaskArtifact", schema: "request:complete-task/payload/artifacts", sent: true, about: "A product of a task. It has one of content, path and ref"},
	{python: "Dependency", typescript: "TypedDependency", schema: "dependency", sent: true, about: "A dependency of a task to submit"},
	{typescript: "SubmitTask", schema: "request:submit-task/payload", sent: true, about: "A task to submit"},
	{typescript: "Requirements", schema: "requirements", sent: true},
	{typescript: "QueryTasks", schema: "request:query-tasks/payload", sent: true, about: "Selects tasks"},
	{typescript: "UpdateTask", schema: "request:update-task/payload", sent: true, about: "Changes of a task"},
	{typescript: "AssignTask", schema: "request:assign-task/payload", sent: true, about: "Assigns a task to an agent"},
	{typescript: "RetryTask", schema: "request:retry-task/payload", sent: true, about: "Tries a task again"},
	{python: "AutoAssigned", typescript: "AutoAssigned", schema: answered + "assignment"},
	{python: "Match", typescript: "Match", schema: "match"},
	{typescript: "AddNote", schema: "request:add-note/payload", sent: true, about: "A note to add to a task"},
	{python: "Note", typescript: "Note", schema: "note"},
	{python: "Option", schema: "request:ask-user/payload/options", about: "An answer that a person may choose"},
	{typescript: "AskUser", schema: "request:ask-user/payload", sent: true, about: "A question to a person"},
	{python: "PermissionChoice", typescript: "PermissionChoice", schema: "request:ask-permission/payload/choices", sent: true, about: "A possible answer to ask-permission"},
	{typescript: "AskPermission", schema: "request:ask-permission/payload", sent: true, about: "A request for permission to use a tool"},
	{python: "UserAnswer", typescript: "UserAnswer", schema: answered + "answer"},
	{typescript: "WithdrawQuestion", schema: "request:withdraw-question/payload", sent: true, about: "The question to withdraw. It has one of the two ids"},
	{python: "Withdrawn", typescript: "Withdrawn", schema: answered + "withdrawn"},
	{typescript: "ReportProgress", schema: "request:report-progress/payload", sent: true, about: "What an agent does for a task"},
	{typescript: "Usage", schema: "event:usage/payload", sent: true, about: "What a turn, or one request to a model, has used"},
	{typescript: "Conversation", schema: "event:session/payload", sent: true, about: "The conversation of the agent's program"},
	{typescript: "Turn", schema: "event:turn/payload", sent: true, about: "What an agent does at the moment"},
	{typescript: "Limited", schema: "event:limited/payload", sent: true, about: "A limit of the agent's vendor"},
	{typescript: "Receipt", schema: "event:receipt/payload", sent: true, about: "What became of a message of the bus"},
	{typescript: "QueryAgents", schema: "request:query-agents/payload", sent: true, about: "Selects agents"},
	{python: "Agent", typescript: "Agent", schema: "agent"},
	{typescript: "UpdateCapabilities", schema: "request:update-capabilities/payload", sent: true, about: "The new capabilities of an agent"},
	{typescript: "Capabilities", schema: "capabilities", sent: true},
	{python: "Server", typescript: "Server", schema: "server"},
	{python: "Mail", typescript: "Mail", schema: "mail"},
	{typescript: "SendMessage", schema: "request:send-message/payload", sent: true, about: "Mail to send"},
	{python: "SentMail", typescript: "SentMail", schema: answered + "sent", extends: "Mail"},
	{typescript: "PollMessages", schema: "request:poll-messages/payload", sent: true, about: "Selects mail"},
	{python: "MailList", typescript: "MailList", schema: answered + "messages"},
	{python: "Acked", typescript: "Acked", schema: answered + "acked"},
	{python: "Beat", typescript: "Beat", schema: answered + "seen"},
	{typescript: "SessionTaskView", schema: "session-task"},
	{typescript: "FindingView", schema: "session-task/findings", about: "A finding of the reviews of a task"},
}

// filledIn is the value of needed if all keys may be filled in.
const filledIn = "-"

// sessionDocuments lists the payloads of session messages and their parts.
var sessionDocuments = []document{
	{python: "AgentID", schema: sessionMessage + "agent"},
	{python: "TaskInput", typescript: "TaskInput", schema: sessionMessage + "task_assignment/task", needed: filledIn, about: "The work to do for a task"},
	{typescript: "InputContext", schema: sessionMessage + "task_assignment/task/context", about: "What to read before the work on a task begins"},
	{typescript: "InputConstraints", schema: sessionMessage + "task_assignment/task/constraints", about: "The limits of the work on a task"},
	{typescript: "ContextFile", schema: sessionMessage + "context_file"},
	{typescript: "Attempt", schema: sessionMessage + "task_assignment/task/context/previous_attempts", about: "The outcome of an earlier attempt at a task"},
	{typescript: "TaskDependency", schema: sessionMessage + "task_assignment/dependencies", about: "The tasks that a task waits for"},
	{python: "Assignment", typescript: "Assignment", schema: sessionMessage + "task_assignment", needed: filledIn},
	{python: "Progress", typescript: "Progress", schema: sessionMessage + "task_progress", needed: filledIn},
	{python: "FileChange", typescript: "FileChange", schema: sessionMessage + "file_change", needed: "path"},
	{python: "FileChanges", typescript: "FileChanges", schema: sessionMessage + "task_completion/changes", needed: filledIn},
	{python: "SelfReview", typescript: "SelfReview", schema: sessionMessage + "task_completion/self_review", needed: filledIn},
	{typescript: "TaskExecutionError", schema: "session-task/error", about: "How a task failed"},
	{python: "Completion", typescript: "Completion", schema: sessionMessage + "task_completion", needed: filledIn},
	{python: "ReviewScope", typescript: "ReviewScope", schema: sessionMessage + "review_request/scope", needed: filledIn},
	{typescript: "CustomCheck", schema: sessionMessage + "review_request/criteria/custom_checks", about: "A command that the architect suggests. The package never runs it; the author of the reviewer decides whether and where to run it"},
	{python: "ReviewCriteria", typescript: "ReviewCriteria", schema: sessionMessage + "review_request/criteria", needed: filledIn, about: "The checks that the work has to pass. The package never runs the custom checks: they are text of the architect"},
	{typescript: "ReviewSummary", schema: sessionMessage + "review_request/context/previous_reviews", about: "The outcome of an earlier review"},
	{python: "ReviewContext", typescript: "ReviewContext", schema: sessionMessage + "review_request/context", needed: filledIn},
	{python: "ReviewRequest", typescript: "ReviewRequest", schema: sessionMessage + "review_request", needed: filledIn},
	{python: "Location", typescript: "Location", schema: sessionMessage + "finding/location"},
	{python: "Finding", typescript: "Finding", schema: sessionMessage + "finding", needed: "finding_id severity category location description"},
	{python: "CheckResult", typescript: "CheckResult", schema: sessionMessage + "verification"},
	{typescript: "Verification", schema: sessionMessage + "review_result/verification"},
	{typescript: "RequiredChange", schema: sessionMessage + "required_change"},
	{python: "ReviewResult", typescript: "ReviewResult", schema: sessionMessage + "review_result", needed: filledIn},
	{python: "Feedback", typescript: "Feedback", schema: sessionMessage + "feedback", needed: "feedback_type subject content"},
	{typescript: "StatusQuery", schema: sessionMessage + "status_query"},
	{python: "Abort", typescript: "Abort", schema: sessionMessage + "abort", needed: "scope"},
}

// workDocuments lists the documents of delegated work. Most of them are written by hand in the SDK
// for TypeScript, because their types have parameters.
var workDocuments = []document{
	{python: "TaskContext", typescript: "TaskContext", schema: "task-request/context", sent: true},
	{python: "TaskRouting", typescript: "TaskRouting", schema: "task-request/routing", sent: true},
	{python: "TaskTrace", schema: "task-request/observability", sent: true},
	{python: "TaskRequest", schema: "task-request", sent: true, about: "A request for delegated work"},
	{python: "TaskError", schema: "task-response/error", sent: true, needed: "code message recoverable"},
	{python: "TaskMetadata", schema: "task-response/metadata", sent: true},
	{python: "Artifact", schema: "task-response/artifacts", sent: true, about: "A product of the work"},
}

// allDocuments lists the documents of all files.
var allDocuments = slices.Concat(documents, sessionDocuments, workDocuments)

// documentAt returns the document with a schema at a path, or behind a reference to it, else a
// document without names.
func documentAt(s *schema, path string) document {
	at := slices.IndexFunc(allDocuments, func(d document) bool { return d.schema == s.ref() || d.schema == path })
	if at < 0 {
		return document{}
	}
	return allDocuments[at]
}

// aboutOf returns the description of a document. The description of a schema that agents send is
// about reading it.
func (d document) aboutOf(s *schema) string {
	switch {
	case d.about != "":
		return d.about + "."
	case d.sent && s.Title != "":
		return s.Title + "."
	}
	return s.Description
}

// A call is a method with its operation and the schemas of its payload and answer.
type call struct {
	method
	*wire.Operation
	request *schema // the payload
	answer  *schema // the part that is returned
	list    bool    // a list of such parts is returned
	ref     string  // the path of the schema of the returned value
	event   bool    // an event is sent, which has no answer
}

// calls returns the methods in the order of the operations, and then the methods that send events.
func calls(t *testing.T) []call {
	t.Helper()
	var all []call
	for _, o := range wire.Operations {
		at := slices.IndexFunc(methods, func(m method) bool { return m.operation == o.Name })
		require.Equal(t, at < 0, o.NoSDK != "" || !o.OpenToAgents(), "%s: give it a row in methods, or NoSDK in its declaration", o.Name)
		if at < 0 {
			continue
		}
		c := call{method: methods[at], Operation: o, request: schemaAt(t, "request:"+o.Name).member("payload"), ref: methods[at].answer}
		if c.request == nil {
			c.request = new(schema)
		}
		c.answer = schemaAt(t, c.ref)
		if c.part != "" {
			c.answer = c.answer.member(c.part)
			require.NotNil(t, c.answer, "%s: the answer has no member %s", o.Name, c.part)
			if c.answer.Items != nil {
				c.answer, c.list = c.answer.Items, true
			}
			c.ref = c.answer.ref()
		}
		all = append(all, c)
	}
	require.Len(t, all, len(methods), "a method has no operation")
	for _, m := range events {
		s := schemaAt(t, m.operation)
		about, _, _ := strings.Cut(s.Description, " One JSON object on one line")
		all = append(all, call{method: m, Operation: &wire.Operation{Name: m.operation, Summary: strings.TrimSuffix(about, ".")}, request: s.member("payload"), event: true})
	}
	return all
}

// parameters returns the members that are given by position and the members that are given by name.
// The orchestrator knows the sender, so no member names it.
func (c call) parameters() (positional, named []member) {
	first := strings.Fields(c.first)
	for _, name := range first {
		positional = append(positional, member{name: name, schema: c.request.member(name)})
	}
	for _, m := range c.request.Properties {
		if !slices.Contains(first, m.name) && m.name != "actor" && m.name != "from_actor" {
			named = append(named, m)
		}
	}
	return positional, named
}

// about returns the documentation of a method.
func (c call) about() string {
	return strings.TrimSpace(strings.Join([]string{c.Summary + ".", c.About, c.more}, " "))
}

// TestGeneratedFiles checks that the documents and the methods of the SDKs for Python and
// TypeScript match the operations. With -update it writes them.
func TestGeneratedFiles(t *testing.T) {
	for file, text := range map[string]string{
		"../../python/orchestrator_agent/_wire/documents.py":        pythonDocuments(t),
		"../../python/orchestrator_agent/_connection/operations.py": pythonOperations(t),
		"../../python/orchestrator_agent/_wire/sessiondocuments.py": pythonSessionDocuments(t),
		"../../python/orchestrator_agent/_wire/taskdocuments.py":    pythonTaskDocuments(t),
		"../../typescript/src/wire/documents.ts":                    typeScriptDocuments(t),
		"../../typescript/src/wire/sessiondocuments.ts":             typeScriptSessionDocuments(t),
		"../../typescript/src/connection/operations.ts":             typeScriptOperations(t),
	} {
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		is, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text, string(is), "%s is stale: go test ./agents/internal/sdk -update", file)
	}
}

// TestMethodsAreInTheREADME checks that the README of each SDK names all methods.
func TestMethodsAreInTheREADME(t *testing.T) {
	for language, name := range map[string]func(c call) string{
		"python":     call.pythonName,
		"typescript": call.typeScriptName,
	} {
		text, err := os.ReadFile("../../" + language + "/README.md")
		require.NoError(t, err)
		for _, c := range calls(t) {
			require.Contains(t, string(text), "`"+name(c)+"`", "%s: its README does not name the method", language)
		}
	}
}

// TestMethodsOfGo checks that the SDK for Go has a method for each operation that has one in the other SDKs.
func TestMethodsOfGo(t *testing.T) {
	for _, c := range calls(t) {
		name := ""
		for word := range strings.SplitSeq(cmp.Or(c.name, c.operation), "-") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		_, there := reflect.TypeFor[*agents.Conn]().MethodByName(name)
		require.True(t, there || c.event, "the SDK for Go has no method %s", name)
	}
}

// wrapped returns a text in lines of at most width characters.
func wrapped(text string, width int) []string {
	var lines []string
	var line string
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
