package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// delegated is the part of a new task that says how it was handed on.
type delegated struct {
	Document wire.Raw `json:"document"` // the request, as it is forwarded but for its target
	Sum      uint64   `json:"sum"`
}

// read reads the request, which has been read before.
func (f *delegated) read() (*wire.TaskRequest, error) {
	request, err := wire.ReadTaskRequest(f.Document, deepest)
	if err != nil {
		return nil, fmt.Errorf("its request makes no sense: %w", err)
	}
	return request, nil
}

// taskForwarded says that an agent gets a task that was handed on to it, or once more
// the input to it that it could not be brought.
type taskForwarded struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"` // the record of the input
}

func (*taskForwarded) kind() string { return wire.EventTaskForwarded }

func (f *taskForwarded) apply(s *State, r *wire.Record) {
	d := s.tasks.byID[f.ID].delegation()
	if f.Acted != 0 {
		d.returned = slices.DeleteFunc(d.returned, func(acted int64) bool { return acted == f.Acted })
		return
	}
	d.out, d.forwarded = f.Run, wire.Timestamp(r.At)
}

// taskReturned says that it could not be brought to it. It is forwarded again when
// the agent reads its stdin.
type taskReturned struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"`
}

func (*taskReturned) kind() string { return wire.EventTaskReturned }

func (f *taskReturned) apply(s *State, _ *wire.Record) {
	d := s.tasks.byID[f.ID].delegation()
	if f.Acted != 0 {
		d.returned = append(d.returned, f.Acted)
	} else {
		d.out = ""
	}
	if a := s.agents.byID[f.Agent]; a != nil && a.runs(f.Run) {
		s.tasks.queue.removeIdle(a)
		a.deaf = true
		s.addIdle(a)
	}
}

// taskResponded says how a task that was handed on stands, in the words that its
// source gets.
type taskResponded struct {
	ID       string   `json:"task"`
	Name     string   `json:"name"`
	Agent    string   `json:"agent,omitzero"`
	Status   string   `json:"status"`
	Document wire.Raw `json:"document,omitzero"`
	Own      bool     `json:"own,omitzero"`   // the orchestrator says so, not the agent
	Again    bool     `json:"again,omitzero"` // in the words of the latest response
}

func (*taskResponded) kind() string { return wire.EventTaskResponded }

func (f *taskResponded) apply(s *State, r *wire.Record) {
	if !f.Own {
		s.settleGiven(f.Agent, r.At)
	}
	d := s.tasks.byID[f.ID].delegation()
	if !f.Again {
		d.said, d.latest = f.Status, r.Seq
	}
	s.when(d, d.next, time.Time{})
	s.keepResponse(d, f.Document)
}

// taskAnswered says that its source has the latest response.
type taskAnswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*taskAnswered) kind() string { return wire.EventTaskAnswered }

func (f *taskAnswered) apply(s *State, r *wire.Record) {
	d := s.tasks.byID[f.ID].delegation()
	d.given = r.At
	if a := s.sourceAgent(d); a != nil && len(a.owed) > mostKept {
		var oldest *delegation // of those that were given: the others are still to come
		for _, o := range a.owed {
			if !o.given.IsZero() && (oldest == nil || o.latest < oldest.latest) {
				oldest = o
			}
		}
		s.dropKeptResponse(oldest)
	}
}

// taskUnanswered says that it could not be brought to it. It is when its source
// reads its stdin.
type taskUnanswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*taskUnanswered) kind() string { return wire.EventTaskUnanswered }

func (f *taskUnanswered) apply(s *State, _ *wire.Record) { s.tasks.byID[f.ID].delegation().sent = "" }

// taskActed records what was said to the agent of a task.
type taskActed struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Act     string      `json:"act"` // wire.Act…
	Input   wire.Raw    `json:"input,omitzero"`
	Payload wire.Raw    `json:"payload,omitzero"` // of an update that brings more than an input
	Reason  string      `json:"reason,omitzero"`
	Until   string      `json:"until,omitzero"` // of a question how it stands: then its source is told what is known
	Request *requestKey `json:"request,omitzero"`
}

func (*taskActed) kind() string { return wire.EventTaskActed }

func (f *taskActed) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[f.ID]
	if until, ok := object.ParseTime(f.Until); ok {
		d := k.delegation()
		s.when(d, d.next, until)
	}
	s.saveReply(agentOf(r.From), f.Request, s.answerOf(k, nil), nil)
}

// line is what the agent is told.
func (f *taskActed) line() wire.Raw {
	return oneLine(wire.AppendTaskAct(nil, &wire.TaskAct{ID: f.ID, Type: f.Act, Input: f.Input, Payload: f.Payload, Reason: f.Reason}))
}

// oneLine is a line without its end.
func oneLine(text []byte) wire.Raw { return bytes.TrimSuffix(text, []byte("\n")) }

// taskRetried says that a task is tried again, because its agent says that this may
// go well.
type taskRetried struct {
	ID    string          `json:"task"`
	Name  string          `json:"name"`
	Agent string          `json:"agent"`
	Fault *wire.TaskFault `json:"error"`
	Next  string          `json:"next"`
}

func (*taskRetried) kind() string { return wire.EventTaskRetried }

func (f *taskRetried) apply(s *State, _ *wire.Record) {
	k := s.tasks.byID[f.ID]
	s.unassign(k, f.Agent, "it failed: "+f.Fault.Message)
	k.delegation().retries++
	next, _ := object.ParseTime(f.Next)
	s.when(k.delegation(), next, k.delegation().asked)
}

func (f *taskForwarded) check(s *State) error  { return s.checkDelegated(f.ID, heldStates...) }
func (f *taskReturned) check(s *State) error   { return s.checkDelegated(f.ID, heldStates...) }
func (f *taskResponded) check(s *State) error  { return s.checkDelegated(f.ID, wire.TaskStates...) }
func (f *taskAnswered) check(s *State) error   { return s.checkDelegated(f.ID, wire.TaskStates...) }
func (f *taskUnanswered) check(s *State) error { return s.checkDelegated(f.ID, wire.TaskStates...) }
func (f *taskActed) check(s *State) error      { return s.checkDelegated(f.ID, openStates...) }

func (f *taskRetried) check(s *State) error {
	if f.Fault == nil {
		return errors.New("it does not say why")
	}
	return s.checkDelegated(f.ID, heldStates...)
}

// checkDelegated is checkTask for one that was handed on.
func (s *State) checkDelegated(id string, states ...wire.TaskState) error {
	if err := s.checkTask(id, states...); err != nil {
		return err
	}
	if s.tasks.byID[id].delegation() == nil {
		return fmt.Errorf("task %s was not handed on", id)
	}
	return nil
}
