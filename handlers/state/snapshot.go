package state

import (
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/handlers/replies"
	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
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
	State    agentState       `json:"state"`
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

	Conversation *activity.Conversation `json:"conversation,omitzero"`
	Grants       access.Grants          `json:"grants,omitzero"`
	Usage        activity.Used          `json:"usage,omitzero"`
	Late         []*AnsweredByMail      `json:"late,omitzero"`
	Limited      string                 `json:"limited,omitzero"`
	LimitedBy    string                 `json:"limited_by,omitzero"`
}

type snapshotRemote struct {
	Hostname string   `json:"hostname,omitzero"`
	IP       string   `json:"ip,omitzero"`
	OS       string   `json:"os,omitzero"`
	Repos    wire.Raw `json:"repos,omitzero"`
	Seen     string   `json:"seen"`
	Keyless  int64    `json:"keyless,omitzero"`
}

type SnapshotTask struct {
	View    wire.Task `json:"view"`
	Run     string    `json:"run,omitzero"`
	Deaths  int       `json:"deaths,omitzero"`
	Created int64     `json:"created"`
	Ended   int64     `json:"ended,omitzero"`
	Result  int       `json:"result,omitzero"` // its length
	Stub    bool      `json:"stub,omitzero"`
	Way     Way       `json:"way,omitzero"`

	Patient   bool               `json:"patient,omitzero"`
	Block     *hub.TaskBlock     `json:"block,omitzero"`
	Promises  []hub.Promise      `json:"promises,omitzero"`
	MaxFiles  int64              `json:"max_files,omitzero"`
	PlanFirst bool               `json:"plan_first,omitzero"`
	Spent     int                `json:"spent,omitzero"`
	Wants     *match.Demand      `json:"wants,omitzero"`
	Parts     []int64            `json:"parts,omitzero"`
	Notes     []int64            `json:"notes,omitzero"`
	Output    int64              `json:"output,omitzero"`    // the record of its last partial result
	Delivered []snapshotDelivery `json:"delivered,omitzero"` // without the data, which are in the result
	Question  string             `json:"question,omitzero"`
	History   []string           `json:"history,omitzero"`
	Used      activity.Used      `json:"used,omitzero"`
	Needs     []need             `json:"needs,omitzero"`
	Links     []need             `json:"links,omitzero"` // its dependencies in the graph

	Trace  *delegation.Trace `json:"trace,omitzero"`
	Handed *snapshotHandedOn `json:"handed,omitzero"`
}

// A snapshotHandedOn is the delegation of a task.
type snapshotHandedOn struct {
	Request   wire.Raw `json:"request,omitzero"`
	Target    string   `json:"target,omitzero"`
	Chain     []string `json:"chain"`
	Sum       uint64   `json:"sum"`
	Number    int64    `json:"number"`
	Retries   int      `json:"retries,omitzero"`
	Forwarded string   `json:"forwarded,omitzero"`
	Out       string   `json:"out,omitzero"`
	Said      string   `json:"said,omitzero"`
	Latest    int64    `json:"latest,omitzero"`
	Owed      bool     `json:"owed,omitzero"`
	Sent      string   `json:"sent,omitzero"`
	Given     string   `json:"given,omitzero"`
	Returned  []int64  `json:"returned,omitzero"`
	Next      string   `json:"next,omitzero"`
	Asked     string   `json:"asked,omitzero"`
	Awaited   string   `json:"awaited,omitzero"`

	Context delegation.Context `json:"context"`
}

type snapshotDelivery struct {
	Key    string `json:"key"`
	Status string `json:"status"`
	Logged bool   `json:"logged,omitzero"`
}

type snapshotQuestion struct {
	View    wire.Question `json:"view"`
	Number  int64         `json:"number"`
	Run     string        `json:"run,omitzero"`
	Door    bool          `json:"door,omitzero"`
	Request *RequestKey   `json:"request,omitzero"`
	Aside   bool          `json:"aside,omitzero"`
	Until   string        `json:"until,omitzero"`
	Mailed  bool          `json:"mailed,omitzero"`
	Own     bool          `json:"own,omitzero"`
}

func Ids(tasks []*Task) []string {
	list := make([]string, 0, len(tasks))
	for _, k := range tasks {
		list = append(list, k.View.ID)
	}
	return list
}

func (t *Task) Snapshot() SnapshotTask {
	kept := SnapshotTask{View: t.View.Shown(), Run: t.Run, Deaths: t.Deaths, Created: t.Number, Ended: t.Ended, Stub: t.Stub, Way: t.Way, Result: t.result}
	m := t.Extra
	if m == nil {
		return kept
	}
	kept.Patient, kept.Promises, kept.MaxFiles, kept.Parts, kept.Notes, kept.Block = m.patient, m.Promises, m.MaxFiles, m.Parts, m.Notes, m.block
	kept.Question, kept.History, kept.Used, kept.Needs, kept.Output = m.Question, m.history, m.Used, m.needs, m.Output
	kept.PlanFirst, kept.Spent = m.PlanFirst, m.spent
	kept.Trace, kept.Handed = m.trace, m.Delegation.Snapshot()
	if m.wants != nil {
		kept.Wants = &m.wants.Demand
	}
	for _, d := range m.delivered {
		kept.Delivered = append(kept.Delivered, snapshotDelivery{Key: d.key, Status: d.status, Logged: d.logged})
	}
	return kept
}

