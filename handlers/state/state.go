package state

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/bus"
	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// State holds all open work and a bounded history of finished work. One goroutine at a time may use it.
type State struct {
	Rules   Rules
	LastSeq int64 // of the last record

	Agents    agents
	Tasks     tasks
	Questions questions

	Access   access.Book
	Bus      bus.Directory[KnownAgent]
	Sessions sessions

	Delegations delegations

	Stopping  bool      // no new work is given out
	StartedAt time.Time // start of this orchestrator, which missed everything before
	Drained   []string  // machines that an operator has drained

	// Verifies is set when a task has had its own verify commands. It may be read at any time.
	Verifies atomic.Bool
}

// agents holds all known agents.
type agents struct {
	ByID    map[string]*KnownAgent
	Order   []*KnownAgent // in the order of their introduction
	met     int64         // agents so far
	Index   *match.Index
	Online  queue.Timeline[*KnownAgent] // registered servers that are online
	Limited queue.Timeline[Parked]

	released []*Task // no agent waits for their responses
}

// tasks holds all open tasks, and the latest ended ones. Older ones are archived.
type tasks struct {
	ByID     map[string]*Task
	Blocks   map[string]*Task // tasks of blocks of the configuration, by their names
	List     queue.List[*Task]
	Owned    map[string]queue.List[*Task]
	Counts   map[wire.TaskState]int // with archived tasks
	Parts    map[wire.TaskState]int // the number of tasks that are parts of other tasks
	Finished []*Task                // tasks that are kept whole, in the order of their end or recall
	Queue    taskQueue              // tasks that wait for an agent
	Required requirementQueue       // tasks that wait for an agent by their requirements
	Later    queue.Timeline[*Task]  // postponed tasks
	Graph    *graph.Graph           // dependencies
	Nodes    []*Task                // the tasks of its nodes
	Archive  archive
	Saving   Saver  // a snapshot that is being spelled, or nil
	Saved    uint32 // snapshots so far
}

// A Saver spells tasks before they change.
type Saver interface{ BeforeChange(*Task) }

// beforeChange must be called before a task changes.
func (ts *tasks) beforeChange(t *Task) {
	if ts.Saving != nil {
		ts.Saving.BeforeChange(t)
	}
}

// questions holds the open questions.
type questions struct {
	ByID      map[string]*Question
	Open      []*Question               // oldest first
	Deadlines queue.Timeline[*Question] // questions with a deadline
	Numbered  int64                     // questions so far
}

// New returns an empty core.
func New(rules Rules) *State {
	rules.Depth = cmp.Or(rules.Depth, 64)
	rules.KeepFinished = cmp.Or(rules.KeepFinished, 1000)
	rules.KeepClosed = cmp.Or(rules.KeepClosed, 100)
	rules.RequestTimeout = cmp.Or(rules.RequestTimeout, 30*time.Second)
	rules.MaxAttempts = cmp.Or(rules.MaxAttempts, 3)
	rules.Silence = cmp.Or(rules.Silence, 90*time.Second)
	rules.Heartbeat = cmp.Or(rules.Heartbeat, time.Minute)
	rules.Stale = cmp.Or(rules.Stale, 3*time.Minute)
	index := match.New()
	return &State{
		Rules:  rules,
		Agents: agents{ByID: make(map[string]*KnownAgent), Index: index},
		Tasks: tasks{
			ByID: make(map[string]*Task), Blocks: make(map[string]*Task),
			Owned: make(map[string]queue.List[*Task]), Counts: make(map[wire.TaskState]int), Parts: make(map[wire.TaskState]int),
			Queue: newTaskQueue(index), Required: newRequirementQueue(), Graph: graph.New(),
			Archive: archive{on: rules.Archive, Counts: make(map[wire.TaskState]int), Parts: make(map[wire.TaskState]int), Recalled: make(map[string]*Task)},
		},
		Questions: questions{ByID: make(map[string]*Question)},
		Access:    access.NewBook(),
		Bus:       bus.NewDirectory[KnownAgent](),
		Sessions:  NewSessions(),
	}
}

// Seq returns the number of the last record that the State includes.
func (s *State) Seq() int64 { return s.LastSeq }

// Adopt takes on changed rules.
func (s *State) Adopt(rules Rules) {
	s.Rules = New(rules).Rules
	s.Tasks.Archive.on = rules.Archive
	for _, a := range s.Agents.Order {
		s.updateStanding(a)
	}
}

