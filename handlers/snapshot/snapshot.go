// Package snapshot spells a State as bytes, piece by piece while the State goes on, and restores it. With a
// snapshot a restart need not read all records.
//
//	spelling.go  a snapshot that is being spelled
//	snapshot.go  its pieces: agents, questions, sessions. Tasks are stored by package state, which archives them
//	restore.go   a State from the pieces
package snapshot

import (
	"orchestrator/handlers/access"
	"orchestrator/handlers/bus"
	"orchestrator/handlers/graph"
	"orchestrator/handlers/replies"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

// snapshotVersion is the version of the snapshot format, and oldestVersion the oldest that is read. A
// snapshot of another version is ignored; the State is then rebuilt from all records. Version 13
// has the dependencies of all tasks in a list of their own. Since version 15 a time has no zeros at its end.
const (
	oldestVersion   = 13
	SnapshotVersion = 15
)

// A snapshot is a stored State. With it, a restart need not read all records. Parts that can be
// derived are left out.
type snapshot struct {
	Version  int                  `json:"version"`
	Seq      int64                `json:"seq"`
	Stopping bool                 `json:"stopping,omitzero"`
	Numbered int64                `json:"numbered,omitzero"`
	Since    string               `json:"since,omitzero"`
	Drained  []string             `json:"drained,omitzero"`
	Finished []string             `json:"finished"` // kept whole, in the order of their ends
	Access   []*access.Credential `json:"access"`
	Links    []graph.View         `json:"links,omitzero"` // of version 13, with the indexes of tasks
	LastLink int64                `json:"last_link"`
	Count    int                  `json:"count"` // of tasks
	Met      int64                `json:"actors_met"`

	Archived map[wire.TaskState]int `json:"archived,omitzero"`
	Parts    map[wire.TaskState]int `json:"archived_parts,omitzero"` // of Archived
	Recalled []string               `json:"recalled,omitzero"`

	// The lists that may be long come last. The tasks are in any order.
	Agents    []snapshotAgent        `json:"agents,omitzero"`
	Actors    []snapshotActor        `json:"actors,omitzero"`
	Sessions  []snapshotSession      `json:"sessions,omitzero"`
	Questions []state.StoredQuestion `json:"questions,omitzero"`
	Tasks     object.Stream          `json:"tasks"`
}

// A snapshotActor is an actor of the bus. The keys of its mail are in the log.
type snapshotActor struct {
	bus.Stored
	Agent string `json:"agent,omitzero"`
}

type snapshotAgent struct {
	Member wire.Member `json:"member"`
	state.StoredAgent
	Deaf     bool             `json:"deaf,omitzero"`
	Said     wire.Raw         `json:"said,omitzero"`
	Remote   *state.Remote    `json:"remote,omitzero"`
	Holds    []string         `json:"holds,omitzero"`
	Memories []replies.Stored `json:"memories,omitzero"` // oldest first
	saved    []replies.Reply  // that become Memories when the agent is spelled

	Conversation *activity.Conversation `json:"conversation,omitzero"`
}

func memberOf(a *state.KnownAgent) *snapshotAgent {
	kept := &snapshotAgent{Member: a.Member, StoredAgent: a.StoredAgent, Deaf: a.Unreachable, Holds: state.Ids(a.Holds), saved: a.Memories.All()}
	if a.Conversation != nil {
		kept.Conversation = &a.Conversation.Conversation
	}
	if a.Said != nil {
		kept.Said = a.Said.Document
	}
	if a.Remote != nil {
		remote := *a.Remote
		kept.Remote = &remote
	}
	return kept
}

func actorOf(c *state.BusActor) *snapshotActor {
	kept := &snapshotActor{Stored: c.Stored}
	if c.Agent != nil {
		kept.Agent = c.Agent.ID
	}
	return kept
}

// A snapshotSession is a session in a snapshot.
type snapshotSession struct {
	state.StoredSession
	Numbers []int64              `json:"numbers"` // of its members, in order
	Works   []snapshotWork       `json:"works"`
	Reviews []state.StoredReview `json:"reviews"`
	Parcels []snapshotOutboxItem `json:"parcels"` // of each member in order, one member after the other
}

type snapshotWork struct {
	Task string `json:"task"`
	state.StoredWork
	Revises string `json:"revises,omitzero"`
	Open    string `json:"open,omitzero"`
	Limit   int64  `json:"limit_ms,omitzero"`
}

type snapshotOutboxItem struct {
	To string `json:"to"`
	state.StoredItem
}

func sessionOf(s *state.SessionState) *snapshotSession {
	kept := &snapshotSession{StoredSession: s.StoredSession}
	for _, m := range s.Members {
		kept.Numbers = append(kept.Numbers, m.Number)
		for _, p := range m.Outbox {
			kept.Parcels = append(kept.Parcels, snapshotOutboxItem{To: p.To.AgentID, StoredItem: p.StoredItem})
		}
	}
	for _, w := range s.Works {
		kept.Works = append(kept.Works, workOf(w))
	}
	for _, v := range s.Reviews {
		kept.Reviews = append(kept.Reviews, v.StoredReview)
	}
	return kept
}

func workOf(w *state.Work) snapshotWork {
	kept := snapshotWork{Task: w.Task.View.ID, StoredWork: w.StoredWork, Limit: w.Limit.Milliseconds()}
	if w.Revises != nil {
		kept.Revises = w.Revises.Task.View.ID
	}
	if w.Open != nil {
		kept.Open = w.Open.View.ReviewID
	}
	return kept
}
