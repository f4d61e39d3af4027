package handlers

import (
	"fmt"
	"time"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// State holds all open work and a bounded history of finished work. One goroutine at a time
// may use it.
type State struct {
	rules Rules
	seq   int64 // of the last record

	agents    agents
	tasks     tasks
	questions questions

	access   access
	bus      bus
	sessions sessions

	delegations delegations

	stopping bool      // no new work is given out
	since    time.Time // start of this orchestrator, which missed everything before

	turn    decision // the current decision, reused
	outcome Outcome
}

// agents holds all known agents.
type agents struct {
	byID   map[string]*agent
	order  []*agent // in the order in which they became known
	met    int64    // agents so far
	index  *match.Index
	online timeOrder[*agent] // registered servers that are online
}

// tasks holds all tasks, open and ended.
type tasks struct {
	byID     map[string]*task
	list     taskList
	owned    map[string]taskList
	counts   map[wire.TaskState]int
	finished []*task          // tasks that are kept whole, in the order of their end
	queue    taskQueue        // those that wait for an agent
	required requirementQueue // tasks that wait for an agent by their requirements
	graph    *graph.Graph     // dependencies
}

// questions holds the open questions.
type questions struct {
	byID      map[string]*question
	open      []*question          // oldest first
	deadlines timeOrder[*question] // questions with a deadline
	numbered  int64                // questions so far
}

// New returns an empty State.
func New(rules Rules) *State {
	if rules.Depth == 0 {
		rules.Depth = 64
	}
	if rules.KeepFinished == 0 {
		rules.KeepFinished = 1000
	}
	if rules.KeepClosed == 0 {
		rules.KeepClosed = 100
	}
	if rules.RequestTimeout == 0 {
		rules.RequestTimeout = 30 * time.Second
	}
	if rules.MaxAttempts == 0 {
		rules.MaxAttempts = 3
	}
	if rules.Silence == 0 {
		rules.Silence = 90 * time.Second
	}
	if rules.Heartbeat == 0 {
		rules.Heartbeat = time.Minute
	}
	if rules.Stale == 0 {
		rules.Stale = 3 * time.Minute
	}
	index := match.New()
	return &State{
		rules:  rules,
		agents: agents{byID: make(map[string]*agent), index: index},
		tasks: tasks{
			byID: make(map[string]*task), owned: make(map[string]taskList), counts: make(map[wire.TaskState]int),
			queue: newTaskQueue(index), required: newRequirementQueue(), graph: graph.New(),
		},
		questions: questions{byID: make(map[string]*question)},
		access:    newAccess(),
		bus:       newBus(),
		sessions:  newSessions(),
	}
}

// Seq returns the number of the last record that the State includes.
func (s *State) Seq() int64 { return s.seq }

// Adopt takes on changed rules.
func (s *State) Adopt(rules Rules) {
	s.rules = New(rules).rules
	for _, a := range s.agents.order {
		s.updateStanding(a)
	}
}

// fact is a decoded record.
type fact interface {
	kind() string
	apply(s *State, r *wire.Record)
}

// facts maps each kind of record to a constructor of its fact.
var facts = map[string]func() fact{
	wire.EventAgentKnown:       func() fact { return new(agentKnown) },
	wire.EventAgentForgotten:   func() fact { return new(agentForgotten) },
	wire.EventTaskCreated:      func() fact { return new(taskCreated) },
	wire.EventTaskAssigned:     func() fact { return new(taskAssigned) },
	wire.EventTaskStarted:      func() fact { return new(taskStarted) },
	wire.EventTaskProgress:     func() fact { return new(taskProgress) },
	wire.EventTaskTrouble:      func() fact { return new(taskTrouble) },
	wire.EventTaskRequeued:     func() fact { return new(taskRequeued) },
	wire.EventTaskDone:         func() fact { return new(taskDone) },
	wire.EventTaskFailed:       func() fact { return new(taskFailed) },
	wire.EventTaskCancelled:    func() fact { return new(taskCancelled) },
	wire.EventTaskBlocked:      func() fact { return new(taskBlocked) },
	wire.EventQuestionAsked:    func() fact { return new(questionAsked) },
	wire.EventQuestionRejoined: func() fact { return new(questionRejoined) },
	wire.EventQuestionAnswered: func() fact { return new(questionAnswered) },
	wire.EventQuestionExpired:  func() fact { return new(questionExpired) },
	wire.EventKeyIssued:        func() fact { return new(keyIssued) },

	wire.EventTaskUpdated:        func() fact { return new(taskUpdated) },
	wire.EventTaskNoted:          func() fact { return new(taskNoted) },
	wire.EventTaskPlanned:        func() fact { return new(taskPlanned) },
	wire.EventTaskRevise:         func() fact { return new(taskRevise) },
	wire.EventTaskHelp:           func() fact { return new(taskHelp) },
	wire.EventTaskUnblocked:      func() fact { return new(taskUnblocked) },
	wire.EventTaskAnnounced:      func() fact { return new(taskAnnounced) },
	wire.EventDependencyAdded:    func() fact { return new(dependencyAdded) },
	wire.EventDependencyGone:     func() fact { return new(dependencyGone) },
	wire.EventDependencyDone:     func() fact { return new(dependencyResolved) },
	wire.EventContractKept:       func() fact { return &contractSeen{what: wire.EventContractKept} },
	wire.EventContractMissing:    func() fact { return &contractSeen{what: wire.EventContractMissing} },
	wire.EventSchemaUnknown:      func() fact { return &oddity{what: wire.EventSchemaUnknown} },
	wire.EventDocumentOdd:        func() fact { return &oddity{what: wire.EventDocumentOdd} },
	wire.EventQuestionWithdrawn:  func() fact { return new(questionWithdrawn) },
	wire.EventAgentCapable:       func() fact { return new(agentCapable) },
	wire.EventServerRegistered:   func() fact { return new(serverRegistered) },
	wire.EventServerSeen:         func() fact { return new(serverSeen) },
	wire.EventServerLost:         func() fact { return new(serverLost) },
	wire.EventKeysRotated:        func() fact { return new(keysRotated) },
	wire.EventKeyRevoked:         func() fact { return new(keyRevoked) },
	wire.EventRegistrationIssued: func() fact { return new(registrationIssued) },
	wire.EventTokenIssued:        func() fact { return new(tokenIssued) },
	wire.EventTokenRevoked:       func() fact { return new(tokenRevoked) },
	wire.EventStoodStill:         func() fact { return new(stoodStill) },
	wire.EventMailAcked:          func() fact { return new(mailAcked) },
	wire.EventActorSeen:          func() fact { return new(actorSeen) },
	wire.EventActorStale:         func() fact { return new(actorStale) },
	wire.EventActorTokenIssued:   func() fact { return new(actorTokenIssued) },

	wire.EventTaskForwarded:  func() fact { return new(taskForwarded) },
	wire.EventTaskReturned:   func() fact { return new(taskReturned) },
	wire.EventTaskResponded:  func() fact { return new(taskResponded) },
	wire.EventTaskAnswered:   func() fact { return new(taskAnswered) },
	wire.EventTaskUnanswered: func() fact { return new(taskUnanswered) },
	wire.EventTaskActed:      func() fact { return new(taskActed) },
	wire.EventTaskRetried:    func() fact { return new(taskRetried) },

	wire.EventSessionOpened:      func() fact { return new(sessionOpened) },
	wire.EventSessionClosed:      func() fact { return new(sessionClosed) },
	wire.EventSessionSaid:        func() fact { return new(sessionSaid) },
	wire.EventSessionRefused:     func() fact { return new(sessionRefused) },
	wire.EventSessionDelivered:   func() fact { return new(sessionDelivered) },
	wire.EventSessionDeferred:    func() fact { return new(sessionDeferred) },
	wire.EventSessionUndelivered: func() fact { return new(sessionUndelivered) },
	wire.EventSessionAssigned:    func() fact { return new(workAssigned) },
	wire.EventSessionRepeated:    func() fact { return new(workRepeated) },
	wire.EventSessionMoved:       func() fact { return new(workMoved) },
	wire.EventSessionCompleted:   func() fact { return new(workCompleted) },
	wire.EventSessionTrouble:     func() fact { return new(workTroubled) },
	wire.EventProgressOverdue:    func() fact { return new(progressOverdue) },
	wire.EventDeadlinePassed:     func() fact { return new(deadlinePassed) },
	wire.EventReviewRequested:    func() fact { return new(reviewRequested) },
	wire.EventReviewDecided:      func() fact { return new(reviewDecided) },
	wire.EventReviewEscalated:    func() fact { return new(reviewEscalated) },
	wire.EventReviewExtended:     func() fact { return new(reviewExtended) },
}

// decode makes the fact of a record.
func decode(r *wire.Record) (fact, error) {
	if r.Kind == wire.EventMail {
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

// Apply applies a record of an earlier run. Records must come in order, without gaps.
func (s *State) Apply(r wire.Record) error {
	if r.Seq != s.seq+1 {
		return fmt.Errorf("record %d follows record %d", r.Seq, s.seq)
	}
	f, err := decode(&r)
	if err != nil {
		return err
	}
	if c, ok := f.(checked); ok {
		if err := c.check(s); err != nil {
			return fmt.Errorf("record %d, a %s, does not follow from those before it: %w", r.Seq, r.Kind, err)
		}
	}
	s.seq = r.Seq
	s.arrived(&r)
	f.apply(s, &r)
	s.tasks.required.looked() // the consequences are in later records
	s.sessions.looked()
	s.delegations.looked()
	return nil
}

// Counts returns the number of tasks in each state.
func (s *State) Counts() wire.TaskCounts {
	return wire.TaskCounts{
		Pending:    s.tasks.counts[wire.TaskPending],
		Blocked:    s.tasks.counts[blocked],
		Assigned:   s.tasks.counts[wire.TaskAssigned],
		Planning:   s.tasks.counts[wire.TaskPlanning],
		PlanReview: s.tasks.counts[wire.TaskPlanReview],
		Running:    s.tasks.counts[wire.TaskRunning],
		NeedsHuman: s.tasks.counts[wire.TaskNeedsHuman],
		InReview:   s.tasks.counts[wire.TaskInReview],
		Done:       s.tasks.counts[wire.TaskDone],
		Failed:     s.tasks.counts[wire.TaskFailed],
		Cancelled:  s.tasks.counts[wire.TaskCancelled],
	}
}

// Tasks returns the number of remembered tasks, open and ended.
func (s *State) Tasks() int { return len(s.tasks.list) }

// Open returns the number of tasks that have not ended.
func (s *State) Open() int {
	ended := s.tasks.counts[wire.TaskDone] + s.tasks.counts[wire.TaskFailed] + s.tasks.counts[wire.TaskCancelled]
	return len(s.tasks.list) - ended
}

// Questions returns the number of open questions.
func (s *State) Questions() int { return len(s.questions.open) }

// TasksOf returns the tasks that an agent holds.
func (s *State) TasksOf(name string) []wire.TaskLabel {
	a := s.agents.byID[name]
	if a == nil {
		return nil
	}
	labels := make([]wire.TaskLabel, 0, len(a.holds))
	for _, k := range a.holds {
		labels = append(labels, wire.TaskLabel{ID: k.view.ID, Name: k.view.Name, State: k.view.State, Progress: k.view.Progress})
	}
	return labels
}
