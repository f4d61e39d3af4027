package state

import (
	"fmt"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// A conversation is the conversation of the program of an agent, as it reported it last.
type Conversation struct{ activity.Conversation }

// Activity returns the reports of a coding agent about itself, or nil for another agent.
func (s *State) Activity(name string) *control.Activity {
	a := s.Agents.ByID[name]
	if a == nil || a.Conversation == nil && a.Limited.IsZero() && a.Usage == (activity.Used{}) {
		return nil
	}
	v := &control.Activity{Input: a.Usage.Input, Output: a.Usage.Output, Cost: a.Usage.Cost, Currency: a.Usage.Currency}
	if c := a.Conversation; c != nil {
		v.Conversation, v.Kind, v.Dir, v.Program, v.Model = c.ID, c.Kind, c.Dir, c.Version, c.Model
	}
	if !a.Limited.IsZero() {
		v.LimitedUntil, v.LimitedBy = object.Timestamp(a.Limited), a.LimitedBy
	}
	for _, q := range s.Questions.Open {
		if q.View.Agent == name && q.View.Blocking {
			v.Question = q.View.ID
			break
		}
	}
	return v
}

// AgentConversation records the conversation of the program of an agent.
type AgentConversation struct {
	Agent string `json:"agent"`
	activity.Conversation
}

func (*AgentConversation) kind() string { return events.AgentConversation }

func (ac *AgentConversation) apply(s *State, _ *wire.Record) {
	s.Agents.ByID[ac.Agent].Conversation = &Conversation{ac.Conversation}
}

func (ac *AgentConversation) check(s *State) error { return s.Agents.checkAgent(ac.Agent) }

func (ac *AgentConversation) tell(e *wire.Event) {
	e.Agent, e.Text = ac.Agent, "its conversation is "+ac.ID
}

// AgentUsage records the usage of a turn of an agent.
type AgentUsage struct {
	Agent string `json:"agent"`
	activity.Usage
}

func (*AgentUsage) kind() string { return events.AgentUsage }

func (u *AgentUsage) apply(s *State, _ *wire.Record) {
	s.Agents.ByID[u.Agent].Usage.Add(u.Sum())
	if t := s.Tasks.ByID[u.TaskID]; t != nil {
		s.Tasks.beforeChange(t)
		t.EnsureExtra().Used.Add(u.Sum())
	}
}

func (u *AgentUsage) check(s *State) error { return s.Agents.checkAgent(u.Agent) }

func (u *AgentUsage) tell(e *wire.Event) {
	e.Agent, e.Task = u.Agent, u.TaskID
	e.Text = fmt.Sprintf("used %d tokens in, %d out", u.Input, u.Output)
	if u.Cost > 0 {
		e.Text += fmt.Sprintf(", %.4f %s", u.Cost, u.Currency)
	}
}

// Used returns the total usage of the agents, or nil without reports.
func (s *State) Used() *activity.Used {
	var all activity.Used
	for _, a := range s.Agents.Order {
		all.Add(a.Usage)
	}
	if all == (activity.Used{}) {
		return nil
	}
	return &all
}

// AgentLimited records that an agent gets no task for some time, or gets tasks again.
type AgentLimited struct {
	Agent string `json:"agent"`
	Until string `json:"until,omitzero"` // "": it is over
	Scope string `json:"scope,omitzero"`
}

func (*AgentLimited) kind() string { return events.AgentLimited }

func (al *AgentLimited) apply(s *State, _ *wire.Record) {
	a := s.Agents.ByID[al.Agent]
	s.Tasks.Queue.removeIdle(a)
	came := a.Takes()
	s.Agents.Limited.Drop(Parked{a})
	a.Limited, _ = object.ParseTime(al.Until)
	a.LimitedBy = al.Scope
	if !a.Limited.IsZero() {
		s.Agents.Limited.Add(Parked{a})
	}
	s.AddIdle(a)
	s.updateStanding(a)
	if !came && a.Takes() {
		s.Tasks.Required.markChanged(a)
	}
}

func (al *AgentLimited) check(s *State) error { return s.Agents.checkAgent(al.Agent) }

func (al *AgentLimited) tell(e *wire.Event) {
	e.Agent, e.Text = al.Agent, "is no longer limited"
	if al.Until != "" {
		e.Text = "is limited until " + al.Until
		if al.Scope != "" {
			e.Text += ": " + al.Scope
		}
	}
}

// A parked agent is one that gets no task until a time.
type Parked struct{ *KnownAgent }

func (p Parked) Date() (time.Time, int64) { return p.Limited, p.number }

// MailReceipt records the state of a message after it was written to an agent. It counts only for
// mail of the actor that the agent had.
type MailReceipt struct {
	Agent string `json:"agent"`
	Actor string `json:"actor,omitzero"` // "" in old records
	Seq   int64  `json:"seq"`
	State string `json:"state"`
}

func (*MailReceipt) kind() string { return events.MessageReceipt }

// Receipt implements history.Receipt.
func (mr *MailReceipt) Receipt(of *mail.Message) *mail.State {
	if mr.Seq != of.Seq || mr.Actor != "" && mr.Actor != of.To && of.To != mail.Broadcast {
		return nil
	}
	return &mail.State{State: mr.State, Agent: mr.Agent}
}

func (*MailReceipt) apply(*State, *wire.Record) {}

func (mr *MailReceipt) tell(e *wire.Event) {
	e.Agent, e.Text = mr.Agent, fmt.Sprintf("message %d is in the context of its model", mr.Seq)
	if mr.State == activity.Refused {
		e.Text = fmt.Sprintf("message %d was refused by its program", mr.Seq)
	}
}

// Session returns for how long a permission for the session holds: as long as the conversation of
// the agent's program, or as its run without a conversation.
func (a *KnownAgent) Session() string {
	if a.Conversation != nil {
		return a.Conversation.ID
	}
	return a.Run
}

func Withdrawn() *wire.Error {
	return &wire.Error{Code: wire.CodeConflict, Message: "the question was withdrawn"}
}
