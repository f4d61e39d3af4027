// Package snapshot spells a State as bytes, piece by piece while the State goes on, and restores it. With a
// snapshot a restart need not read all records.
//
//	spelling.go  a snapshot that is being spelled
//	snapshot.go  its pieces: agents, questions, sessions. Tasks are stored by package state, which archives them
//	restore.go   a State from the pieces
package snapshot

import (
	"orchestrator/handlers/access"
	"orchestrator/handlers/graph"
	"orchestrator/handlers/replies"
	"orchestrator/handlers/review"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// snapshotVersion is the version of the snapshot format, and oldestVersion the oldest that is read. A
// snapshot of another version is ignored; the State is then rebuilt from all records. Version 13
// has the dependencies of all tasks in a list of their own.
const (
	oldestVersion   = 13
	SnapshotVersion = 14
)

// A snapshot is a stored State, with which a restart need not read all records. Parts that can
// be derived are left out.
type snapshot struct {
	Version  int              `json:"version"`
	Seq      int64            `json:"seq"`
	Stopping bool             `json:"stopping,omitzero"`
	Numbered int64            `json:"numbered,omitzero"`
	Since    string           `json:"since,omitzero"`
	Drained  []string         `json:"drained,omitzero"`
	Finished []string         `json:"finished"` // kept whole, in the order in which they ended
	Access   []snapshotAccess `json:"access"`
	Links    []graph.View     `json:"links,omitzero"` // of version 13, with the indexes of tasks
	LastLink int64            `json:"last_link"`
	Count    int              `json:"count"` // of tasks
	Met      int64            `json:"actors_met"`

	Archived map[wire.TaskState]int `json:"archived,omitzero"`
	Parts    map[wire.TaskState]int `json:"archived_parts,omitzero"` // of Archived
	Recalled []string               `json:"recalled,omitzero"`

	// The lists that may be long come last. The tasks are in any order.
	Agents    []snapshotAgent    `json:"agents,omitzero"`
	Actors    []snapshotActor    `json:"actors,omitzero"`
	Sessions  []snapshotSession  `json:"sessions,omitzero"`
	Questions []snapshotQuestion `json:"questions,omitzero"`
	Tasks     object.Stream      `json:"tasks"`
}

// A snapshotActor is an actor of the bus. The keys of its mail are in the log.
type snapshotActor struct {
	ID     string `json:"actor"`
	Number int64  `json:"number"`
	Since  int64  `json:"since,omitzero"`
	Agent  string `json:"agent,omitzero"`
	OfRun  bool   `json:"of_run,omitzero"`
	Cursor int64  `json:"cursor,omitzero"`
	Latest int64  `json:"latest,omitzero"`
	Seen   string `json:"seen,omitzero"`
	Beat   string `json:"beat,omitzero"`
	Beats  bool   `json:"beats,omitzero"`
	Due    bool   `json:"due,omitzero"`
	Stale  bool   `json:"stale,omitzero"`
}

type snapshotAccess struct {
	wire.Credential
	Hash    string `json:"hash,omitzero"`
	Revoked bool   `json:"revoked,omitzero"`
}

type snapshotAgent struct {
	Member   wire.Member      `json:"member"`
	File     wire.Member      `json:"file"` // the member as configured
	Said     wire.Raw         `json:"said,omitzero"`
	System   wire.Raw         `json:"system,omitzero"`
	Remote   *snapshotRemote  `json:"remote,omitzero"`
	State    state.AgentState `json:"state"`
	Run      string           `json:"run,omitzero"`
	Host     string           `json:"host,omitzero"`
	Stale    bool             `json:"stale,omitzero"`
	Deaf     bool             `json:"deaf,omitzero"`
	Farewell bool             `json:"farewell,omitzero"`
	Ended    bool             `json:"ended,omitzero"`
	Past     []string         `json:"past,omitzero"`
	Wrecked  bool             `json:"wrecked,omitzero"`
	Returns  bool             `json:"returns,omitzero"`
	Given    int64            `json:"given,omitzero"`
	Holds    []string         `json:"holds,omitzero"`
	Memories []replies.Stored `json:"memories,omitzero"` // oldest first
	saved    []replies.Reply  // that become Memories when the agent is spelled

	Conversation *activity.Conversation  `json:"conversation,omitzero"`
	Grants       access.Grants           `json:"grants,omitzero"`
	Usage        activity.Used           `json:"usage,omitzero"`
	Late         []*state.AnsweredByMail `json:"late,omitzero"`
	Limited      string                  `json:"limited,omitzero"`
	LimitedBy    string                  `json:"limited_by,omitzero"`
}

type snapshotRemote struct {
	Hostname string   `json:"hostname,omitzero"`
	IP       string   `json:"ip,omitzero"`
	OS       string   `json:"os,omitzero"`
	Repos    wire.Raw `json:"repos,omitzero"`
	Seen     string   `json:"seen"`
	Keyless  int64    `json:"keyless,omitzero"`
}

type snapshotQuestion struct {
	View    wire.Question     `json:"view"`
	Number  int64             `json:"number"`
	Run     string            `json:"run,omitzero"`
	Door    bool              `json:"door,omitzero"`
	Request *state.RequestKey `json:"request,omitzero"`
	Aside   bool              `json:"aside,omitzero"`
	Until   string            `json:"until,omitzero"`
	Mailed  bool              `json:"mailed,omitzero"`
	Own     bool              `json:"own,omitzero"`
}

func memberOf(a *state.KnownAgent) *snapshotAgent {
	kept := &snapshotAgent{
		Member: a.Member, File: a.Configured, State: a.State, Run: a.Run, Host: a.Host, Stale: a.Stale, Deaf: a.Unreachable, Given: a.Given,
		Farewell: a.Farewell, Ended: a.Ended, Past: a.Past, Wrecked: a.Wrecked, Returns: a.Returns,
		Holds: state.Ids(a.Holds), System: a.System, Grants: a.Grants, Usage: a.Usage, Late: a.Late,
	}
	if a.Conversation != nil {
		kept.Conversation = &a.Conversation.Conversation
	}
	if !a.Limited.IsZero() {
		kept.Limited, kept.LimitedBy = object.Timestamp(a.Limited), a.LimitedBy
	}
	if a.Said != nil {
		kept.Said = a.Said.Document
	}
	if m := a.Remote; m != nil {
		kept.Remote = &snapshotRemote{Hostname: m.Hostname, IP: m.Ip, OS: m.Os, Repos: m.Repos, Seen: object.Timestamp(m.Seen), Keyless: m.Keyless}
	}
	kept.saved = a.Memories.All()
	return kept
}

func actorOf(c *state.BusActor) *snapshotActor {
	kept := &snapshotActor{
		ID: c.ID, Number: c.Number, Since: c.Since, OfRun: c.OfRun, Cursor: c.Cursor, Latest: c.Latest, Beats: c.Beats, Due: c.Due, Stale: c.Stale,
	}
	if c.Agent != nil {
		kept.Agent = c.Agent.ID
	}
	if !c.Seen.IsZero() {
		kept.Seen = object.Timestamp(c.Seen)
	}
	if !c.Beat.IsZero() {
		kept.Beat = object.Timestamp(c.Beat)
	}
	return kept
}

func questionOf(q *state.Question) *snapshotQuestion {
	return &snapshotQuestion{
		View: q.View, Number: q.Number, Run: q.Run, Door: q.Door, Request: q.Request, Aside: q.Aside, Mailed: q.Mailed, Own: q.Own, Until: state.Stamped(q.Until),
	}
}

// A snapshotSession is a session in a snapshot.
type snapshotSession struct {
	Spec     session.Spec         `json:"spec"`
	File     bool                 `json:"file,omitzero"`
	ClosedAt int64                `json:"closed_at,omitzero"`
	Aborted  bool                 `json:"aborted,omitzero"`
	Reason   string               `json:"reason,omitzero"`
	Messages int64                `json:"messages,omitzero"`
	Refused  int64                `json:"refused,omitzero"`
	Last     int64                `json:"last,omitzero"`
	Numbers  []int64              `json:"numbers"` // of its members, in order
	Works    []snapshotWork       `json:"works"`
	Reviews  []snapshotReview     `json:"reviews"`
	Parcels  []snapshotOutboxItem `json:"parcels"` // of each member in order, one member after the other
}

type snapshotWork struct {
	Task      string                  `json:"task"`
	Number    int64                   `json:"number"`
	Architect string                  `json:"architect"`
	Developer string                  `json:"developer"`
	Phase     string                  `json:"phase"`
	Chain     string                  `json:"chain"`
	Message   string                  `json:"message"`
	Document  wire.Raw                `json:"document,omitzero"`
	Scope     []string                `json:"scope"`
	Tested    bool                    `json:"testing_required,omitzero"`
	Tries     int                     `json:"tries"`
	Loop      review.Loop             `json:"loop"`
	Revises   string                  `json:"revises,omitzero"`
	Result    wire.Raw                `json:"result,omitzero"`
	Open      string                  `json:"open,omitzero"`
	Escalated string                  `json:"escalated,omitzero"`
	Question  string                  `json:"question,omitzero"`
	Trouble   *session.ExecutionError `json:"trouble,omitzero"`
	Limit     int64                   `json:"limit_ms,omitzero"`
	Wished    string                  `json:"wished,omitzero"`
	Expired   bool                    `json:"expired,omitzero"`
	Begun     string                  `json:"begun,omitzero"`
	Heard     string                  `json:"heard,omitzero"`
	Overdue   bool                    `json:"overdue,omitzero"`
}

type snapshotReview struct {
	View   session.ReviewView `json:"view"`
	Named  string             `json:"named"`
	Wanted []string           `json:"wanted,omitzero"`
}

type snapshotOutboxItem struct {
	Seq     int64    `json:"seq"`
	To      string   `json:"to"`
	From    string   `json:"from"`
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Task    string   `json:"task,omitzero"`
	By      string   `json:"by,omitzero"`
	Line    wire.Raw `json:"line,omitzero"`
	Held    bool     `json:"held,omitzero"`
	Out     string   `json:"out,omitzero"`
	Taken   bool     `json:"taken,omitzero"`
	Repeat  bool     `json:"repeat,omitzero"`
	Given   string   `json:"given,omitzero"`
	Retries int      `json:"retries,omitzero"`
	Next    string   `json:"next,omitzero"`
}

func sessionOf(s *state.SessionState) *snapshotSession {
	kept := &snapshotSession{
		Spec: s.Spec, File: s.File, ClosedAt: s.ClosedAt, Aborted: s.Aborted, Reason: s.Reason, Messages: s.Messages, Refused: s.Refused, Last: s.Last,
	}
	for _, m := range s.Members {
		kept.Numbers = append(kept.Numbers, m.Number)
		for _, p := range m.Outbox {
			kept.Parcels = append(kept.Parcels, outboxItemOf(p))
		}
	}
	for _, w := range s.Works {
		kept.Works = append(kept.Works, workOf(w))
	}
	for _, v := range s.Reviews {
		kept.Reviews = append(kept.Reviews, snapshotReview{View: v.View, Named: v.Named, Wanted: v.Wanted})
	}
	return kept
}

func outboxItemOf(oi *state.OutboxItem) snapshotOutboxItem {
	kept := snapshotOutboxItem{
		Seq: oi.Seq, To: oi.To.AgentID, From: oi.From, ID: oi.Id, Kind: oi.Kind, Task: oi.Task, By: oi.By, Line: oi.Line, Held: oi.Held, Out: oi.Out,
		Taken: oi.Taken, Repeat: oi.Repeat, Retries: oi.Retries,
	}
	if oi.Taken {
		kept.Given = object.Timestamp(oi.Given)
	}
	if oi.Timed() {
		kept.Next = object.Timestamp(oi.Next)
	}
	return kept
}

func workOf(w *state.Work) snapshotWork {
	kept := snapshotWork{
		Task: w.Task.View.ID, Number: w.Number, Architect: w.Architect, Developer: w.Developer, Phase: w.Phase, Chain: w.Chain, Message: w.Message,
		Document: w.Document, Scope: w.Scope, Tested: w.Tested, Tries: w.Tries, Loop: w.Loop, Result: w.Result, Escalated: w.Escalated, Question: w.Question,
		Trouble: w.Trouble, Limit: w.Limit.Milliseconds(), Wished: w.Wished, Expired: w.Expired, Begun: state.Stamped(w.Begun), Heard: state.Stamped(w.Heard), Overdue: w.Overdue,
	}
	if w.Revises != nil {
		kept.Revises = w.Revises.Task.View.ID
	}
	if w.Open != nil {
		kept.Open = w.Open.View.ReviewID
	}
	return kept
}
