package wire

import (
	"fmt"
	"time"

	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// FormatVersion is part of every document for programs. New keys increment the minor number;
// incompatible changes increment the major number.
const FormatVersion = "1.0"

// An Event is a Record as operators see it, with a text for people and fields for programs.
type Event struct {
	// The number of the event in the event log; 0 if the event could not be recorded.
	Seq int64 `json:"seq" schema:"min=0"`
	// When it happened.
	At string `json:"at"`
	// The kind of event, for programs, such as task.done.
	Kind string `json:"kind"`
	// The agent that the event is about.
	Agent string `json:"agent,omitzero"`
	// The run of that agent.
	Run string `json:"run,omitzero"`
	// The task that the event is about.
	Task string `json:"task,omitzero"`
	// A description, for people.
	Text string `json:"text"`
	// Figures, which depend on the kind.
	Figures Figures `json:"figures,omitzero" schema:"type=object"`
	// The recorded fact, if the event is a decision.
	Payload object.Raw    `json:"payload,omitzero"`
	Mail    *mail.Message `json:"mail,omitzero" schema:"-"` // of a message: its content
}

// Figures are the figures of an Event; which are set depends on its kind.
type Figures struct {
	PID      int        `json:"pid,omitzero"`
	ExitCode *int       `json:"exit_code,omitzero"`
	Signal   string     `json:"signal,omitzero"`
	UpMS     int64      `json:"up_ms,omitzero"`
	TookMS   int64      `json:"took_ms,omitzero"`
	Attempt  int        `json:"attempt,omitzero"`
	Burst    int        `json:"burst,omitzero"`
	DelayMS  int64      `json:"delay_ms,omitzero"`
	Count    int64      `json:"count,omitzero"`
	LeftOver []LeftOver `json:"left_over,omitzero"`
	Gap      int64      `json:"gap,omitzero"`
	Ordered  bool       `json:"ordered,omitzero"` // it was requested
	Host     string     `json:"host,omitzero"`    // the machine of a run
	Kept     []string   `json:"kept,omitzero"`    // agents whose runs on other machines may go on
}

// LeftOver is a process that outlived the agent that started it.
type LeftOver struct {
	PID      int    `json:"pid"`
	Program  string `json:"program"`
	HeldOpen bool   `json:"held_open,omitzero"` // it kept the agent's output open
}

// Trouble reports whether an event is about an error of an agent.
func (e *Event) Trouble() bool {
	switch e.Kind {
	case events.AgentExited:
		return e.Figures.ExitCode == nil || *e.Figures.ExitCode != 0
	case events.AgentGaveUp, events.AgentLeftOver, events.AgentHeldOpen, events.AgentStalled, events.AgentLineCut, events.AgentUnlogged, events.AgentStdinClosed, events.AgentRefused,
		events.AgentNotServed, events.AgentUndelivered, events.TaskTrouble, events.TaskUnverified, events.TaskUnmerged, events.TaskFailed:
		return true
	}
	return false
}

// A Record is one fact, as stored in the log. A record never changes; its consequences are
// further records.
type Record struct {
	Seq         int64     // its number, from 1 without gaps; the log assigns it
	At          time.Time // UTC, milliseconds
	From        string    // the actor that caused it
	To          string    // its recipient; "" for none
	Topic       string    // of mail
	Kind        string    // its kind, such as "task.created"
	Payload     []byte    // JSON in the form of its kind, stored unchanged
	ReplyTo     int64     // the seq of the record that it answers; 0: none
	Key         string    // unique for each From, when not ""
	Correlation string    // groups related records
}

// IsMail reports whether a record is a message from one actor to another.
func (r *Record) IsMail() bool { return r.Topic != "" }

// A Base is the end of the part of the log that was removed from its front. The zero Base stands
// for a complete log.
type Base struct {
	Seq     int64     // the last removed record; 0: none
	At      time.Time // its time
	Removed time.Time // when it was removed
	Began   time.Time // the time of record 1
}

// A RemovedError reports that records that a reader needs were removed.
type RemovedError struct{ Base Base }

func (e *RemovedError) Error() string {
	return fmt.Sprintf("records 1 to %d, of %s and before, were removed on %s",
		e.Base.Seq, object.Timestamp(e.Base.At), object.Timestamp(e.Base.Removed))
}

// A Search selects records: mail, which has a topic and a recipient, the one record with a key, or
// records of archived tasks.
type Search struct {
	To       []string // recipients of the mail; none: all
	After    int64    // mail behind this number
	Until    int64    // mail up to this number; 0: no limit
	Backward bool     // the newest first

	// With a key, the fields above are ignored. The search finds the one record of this sender
	// with this key.
	From, Key string

	// Archived selects the records of the kind task.archived. Their order is that of the tasks'
	// creation, and After is the number of a task's first record. With Task, the search finds the
	// newest record of this task. Other fields except Until are ignored.
	Archived bool
	Task     string

	// Artifacts selects the records of tasks that may refer to stored artifacts, in order. Only
	// After and Until are used besides.
	Artifacts bool
}
