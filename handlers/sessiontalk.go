package handlers

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// considerAbort decides about an abort of a task or of the session.
func (sd sessionDecision) considerAbort(x *messageContext, a *session.Abort) *wire.Error {
	if a.Scope == session.AbortSession {
		if a.TargetID != x.of.spec.ID {
			return rejected("/payload/target_id", fmt.Sprintf("this is the session %q", x.of.spec.ID))
		}
		x.effect = effectClose
		return nil
	}
	w := sd.state.tasks.workOn(x.of, a.TargetID)
	if w != nil {
		w = w.last() // its latest revision is the active one
	}
	switch {
	case w == nil:
		return &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("no task of this session is called %.80q", a.TargetID),
			Details: map[string]any{"pointer": "/payload/target_id", "task_id": a.TargetID},
		}
	case w.settled():
		return &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the task %.80q has ended", a.TargetID),
			Details: map[string]any{"pointer": "/payload/target_id", "reason": "not_active", "task_id": a.TargetID},
		}
	}
	x.task, x.chain = w.task.view.ID, w.chain
	x.effect, x.work = effectDrop, w
	return nil
}

// leaving returns the agents of a session that can stop when it ends: those that run here and
// are in no other open session.
func (sd sessionDecision) leaving(s *sessionState) (names []string) {
	for _, m := range s.members {
		a := sd.state.agents.byID[m.AgentID]
		if a == nil || a.remote != nil {
			continue
		}
		busy := false
		for _, seat := range sd.state.sessions.seats[m.AgentID] {
			busy = busy || seat.of != s && !seat.of.closed()
		}
		if !busy {
			names = append(names, m.AgentID)
		}
	}
	return names
}

// considerQuery answers a status query for a member that does not run.
func (sd sessionDecision) considerQuery(x *messageContext) {
	a := sd.state.agents.byID[x.to.AgentID]
	if a == nil || a.remote != nil || a.reachable() || a.state == starting {
		return
	}
	x.fate, x.effect = fateKept, effectStatus
}

// standing returns the status of an agent that does not run, with its tasks.
func (sd sessionDecision) standing(s *sessionState, a *agent, task string) wire.Raw {
	type standing struct {
		AgentID string             `json:"agent_id"`
		Status  string             `json:"status"`
		By      string             `json:"answered_by"`
		Tasks   []wire.SessionTask `json:"tasks"`
	}
	answer := standing{AgentID: a.ID, Status: a.status(), By: Actor{}.String(), Tasks: []wire.SessionTask{}}
	for _, w := range s.works {
		if w.developer == a.ID && (w.active() || w.task.view.ID == task) {
			answer.Tasks = append(answer.Tasks, w.view())
		}
	}
	text, err := object.Encode(answer)
	if err != nil {
		panic(fmt.Sprintf("how an agent is cannot be spelled: %v", err))
	}
	return text
}

// messageID returns the id of a message that the orchestrator sends for a member, in the form of
// a UUID of version 4. It is derived from the session and the record number, so it is unique.
func messageID(sessionID string, seq int64) string {
	sum := sha256.Sum256(binary.AppendVarint([]byte(sessionID+"\x00"), seq))
	return asUUID([16]byte(sum[:16]))
}

// counted returns a number with a noun in the singular or plural.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
