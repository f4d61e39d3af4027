package state

import (
	"orchestrator/handlers/replies"
	"orchestrator/wire"
)

// A requestKey identifies the request that caused a fact.
type RequestKey = replies.Key

// saveReply stores the answer to the request that caused a fact.
func (s *State) saveReply(name string, mk *RequestKey, answer any, err *wire.Error) {
	a := s.Agents.ByID[name]
	if mk == nil || a == nil {
		return
	}
	kept := a.Memories.Find(mk.ID)
	if kept == nil || kept.Key != *mk {
		kept = a.Memories.Keep(*mk)
	}
	kept.Answer, kept.Err, kept.Seq = answer, err, s.LastSeq
}

// saveTaskReply stores a task as the answer to the request that caused a fact. Most facts have no request, and an
// answer is as large as a task.
func (s *State) saveTaskReply(r *wire.Record, mk *RequestKey, t *Task) {
	if mk != nil {
		s.saveReply(AgentOf(r.From), mk, s.Tasks.Reply(t), nil)
	}
}

// settle stores the answer to a request that has waited. If a later run has used its id again,
// it does nothing.
func (s *State) settle(name string, mk *RequestKey, answer any, err *wire.Error) {
	a := s.Agents.ByID[name]
	if mk == nil || a == nil {
		return
	}
	if kept := a.Memories.Find(mk.ID); kept == nil || kept.Key == *mk {
		s.saveReply(name, mk, answer, err)
	}
}
