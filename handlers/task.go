package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/graph"
	"orchestrator/wire"
)

// task is a task as the State has it. The view is what others see of it, but for
// its dependencies, which are the graph's; its texts and lists are never changed
// in place, so that a copy can be read elsewhere.
type task struct {
	view    wire.Task
	urgency uint8      // 0 is first
	node    graph.Node // in the graph
	run     string     // of the agent that holds it
	way     way        // in which it came to that agent
	deaths  int        // of agents that held it
	demand  *bucket    // it waits in this one
	created int64      // number of its first record
	ended   int64      // and of its last
	result  int        // length of its result
	stub    bool       // a part of it is only in the log
	freed   bool       // it is among those that are being unblocked
	more    *taskExtra // nil for most
}

// taskExtra is what the State knows of the tasks that use more than plain words.
type taskExtra struct {
	patient   bool               // what it depends on may come to nothing, and it stays
	promises  []wire.Promise     // of its spec
	maxFiles  int64              // that it may touch without a warning
	wants     *requirements      // of its requirements; nil: none
	bucket    *requirementBucket // it waits in this one
	parts     []int64            // records after the first that changed what a stub leaves out
	notes     []int64            // records of its notes
	delivered []delivery         // what its result has for others
	question  string             // its agent waits for the answer to this one
	history   []string           // why it lost the agents that had it
	work      *work              // what a session does about it

	trace      *wire.TaskTrace // where it stands in one, as far as it is known
	delegation *delegation     // how it was handed on
	handedOn   []*delegation   // what its agent has handed on of it, and waits for
}

// needsMore makes room for more.
func (k *task) needsMore() *taskExtra {
	if k.more == nil {
		k.more = new(taskExtra)
	}
	return k.more
}

// wants are what a task asks of an agent, or nil.
func (k *task) wants() *requirements {
	if k.more == nil {
		return nil
	}
	return k.more.wants
}

// work is what a session does about a task, or nil.
func (k *task) work() *work {
	if k.more == nil {
		return nil
	}
	return k.more.work
}

func (k *task) patient() bool { return k.more != nil && k.more.patient }

// way is how a task came to its agent.
type way string

const (
	dispatched        way = ""        // by its role and capabilities: the agent starts by being told
	matched           way = "match"   // by its requirements: the agent says when it starts
	byHand            way = "hand"    // by a request: the agent says when it starts
	inSession         way = "session" // its architect said so: the developer hears of it by that message
	assignedDelegated way = "handed"  // its source handed it on: the agent gets the request, and responds
)

// blocked counts pending tasks that wait for others, beside the states.
const blocked wire.TaskState = "blocked"

// urgencies are how many there are: urgent, high, normal, low.
const urgencies = 4

// label is how people are told of a task.
func label(id, name string) string { return fmt.Sprintf("%s %q", short(id), wire.Visible(name)) }

func (k *task) label() string { return label(k.view.ID, k.view.Name) }

func short(id string) string { return wire.ShortID(id) }

// submittedBy reports whether a task is an actor's own: submitted by it, or held by it.
func (k *task) submittedBy(from Actor) bool {
	return from.Kind != Agent || agentOf(k.view.SubmittedBy) == from.Name || k.view.AssignedTo == from.Name
}

// heldBy reports whether an actor may say how a task ends: its agent, or an
// operator.
func (k *task) heldBy(from Actor) bool { return from.Kind != Agent || k.view.AssignedTo == from.Name }

// maySteer reports whether the caller may say how a task begins and ends: its agent, an
// operator, and a planner over the hub's paths.
func (t *decision) maySteer(k *task) bool {
	return k.heldBy(t.from) || t.from.ActsForOthers && t.plans()
}

// plans reports whether the caller is an agent that plans.
func (t *decision) plans() bool {
	a := t.state.agents.byID[t.from.Name]
	return t.from.Kind == Agent && a != nil && a.Role == wire.RolePlanner
}

