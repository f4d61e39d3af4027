package wire

// Payloads reads payloads, one after the other, in the same room.
type Payloads struct {
	Depth int // how deep one may nest

	room []member
}

// Request reads the payload of a request, given the operation's name without
// its prefix.
func (p *Payloads) Request(operation string, payload []byte) (any, *Error) {
	if operation == operationSubmitTask { // its payload is kept as a whole
		return p.taskRequest(payload)
	}
	o, err := p.open(payload)
	body := readBody(operation, &o)
	switch {
	case body == nil:
		return nil, unknownType("request:" + operation)
	case err != nil:
		return nil, err
	case o.err != nil:
		return nil, o.err
	}
	return body, nil
}

func (p *Payloads) open(payload []byte) (Object, *Error) {
	o, err := openObject(payload, p.Depth, "/payload", p.room)
	if o.members != nil {
		p.room = o.members
	}
	return o, err
}

// ReadRequest is Payloads.Request for those who read one.
func ReadRequest(operation string, payload []byte, depth int) (any, *Error) {
	return (&Payloads{Depth: depth}).Request(operation, payload)
}

// readBody reads the payload of an operation; nil when there is no such
// operation.
func readBody(operation string, o *Object) any {
	switch operation {
	case "query-agents":
		return readQueryAgents(o)
	case "query-tasks":
		return readQueryTasks(o)
	case "submit-task":
		return readSubmitTask(o)
	case "get-task", "start-task", "auto-assign", "match-agents", "approve-plan", "list-notes":
		return readTaskID(o)
	case "ask-user":
		return readAskUser(o)
	case "complete-task":
		return readCompleteTask(o)
	case "fail-task":
		return readFailTask(o)
	case "cancel-task":
		return readCancelTask(o)
	case "list-questions", "poll-tasks", "query-servers", "list-keys", "list-tokens":
		return readNothing(o)
	case "answer-question":
		return readAnswerQuestion(o)
	}
	return readWork(operation, o)
}

// readWork is readBody for what is done with tasks beside the published
// requests, and for credentials.
func readWork(operation string, o *Object) any {
	switch operation {
	case "update-task":
		return readUpdateTask(o)
	case "assign-task":
		return readAssignTask(o)
	case "add-dependency":
		return readAddDependency(o)
	case "remove-dependency":
		return readRemoveDependency(o)
	case "add-note":
		return readAddNote(o)
	case "submit-plan":
		return readSubmitPlan(o)
	case "revise-plan":
		return readRevisePlan(o)
	case "request-help":
		return readRequestHelp(o)
	case "check-tasks":
		return readCheckTasks(o)
	case "update-capabilities":
		return readUpdateCapabilities(o)
	case "register-agent":
		return ReadRegister(o)
	case "issue-key", "rotate-key":
		return readIssueKey(o)
	case "revoke-key", "revoke-token":
		return readRevoke(o)
	case "issue-registration":
		return readIssueRegistration(o)
	case "issue-token":
		return ReadIssueToken(o)
	}
	return readBus(operation, o)
}

// readBus is readBody for mail.
func readBus(operation string, o *Object) any {
	switch operation {
	case "send-message":
		return ReadSendMessage(o)
	case "poll-messages":
		return ReadPollMessages(o)
	case "ack-messages":
		return ReadAckMessages(o)
	case "heartbeat":
		return ReadHeartbeat(o)
	case "list-actors", "list-topics":
		return readNothing(o)
	}
	return readSessions(operation, o)
}

// readSessions is readBody for sessions, and for delegated work.
func readSessions(operation string, o *Object) any {
	switch operation {
	case "send-session-message":
		return readSaySession(o)
	case "get-session":
		return readGetSession(o)
	case "create-session":
		return readSessionSpec(o)
	case "list-sessions":
		return readNothing(o)
	case "list-reviews":
		return readListReviews(o)
	case operationGetTask:
		return readGetTaskResponse(o)
	case operationUpdateTask:
		return readUpdateTaskRequest(o)
	}
	return nil
}

// Nothing is the payload of an operation that needs none. What stands in it is
// passed over.
type Nothing struct{}

// readNothing reads a Nothing.
func readNothing(*Object) *Nothing { return &Nothing{} }
