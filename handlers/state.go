package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/bus"
	"orchestrator/handlers/graph"
	"orchestrator/handlers/history"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// core holds all open work and a bounded history of finished work. One goroutine at a time may use it.
type core struct {
	rules Rules
	seq   int64 // of the last record

	agents    agents
	tasks     tasks
	questions questions

	access   access.Book
	bus      bus.Directory[agent]
	sessions sessions

	delegations delegations

	stopping bool      // no new work is given out
	since    time.Time // start of this orchestrator, which missed everything before
	drained  []string  // machines that an operator has drained

	// Verifies is set when a task has had verify commands of its own. It may be read at any time.
	Verifies atomic.Bool
}

// agents holds all known agents.
type agents struct {
	byID    map[string]*agent
	order   []*agent // in the order in which they became known
	met     int64    // agents so far
	index   *match.Index
	online  queue.Timeline[*agent] // registered servers that are online
	limited queue.Timeline[parked]

	released []*task // whose response no agent waits for any more
}

// tasks holds all open tasks, and the latest that have ended. The others are archived.
type tasks struct {
	byID     map[string]*task
	blocks   map[string]*task // tasks of blocks of the configuration, by their names
	list     queue.List[*task]
	owned    map[string]queue.List[*task]
	counts   map[wire.TaskState]int // with archived tasks
	parts    map[wire.TaskState]int // of these, those that are parts of others
	finished []*task                // tasks that are kept whole, in the order of their end
	queue    taskQueue              // those that wait for an agent
	required requirementQueue       // tasks that wait for an agent by their requirements
	later    queue.Timeline[*task]  // those that are postponed
	graph    *graph.Graph           // dependencies
	nodes    []*task                // the tasks of its nodes
	archive  archive
	saving   *Snapshot // that is being spelled, or nil
	saved    uint32    // snapshots so far
}

// questions holds the open questions.
type questions struct {
	byID      map[string]*question
	open      []*question               // oldest first
	deadlines queue.Timeline[*question] // questions with a deadline
	numbered  int64                     // questions so far
}

// newCore returns an empty core.
func newCore(rules Rules) *core {
	rules.Depth = cmp.Or(rules.Depth, 64)
	rules.KeepFinished = cmp.Or(rules.KeepFinished, 1000)
	rules.KeepClosed = cmp.Or(rules.KeepClosed, 100)
	rules.RequestTimeout = cmp.Or(rules.RequestTimeout, 30*time.Second)
	rules.MaxAttempts = cmp.Or(rules.MaxAttempts, 3)
	rules.Silence = cmp.Or(rules.Silence, 90*time.Second)
	rules.Heartbeat = cmp.Or(rules.Heartbeat, time.Minute)
	rules.Stale = cmp.Or(rules.Stale, 3*time.Minute)
	index := match.New()
	return &core{
		rules:  rules,
		agents: agents{byID: make(map[string]*agent), index: index},
		tasks: tasks{
			byID: make(map[string]*task), blocks: make(map[string]*task),
			owned: make(map[string]queue.List[*task]), counts: make(map[wire.TaskState]int), parts: make(map[wire.TaskState]int),
			queue: newTaskQueue(index), required: newRequirementQueue(), graph: graph.New(),
			archive: archive{on: rules.Archive, counts: make(map[wire.TaskState]int), parts: make(map[wire.TaskState]int), recalled: make(map[string]*task)},
		},
		questions: questions{byID: make(map[string]*question)},
		access:    access.NewBook(),
		bus:       bus.NewDirectory[agent](),
		sessions:  newSessions(),
	}
}

// Seq returns the number of the last record that the State includes.
func (s *core) Seq() int64 { return s.seq }

// Adopt takes on changed rules.
func (s *core) Adopt(rules Rules) {
	s.rules = newCore(rules).rules
	s.tasks.archive.on = rules.Archive
	for _, a := range s.agents.order {
		s.updateStanding(a)
	}
}

// fact is a decoded record.
type fact interface {
	kind() string
	apply(s *core, r *wire.Record)
}

