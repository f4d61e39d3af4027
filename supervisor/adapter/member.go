package adapter

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// A Machine makes a Client a member of the team. It takes the lines of the client and of the orchestrator, and returns
// effects. It has no clock, no goroutine and no I/O.
type Machine struct {
	client Client
	o      *Opening
	now    time.Time
	out    []Effect

	ready    bool
	closing  bool
	looking  bool // the orchestrator is asked about the turn that has ended
	busy     bool // a turn runs
	cut      bool // the turn was interrupted
	clearing bool // processes of an interrupted turn are being ended
	halted   bool // prompts wait for the next turn
	turns    int64
	begins   int64     // the number of turns that have begun, including the client's own
	last     time.Time // of the last line of the client
	warned   bool      // it was interrupted, because it was silent
	ids      uint64
	sequence int64                 // of the last session message
	waiting  map[string]pending    // requests to the orchestrator
	granting map[string]Permission // permissions that a person decides about
	calls    map[string]bool       // calls of our tools that are not answered
	running  Memory[bool]          // tools of the client that run

	plans   planning
	task    *task      // that the client works on
	next    []*task    // given to this agent, and not begun
	prompts []text     // to be said in the next turn
	sent    []delivery // texts that the client was given, and the model does not have yet
	letters []letter   // mail that the client was given, in order
	doing   string     // its current action, as last reported
	told    time.Time  // when progress was last reported
	late    *Doing     // not reported yet, because the last report was just before
	parked  time.Time  // no turn begins before
	limits  pauses     // since a turn has succeeded
}

// A task is a task of this agent.
type task struct {
	id        string
	view      taskView
	work      *tools.WorkItem // for a task of a session
	plan      planState
	presented string // the id of the permission that presented its plan
	percent   float64
	reported  time.Time // of its progress, in a session
	started   bool
	reminded  bool
	ended     bool // its end is reported
}

// A text is said to the client, with the numbers of the messages in it.
type text struct {
	words string
	mail  []int64
}

// A delivery is the texts that the client was given together.
type delivery struct {
	id    string
	texts []text
}

// A letter is a message that the client was given.
type letter struct {
	seq  int64
	read bool // the model has it
}

// A pending request waits for the answer of the orchestrator.
type pending struct {
	kind  string // operation
	task  *task
	call  string // the call of a tool that waits, "" for none
	tool  *tools.Request
	perm  string            // the permission that waits
	news  string            // the change of the task
	ended *Ended            // the turn about which the orchestrator is asked
	logs  []wire.GetSession // it and the next ones, for get-session
	tries int
}

// NewMachine returns a Machine around a client.
func NewMachine(client Client, o *Opening) *Machine {
	m := &Machine{
		client: client, o: o, waiting: map[string]pending{}, granting: map[string]Permission{},
		calls: map[string]bool{},
	}
	m.plans.Machine = m
	return m
}

func (m *Machine) id() string {
	m.ids++
	run, err := uuid.Parse(m.o.Run)
	if err != nil {
		return m.o.Run + "-" + strconv.FormatUint(m.ids, 10)
	}
	return uuid.NewSHA1(run, strconv.AppendUint(nil, m.ids, 10)).String()
}

// ask sends a request to the orchestrator.
func (m *Machine) ask(payload any, p pending) {
	id := m.id()
	m.waiting[id] = p
	m.out = append(m.out, Ask{ID: id, Operation: p.kind, Payload: payload})
}

func (m *Machine) say(event string, payload any) {
	m.out = append(m.out, Say{Event: event, Payload: payload})
}

func (m *Machine) log(format string, args ...any) {
	m.out = append(m.out, Log{Text: fmt.Sprintf(format, args...)})
}

// turn reports the state of the agent. Between turns it is not busy, whatever the client does.
func (m *Machine) turn(state, what string) {
	if state == activity.Busy && !m.busy {
		state, what = activity.Idle, ""
	}
	m.say("turn", activity.Turn{State: state, What: what, TaskID: m.taskID(), Since: object.Timestamp(m.now)})
}

// taskID returns the id of the task that the client works on. A review has none.
func (m *Machine) taskID() string {
	if m.task == nil || m.task.work != nil && m.task.work.Review != nil {
		return ""
	}
	return m.task.id
}

// pauses is how often an agent was parked without a known end.
type pauses int

// next returns how long the agent is parked now.
func (p *pauses) next() time.Duration {
	*p++
	return backOff[min(int(*p), len(backOff))-1]
}

type (
	completion struct {
		TaskID string  `json:"taskId"`
		Result summary `json:"result"`
	}
	summary struct {
		Summary string `json:"summary"`
	}
)

// withGoOn adds a prompt to go on with the task after a limit, unless there are prompts besides mail.
func withGoOn(prompts []text) []text {
	if slices.ContainsFunc(prompts, func(t text) bool { return len(t.mail) == 0 }) {
		return prompts
	}
	return append(prompts, text{words: afterLimit})
}

// end reports the end of the task that the client works on.
func (m *Machine) end(p pending, payload any) {
	p.task.ended = true
	if m.task == p.task && !m.busy {
		m.task = nil
	}
	m.ask(payload, p)
}

// An order is a line of the orchestrator.
type order struct {
	Type          string      `json:"type"`
	CorrelationID string      `json:"correlationId"`
	Payload       wire.Raw    `json:"payload"`
	Error         *orderError `json:"error"`
}

type orderError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details struct {
		State   wire.TaskState `json:"state"`
		Pointer string         `json:"pointer"`
	} `json:"details"`
}

// gone reports whether a request about a task was refused because the task has ended or has left this agent.
func (e *orderError) gone() bool {
	return e.Code == "NOT_FOUND" || e.Code == "UNAUTHORIZED" || e.Details.State.Final() || e.Details.State == wire.TaskPending
}
