package wire

import (
	"slices"

	"orchestrator/wire/object"
)

// TaskFault is why a task that was handed to an agent came to nothing.
type TaskFault struct {
	Code        string `json:"code"` // Fault… below, or a word that only those who deal with each other know
	Message     string `json:"message"`
	Details     Raw    `json:"details,omitzero"` // an object, digit for digit
	Recoverable bool   `json:"recoverable"`      // another try may go well
}

// The codes that are in use. The list is open: whatever an agent says is taken.
const (
	FaultInvalidInput       = "INVALID_INPUT"
	FaultMissingField       = "MISSING_REQUIRED_FIELD"
	FaultFieldType          = "INVALID_FIELD_TYPE"
	FaultFieldValue         = "INVALID_FIELD_VALUE"
	FaultAgentNotFound      = "AGENT_NOT_FOUND"
	FaultCapabilityNotFound = "CAPABILITY_NOT_FOUND" // no agent does what the type says
	FaultAgentUnavailable   = "AGENT_UNAVAILABLE"
	FaultAgentBusy          = "AGENT_BUSY"
	FaultMCPNotConnected    = "MCP_NOT_CONNECTED"
	FaultMCPAuth            = "MCP_AUTH_FAILED"
	FaultMCPRateLimited     = "MCP_RATE_LIMITED"
	FaultMCP                = "MCP_ERROR"
	FaultCoordination       = "COORDINATION_FAILED"
	FaultGraphCycle         = "TASK_GRAPH_CYCLE"  // the work would come back to an agent that has it
	FaultDelegation         = "DELEGATION_FAILED" // it cannot be handed on
	FaultTimeout            = "TIMEOUT"
	FaultInternal           = "INTERNAL_ERROR"
	FaultKnowledgeNotFound  = "KNOWLEDGE_NOT_FOUND"
	FaultRateLimited        = "RATE_LIMITED"
)

// FaultCodes are all codes that are in use.
var FaultCodes = []string{
	FaultInvalidInput, FaultMissingField, FaultFieldType, FaultFieldValue, FaultAgentNotFound, FaultCapabilityNotFound,
	FaultAgentUnavailable, FaultAgentBusy, FaultMCPNotConnected, FaultMCPAuth, FaultMCPRateLimited, FaultMCP,
	FaultCoordination, FaultGraphCycle, FaultDelegation, FaultTimeout, FaultInternal, FaultKnowledgeNotFound, FaultRateLimited,
}

// unexplained is why something failed that failed without a word.
const unexplained = "The task failed, and its agent does not say why"

// orUnexplained is a fault, or that of an agent that says none.
func orUnexplained(f *TaskFault) *TaskFault {
	if f == nil {
		return &TaskFault{Code: FaultInternal, Message: unexplained}
	}
	return f
}

// passing are the codes of what may have passed when it is tried again.
var passing = []string{FaultRateLimited, FaultTimeout, FaultAgentUnavailable, FaultAgentBusy}

// FaultOf is a refusal as the source of delegated work hears it. The details
// are the same; where a code stands for several, a reason in them tells which. A source that
// refuses may know the code better, and say it as "fault" in the details.
func FaultOf(why *Error) *TaskFault {
	code, reason := faultCode(why.Code)
	known, better := why.Details["fault"].(string)
	switch {
	case better:
		code, reason = known, ""
	case code == FaultInvalidInput && why.Details["reason"] == "cycle":
		code = FaultGraphCycle
	}
	all := detailsWith(why, reason)
	if better {
		delete(all, "fault")
	}
	f := &TaskFault{
		Code: code, Message: why.Message,
		Recoverable: why.Code == CodeLimited || why.Code == CodeTimeout || slices.Contains(passing, code),
	}
	if len(all) > 0 {
		details, err := object.Encode(all)
		if err == nil {
			f.Details = details
		}
	}
	return f
}

// faultCode is the code as this dialect has it.
func faultCode(c Code) (code, reason string) {
	switch c {
	case CodeInvalid, CodeMalformed:
		return FaultInvalidInput, ""
	case CodeConflict, CodeTooLarge, CodeMediaType:
		return FaultInvalidInput, string(c)
	case CodeUnknownType:
		return FaultCapabilityNotFound, ""
	case CodeNotFound:
		return FaultAgentNotFound, ""
	case CodeDenied, CodeUnauthenticated:
		return FaultDelegation, string(c)
	case CodeLimited:
		return FaultRateLimited, ""
	case CodeTimeout:
		return FaultTimeout, ""
	}
	return FaultInternal, ""
}

// readFault reads an error. What it does not say is filled in: a failure is none the
// less one.
func readFault(p *object.Decoder) *TaskFault {
	checkLookalikes(p, "code", "message", "details", "recoverable")
	f := &TaskFault{
		Code: p.Text("code", object.Optional), Message: p.Text("message", object.Optional), Details: readObject(p, "details", object.Optional),
		Recoverable: p.Bool("recoverable", object.Optional),
	}
	if object.IsBlank(f.Code) {
		f.Code = FaultInternal
		p.Note("code", "is missing: it is taken for "+FaultInternal)
	}
	if object.IsBlank(f.Message) {
		f.Message = unexplained
		p.Note("message", "is missing: it should say what went wrong")
	}
	return f
}

func (f *TaskFault) append(b []byte) []byte {
	b = object.AppendText(append(b, `{"code":`...), f.Code)
	b = object.AppendMember(b, "message", f.Message)
	b = object.AppendRaw(b, "details", f.Details)
	if f.Recoverable {
		return append(b, `,"recoverable":true}`...)
	}
	return append(b, `,"recoverable":false}`...)
}
