package handlers

import (
	"fmt"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A conversation is the conversation of the program of an agent, as it reported it last.
type conversation struct{ activity.Conversation }

// Activity returns what a coding agent has reported about itself, or nil for another agent.
func (s *State) Activity(name string) *control.Activity {
	a := s.agents.byID[name]
	if a == nil || a.conversation == nil && a.limited.IsZero() && a.usage == (used{}) {
		return nil
	}
	v := &control.Activity{Input: a.usage.Input, Output: a.usage.Output, Cost: a.usage.Cost}
	if c := a.conversation; c != nil {
		v.Conversation, v.Kind, v.Dir, v.Program, v.Model = c.ID, c.Kind, c.Dir, c.Version, c.Model
	}
	if !a.limited.IsZero() {
		v.LimitedUntil = object.Timestamp(a.limited)
	}
	for _, q := range s.questions.open {
		if q.view.Agent == name && q.view.Blocking {
			v.Question = q.view.ID
			break
		}
	}
	return v
}

// agentConversation records the conversation of the program of an agent.
type agentConversation struct {
	Agent string `json:"agent"`
	activity.Conversation
}

func (*agentConversation) kind() string { return events.AgentConversation }

func (ac *agentConversation) apply(s *State, _ *wire.Record) {
	s.agents.byID[ac.Agent].conversation = &conversation{ac.Conversation}
}

func (ac *agentConversation) check(s *State) error { return s.agents.checkAgent(ac.Agent) }

func (ac *agentConversation) tell(e *wire.Event) {
	e.Agent, e.Text = ac.Agent, "its conversation is "+ac.ID
}

// agentUsage records what a turn of an agent has used.
type agentUsage struct {
	Agent string `json:"agent"`
	activity.Usage
}

func (*agentUsage) kind() string { return events.AgentUsage }

func (u *agentUsage) apply(s *State, _ *wire.Record) {
	s.agents.byID[u.Agent].usage.add(&u.Usage)
	if k := s.tasks.byID[u.TaskID]; k != nil {
		k.needsMore().used.add(&u.Usage)
	}
}

func (u *agentUsage) check(s *State) error { return s.agents.checkAgent(u.Agent) }

func (u *agentUsage) tell(e *wire.Event) {
	e.Agent, e.Task = u.Agent, u.TaskID
	e.Text = fmt.Sprintf("used %d tokens in, %d out", u.Input, u.Output)
	if u.Cost > 0 {
		e.Text += fmt.Sprintf(", %.4f %s", u.Cost, u.Currency)
	}
}

// used is what an agent, or the work on a task, has used in all.
type used struct {
	Input  int64   `json:"input,omitzero"`
	Output int64   `json:"output,omitzero"`
	Cost   float64 `json:"cost,omitzero"`
}

func (u *used) add(more *activity.Usage) {
	u.Input += more.Input
	u.Output += more.Output
	u.Cost += more.Cost
}

// agentLimited records that an agent gets no task for some time, or gets tasks again.
type agentLimited struct {
	Agent string `json:"agent"`
	Until string `json:"until,omitzero"` // "": it is over
	Scope string `json:"scope,omitzero"`
}

func (*agentLimited) kind() string { return events.AgentLimited }

func (al *agentLimited) apply(s *State, _ *wire.Record) {
	a := s.agents.byID[al.Agent]
	s.tasks.queue.removeIdle(a)
	came := a.takes()
	s.agents.limited.Drop(parked{a})
	a.limited, _ = object.ParseTime(al.Until)
	if !a.limited.IsZero() {
		s.agents.limited.Add(parked{a})
	}
	s.addIdle(a)
	s.updateStanding(a)
	if !came && a.takes() {
		s.tasks.required.gain(a)
	}
}

func (al *agentLimited) check(s *State) error { return s.agents.checkAgent(al.Agent) }

func (al *agentLimited) tell(e *wire.Event) {
	e.Agent, e.Text = al.Agent, "is not limited any more"
	if al.Until != "" {
		e.Text = "is limited by its vendor until " + al.Until
	}
}

// activity handles an event about the work of a coding agent. It reports false for any other
// event.
func (ad agentDecision) activity(body any) bool {
	a := ad.state.agents.byID[ad.from.Name]
	switch body := body.(type) {
	case *activity.Usage:
		ad.fact("", body.TaskID, &agentUsage{Agent: a.ID, Usage: *body})
	case *activity.Conversation:
		if a.conversation == nil || a.conversation.Conversation != *body {
			ad.fact("", "", &agentConversation{Agent: a.ID, Conversation: *body})
		}
	case *activity.Limited:
		ad.fact("", "", &agentLimited{Agent: a.ID, Until: body.Until, Scope: body.Scope})
	case *activity.Receipt:
		ad.fact("", "", &mailReceipt{Agent: a.ID, Seq: body.Seq, State: body.State})
	default:
		return false
	}
	return true
}

// unlimit ends the limits whose time has passed.
func (ad agentDecision) unlimit() {
	for limited := &ad.state.agents.limited; len(*limited) > 0; {
		a := (*limited)[0].agent
		if a.limited.After(ad.at) {
			return
		}
		ad.fact(a.actor, "", &agentLimited{Agent: a.ID})
	}
}

// A parked agent is one that gets no task until a time.
type parked struct{ *agent }

func (p parked) Date() (time.Time, int64) { return p.limited, p.number }

// mailReceipt records what became of a message after it was written to an agent.
type mailReceipt struct {
	Agent string `json:"agent"`
	Seq   int64  `json:"seq"`
	State string `json:"state"`
}

func (*mailReceipt) kind() string { return events.MessageReceipt }

func (*mailReceipt) apply(*State, *wire.Record) {}

func (mr *mailReceipt) tell(e *wire.Event) {
	e.Agent, e.Text = mr.Agent, fmt.Sprintf("message %d is in the context of its model", mr.Seq)
	if mr.State == activity.Refused {
		e.Text = fmt.Sprintf("message %d was refused by its program", mr.Seq)
	}
}

// currentTask returns the task that the caller works on: the first one that has started, or the
// first one that was assigned.
func currentTask(td taskDecision, _ *wire.Nothing) (*wire.TaskReply, *wire.Error) {
	a := td.state.agents.byID[td.from.Name]
	var found *task
	for _, k := range a.holds {
		if k.busy() {
			found = k
			break
		}
		if found == nil {
			found = k
		}
	}
	if found == nil {
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: "you have no task"}
	}
	return getTask(td, &wire.TaskID{TaskID: found.view.ID})
}

func reportProgress(td taskDecision, r *wire.ReportProgress) (*wire.TaskReply, *wire.Error) {
	k, err := td.reportableTask(r.TaskID, "worked on")
	if err != nil {
		return nil, err
	}
	td.begin(k)
	progress := k.view.Progress
	if r.Progress != nil {
		progress = *r.Progress
	}
	td.fact("", k.view.ID, &taskProgress{
		ID: k.view.ID, Name: k.view.Name, Agent: td.from.Name, Progress: progress, Message: r.Message, Kind: r.Kind, Request: td.mark(),
	})
	return td.state.tasks.reply(k), nil
}

func returnTask(td taskDecision, r *wire.ReturnTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.held(r.TaskID, "returned")
	switch {
	case err != nil:
		return nil, err
	case k.view.AssignedTo != td.from.Name:
		return nil, wrongState(k, "returned")
	case k.work() != nil:
		return nil, inItsSession(k, "returned")
	}
	td.requeue(k, &taskRequeued{Why: "returned by its agent: " + r.Reason, Blameless: true, Returned: true, Request: td.mark()})
	return td.state.tasks.reply(k), nil
}