// Fact is a decoded record.
type Fact interface {
	kind() string
	apply(s *State, r *wire.Record)
}

// Facts maps each kind of record to a constructor of its fact.
var Facts = map[string]func() Fact{
	events.AgentKnown:       func() Fact { return new(AgentKnown) },
	events.AgentForgotten:   func() Fact { return new(AgentForgotten) },
	events.TaskCreated:      func() Fact { return new(TaskCreated) },
	events.TaskAssigned:     func() Fact { return new(TaskAssigned) },
	events.TaskStarted:      func() Fact { return new(TaskStarted) },
	events.TaskProgress:     func() Fact { return new(TaskProgress) },
	events.TaskArchived:     func() Fact { return new(TaskArchived) },
	events.TaskRecalled:     func() Fact { return new(TaskRecalled) },
	events.TaskTrouble:      func() Fact { return new(TaskTrouble) },
	events.TaskRequeued:     func() Fact { return new(TaskRequeued) },
	events.TaskReopened:     func() Fact { return new(TaskReopened) },
	events.TaskDue:          func() Fact { return new(TaskDue) },
	events.TaskWorkspace:    func() Fact { return &TaskChecked{What: events.TaskWorkspace} },
	events.TaskVerifying:    func() Fact { return &TaskChecked{What: events.TaskVerifying} },
	events.TaskVerified:     func() Fact { return &TaskChecked{What: events.TaskVerified} },
	events.TaskUnverified:   func() Fact { return &TaskChecked{What: events.TaskUnverified} },
	events.TaskMerged:       func() Fact { return &TaskChecked{What: events.TaskMerged} },
	events.TaskUnmerged:     func() Fact { return &TaskChecked{What: events.TaskUnmerged} },
	events.TaskUnchanged:    func() Fact { return &TaskChecked{What: events.TaskUnchanged} },
	events.TaskDone:         func() Fact { return new(TaskDone) },
	events.TaskFailed:       func() Fact { return new(TaskFailed) },
	events.TaskCancelled:    func() Fact { return new(TaskCancelled) },
	events.TaskBlocked:      func() Fact { return new(TaskBlocked) },
	events.QuestionAsked:    func() Fact { return new(QuestionAsked) },
	events.QuestionRejoined: func() Fact { return new(QuestionRejoined) },
	events.QuestionAnswered: func() Fact { return new(QuestionAnswered) },
	events.QuestionExpired:  func() Fact { return new(QuestionExpired) },
	events.QuestionKept:     func() Fact { return new(QuestionKept) },
	events.KeyIssued:        func() Fact { return new(KeyIssued) },

	events.TaskUpdated:            func() Fact { return new(TaskUpdated) },
	events.TaskNoted:              func() Fact { return new(TaskNoted) },
	events.TaskPlanned:            func() Fact { return new(TaskPlanned) },
	events.TaskPlanReturned:       func() Fact { return new(TaskRevise) },
	events.TaskHelpWanted:         func() Fact { return new(TaskHelp) },
	events.TaskUnblocked:          func() Fact { return new(TaskUnblocked) },
	events.TaskAnnounced:          func() Fact { return new(TaskAnnounced) },
	events.DependencyAdded:        func() Fact { return new(DependencyAdded) },
	events.DependencyRemoved:      func() Fact { return new(DependencyGone) },
	events.DependencyResolved:     func() Fact { return new(DependencyResolved) },
	events.ContractFulfilled:      func() Fact { return &ContractSeen{What: events.ContractFulfilled} },
	events.ContractMissing:        func() Fact { return &ContractSeen{What: events.ContractMissing} },
	events.SchemaVersionUnknown:   func() Fact { return &DocumentWarning{What: events.SchemaVersionUnknown} },
	events.DocumentOdd:            func() Fact { return &DocumentWarning{What: events.DocumentOdd} },
	events.QuestionWithdrawn:      func() Fact { return new(QuestionWithdrawn) },
	events.AgentCapable:           func() Fact { return new(AgentCapable) },
	events.AgentConversation:      func() Fact { return new(AgentConversation) },
	events.AgentUsage:             func() Fact { return new(AgentUsage) },
	events.AgentInterrupted:       func() Fact { return new(AgentInterrupted) },
	events.AgentLimited:           func() Fact { return new(AgentLimited) },
	events.MessageReceipt:         func() Fact { return new(MailReceipt) },
	events.ServerRegistered:       func() Fact { return new(ServerRegistered) },
	events.ServerSeen:             func() Fact { return new(ServerSeen) },
	events.ServerLost:             func() Fact { return new(ServerLost) },
	events.KeyRotated:             func() Fact { return new(KeysRotated) },
	events.KeyRevoked:             func() Fact { return new(KeyRevoked) },
	events.RegistrationIssued:     func() Fact { return new(RegistrationIssued) },
	events.TokenIssued:            func() Fact { return new(TokenIssued) },
	events.TokenRevoked:           func() Fact { return new(TokenRevoked) },
	events.OrchestratorStoodStill: func() Fact { return new(StoodStill) },
	events.OrchestratorClockSet:   func() Fact { return new(ClockSet) },
	events.MessageAcked:           func() Fact { return new(MailAcked) },
	events.ActorSeen:              func() Fact { return new(ActorSeen) },
	events.ActorStale:             func() Fact { return new(ActorStale) },
	events.ActorTokenIssued:       func() Fact { return new(ActorTokenIssued) },

	events.TaskForwarded:  func() Fact { return new(TaskForwarded) },
	events.TaskReturned:   func() Fact { return new(TaskReturned) },
	events.TaskResponded:  func() Fact { return new(TaskResponded) },
	events.TaskAnswered:   func() Fact { return new(TaskAnswered) },
	events.TaskUnanswered: func() Fact { return new(TaskUnanswered) },
	events.TaskActed:      func() Fact { return new(TaskActed) },
	events.TaskRetried:    func() Fact { return new(TaskRetried) },

	events.SessionOpened:       func() Fact { return new(SessionOpened) },
	events.SessionClosed:       func() Fact { return new(SessionClosed) },
	events.SessionMessage:      func() Fact { return new(SessionSaid) },
	events.SessionRefused:      func() Fact { return new(SessionRefused) },
	events.SessionDelivered:    func() Fact { return new(SessionDelivered) },
	events.SessionDeferred:     func() Fact { return new(SessionDeferred) },
	events.SessionUndelivered:  func() Fact { return new(SessionUndelivered) },
	events.SessionAssigned:     func() Fact { return new(WorkAssigned) },
	events.SessionReassigned:   func() Fact { return new(WorkRepeated) },
	events.SessionMoved:        func() Fact { return new(WorkMoved) },
	events.SessionCompleted:    func() Fact { return new(WorkCompleted) },
	events.SessionTrouble:      func() Fact { return new(WorkTroubled) },
	events.TaskProgressOverdue: func() Fact { return new(ProgressOverdue) },
	events.TaskDeadlinePassed:  func() Fact { return new(DeadlinePassed) },
	events.ReviewRequested:     func() Fact { return new(ReviewRequested) },
	events.ReviewDecided:       func() Fact { return new(ReviewDecided) },
	events.ReviewEscalated:     func() Fact { return new(ReviewEscalated) },
	events.ReviewExtended:      func() Fact { return new(ReviewExtended) },
}

