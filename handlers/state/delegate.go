package state

import (
	"cmp"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// InHand reports whether the agent of a task is working on it, as far as is known.
func (t *Task) InHand() bool {
	d := t.Delegation()
	return t.Busy() || t.View.State == wire.TaskNeedsHuman || d != nil && d.Out != "" && t.View.State == wire.TaskAssigned
}

// DelegationError returns the refusal to delegate a task. fault is its code in protocol D.
func DelegationError(code wire.Code, fault, message, key string, value any) *wire.Error {
	return &wire.Error{Code: code, Message: message, Details: map[string]any{"fault": fault, "reason": reasons[fault], key: value}}
}

// reasons maps these codes to the reasons that other protocols use.
var reasons = map[string]string{
	delegation.FaultAgentNotFound: "agent_not_found", delegation.FaultCapabilityNotFound: "capability_not_found",
	delegation.FaultGraphCycle: "cycle", delegation.FaultAgentUnavailable: "agent_unavailable", delegation.FaultAgentBusy: "agent_busy",
	delegation.FaultDelegation: "chain_too_long",
}

// Rank orders candidate agents: the lowest starts soonest.
type Rank struct {
	Lost, Away, Full bool
	Load             int
	Given            int64
}

func (a *KnownAgent) Rank(ended string) Rank {
	return Rank{
		Lost: a.ID == ended, Away: !a.Reachable() && a.Remote == nil || a.Unreachable || a.Stale || a.Remote != nil && !a.Online(),
		Full: a.load() >= a.Capacity, Load: a.load(), Given: a.Given,
	}
}

func (r Rank) Compare(o Rank) int {
	return cmp.Or(compareBool(r.Lost, o.Lost), compareBool(r.Away, o.Away), compareBool(r.Full, o.Full), cmp.Compare(r.Load, o.Load), cmp.Compare(r.Given, o.Given))
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Comes reports whether an agent runs, or will by itself.
func (a *KnownAgent) Comes() bool {
	return a.Remote != nil || a.Returns || a.Reachable() && a.State != Leaving
}

// The maximum number and size of the delegated tasks that wait for an agent.
const (
	MaxWaiting      = 1000
	MaxWaitingBytes = 32 << 20
)

// CheckBacklog returns an error if too much waits for an agent.
func (a *KnownAgent) CheckBacklog() *wire.Error {
	n, size := 0, 0
	for _, t := range a.Holds {
		if d := t.Delegation(); d != nil && d.Waits() {
			n, size = n+1, size+len(d.Request)
		}
	}
	if n < MaxWaiting && size < MaxWaitingBytes {
		return nil
	}
	return DelegationError(wire.CodeLimited, delegation.FaultAgentBusy, fmt.Sprintf("%s already wait for %q: ask again when it has less to do", Counted(n, "task"), a.ID), "waiting", n)
}
