package handlers

import (
	"slices"

	"orchestrator/wire"
)

// Operation is one thing that can be asked, by whatever door.
type Operation struct {
	Name     string
	Summary  string
	Who      Who
	Standard bool // of the published stdio protocol; else an extension
	Request  any  // an example of the payload's type
	Answer   any  // of the answer's type
	Writes   bool // it can change something, so its repeats are recognised

	do func(t *decision, body any) (any, *wire.Error)
}

// Who may ask.
type Who uint8

// The callers of an Operation.
const (
	All          Who = iota
	Agents           // only agents: the answer concerns the one that asks
	Operators        // only people
	Unregistered     // those that are not known yet, and people
	Actors           // all that have mail: agents, people, and actors that have nothing else here
)

// String returns the audience as the manual shows it.
func (w Who) String() string {
	return [...]string{"all", "agents", "operators", "strangers", "actors"}[w]
}

// operation declares one. Request is what wire.ReadRequest makes of its payload.
func operation[Request, Answer any](o Operation, do func(*decision, *Request) (*Answer, *wire.Error)) Operation {
	o.Request, o.Answer = new(Request), new(Answer)
	o.do = func(t *decision, body any) (any, *wire.Error) {
		request, ok := body.(*Request)
		if !ok {
			return nil, &wire.Error{Code: wire.CodeInvalid, Message: o.Name + " was given the payload of something else"}
		}
		answer, err := do(t, request)
		if err != nil || answer == nil { // a nil pointer in an any would not be nil
			return nil, err
		}
		return answer, nil
	}
	return o
}