// facts maps each kind of record to a constructor of its fact.
var facts = map[string]func() fact{
	events.AgentKnown:       func() fact { return new(agentKnown) },
	events.AgentForgotten:   func() fact { return new(agentForgotten) },
	events.TaskCreated:      func() fact { return new(taskCreated) },
	events.TaskAssigned:     func() fact { return new(taskAssigned) },
	events.TaskStarted:      func() fact { return new(taskStarted) },
	events.TaskProgress:     func() fact { return new(taskProgress) },
	events.TaskArchived:     func() fact { return new(taskArchived) },
	events.TaskRecalled:     func() fact { return new(taskRecalled) },
	events.TaskTrouble:      func() fact { return new(taskTrouble) },
	events.TaskRequeued:     func() fact { return new(taskRequeued) },
	events.TaskReopened:     func() fact { return new(taskReopened) },
	events.TaskDue:          func() fact { return new(taskDue) },
	events.TaskWorkspace:    func() fact { return &taskChecked{what: events.TaskWorkspace} },
	events.TaskVerifying:    func() fact { return &taskChecked{what: events.TaskVerifying} },
	events.TaskVerified:     func() fact { return &taskChecked{what: events.TaskVerified} },
	events.TaskUnverified:   func() fact { return &taskChecked{what: events.TaskUnverified} },
	events.TaskMerged:       func() fact { return &taskChecked{what: events.TaskMerged} },
	events.TaskUnmerged:     func() fact { return &taskChecked{what: events.TaskUnmerged} },
	events.TaskUnchanged:    func() fact { return &taskChecked{what: events.TaskUnchanged} },
	events.TaskDone:         func() fact { return new(taskDone) },
	events.TaskFailed:       func() fact { return new(taskFailed) },
	events.TaskCancelled:    func() fact { return new(taskCancelled) },
	events.TaskBlocked:      func() fact { return new(taskBlocked) },
	events.QuestionAsked:    func() fact { return new(questionAsked) },
	events.QuestionRejoined: func() fact { return new(questionRejoined) },
	events.QuestionAnswered: func() fact { return new(questionAnswered) },
	events.QuestionExpired:  func() fact { return new(questionExpired) },
	events.QuestionKept:     func() fact { return new(questionKept) },
	events.KeyIssued:        func() fact { return new(keyIssued) },

	events.TaskUpdated:            func() fact { return new(taskUpdated) },
	events.TaskNoted:              func() fact { return new(taskNoted) },
	events.TaskPlanned:            func() fact { return new(taskPlanned) },
	events.TaskPlanReturned:       func() fact { return new(taskRevise) },
	events.TaskHelpWanted:         func() fact { return new(taskHelp) },
	events.TaskUnblocked:          func() fact { return new(taskUnblocked) },
	events.TaskAnnounced:          func() fact { return new(taskAnnounced) },
	events.DependencyAdded:        func() fact { return new(dependencyAdded) },
	events.DependencyRemoved:      func() fact { return new(dependencyGone) },
	events.DependencyResolved:     func() fact { return new(dependencyResolved) },
	events.ContractFulfilled:      func() fact { return &contractSeen{what: events.ContractFulfilled} },
	events.ContractMissing:        func() fact { return &contractSeen{what: events.ContractMissing} },
	events.SchemaVersionUnknown:   func() fact { return &oddity{what: events.SchemaVersionUnknown} },
	events.DocumentOdd:            func() fact { return &oddity{what: events.DocumentOdd} },
	events.QuestionWithdrawn:      func() fact { return new(questionWithdrawn) },
	events.AgentCapable:           func() fact { return new(agentCapable) },
	events.AgentConversation:      func() fact { return new(agentConversation) },
	events.AgentUsage:             func() fact { return new(agentUsage) },
	events.AgentInterrupted:       func() fact { return new(agentInterrupted) },
	events.AgentLimited:           func() fact { return new(agentLimited) },
	events.MessageReceipt:         func() fact { return new(mailReceipt) },
	events.ServerRegistered:       func() fact { return new(serverRegistered) },
	events.ServerSeen:             func() fact { return new(serverSeen) },
	events.ServerLost:             func() fact { return new(serverLost) },
	events.KeyRotated:             func() fact { return new(keysRotated) },
	events.KeyRevoked:             func() fact { return new(keyRevoked) },
	events.RegistrationIssued:     func() fact { return new(registrationIssued) },
	events.TokenIssued:            func() fact { return new(tokenIssued) },
	events.TokenRevoked:           func() fact { return new(tokenRevoked) },
	events.OrchestratorStoodStill: func() fact { return new(stoodStill) },
	events.OrchestratorClockSet:   func() fact { return new(clockSet) },
	events.MessageAcked:           func() fact { return new(mailAcked) },
	events.ActorSeen:              func() fact { return new(actorSeen) },
	events.ActorStale:             func() fact { return new(actorStale) },
	events.ActorTokenIssued:       func() fact { return new(actorTokenIssued) },

	events.TaskForwarded:  func() fact { return new(taskForwarded) },
	events.TaskReturned:   func() fact { return new(taskReturned) },
	events.TaskResponded:  func() fact { return new(taskResponded) },
	events.TaskAnswered:   func() fact { return new(taskAnswered) },
	events.TaskUnanswered: func() fact { return new(taskUnanswered) },
	events.TaskActed:      func() fact { return new(taskActed) },
	events.TaskRetried:    func() fact { return new(taskRetried) },

	events.SessionOpened:       func() fact { return new(sessionOpened) },
	events.SessionClosed:       func() fact { return new(sessionClosed) },
	events.SessionMessage:      func() fact { return new(sessionSaid) },
	events.SessionRefused:      func() fact { return new(sessionRefused) },
	events.SessionDelivered:    func() fact { return new(sessionDelivered) },
	events.SessionDeferred:     func() fact { return new(sessionDeferred) },
	events.SessionUndelivered:  func() fact { return new(sessionUndelivered) },
	events.SessionAssigned:     func() fact { return new(workAssigned) },
	events.SessionReassigned:   func() fact { return new(workRepeated) },
	events.SessionMoved:        func() fact { return new(workMoved) },
	events.SessionCompleted:    func() fact { return new(workCompleted) },
	events.SessionTrouble:      func() fact { return new(workTroubled) },
	events.TaskProgressOverdue: func() fact { return new(progressOverdue) },
	events.TaskDeadlinePassed:  func() fact { return new(deadlinePassed) },
	events.ReviewRequested:     func() fact { return new(reviewRequested) },
	events.ReviewDecided:       func() fact { return new(reviewDecided) },
	events.ReviewEscalated:     func() fact { return new(reviewEscalated) },
	events.ReviewExtended:      func() fact { return new(reviewExtended) },
}