// manages reports whether an agent sees to a task as those do who submit tasks: a
// planner to all, others to what people have submitted and no other agent holds.
func (t *decision) manages(k *task) bool {
	a := t.state.agents.byID[t.from.Name]
	if !t.from.ActsForOthers || a == nil {
		return false
	}
	return t.plans() || agentOf(k.view.SubmittedBy) == "" && (k.view.AssignedTo == "" || k.view.AssignedTo == a.ID)
}

// manageableTask finds a task that the caller may see to.
func (t *decision) manageableTask(id string) (*task, *wire.Error) {
	k := t.state.tasks.byID[id]
	if k == nil {
		k = t.state.tasks.byID[wire.CanonicalID(id)]
	}
	if k == nil {
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no task %q", brief(id)),
			Details: map[string]any{"taskId": brief(id)},
		}
	}
	if !k.submittedBy(t.from) && !t.manages(k) {
		err := &wire.Error{
			Code: wire.CodeDenied, Message: "the task is not yours: you neither submitted it nor have it",
			Details: map[string]any{"taskId": id},
		}
		if t.dependsOn(k) {
			err.Details["hint"] = "its result is in your own task, beside the dependency"
		}
		return nil, err
	}
	return k, nil
}

// dependsOn reports whether a task that the caller holds shows the result of another.
func (t *decision) dependsOn(up *task) bool {
	a := t.state.agents.byID[t.from.Name]
	if t.from.Kind != Agent || a == nil {
		return false
	}
	for _, k := range a.holds {
		for e := range t.state.tasks.graph.Needs(k.node) {
			if v := t.state.tasks.graph.Edge(e); t.state.tasks.list[v.Up] == up && !v.Private && up.view.State == wire.TaskDone {
				return true
			}
		}
	}
	return false
}

// wrongState refuses what a task's state does not allow.
func wrongState(k *task, verb string) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("task %s is %s and cannot be %s", k.label(), k.view.State, verb),
		Details: map[string]any{"taskId": k.view.ID, "state": string(k.view.State), "status": k.view.Status, "reason": "wrong_state"},
	}
}

// reply answers with a task as it is now.
func (s *State) reply(k *task) *wire.TaskReply { return &wire.TaskReply{Task: s.shown(k)} }

// shown is a task as others see it, with what it depends on.
func (s *State) shown(k *task) wire.Task {
	v := k.view
	s.showLinks(k, &v)
	return v
}

func getTask(t *decision, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := t.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	answer := t.state.reply(k)
	answer.Task.WaitsFor = t.state.waitsFor(k)
	t.state.showInputs(k, &answer.Task)
	t.state.showResults(k, &answer.Task)
	return answer, nil
}

// waitsFor are the tasks that have to be done before this one.
func (s *State) waitsFor(k *task) []string {
	if s.tasks.graph.Open(k.node) == 0 || k.view.State.Final() {
		return nil
	}
	var ids orderedSet
	for e := range s.tasks.graph.Needs(k.node) {
		if v := s.tasks.graph.Edge(e); !v.Resolved && gates(v.Kind) {
			ids.add(s.tasks.list[v.Up].view.ID)
		}
	}
	return ids.texts
}

// defaultLimit is how many tasks are listed by default.
const defaultLimit = 100

