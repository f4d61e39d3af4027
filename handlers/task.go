package handlers

import (
	"fmt"
	"slices"

	"orchestrator/wire"
)

// task is a task as the State has it. The view is what others see of it; its
// texts and lists are never changed in place, so that a copy can be read
// elsewhere.
type task struct {
	view       wire.Task
	urgency    uint8   // 0 is first
	open       int     // dependencies that are not done
	dependents []*task // those that wait for it
	run        string  // of the agent that holds it
	deaths     int     // of agents that held it
	demand     *demand // it waits in this one
	created    int64   // number of its first record
	ended      int64   // and of its last
	stub       bool    // a part of it is in the log alone
}

// blocked counts pending tasks that wait for others, beside the states.
const blocked wire.TaskState = "blocked"

// urgencies are how many there are: urgent, high, normal, low.
const urgencies = 4

// urgencyOf puts a priority in its class: 1 is urgent, 2 high, 3 normal, more is
// low, and normal is what nobody gave.
func urgencyOf(priority wire.Raw) uint8 {
	if priority == nil {
		return 2
	}
	var value float64
	if wire.Decode(priority, &value) != nil {
		return 2
	}
	switch {
	case value <= 1:
		return 0
	case value <= 2:
		return 1
	case value <= 3:
		return 2
	}
	return 3
}

// label is how people are told of a task.
func label(id, name string) string { return fmt.Sprintf("%s %q", short(id), wire.Visible(name)) }

func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

// of says whether a task is an actor's own: submitted by it, or held by it.
func (k *task) of(from Actor) bool {
	return from.Kind != Agent || agentOf(k.view.SubmittedBy) == from.Name || k.view.AssignedTo == from.Name
}

// heldBy says whether an actor may say how a task ends: its agent, or an
// operator.
func (k *task) heldBy(from Actor) bool { return from.Kind != Agent || k.view.AssignedTo == from.Name }

// own finds a task of the caller's.
func (t *turn) own(id string) (*task, *wire.Error) {
	k := t.tasks[id]
	if k == nil {
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no task %q", id),
			Details: map[string]any{"taskId": id},
		}
	}
	if !k.of(t.from) {
		return nil, &wire.Error{
			Code: wire.CodeDenied, Message: "the task is not yours: you neither submitted it nor have it",
			Details: map[string]any{"taskId": id},
		}
	}
	return k, nil
}

// wrongState refuses what a task's state does not allow.
func wrongState(k *task, verb string) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("task %s is %s and cannot be %s", label(k.view.ID, k.view.Name), k.view.State, verb),
		Details: map[string]any{"taskId": k.view.ID, "state": string(k.view.State), "status": k.view.Status, "reason": "wrong_state"},
	}
}

// reply answers with a task as it is now.
func reply(k *task) *wire.TaskReply { return &wire.TaskReply{Task: k.view} }

func getTask(t *turn, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := t.own(r.TaskID)
	if err != nil {
		return nil, err
	}
	answer := reply(k)
	answer.Task.WaitsFor = t.waitsFor(k)
	return answer, nil
}

// heavy is how many bytes of a task, or of its end, are too many to be kept
// here: they are in the log, and read from there for whoever asks.
const heavy = 16 << 10

// page is where the rest of a task is that is shown in a state; nil when nothing
// is missing.
func (k *task) page(shown wire.TaskState) *Page {
	switch {
	case !k.stub:
		return nil
	case shown.Final():
		return &Page{Created: k.created, Ended: k.ended}
	}
	return &Page{Created: k.created}
}

// waitsFor are the dependencies of a task that are not done.
func (s *State) waitsFor(k *task) []string {
	if k.open == 0 || k.view.State.Final() {
		return nil
	}
	var ids []string
	for _, id := range k.view.Dependencies {
		if s.tasks[id].view.State != wire.TaskDone {
			ids = append(ids, id)
		}
	}
	return ids
}

// defaultLimit is how many tasks are listed when nobody says.
const defaultLimit = 100

func queryTasks(t *turn, q *wire.QueryTasks) (*wire.TaskList, *wire.Error) {
	limit := int(q.Limit)
	if limit == 0 {
		limit = defaultLimit
	}
	from := t.list
	if t.from.Kind == Agent {
		from = t.owned[t.from.String()]
	}
	var found []*task
	for _, k := range from {
		if len(found) == limit {
			break
		}
		if (q.Status == "" || k.view.Status == q.Status || string(k.view.State) == q.Status) &&
			(q.RequiredRole == "" || k.view.RequiredRole == q.RequiredRole) {
			found = append(found, k)
		}
	}
	answer := &wire.TaskList{Tasks: make([]wire.Task, len(found))}
	for i, k := range found {
		brief := &answer.Tasks[i]
		*brief = k.view
		brief.Description, brief.Payload, brief.Result = "", nil, nil
		brief.WaitsFor = t.waitsFor(k)
	}
	return answer, nil
}

// owns files a task under an actor, in the order in which tasks were created.
func (s *State) owns(actor string, k *task) {
	s.owned[actor] = s.owned[actor].with(k)
}

// disowns takes a task that its agent lost from what the agent sees.
func (s *State) disowns(actor string, k *task) {
	if k.view.SubmittedBy != actor {
		s.owned[actor] = s.owned[actor].without(k)
	}
}

// move puts a task in a state, and keeps the counts.
func (s *State) move(k *task, to wire.TaskState) {
	s.count(k, -1)
	k.view.State, k.view.Status = to, to.Status()
	s.count(k, +1)
}

func (s *State) count(k *task, by int) {
	s.counts[k.view.State] += by
	if k.view.State == wire.TaskPending && k.open > 0 {
		s.counts[blocked] += by
	}
}

// end puts a task in a final state and lets go of its agent. When too many
// finished tasks are kept whole, the oldest becomes a stub.
func (s *State) end(k *task, to wire.TaskState, r *wire.Record) {
	s.release(k)
	s.move(k, to)
	k.view.EndedAt, k.ended = wire.Timestamp(r.At), r.Seq
	k.dependents = nil
	s.finished = append(s.finished, k)
	for len(s.finished) > s.rules.KeepFinished {
		s.finished[0].shrink()
		s.finished = s.finished[1:]
	}
}

// shrink makes a stub of a task.
func (k *task) shrink() {
	k.view.Description, k.view.Payload, k.view.Result, k.view.Error, k.view.Message = "", nil, nil, "", ""
	k.stub = true
}

// release takes a task out of the market and from its agent.
func (s *State) release(k *task) {
	if k.demand != nil {
		s.market.drop(k)
	}
	a := s.agents[k.view.AssignedTo]
	if a == nil {
		return
	}
	if i := slices.Index(a.holds, k); i >= 0 {
		s.market.withdraw(a)
		a.holds = slices.Delete(a.holds, i, i+1)
		s.market.offer(a)
	}
}

// Complete fills a task of which only a part is in the State with what its first
// and its last record say.
func Complete(answer *wire.TaskReply, records ...wire.Record) error {
	for _, r := range records {
		f, err := read(&r)
		if err != nil {
			return err
		}
		if r.Correlation != answer.Task.ID {
			return fmt.Errorf("record %d, a %s, is not about task %s", r.Seq, r.Kind, answer.Task.ID)
		}
		switch f := f.(type) {
		case *taskCreated:
			answer.Task.Description, answer.Task.Payload = f.Description, f.Payload
		case *taskDone:
			answer.Task.Result = f.Result
		case *taskFailed:
			answer.Task.Error = f.Error
		}
	}
	return nil
}