// operations is everything that can be asked.
var operations = []Operation{
	operation(Operation{Name: "query-agents", Standard: true, Summary: "List agents, by role, status or capabilities"}, queryAgents),
	operation(Operation{Name: "query-tasks", Standard: true, Summary: "List the tasks that you submitted or that are assigned to you"}, queryTasks),
	operation(Operation{Name: "submit-task", Standard: true, Writes: true, Summary: "Submit a task for an idle agent with the role and the capabilities that it requires"}, submitTask),
	operation(Operation{Name: "get-task", Standard: true, Summary: "Show one of your tasks in full"}, getTask),
	operation(Operation{Name: "ask-user", Standard: true, Who: Agents, Writes: true, Summary: "Ask a person a question and wait for the answer"}, askUser),
	operation(Operation{Name: "start-task", Writes: true, Summary: "Start a task that is assigned to you, or take one of yours that has no agent"}, startTask),
	operation(Operation{Name: "complete-task", Writes: true, Summary: "Complete a task with its result"}, completeTask),
	operation(Operation{Name: "fail-task", Writes: true, Summary: "Fail a task with the reason"}, failTask),
	operation(Operation{Name: "cancel-task", Writes: true, Summary: "Cancel a task that you submitted and tell its agent"}, cancelTask),
	operation(Operation{Name: "update-task", Writes: true, Summary: "Change the text, the documents or the priority of a task"}, updateTask),
	operation(Operation{Name: "assign-task", Writes: true, Summary: "Assign a task to an agent, which may have to submit a plan first"}, assignTask),
	operation(Operation{Name: "auto-assign", Writes: true, Summary: "Assign a task to the agent that fits its requirements best"}, autoAssign),
	operation(Operation{Name: "match-agents", Summary: "Show how each agent fits the requirements of a task"}, matchAgents),
	operation(Operation{Name: "poll-tasks", Who: Agents, Summary: "List the tasks that are assigned to you and not started"}, pollTasks),
	operation(Operation{Name: "check-tasks", Summary: "List the tasks that are assigned to a session and not started"}, checkTasks),
	operation(Operation{Name: "request-help", Writes: true, Summary: "Ask a person for help with a task"}, requestHelp),
	operation(Operation{Name: "submit-plan", Writes: true, Summary: "Submit the plan that a task requires"}, submitPlan),
	operation(Operation{Name: "approve-plan", Writes: true, Summary: "Approve the plan of a task"}, approvePlan),
	operation(Operation{Name: "revise-plan", Writes: true, Summary: "Reject the plan of a task with feedback"}, revisePlan),
	operation(Operation{Name: "add-dependency", Writes: true, Summary: "Add a dependency to a task"}, addDependency),
	operation(Operation{Name: "remove-dependency", Writes: true, Summary: "Remove a dependency from a task"}, removeDependency),
	operation(Operation{Name: "add-note", Writes: true, Summary: "Add a note to a task"}, addNote),
	operation(Operation{Name: "list-notes", Summary: "List the notes of a task, oldest first"}, listNotes),
	operation(Operation{Name: "update-capabilities", Who: Agents, Writes: true, Summary: "Replace your advertised capabilities and refresh your presence"}, updateCapabilities),
	operation(Operation{Name: "query-servers", Summary: "List all agents with their capabilities and presence"}, queryServers),
	operation(Operation{Name: "register-agent", Who: Unregistered, Writes: true, Summary: "Register a server as an agent with a registration token"}, registerAgent),
	operation(Operation{Name: "list-questions", Who: Operators, Summary: "List the open questions"}, listQuestions),
	operation(Operation{Name: "answer-question", Who: Operators, Writes: true, Summary: "Answer a question"}, answerQuestion),
	operation(Operation{Name: "issue-key", Who: Operators, Writes: true, Summary: "Create a key that authenticates a program as an agent; shown once"}, issueKey),
	operation(Operation{Name: "rotate-key", Who: Operators, Writes: true, Summary: "Create a new key for an agent; the old ones stay valid for a while"}, rotateKey),
	operation(Operation{Name: "revoke-key", Who: Operators, Writes: true, Summary: "Revoke a key or a registration token"}, revokeKey),
	operation(Operation{Name: "list-keys", Who: Operators, Summary: "List the keys and registration tokens without their secrets"}, listKeys),
	operation(Operation{Name: "issue-registration", Who: Operators, Writes: true, Summary: "Create a token with which a server can register once"}, issueRegistration),
	operation(Operation{Name: "issue-token", Who: Actors, Writes: true, Summary: "Create a token for a person or an actor on another machine; shown once. For operators; for GO, tokens of actors only"}, issueToken),
	operation(Operation{Name: "revoke-token", Who: Operators, Writes: true, Summary: "Revoke the token of a person or of an actor"}, revokeToken),
	operation(Operation{Name: "list-tokens", Who: Operators, Summary: "List the tokens of people and of actors"}, listTokens),
	operation(Operation{Name: "send-message", Who: Actors, Writes: true, Summary: "Send a message to an actor, or as GO to all"}, sendMessage),
	operation(Operation{Name: "poll-messages", Who: Actors, Summary: "Read your messages after your cursor, or after any number, in order"}, pollMessages),
	operation(Operation{Name: "ack-messages", Who: Actors, Writes: true, Summary: "Acknowledge your messages up to a number and move your cursor there"}, ackMessages),
	operation(Operation{Name: "heartbeat", Who: Actors, Writes: true, Summary: "Announce that you are present for the next minute"}, heartbeat),
	operation(Operation{Name: "list-actors", Who: Actors, Summary: "List the actors with their presence and cursors"}, listActors),
	operation(Operation{Name: "list-topics", Who: Actors, Summary: "List the registered topics"}, listTopics),
	operation(Operation{Name: "submit-task-request", Writes: true, Summary: "Delegate a task with a task request; an agent may also print the request itself"}, submitTaskRequest),
	operation(Operation{Name: "get-task-response", Summary: "Show a delegated task as a task response with its result and artifacts"}, getTaskResponse),
	operation(Operation{Name: "update-task-request", Writes: true, Summary: "Give a delegated task the input that its agent waits for"}, updateTaskRequest),
	operation(Operation{Name: "send-session-message", Writes: true, Summary: "Send a message to a member of a session; an agent may also print it itself"}, sendSessionMessage),
	operation(Operation{Name: "get-session", Summary: "Show a session with its members, tasks, reviews and a page of its log"}, getSession),
	operation(Operation{Name: "list-sessions", Summary: "List your sessions; people see all"}, listSessions),
	operation(Operation{Name: "create-session", Who: Operators, Writes: true, Summary: "Create a session of agents that work together"}, createSession),
	operation(Operation{Name: "list-reviews", Summary: "List the reviews of your sessions"}, listReviews),
}

// byName finds operations.
var byName = func() map[string]*Operation {
	found := make(map[string]*Operation, len(operations))
	for i := range operations {
		found[operations[i].Name] = &operations[i]
	}
	return found
}()

// Operations are everything that can be asked, in the order of the protocol.
func Operations() []Operation { return slices.Clone(operations) }

// Writes reports whether an operation can change something; then Random matters.
func Writes(name string) bool {
	o := byName[name]
	return o != nil && o.Writes
}

// MayAgents reports whether agents may ask for an operation.
func MayAgents(name string) bool {
	o := byName[name]
	return o != nil && (o.Who <= Agents || o.Who == Actors)
}

// MayOutsiders reports whether those may ask for an operation who have mail
// here and nothing else.
func MayOutsiders(name string) bool {
	o := byName[name]
	return o != nil && o.Who == Actors
}

// mayAsk returns why an actor may not ask for an operation.
func (o *Operation) mayAsk(from Actor) *wire.Error {
	switch {
	case from.Kind == Anonymous && o.Who != Unregistered:
		return &wire.Error{Code: wire.CodeUnauthenticated, Message: o.Name + " requires authentication"}
	case from.Kind == External && o.Who != Actors:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is not for those who have nothing but mail here"}
	case o.Who == Agents && from.Kind != Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for agents"}
	case o.Who == Unregistered && from.Kind == Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: "already registered as an agent"}
	case o.Who == Operators && from.Kind != Operator:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for operators"}
	}
	return nil
}