// Decode makes the fact of a record.
func Decode(r *wire.Record, room *[]object.Member) (Fact, error) {
	if r.Kind == events.MessageSent {
		f := new(Mailed)
		if err := f.Read(r); err != nil {
			return nil, fmt.Errorf("record %d, a %s, cannot be read: %w", r.Seq, r.Kind, err)
		}
		return f, nil
	}
	var f Fact
	if empty := Facts[r.Kind]; empty != nil {
		f = empty()
	} else if LifecycleKinds[r.Kind] {
		f = &LifecycleEvent{What: r.Kind}
	} else {
		return nil, &UnknownKindError{Seq: r.Seq, Kind: r.Kind}
	}
	if made, ok := f.(*TaskCreated); ok {
		if made.ReadPlain(r.Payload, room) {
			return made, nil
		}
		*made = TaskCreated{}
	}
	if err := object.DecodeOwn(r.Payload, f); err != nil {
		return nil, fmt.Errorf("record %d, a %s, cannot be read: %w", r.Seq, r.Kind, err)
	}
	return f, nil
}

// UnknownKindError reports a record of a kind that only newer versions know.
type UnknownKindError struct {
	Seq  int64
	Kind string
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("record %d is of the kind %q, which this version does not know", e.Seq, e.Kind)
}

