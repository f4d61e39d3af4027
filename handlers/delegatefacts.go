package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// delegated is the part of taskCreated for a delegated task.
type delegated struct {
	Document wire.Raw `json:"document"` // the request as it is forwarded, without its target
	Sum      uint64   `json:"sum"`
}

// read reads the request, which has been read before.
func (d *delegated) read() (*delegation.Request, error) {
	request, err := wire.ReadTaskRequest(d.Document, history.Deepest)
	if err != nil {
		return nil, fmt.Errorf("its request makes no sense: %w", err)
	}
	return request, nil
}

// taskForwarded records that a delegated task was sent to its agent, or that an input was sent
// again.
type taskForwarded struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"` // the record of the input
}

func (*taskForwarded) kind() string { return events.TaskForwarded }

func (f *taskForwarded) apply(s *State, r *wire.Record) {
	d := s.tasks.byID[f.ID].delegation()
	if f.Acted != 0 {
		d.returned = slices.DeleteFunc(d.returned, func(acted int64) bool { return acted == f.Acted })
		return
	}
	d.out, d.forwarded = f.Run, object.Timestamp(r.At)
}

// taskReturned records that the task or the input could not be sent. It is sent again when the
// agent reads its stdin.
type taskReturned struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"`
}

func (*taskReturned) kind() string { return events.TaskReturned }

func (t *taskReturned) apply(s *State, _ *wire.Record) {
	d := s.tasks.byID[t.ID].delegation()
	if t.Acted != 0 {
		d.returned = append(d.returned, t.Acted)
	} else {
		d.out = ""
	}
	if a := s.agents.byID[t.Agent]; a != nil && a.runs(t.Run) {
		s.tasks.queue.removeIdle(a)
		a.deaf = true
		s.addIdle(a)
	}
}

// taskResponded records a response to a delegated task, as its source receives it.
type taskResponded struct {
	ID       string   `json:"task"`
	Name     string   `json:"name"`
	Agent    string   `json:"agent,omitzero"`
	Status   string   `json:"status"`
	Document wire.Raw `json:"document,omitzero"`
	Own      bool     `json:"own,omitzero"`   // from the orchestrator, not from the agent
	Again    bool     `json:"again,omitzero"` // in the words of the latest response
}

func (*taskResponded) kind() string { return events.TaskResponded }

// Line returns the response as it is sent to the source.
func (t *taskResponded) Line() wire.Raw { return t.Document }

func (t *taskResponded) apply(s *State, r *wire.Record) {
	if !t.Own {
		s.agents.settleGiven(t.Agent, r.At)
	}
	d := s.tasks.byID[t.ID].delegation()
	if !t.Again {
		d.said, d.latest = t.Status, r.Seq
	}
	s.delegations.when(d, d.next, time.Time{})
	s.keepResponse(d, t.Document)
}

// taskAnswered records that the source has received the latest response.
type taskAnswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*taskAnswered) kind() string { return events.TaskAnswered }

func (t *taskAnswered) apply(s *State, r *wire.Record) {
	d := s.tasks.byID[t.ID].delegation()
	d.given = r.At
	if a := s.agents.sourceAgent(d); a != nil && len(a.owed) > maxKept {
		var oldest *delegatedWork // of those that were written to it
		for _, o := range a.owed {
			if !o.given.IsZero() && (oldest == nil || o.latest < oldest.latest) {
				oldest = o
			}
		}
		s.agents.dropKeptResponse(oldest)
	}
}

// taskUnanswered records that the response could not be sent. It is sent again when the source
// reads its stdin.
type taskUnanswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*taskUnanswered) kind() string { return events.TaskUnanswered }

func (t *taskUnanswered) apply(s *State, _ *wire.Record) { s.tasks.byID[t.ID].delegation().sent = "" }

// taskActed records an act that was sent to the agent of a task.
type taskActed struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Act     string      `json:"act"` // wire.Act…
	Input   wire.Raw    `json:"input,omitzero"`
	Payload wire.Raw    `json:"payload,omitzero"` // of an update with other members than the input
	Reason  string      `json:"reason,omitzero"`
	Until   string      `json:"until,omitzero"` // of a status request: when the source gets the known status
	Request *requestKey `json:"request,omitzero"`
}

func (*taskActed) kind() string { return events.TaskActed }

func (t *taskActed) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	if until, ok := object.ParseTime(t.Until); ok {
		d := k.delegation()
		s.delegations.when(d, d.next, until)
	}
	s.saveReply(agentOf(r.From), t.Request, s.questions.answerOf(k, nil), nil)
}

// Line returns the act as it is sent to the agent.
func (t *taskActed) Line() wire.Raw {
	return oneLine(delegation.AppendAct(nil, &delegation.Act{ID: t.ID, Type: t.Act, Input: t.Input, Payload: t.Payload, Reason: t.Reason}))
}

// oneLine returns a line without its end.
func oneLine(text []byte) wire.Raw { return bytes.TrimSuffix(text, []byte("\n")) }

// taskRetried records that a failed task is retried, because its agent reported that a retry may
// succeed.
type taskRetried struct {
	ID    string            `json:"task"`
	Name  string            `json:"name"`
	Agent string            `json:"agent"`
	Fault *delegation.Fault `json:"error"`
	Next  string            `json:"next"`
}

func (*taskRetried) kind() string { return events.TaskRetried }

func (t *taskRetried) apply(s *State, _ *wire.Record) {
	k := s.tasks.byID[t.ID]
	s.unassign(k, t.Agent, "it failed: "+t.Fault.Message)
	k.delegation().retries++
	next, _ := object.ParseTime(t.Next)
	s.delegations.when(k.delegation(), next, k.delegation().asked)
}

func (f *taskForwarded) check(s *State) error { return s.tasks.checkDelegated(f.ID, heldStates...) }
func (t *taskReturned) check(s *State) error  { return s.tasks.checkDelegated(t.ID, heldStates...) }
func (t *taskResponded) check(s *State) error {
	return s.tasks.checkDelegated(t.ID, wire.TaskStates...)
}
func (t *taskAnswered) check(s *State) error { return s.tasks.checkDelegated(t.ID, wire.TaskStates...) }
func (t *taskUnanswered) check(s *State) error {
	return s.tasks.checkDelegated(t.ID, wire.TaskStates...)
}
func (t *taskActed) check(s *State) error { return s.tasks.checkDelegated(t.ID, openStates...) }

func (t *taskRetried) check(s *State) error {
	if t.Fault == nil {
		return errors.New("it does not say why")
	}
	return s.tasks.checkDelegated(t.ID, heldStates...)
}

// checkDelegated is checkTask for a delegated task.
func (t *tasks) checkDelegated(id string, states ...wire.TaskState) error {
	if err := t.checkTask(id, states...); err != nil {
		return err
	}
	if t.byID[id].delegation() == nil {
		return fmt.Errorf("task %s was not handed on", id)
	}
	return nil
}
