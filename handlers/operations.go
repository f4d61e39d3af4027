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
	Anybody   Who = iota
	Agents        // agents alone: the answer concerns the one that asks
	Operators     // people alone
	Strangers     // those that are not known yet, and people
	Actors        // all that have mail: agents, people, and actors that have nothing else here
)

// String says it for people.
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
	operation(Operation{Name: "query-tasks", Standard: true, Summary: "List your own tasks: submitted by you or assigned to you"}, queryTasks),
	operation(Operation{Name: "submit-task", Standard: true, Writes: true, Summary: "Submit a task; it goes to an idle agent with the role and the capabilities that it requires"}, submitTask),
	operation(Operation{Name: "get-task", Standard: true, Summary: "Everything about one of your tasks"}, getTask),
	operation(Operation{Name: "ask-user", Standard: true, Who: Agents, Writes: true, Summary: "Ask a person, and wait for the answer"}, askUser),
	operation(Operation{Name: "start-task", Writes: true, Summary: "Start a task that is assigned to you; or take one of yours that has no agent"}, startTask),
	operation(Operation{Name: "complete-task", Writes: true, Summary: "Say that a task is done, with its result"}, completeTask),
	operation(Operation{Name: "fail-task", Writes: true, Summary: "Say that a task cannot be done, and why"}, failTask),
	operation(Operation{Name: "cancel-task", Writes: true, Summary: "Cancel a task that you submitted; its agent is told"}, cancelTask),
	operation(Operation{Name: "update-task", Writes: true, Summary: "Change the words, the documents or the priority of a task"}, updateTask),
	operation(Operation{Name: "assign-task", Writes: true, Summary: "Give a task to an agent; perhaps it is to submit a plan first"}, assignTask),
	operation(Operation{Name: "auto-assign", Writes: true, Summary: "Give a task to the agent that fits its requirements best"}, autoAssign),
	operation(Operation{Name: "match-agents", Summary: "How each agent fits the requirements of a task, and why"}, matchAgents),
	operation(Operation{Name: "poll-tasks", Who: Agents, Summary: "List what you have been given and have not begun"}, pollTasks),
	operation(Operation{Name: "check-tasks", Summary: "The same of one session: an agent, or one of its runs"}, checkTasks),
	operation(Operation{Name: "request-help", Writes: true, Summary: "Say that a task needs a person, with a question"}, requestHelp),
	operation(Operation{Name: "submit-plan", Writes: true, Summary: "Say how you will go about a task for which a plan is wanted"}, submitPlan),
	operation(Operation{Name: "approve-plan", Writes: true, Summary: "Let the agent go about its task as it planned"}, approvePlan),
	operation(Operation{Name: "revise-plan", Writes: true, Summary: "Send a plan back, with what is wrong with it"}, revisePlan),
	operation(Operation{Name: "add-dependency", Writes: true, Summary: "Let a task wait for another, or get something of its result"}, addDependency),
	operation(Operation{Name: "remove-dependency", Writes: true, Summary: "Take a dependency away"}, removeDependency),
	operation(Operation{Name: "add-note", Writes: true, Summary: "Add a note to a task"}, addNote),
	operation(Operation{Name: "list-notes", Summary: "The notes of a task, oldest first"}, listNotes),
	operation(Operation{Name: "update-capabilities", Who: Agents, Writes: true, Summary: "Say what you can do now, in place of what was known; and that you are there"}, updateCapabilities),
	operation(Operation{Name: "query-servers", Summary: "List all agents with their capabilities, and whether they are online"}, queryServers),
	operation(Operation{Name: "register-agent", Who: Strangers, Writes: true, Summary: "Become one of the agents from elsewhere, with a registration token"}, registerAgent),
	operation(Operation{Name: "list-questions", Who: Operators, Summary: "List the questions that wait for a person"}, listQuestions),
	operation(Operation{Name: "answer-question", Who: Operators, Writes: true, Summary: "Answer a question"}, answerQuestion),
	operation(Operation{Name: "issue-key", Who: Operators, Writes: true, Summary: "Make a key that lets a program speak as an agent; shown once"}, issueKey),
	operation(Operation{Name: "rotate-key", Who: Operators, Writes: true, Summary: "Make a new key of an agent; the old ones hold for a while"}, rotateKey),
	operation(Operation{Name: "revoke-key", Who: Operators, Writes: true, Summary: "Take a key or a registration token away"}, revokeKey),
	operation(Operation{Name: "list-keys", Who: Operators, Summary: "List the keys and registration tokens, without what is secret"}, listKeys),
	operation(Operation{Name: "issue-registration", Who: Operators, Writes: true, Summary: "Make a token with which a server can register once"}, issueRegistration),
	operation(Operation{Name: "issue-token", Who: Actors, Writes: true, Summary: "Make a token with which a person, or an actor, can come from elsewhere; shown once. For operators, and of actors for GO"}, issueToken),
	operation(Operation{Name: "revoke-token", Who: Operators, Writes: true, Summary: "Take the token of a person, or of an actor, away"}, revokeToken),
	operation(Operation{Name: "list-tokens", Who: Operators, Summary: "List the tokens of people and of actors"}, listTokens),
	operation(Operation{Name: "send-message", Who: Actors, Writes: true, Summary: "Send a message to an actor, or as GO to all; it is kept for good"}, sendMessage),
	operation(Operation{Name: "poll-messages", Who: Actors, Summary: "Read your messages, those behind your cursor or any number, in order"}, pollMessages),
	operation(Operation{Name: "ack-messages", Who: Actors, Writes: true, Summary: "Say up to which message you have dealt with them: that is your cursor"}, ackMessages),
	operation(Operation{Name: "heartbeat", Who: Actors, Writes: true, Summary: "Say that you are there, and will say so again within a minute"}, heartbeat),
	operation(Operation{Name: "list-actors", Who: Actors, Summary: "List who has mail, whether they are there, and up to where they have read"}, listActors),
	operation(Operation{Name: "list-topics", Who: Actors, Summary: "List the topics that are registered"}, listTopics),
	operation(Operation{Name: "submit-task-request", Writes: true, Summary: "Hand a task on to an agent that can do it, with a task request; an agent may also print it as it is"}, submitTaskRequest),
	operation(Operation{Name: "get-task-response", Summary: "How a task stands, as a task response: the latest words of its agent, with its result and artifacts"}, getTaskResponse),
	operation(Operation{Name: "update-task-request", Writes: true, Summary: "Give a task that was handed on what its agent needs to go on"}, updateTaskRequest),
	operation(Operation{Name: "send-session-message", Writes: true, Summary: "Say a message in a session, to another member; an agent may also print it as it is"}, sendSessionMessage),
	operation(Operation{Name: "get-session", Summary: "A session: its members, tasks and reviews, and a page of its log"}, getSession),
	operation(Operation{Name: "list-sessions", Summary: "List the sessions that you are in; people see all"}, listSessions),
	operation(Operation{Name: "create-session", Who: Operators, Writes: true, Summary: "Make a session of agents that work together"}, createSession),
	operation(Operation{Name: "list-reviews", Summary: "List the reviews of the sessions that you are in"}, listReviews),
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
	case from.Kind == Anonymous && o.Who != Strangers:
		return &wire.Error{Code: wire.CodeUnauthenticated, Message: o.Name + " is for those who are known"}
	case from.Kind == External && o.Who != Actors:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is not for those who have nothing but mail here"}
	case o.Who == Agents && from.Kind != Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for agents"}
	case o.Who == Strangers && from.Kind == Agent:
		return &wire.Error{Code: wire.CodeDenied, Message: "you are one of the agents already"}
	case o.Who == Operators && from.Kind != Operator:
		return &wire.Error{Code: wire.CodeDenied, Message: o.Name + " is for operators"}
	}
	return nil
}