// decode makes the fact of a record.
func decode(r *wire.Record, room *[]object.Member) (fact, error) {
	if r.Kind == events.MessageSent {
		f := new(mailed)
		if err := f.read(r); err != nil {
			return nil, fmt.Errorf("record %d, a %s, cannot be read: %w", r.Seq, r.Kind, err)
		}
		return f, nil
	}
	var f fact
	if empty := facts[r.Kind]; empty != nil {
		f = empty()
	} else if happenings[r.Kind] {
		f = &lifecycleEvent{what: r.Kind}
	} else {
		return nil, &UnknownKindError{Seq: r.Seq, Kind: r.Kind}
	}
	if made, ok := f.(*taskCreated); ok {
		if made.readPlain(r.Payload, room) {
			return made, nil
		}
		*made = taskCreated{}
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
func (s *core) Apply(spread spread, records ...wire.Record) error {
	for all := range slices.Chunk(records, together) {
		read, failed := make([]fact, len(all)), make([]error, len(all))
		spread.over(len(all), func(from, to int) {
			var room []object.Member
			for i := from; i < to; i++ {
				read[i], failed[i] = decode(&all[i], &room)
			}
		})
		for i := range all {
			if failed[i] != nil {
				return failed[i]
			}
			if err := follow(s, read[i], &all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow applies a fact of an earlier run.
func follow(s *core, f fact, r *wire.Record) error {
	if r.Seq != s.seq+1 {
		return fmt.Errorf("record %d follows record %d", r.Seq, s.seq)
	}
	if err := follows(s, f); err != nil {
		return fmt.Errorf("record %d, a %s, does not follow from those before it: %w", r.Seq, r.Kind, err)
	}
	s.seq = r.Seq
	take(s, f, r)
	s.tasks.archive.missing = s.tasks.archive.missing[:0]
	s.tasks.required.looked() // the consequences are in later records
	s.sessions.looked()
	s.delegations.looked()
	return nil
}

// follows returns an error if a fact cannot be true now.
func follows(s *core, f fact) error {
	if c, ok := f.(checked); ok {
		return c.check(s)
	}
	return nil
}

// factKind returns the kind of the record of a fact.
func factKind(f fact) string { return f.kind() }

// next returns the number of the next record.
func (s *core) next() int64 {
	s.seq++
	return s.seq
}

// take applies a fact. Most facts are about one task.
func take(s *core, f fact, r *wire.Record) {
	s.bus.Arrived(r)
	if k := s.tasks.byID[r.Correlation]; k != nil {
		s.tasks.beforeChange(k)
	}
	f.apply(s, r)
}

// TaskCount returns the number of tasks in the State, open and ended.
func (s *core) TaskCount() int { return len(s.tasks.list) }

// Open returns the number of tasks that have not ended.
func (s *core) Open() int {
	ended := s.tasks.counts[wire.TaskDone] + s.tasks.counts[wire.TaskFailed] + s.tasks.counts[wire.TaskCancelled]
	return len(s.tasks.list) + s.tasks.archive.size() - ended
}

// QuestionCount returns the number of open questions.
func (s *core) QuestionCount() int { return len(s.questions.open) }

// A turn is the handling of one input.
type turn struct {
	sender decision // for the sender of the input
	own    decision // for the orchestrator itself

	state   *core
	at      time.Time
	random  [16]byte
	request *wire.Request  // nil unless it is one
	settled bool           // the request is answered, or will be later
	pages   []history.Page // of the log, that the answer needs
	until   int64          // the last record to use, for a repeated answer; 0: all
	out     *Outcome
	took    time.Duration // since the input came
	starts  bool          // the input is the start of the orchestrator: all runs are lost, although the State has them

	lostTasks     []lostTask       // of this turn
	departed      departures       // of this turn
	announcements []*taskAnnounced // that end the turn
	closed        []Letter         // refusals of requests whose questions the turn has closed
}

// A decision is what an actor decides in a turn. The actor is the cause of the facts.
type decision struct {
	*turn
	from Actor
}

// by returns the decision of another actor in the same turn.
func (t *turn) by(from Actor) *decision { return &decision{turn: t, from: from} }

// The decisions of each domain are methods of a type of their own, which holds the decision. A
// domain reaches another one through the methods below, so that each such reach is visible.
type (
	taskDecision       struct{ *decision } // tasks: what changes them, who may, and their assignment to agents
	linkDecision       struct{ *decision } // dependencies and contracts
	agentDecision      struct{ *decision } // agents and servers: they come, go and are lost
	questionDecision   struct{ *decision } // questions to people and requests for help
	delegationDecision struct{ *decision } // delegated tasks and their responses
	sessionDecision    struct{ *decision } // sessions, their messages and the outboxes of their members
	workDecision       struct{ *decision } // the works of sessions: tasks that an architect has assigned
	reviewDecision     struct{ *decision } // the reviews of works and their escalation to a person
	mailDecision       struct{ *decision } // the message bus: mail, presence and what a message does to a task
	accessDecision     struct{ *decision } // keys, tokens and registrations
)

func (d *decision) tasks() taskDecision             { return taskDecision{decision: d} }
func (d *decision) links() linkDecision             { return linkDecision{decision: d} }
func (d *decision) agents() agentDecision           { return agentDecision{decision: d} }
func (d *decision) questions() questionDecision     { return questionDecision{decision: d} }
func (d *decision) delegations() delegationDecision { return delegationDecision{decision: d} }
func (d *decision) sessions() sessionDecision       { return sessionDecision{decision: d} }
func (d *decision) works() workDecision             { return workDecision{decision: d} }
func (d *decision) reviews() reviewDecision         { return reviewDecision{decision: d} }
func (d *decision) mail() mailDecision              { return mailDecision{decision: d} }
func (d *decision) access() accessDecision          { return accessDecision{decision: d} }

// OpenTasks returns up to most open tasks in short form. Tasks in progress come first, then
// assigned ones, then waiting ones, each in the order of creation. It is cheap enough for
// frequent calls.
func (s *core) OpenTasks(most int) []wire.Task {
	var found queue.List[*task]
	for _, a := range s.agents.order {
		found = append(found, a.holds...)
	}
	rank := func(k *task) int {
		if k.view.State == wire.TaskAssigned {
			return 1
		}
		return 0
	}
	slices.SortFunc(found, func(a, b *task) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.created, b.created))
	})
	if held := len(found); held < most && s.Open() > held {
		for _, k := range s.tasks.list {
			if len(found) == most {
				break
			}
			if !k.view.State.Final() && !slices.Contains(found[:held], k) {
				found = append(found, k)
			}
		}
	}
	tasks := make([]wire.Task, 0, min(most, len(found)))
	for _, k := range found[:min(most, len(found))] {
		v := &k.view
		tasks = append(tasks, wire.Task{
			ID: v.ID, Name: v.Name, State: v.State, Status: v.State.Status(), RequiredRole: v.RequiredRole, AssignedTo: v.AssignedTo,
			Progress: v.Progress, WaitsFor: s.tasks.waitsFor(k), Details: k.afterOnly(),
		})
	}
	return tasks
}

// Asked returns up to most open questions, the oldest first.
func (s *core) Asked(most int) []wire.Question {
	questions := make([]wire.Question, 0, min(most, len(s.questions.open)))
	for _, q := range s.questions.open[:min(most, len(s.questions.open))] {
		questions = append(questions, q.view)
	}
	return questions
}

// HasPendingReply reports whether a run of an agent waits for an answer that comes later: to a
// question, or from a task that the agent has delegated. Delegations of earlier runs count, too,
// since the run receives their responses.
func (s *core) HasPendingReply(run string) bool {
	for _, a := range s.agents.order {
		if a.run == run && a.handsOn > 0 {
			return true
		}
	}
	return slices.ContainsFunc(s.questions.open, func(q *question) bool { return q.request != nil && q.run == run })
}
