package handlers

import (
	"slices"

	"orchestrator/wire"
)

// An Operation is an operation of the package wire with the function that decides about it.
type Operation struct {
	*wire.Operation
	Request any // of the payload's type
	Answer  any // of the answer's type

	do func(t *decision, body any) (any, *wire.Error)
}

// bind returns an Operation with its function. Request is the type that the reader of its
// payload returns.
func bind[Request, Answer any](name string, do func(*decision, *Request) (*Answer, *wire.Error)) Operation {
	o := Operation{Operation: wire.OperationNamed(name), Request: new(Request), Answer: new(Answer)}
	if o.Operation == nil {
		panic("wire declares no operation " + name)
	}
	o.do = func(t *decision, body any) (any, *wire.Error) {
		request, ok := body.(*Request)
		if !ok {
			return nil, &wire.Error{Code: wire.CodeInvalid, Message: name + " was given the payload of something else"}
		}
		answer, err := do(t, request)
		if err != nil || answer == nil { // a nil pointer in an any would not be nil
			return nil, err
		}
		return answer, nil
	}
	return o
}

// operations lists all operations, in the order of wire.Operations.
var operations = []Operation{
	bind("query-agents", queryAgents),
	bind("query-tasks", queryTasks),
	bind("submit-task", submitTask),
	bind("get-task", getTask),
	bind("ask-user", askUser),
	bind("start-task", startTask),
	bind("complete-task", completeTask),
	bind("fail-task", failTask),
	bind("cancel-task", cancelTask),
	bind("update-task", updateTask),
	bind("assign-task", assignTask),
	bind("auto-assign", autoAssign),
	bind("match-agents", matchAgents),
	bind("poll-tasks", pollTasks),
	bind("check-tasks", checkTasks),
	bind("request-help", requestHelp),
	bind("submit-plan", submitPlan),
	bind("approve-plan", approvePlan),
	bind("revise-plan", revisePlan),
	bind("add-dependency", addDependency),
	bind("remove-dependency", removeDependency),
	bind("add-note", addNote),
	bind("list-notes", listNotes),
	bind("update-capabilities", updateCapabilities),
	bind("query-servers", queryServers),
	bind("register-agent", registerAgent),
	bind("list-questions", listQuestions),
	bind("answer-question", answerQuestion),
	bind("issue-key", issueKey),
	bind("rotate-key", rotateKey),
	bind("revoke-key", revokeKey),
	bind("list-keys", listKeys),
	bind("issue-registration", issueRegistration),
	bind("issue-token", issueToken),
	bind("revoke-token", revokeToken),
	bind("list-tokens", listTokens),
	bind("send-message", sendMessage),
	bind("poll-messages", pollMessages),
	bind("ack-messages", ackMessages),
	bind("heartbeat", heartbeat),
	bind("list-actors", listActors),
	bind("list-topics", listTopics),
	bind("submit-task-request", submitTaskRequest),
	bind("get-task-response", getTaskResponse),
	bind("update-task-request", updateTaskRequest),
	bind("send-session-message", sendSessionMessage),
	bind("get-session", getSession),
	bind("list-sessions", listSessions),
	bind("create-session", createSession),
	bind("list-reviews", listReviews),
}

// byName finds operations.
var byName = func() map[string]*Operation {
	found := make(map[string]*Operation, len(operations))
	for i := range operations {
		found[operations[i].Name] = &operations[i]
	}
	return found
}()

// Operations returns all operations with the types of their answers, which the manual lists.
func Operations() []Operation { return slices.Clone(operations) }

// mayAsk returns an error if an actor may not request the operation.
func (o *Operation) mayAsk(from Actor) *wire.Error {
	switch {
	case from.Kind == Anonymous && o.Audience != wire.ForNewcomers:
		return &wire.Error{Code: wire.CodeUnauthenticated, Message: o.Name + " requires authentication"}
	case from.Kind == External && o.Audience != wire.ForActors:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is not available to external actors"}
	case o.Audience == wire.ForAgents && from.Kind != Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for agents"}
	case o.Audience == wire.ForNewcomers && from.Kind == Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: "already registered as an agent"}
	case o.Audience == wire.ForOperators && from.Kind != Operator:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for operators"}
	}
	return nil
}
