package delegation

import (
	"slices"

	"orchestrator/wire/object"
)

// A Fault is the error of a delegated task that failed.
type Fault struct {
	// The kind of error, for programs. These codes are in use: INVALID_INPUT, MISSING_REQUIRED_FIELD,
	// INVALID_FIELD_TYPE, INVALID_FIELD_VALUE, AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND,
	// AGENT_UNAVAILABLE, AGENT_BUSY, MCP_NOT_CONNECTED, MCP_AUTH_FAILED, MCP_RATE_LIMITED, MCP_ERROR,
	// COORDINATION_FAILED, TASK_GRAPH_CYCLE, DELEGATION_FAILED, TIMEOUT, INTERNAL_ERROR,
	// KNOWLEDGE_NOT_FOUND and RATE_LIMITED. Other codes are accepted unchanged.
	Code string `json:"code" schema:"optional"`
	// The error, for people.
	Message string `json:"message" schema:"optional"`
	// Additional data: any object.
	Details object.Raw `json:"details,omitzero" schema:"type=object"`
	// Whether another try may succeed; false when it is missing.
	Recoverable bool `json:"recoverable" schema:"optional"`
}

// The known codes. The list is open: an agent may use any code.
const (
	FaultInvalidInput       = "INVALID_INPUT"
	FaultMissingField       = "MISSING_REQUIRED_FIELD"
	FaultFieldType          = "INVALID_FIELD_TYPE"
	FaultFieldValue         = "INVALID_FIELD_VALUE"
	FaultAgentNotFound      = "AGENT_NOT_FOUND"
	FaultCapabilityNotFound = "CAPABILITY_NOT_FOUND" // no agent has the capability of that type
	FaultAgentUnavailable   = "AGENT_UNAVAILABLE"
	FaultAgentBusy          = "AGENT_BUSY"
	FaultMCPNotConnected    = "MCP_NOT_CONNECTED"
	FaultMCPAuth            = "MCP_AUTH_FAILED"
	FaultMCPRateLimited     = "MCP_RATE_LIMITED"
	FaultMCP                = "MCP_ERROR"
	FaultCoordination       = "COORDINATION_FAILED"
	FaultGraphCycle         = "TASK_GRAPH_CYCLE"  // the work would return to an agent that has had it
	FaultDelegation         = "DELEGATION_FAILED" // it cannot be delegated
	FaultTimeout            = "TIMEOUT"
	FaultInternal           = "INTERNAL_ERROR"
	FaultKnowledgeNotFound  = "KNOWLEDGE_NOT_FOUND"
	FaultRateLimited        = "RATE_LIMITED"
)

// FaultCodes lists all known codes.
var FaultCodes = []string{
	FaultInvalidInput, FaultMissingField, FaultFieldType, FaultFieldValue, FaultAgentNotFound, FaultCapabilityNotFound,
	FaultAgentUnavailable, FaultAgentBusy, FaultMCPNotConnected, FaultMCPAuth, FaultMCPRateLimited, FaultMCP,
	FaultCoordination, FaultGraphCycle, FaultDelegation, FaultTimeout, FaultInternal, FaultKnowledgeNotFound, FaultRateLimited,
}

// unexplained is the message of a failure without one.
const unexplained = "The task failed, and its agent gave no reason"

// orUnexplained returns f, or a fault without an explanation if f is nil.
func orUnexplained(f *Fault) *Fault {
	if f == nil {
		return &Fault{Code: FaultInternal, Message: unexplained}
	}
	return f
}

// passing lists the codes of temporary errors.
var passing = []string{FaultRateLimited, FaultTimeout, FaultAgentUnavailable, FaultAgentBusy}

// FaultOf returns a refusal as the source of delegated work sees it. The details are the same.
// If one code covers several, "reason" in the details distinguishes them. A "fault" in the
// details of the refusal overrides the code.
func FaultOf(why *object.Error) *Fault {
	code, reason := faultCode(why.Code)
	known, better := why.Details["fault"].(string)
	switch {
	case better:
		code, reason = known, ""
	case code == FaultInvalidInput && why.Details["reason"] == "cycle":
		code = FaultGraphCycle
	}
	all := object.DetailsWith(why, reason)
	if better {
		delete(all, "fault")
	}
	f := &Fault{
		Code: code, Message: why.Message,
		Recoverable: why.Code == object.CodeLimited || why.Code == object.CodeTimeout || slices.Contains(passing, code),
	}
	if len(all) > 0 {
		details, err := object.Encode(all)
		if err == nil {
			f.Details = details
		}
	}
	return f
}

// faultCode returns the code in the delegation dialect.
func faultCode(c object.Code) (code, reason string) {
	switch c {
	case object.CodeInvalid, object.CodeMalformed:
		return FaultInvalidInput, ""
	case object.CodeConflict, object.CodeTooLarge, object.CodeMediaType:
		return FaultInvalidInput, string(c)
	case object.CodeUnknownType:
		return FaultCapabilityNotFound, ""
	case object.CodeNotFound:
		return FaultAgentNotFound, ""
	case object.CodeDenied, object.CodeUnauthenticated:
		return FaultDelegation, string(c)
	case object.CodeLimited:
		return FaultRateLimited, ""
	case object.CodeTimeout:
		return FaultTimeout, ""
	}
	return FaultInternal, ""
}

// readFault reads an error. Missing members are filled in, since the task has failed in any
// case.
func readFault(p *object.Decoder) *Fault {
	checkLookalikes(p, "code", "message", "details", "recoverable")
	f := &Fault{
		Code: p.Text("code", object.Optional), Message: p.Text("message", object.Optional), Details: readObject(p, "details", object.Optional),
		Recoverable: p.Bool("recoverable", object.Optional),
	}
	if object.IsBlank(f.Code) {
		f.Code = FaultInternal
		p.Note("code", "is missing: it defaults to "+FaultInternal)
	}
	if object.IsBlank(f.Message) {
		f.Message = unexplained
		p.Note("message", "is missing: it should describe the error")
	}
	return f
}

func (f *Fault) append(b []byte) []byte {
	b = object.AppendText(append(b, `{"code":`...), f.Code)
	b = object.AppendMember(b, "message", f.Message)
	b = object.AppendRaw(b, "details", f.Details)
	if f.Recoverable {
		return append(b, `,"recoverable":true}`...)
	}
	return append(b, `,"recoverable":false}`...)
}
