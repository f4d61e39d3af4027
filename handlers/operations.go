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

	do func(d *decision, body any) (any, *wire.Error)
}

// bind returns an Operation with its function, which belongs to a domain of the decision. Request
// is the type that the reader of its payload returns.
func bind[Domain, Request, Answer any](
	name string, domain func(*decision) Domain, do func(Domain, *Request) (*Answer, *wire.Error),
) Operation {
	o := Operation{Operation: wire.OperationNamed(name), Request: new(Request), Answer: new(Answer)}
	if o.Operation == nil {
		panic("wire declares no operation " + name)
	}
	o.do = func(d *decision, body any) (any, *wire.Error) {
		request, ok := body.(*Request)
		if !ok {
			return nil, &wire.Error{Code: wire.CodeInvalid, Message: name + " was given the payload of something else"}
		}
		answer, err := do(domain(d), request)
		if err != nil || answer == nil { // a nil pointer in an any would not be nil
			return nil, err
		}
		return answer, nil
	}
	return o
}

// operations lists all operations, in the order of wire.Operations.
var operations = []Operation{
	bind("query-agents", (*decision).agents, queryAgents),
	bind("query-tasks", (*decision).tasks, queryTasks),
	bind("submit-task", (*decision).tasks, submitTask),
	bind("get-task", (*decision).tasks, getTask),
	bind("ask-user", (*decision).questions, askUser),
	bind("start-task", (*decision).tasks, startTask),
	bind("complete-task", (*decision).tasks, completeTask),
	bind("fail-task", (*decision).tasks, failTask),
	bind("cancel-task", (*decision).tasks, cancelTask),
	bind("current-task", (*decision).tasks, currentTask),
	bind("report-progress", (*decision).tasks, reportProgress),
	bind("return-task", (*decision).tasks, returnTask),
	bind("ask-permission", (*decision).questions, askPermission),
	bind("withdraw-question", (*decision).questions, withdrawQuestion),
	bind("update-task", (*decision).tasks, updateTask),
	bind("assign-task", (*decision).tasks, assignTask),
	bind("auto-assign", (*decision).tasks, autoAssign),
	bind("match-agents", (*decision).tasks, matchAgents),
	bind("poll-tasks", (*decision).tasks, pollTasks),
	bind("check-tasks", (*decision).tasks, checkTasks),
	bind("request-help", (*decision).questions, requestHelp),
	bind("submit-plan", (*decision).tasks, submitPlan),
	bind("approve-plan", (*decision).tasks, approvePlan),
	bind("revise-plan", (*decision).tasks, revisePlan),
	bind("add-dependency", (*decision).links, addDependency),
	bind("remove-dependency", (*decision).links, removeDependency),
	bind("add-note", (*decision).tasks, addNote),
	bind("list-notes", (*decision).tasks, listNotes),
	bind("update-capabilities", (*decision).agents, updateCapabilities),
	bind("query-servers", (*decision).agents, queryServers),
	bind("interrupt-agent", (*decision).agents, interruptAgent),
	bind("register-agent", (*decision).agents, registerAgent),
	bind("list-questions", (*decision).questions, listQuestions),
	bind("answer-question", (*decision).questions, answerQuestion),
	bind("issue-key", (*decision).access, issueKey),
	bind("rotate-key", (*decision).access, rotateKey),
	bind("revoke-key", (*decision).access, revokeKey),
	bind("list-keys", (*decision).access, listKeys),
	bind("issue-registration", (*decision).access, issueRegistration),
	bind("issue-token", (*decision).access, issueToken),
	bind("revoke-token", (*decision).access, revokeToken),
	bind("list-tokens", (*decision).access, listTokens),
	bind("send-message", (*decision).mail, sendMessage),
	bind("poll-messages", (*decision).mail, pollMessages),
	bind("ack-messages", (*decision).mail, ackMessages),
	bind("message-status", (*decision).mail, messageStatus),
	bind("heartbeat", (*decision).mail, heartbeat),
	bind("list-actors", (*decision).mail, listActors),
	bind("list-topics", (*decision).mail, listTopics),
	bind("submit-task-request", (*decision).delegations, submitTaskRequest),
	bind("get-task-response", (*decision).delegations, getTaskResponse),
	bind("update-task-request", (*decision).delegations, updateTaskRequest),
	bind("send-session-message", (*decision).sessions, sendSessionMessage),
	bind("get-session", (*decision).sessions, getSession),
	bind("list-sessions", (*decision).sessions, listSessions),
	bind("create-session", (*decision).sessions, createSession),
	bind("list-reviews", (*decision).sessions, listReviews),
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