func queryTasks(t *decision, q *wire.QueryTasks) (*wire.TaskList, *wire.Error) {
	limit := int(q.Limit)
	if limit == 0 {
		limit = defaultLimit
	}
	from := t.state.tasks.list
	if t.from.Kind == Agent && !t.from.ActsForOthers {
		from = t.state.tasks.owned[t.from.String()]
	}
	if q.Cursor != "" {
		last, there := t.state.tasks.byID[q.Cursor]
		if !there {
			return nil, &wire.Error{
				Code: wire.CodeInvalid, Message: fmt.Sprintf("cursor names a task that does not exist: %.80q", q.Cursor),
				Details: map[string]any{"pointer": "/payload/cursor"},
			}
		}
		from = from.after(last)
	}
	most := int64(wire.MostCounted)
	if q.Uncounted {
		most = 1
	}
	var found []*task
	var more int64
	for _, k := range from {
		if more == most {
			break
		}
		if (q.Status == "" || k.view.Status == q.Status || string(k.view.State) == q.Status || k.view.State.Hub() == q.State) &&
			(q.State == "" || k.view.State.Hub() == q.State) && k.inProject(q.ProjectID) && k.inConversation(q.ConversationID) &&
			(q.RequiredRole == "" || k.view.RequiredRole == q.RequiredRole) && (k.submittedBy(t.from) || t.manages(k)) {
			if len(found) == limit {
				more++
				continue
			}
			found = append(found, k)
		}
	}
	answer := &wire.TaskList{Tasks: make([]wire.Task, len(found)), More: more}
	if more > 0 {
		answer.Cursor = found[limit-1].view.ID
	}
	for i, k := range found {
		brief := &answer.Tasks[i]
		*brief = t.state.shown(k)
		brief.Description, brief.Payload, brief.Result, brief.Details = "", nil, nil, brief.Details.Brief()
		brief.WaitsFor = t.state.waitsFor(k)
	}
	return answer, nil
}

func (k *task) inProject(id string) bool {
	return id == "" || k.view.Details != nil && k.view.Details.ProjectID == id
}

func (k *task) inConversation(id string) bool {
	return id == "" || k.delegation() != nil && k.delegation().context.ConversationID == id
}

// owns files a task under an actor, in the order in which tasks were created.
func (s *State) owns(actor string, k *task) {
	s.tasks.owned[actor] = s.tasks.owned[actor].with(k)
}

// disowns takes a task that its agent lost from what the agent sees.
func (s *State) disowns(actor string, k *task) {
	if k.view.SubmittedBy != actor {
		s.tasks.owned[actor] = s.tasks.owned[actor].without(k)
	}
}

// move puts a task in a state, and keeps the counts.
func (s *State) move(k *task, to wire.TaskState) {
	s.count(k, -1)
	k.view.State, k.view.Status = to, to.Status()
	s.count(k, +1)
	s.recheckCapacity(s.agents.byID[k.view.AssignedTo])
}

func (s *State) count(k *task, by int) {
	s.tasks.counts[k.view.State] += by
	if k.view.State == wire.TaskPending && s.tasks.graph.Open(k.node) > 0 {
		s.tasks.counts[blocked] += by
	}
	if a := s.agents.byID[k.view.AssignedTo]; a != nil && k.busy() {
		a.running += by
	}
}

// busy reports whether a task is being worked on.
func (k *task) busy() bool {
	return k.view.State == wire.TaskRunning || k.view.State == wire.TaskInReview
}

// end puts a task in a final state and lets go of its agent. When too many
// finished tasks are kept whole, the oldest becomes a stub.
func (s *State) end(k *task, to wire.TaskState, r *wire.Record) {
	holder := s.agents.byID[k.view.AssignedTo]
	s.move(k, to)
	s.release(k)
	if holder != nil {
		s.updateStanding(holder)
	}
	if d := k.delegation(); d != nil {
		s.closeDelegation(d)
	}
	k.detachParts()
	k.view.EndedAt, k.ended = wire.Timestamp(r.At), r.Seq
	if w := k.work(); w != nil {
		s.endOf(w, to, r.At)
	}
	s.tasks.finished = append(s.tasks.finished, k)
	for len(s.tasks.finished) > s.rules.KeepFinished {
		s.tasks.finished[0].shrink()
		s.tasks.finished = s.tasks.finished[1:]
	}
}

// release takes a task out of the queue and from its agent.
func (s *State) release(k *task) {
	s.unqueue(k)
	a := s.agents.byID[k.view.AssignedTo]
	if a == nil {
		return
	}
	if i := slices.Index(a.holds, k); i >= 0 {
		s.tasks.queue.removeIdle(a)
		a.holds = slices.Delete(a.holds, i, i+1)
		s.addIdle(a)
		s.tasks.required.gain(a)
		s.recheckCapacity(a)
	}
}