// Apply applies records of an earlier run, which it reads with spread. They must come in order,
// without gaps.
func (s *State) Apply(spread Spread, records ...wire.Record) error {
	for all := range slices.Chunk(records, Together) {
		read, failed := make([]Fact, len(all)), make([]error, len(all))
		spread.Over(len(all), func(from, to int) {
			var room []object.Member
			for i := from; i < to; i++ {
				read[i], failed[i] = Decode(&all[i], &room)
			}
		})
		for i := range all {
			if failed[i] != nil {
				return failed[i]
			}
			if err := s.follow(read[i], &all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow applies a fact of an earlier run.
func (s *State) follow(f Fact, r *wire.Record) error {
	if r.Seq != s.LastSeq+1 {
		return fmt.Errorf("record %d follows record %d", r.Seq, s.LastSeq)
	}
	if err := s.Follows(f); err != nil {
		return fmt.Errorf("record %d, a %s, does not follow from those before it: %w", r.Seq, r.Kind, err)
	}
	s.LastSeq = r.Seq
	s.Take(f, r)
	s.Tasks.Archive.Missing = s.Tasks.Archive.Missing[:0]
	s.Tasks.Required.ResetChanged() // the consequences are in later records
	s.Sessions.ResetChanged()
	s.Delegations.ResetChanged()
	return nil
}

// Follows returns an error if a fact cannot be true now.
func (s *State) Follows(f Fact) error {
	if c, ok := f.(checked); ok {
		return c.check(s)
	}
	return nil
}

// FactKind returns the kind of the record of a fact.
func FactKind(f Fact) string { return f.kind() }

// Next returns the number of the next record.
func (s *State) Next() int64 {
	s.LastSeq++
	return s.LastSeq
}

// Take applies a fact. Most facts are about one task.
func (s *State) Take(f Fact, r *wire.Record) {
	s.Bus.Arrived(r)
	if t := s.Tasks.ByID[r.Correlation]; t != nil {
		s.Tasks.beforeChange(t)
	}
	f.apply(s, r)
}

// TaskCount returns the number of tasks in the State, open and ended.
func (s *State) TaskCount() int { return len(s.Tasks.List) }

// Open returns the number of tasks that have not ended.
func (s *State) Open() int {
	ended := s.Tasks.Counts[wire.TaskDone] + s.Tasks.Counts[wire.TaskFailed] + s.Tasks.Counts[wire.TaskCancelled]
	return len(s.Tasks.List) + s.Tasks.Archive.Size() - ended
}

// QuestionCount returns the number of open questions.
func (s *State) QuestionCount() int { return len(s.Questions.Open) }

// OpenTasks returns up to most open tasks in short form. Tasks in progress come first, then
// assigned ones, then waiting ones, each in the order of creation. It is cheap enough for
// frequent calls.
func (s *State) OpenTasks(most int) []wire.Task {
	var found queue.List[*Task]
	for _, a := range s.Agents.Order {
		found = append(found, a.Holds...)
	}
	rank := func(t *Task) int {
		if t.View.State == wire.TaskAssigned {
			return 1
		}
		return 0
	}
	slices.SortFunc(found, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Number, b.Number))
	})
	if held := len(found); held < most && s.Open() > held {
		for _, t := range s.Tasks.List {
			if len(found) == most {
				break
			}
			if !t.View.State.Final() && !slices.Contains(found[:held], t) {
				found = append(found, t)
			}
		}
	}
	tasks := make([]wire.Task, 0, min(most, len(found)))
	for _, t := range found[:min(most, len(found))] {
		v := &t.View
		tasks = append(tasks, wire.Task{
			ID: v.ID, Name: v.Name, State: v.State, Status: v.State.Status(), RequiredRole: v.RequiredRole, AssignedTo: v.AssignedTo,
			Progress: v.Progress, WaitsFor: s.Tasks.WaitsFor(t), Details: t.afterOnly(),
		})
	}
	return tasks
}

// Asked returns up to most open questions, the oldest first.
func (s *State) Asked(most int) []wire.Question {
	questions := make([]wire.Question, 0, min(most, len(s.Questions.Open)))
	for _, q := range s.Questions.Open[:min(most, len(s.Questions.Open))] {
		questions = append(questions, q.View)
	}
	return questions
}

// HasPendingReply reports whether a run of an agent waits for an answer that comes later: to a
// question, or from a task that the agent has delegated. Delegations of earlier runs count, too,
// since the run receives their responses.
func (s *State) HasPendingReply(run string) bool {
	for _, a := range s.Agents.Order {
		if a.Run == run && a.handsOn > 0 {
			return true
		}
	}
	return slices.ContainsFunc(s.Questions.Open, func(q *Question) bool { return q.Request != nil && q.Run == run })
}
