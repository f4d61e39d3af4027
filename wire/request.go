package wire

// ReadRequest reads the payload of a request, given the operation's name without
// its prefix. Depth is how deep the payload may nest.
func ReadRequest(operation string, payload []byte, depth int) (any, *Error) {
	read := readerOf(operation)
	if read == nil {
		return nil, unknownType("request:" + operation)
	}
	var o Object
	if err := o.ReadObject(payload, depth, "/payload"); err != nil {
		return nil, err
	}
	body := read(&o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	return body, nil
}

// readerOf is what reads the payload of an operation; nil when there is no such
// operation.
func readerOf(operation string) func(*Object) any {
	switch operation {
	case "query-agents":
		return func(o *Object) any { return ReadQueryAgents(o) }
	case "query-tasks":
		return func(o *Object) any { return ReadQueryTasks(o) }
	case "submit-task":
		return func(o *Object) any { return ReadSubmitTask(o) }
	case "get-task", "start-task":
		return func(o *Object) any { return ReadTaskID(o) }
	case "ask-user":
		return func(o *Object) any { return ReadAskUser(o) }
	case "complete-task":
		return func(o *Object) any { return ReadCompleteTask(o) }
	case "fail-task":
		return func(o *Object) any { return ReadFailTask(o) }
	case "cancel-task":
		return func(o *Object) any { return ReadCancelTask(o) }
	case "list-questions":
		return func(o *Object) any { return ReadNothing(o) }
	case "answer-question":
		return func(o *Object) any { return ReadAnswerQuestion(o) }
	case "issue-key":
		return func(o *Object) any { return ReadIssueKey(o) }
	}
	return nil
}

// Nothing is the payload of an operation that needs none. What stands in it is
// passed over.
type Nothing struct{}

// ReadNothing reads a Nothing.
func ReadNothing(*Object) *Nothing { return &Nothing{} }

// IssueKey is the payload of issue-key.
type IssueKey struct {
	Agent string `json:"agent"`
}

// ReadIssueKey reads an IssueKey.
func ReadIssueKey(o *Object) *IssueKey { return &IssueKey{Agent: o.NeedText("agent")} }

// IssuedKey answers issue-key. It is the only time that the key is told.
type IssuedKey struct {
	ID    string `json:"id"` // of the key, for listing and revoking it
	Agent string `json:"agent"`
	Key   string `json:"key"`
}
