package wire

// Payloads reads payloads, one after the other, in the same room.
type Payloads struct {
	Depth int // how deep one may nest

	room []member
}

// Request reads the payload of a request, given the operation's name without
// its prefix.
func (p *Payloads) Request(operation string, payload []byte) (any, *Error) {
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
		return ReadQueryAgents(o)
	case "query-tasks":
		return ReadQueryTasks(o)
	case "submit-task":
		return ReadSubmitTask(o)
	case "get-task", "start-task", "auto-assign", "match-agents", "approve-plan", "list-notes":
		return ReadTaskID(o)
	case "ask-user":
		return ReadAskUser(o)
	case "complete-task":
		return ReadCompleteTask(o)
	case "fail-task":
		return ReadFailTask(o)
	case "cancel-task":
		return ReadCancelTask(o)
	case "list-questions", "poll-tasks", "query-servers", "list-keys", "list-tokens":
		return ReadNothing(o)
	case "answer-question":
		return ReadAnswerQuestion(o)
	}
	return readWork(operation, o)
}

// readWork is readBody for what is done with tasks beside the published
// requests, and for credentials.
func readWork(operation string, o *Object) any {
	switch operation {
	case "update-task":
		return ReadUpdateTask(o)
	case "assign-task":
		return ReadAssignTask(o)
	case "add-dependency":
		return ReadAddDependency(o)
	case "remove-dependency":
		return ReadRemoveDependency(o)
	case "add-note":
		return ReadAddNote(o)
	case "submit-plan":
		return ReadSubmitPlan(o)
	case "revise-plan":
		return ReadRevisePlan(o)
	case "request-help":
		return ReadRequestHelp(o)
	case "check-tasks":
		return ReadCheckTasks(o)
	case "update-capabilities":
		return ReadUpdateCapabilities(o)
	case "register-agent":
		return ReadRegister(o)
	case "issue-key", "rotate-key":
		return ReadIssueKey(o)
	case "revoke-key", "revoke-token":
		return ReadRevoke(o)
	case "issue-registration":
		return ReadIssueRegistration(o)
	case "issue-token":
		return ReadIssueToken(o)
	}
	return nil
}

// Nothing is the payload of an operation that needs none. What stands in it is
// passed over.
type Nothing struct{}

// ReadNothing reads a Nothing.
func ReadNothing(*Object) *Nothing { return &Nothing{} }