func (d *DelegatedWork) Snapshot() *snapshotHandedOn {
	if d == nil {
		return nil
	}
	kept := &snapshotHandedOn{
		Request: d.Request, Target: d.Target, Chain: d.Chain, Sum: d.Sum, Number: d.number, Retries: d.Retries, Forwarded: d.forwarded, Out: d.Out,
		Said: d.Said, Latest: d.Latest, Owed: d.Owed, Sent: d.Sent, Returned: d.Returned,
		Context: d.Context,
	}
	kept.Given = stamped(d.Given)
	if !d.Next.IsZero() {
		kept.Next = object.Timestamp(d.Next)
	}
	if !d.Asked.IsZero() {
		kept.Asked = object.Timestamp(d.Asked)
	}
	if d.awaited != nil {
		kept.Awaited = d.awaited.View.ID
	}
	return kept
}

func (a *KnownAgent) Snapshot() *snapshotAgent {
	kept := &snapshotAgent{
		Member: a.Member, File: a.Configured, State: a.State, Run: a.Run, Host: a.host, Stale: a.Stale, Deaf: a.Unreachable, Given: a.Given,
		Farewell: a.Farewell, Ended: a.ended, Past: a.past, Wrecked: a.Wrecked, Returns: a.returns,
		Holds: Ids(a.Holds), System: a.System, Grants: a.Grants, Usage: a.usage, Late: a.late,
	}
	if a.Conversation != nil {
		kept.Conversation = &a.Conversation.Conversation
	}
	if !a.Limited.IsZero() {
		kept.Limited, kept.LimitedBy = object.Timestamp(a.Limited), a.limitedBy
	}
	if a.Said != nil {
		kept.Said = a.Said.Document
	}
	if m := a.Remote; m != nil {
		kept.Remote = &snapshotRemote{Hostname: m.hostname, IP: m.ip, OS: m.os, Repos: m.repos, Seen: object.Timestamp(m.Seen), Keyless: m.Keyless}
	}
	kept.saved = a.Memories.All()
	return kept
}

func snapshotOf(c *BusActor) *snapshotActor {
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

func (q *Question) Snapshot() *snapshotQuestion {
	return &snapshotQuestion{
		View: q.View, Number: q.number, Run: q.Run, Door: q.door, Request: q.Request, Aside: q.Aside, Mailed: q.Mailed, Own: q.Own, Until: stamped(q.Until),
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

func (s *SessionState) Snapshot() *snapshotSession {
	kept := &snapshotSession{
		Spec: s.Spec, File: s.File, ClosedAt: s.ClosedAt, Aborted: s.Aborted, Reason: s.Reason, Messages: s.Messages, Refused: s.Refused, Last: s.Last,
	}
	for _, m := range s.Members {
		kept.Numbers = append(kept.Numbers, m.Number)
		for _, p := range m.Outbox {
			kept.Parcels = append(kept.Parcels, p.Snapshot())
		}
	}
	for _, w := range s.Works {
		kept.Works = append(kept.Works, w.Snapshot())
	}
	for _, v := range s.Reviews {
		kept.Reviews = append(kept.Reviews, snapshotReview{View: v.View, Named: v.Named, Wanted: v.Wanted})
	}
	return kept
}

func (oi *OutboxItem) Snapshot() snapshotOutboxItem {
	kept := snapshotOutboxItem{
		Seq: oi.Seq, To: oi.To.AgentID, From: oi.From, ID: oi.Id, Kind: oi.Kind, Task: oi.Task, By: oi.By, Line: oi.Line, Held: oi.Held, Out: oi.Out,
		Taken: oi.Taken, Repeat: oi.Repeat, Retries: oi.Retries,
	}
	if oi.Taken {
		kept.Given = object.Timestamp(oi.given)
	}
	if oi.timed() {
		kept.Next = object.Timestamp(oi.Next)
	}
	return kept
}

func (w *Work) Snapshot() snapshotWork {
	kept := snapshotWork{
		Task: w.Task.View.ID, Number: w.number, Architect: w.Architect, Developer: w.Developer, Phase: w.Phase, Chain: w.Chain, Message: w.Message,
		Document: w.Document, Scope: w.Scope, Tested: w.Tested, Tries: w.Tries, Loop: w.Loop, Result: w.Result, Escalated: w.escalated, Question: w.Question,
		Trouble: w.trouble, Limit: w.Limit.Milliseconds(), Wished: w.Wished, Expired: w.expired, Begun: stamped(w.Begun), Heard: stamped(w.Heard), Overdue: w.Overdue,
	}
	if w.Revises != nil {
		kept.Revises = w.Revises.Task.View.ID
	}
	if w.Open != nil {
		kept.Open = w.Open.View.ReviewID
	}
	return kept
}

// stamped formats a time, or returns "" for the zero time.
func stamped(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return object.Timestamp(at)
}
