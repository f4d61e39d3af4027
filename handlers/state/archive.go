package state

import (
	"container/heap"
	"fmt"
	"iter"
	"slices"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// An archive knows the tasks that are not in the State, and the facts about them that the present
// turn needs.
type archive struct {
	on       bool
	Counts   map[wire.TaskState]int // archived tasks
	Parts    map[wire.TaskState]int // the number of archived tasks that are parts of other tasks
	leaving  byEnd                  // with all tasks that may be archived
	Recalled map[string]*Task       // tasks of the State that have been archived before

	Missing []string        // ids that the turn has not found
	absent  map[string]bool // ids of the input that no archived task has
	Guests  []guest         // archived tasks of this turn
}

// byEnd is a heap of tasks that have ended, the earliest first.
type byEnd []*Task

func (b byEnd) Len() int           { return len(b) }
func (b byEnd) Less(i, j int) bool { return b[i].Ended < b[j].Ended }
func (b byEnd) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byEnd) Push(k any)        { *b = append(*b, k.(*Task)) }

func (b *byEnd) Pop() any {
	last := len(*b) - 1
	t := (*b)[last]
	(*b)[last], *b = nil, (*b)[:last]
	return t
}

// A guest is an archived task that is in the State for one turn.
type guest struct {
	*Task
	Kept wire.Raw // its record
}

func (a *archive) Size() int {
	n := 0
	for _, count := range a.Counts {
		n += count
	}
	return n
}

// Find returns a task, or nil. It notes an id that an archived task may have.
func (ts *tasks) Find(id string) *Task {
	t := ts.ByID[id]
	if t == nil && len(ts.Archive.Counts) > 0 && !ts.Archive.absent[id] && isTaskID(id) {
		ts.Archive.Missing = append(ts.Archive.Missing, id)
	}
	return t
}

// isTaskID reports whether an id has the form of those that are given here. A task with another
// id is not archived, so that it is found without a look into the log.
func isTaskID(id string) bool {
	return len(id) == len("00000000-0000-0000-0000-000000000000") && object.CanonicalID(id) == id
}

// A taskArchived takes a task that has ended out of the State.
type TaskArchived struct {
	ID      string   `json:"task"`
	Name    string   `json:"name"`
	Created int64    `json:"created"` // its first record
	Task    wire.Raw `json:"state"`
}

func (*TaskArchived) kind() string { return events.TaskArchived }

func (t *TaskArchived) apply(s *State, _ *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	if s.Tasks.NextToArchive() == k {
		heap.Pop(&s.Tasks.Archive.leaving)
	}
	k.Left = false
	var ups []*Task
	for e := range s.Tasks.Graph.Needs(k.Node) {
		ups = append(ups, s.Tasks.Nodes[s.Tasks.Graph.Edge(e).Up])
	}
	s.Tasks.drop(k)
	for _, up := range ups {
		s.Tasks.Leave(up)
	}
	if k.parent != nil {
		s.Tasks.Leave(k.parent)
	}
	s.Tasks.Archive.Counts[k.View.State]++
	if k.View.Details.IsPart() {
		s.Tasks.Archive.Parts[k.View.State]++
	}
	delete(s.Tasks.Archive.Recalled, t.ID)
	s.Tasks.List = s.Tasks.List.Without(k)
	for _, actor := range k.Owners() {
		s.Tasks.Owned[actor] = s.Tasks.Owned[actor].Without(k)
		if len(s.Tasks.Owned[actor]) == 0 {
			delete(s.Tasks.Owned, actor)
		}
	}
}

// Owners returns the actors that see a task, when it has ended.
func (t *Task) Owners() []string {
	actors := []string{t.View.SubmittedBy}
	if t.View.AssignedTo != "" {
		actors = append(actors, AgentPrefix+t.View.AssignedTo)
	}
	return actors
}

// drop removes a task, except from the lists.
func (ts *tasks) drop(t *Task) {
	ts.Graph.RemoveNode(t.Node)
	ts.Nodes[t.Node] = nil
	delete(ts.ByID, t.View.ID)
	if t.parent != nil {
		t.parent.children--
	}
}

// A taskRecalled puts an archived task back into the State.
type TaskRecalled struct {
	ID   string   `json:"task"`
	Name string   `json:"name"`
	Task wire.Raw `json:"state"`

	Guest *Task `json:"-"` // that becomes the task
}

func (*TaskRecalled) kind() string { return events.TaskRecalled }

func (t *TaskRecalled) apply(s *State, _ *wire.Record) {
	k := t.Guest
	if k == nil {
		k, _ = s.Tasks.readmit(t.Task) // see check
	}
	s.Tasks.Archive.Counts[k.View.State]--
	if k.View.Details.IsPart() {
		s.Tasks.Archive.Parts[k.View.State]--
	}
	s.Tasks.Archive.Recalled[t.ID] = k
	s.Tasks.List = s.Tasks.List.With(k)
	for _, actor := range k.Owners() {
		s.Tasks.Owns(actor, k)
	}
	s.keepFinished(k)
}

// readmit adds an archived task from its record, except to the lists.
func (ts *tasks) readmit(text wire.Raw) (*Task, error) {
	var kept SnapshotTask
	if err := object.DecodeOwn(text, &kept); err != nil {
		return nil, fmt.Errorf("an archived task cannot be read: %w", err)
	}
	t := kept.Restore()
	t.Saved = ts.Saved // it is not in the snapshot that is being spelled
	ts.admit(t)
	return t, nil
}

// Visit makes an archived task a guest of the turn.
func (ts *tasks) Visit(r *wire.Record) error {
	f, err := Decode(r, new([]object.Member))
	if err != nil {
		return err
	}
	archived, ok := f.(*TaskArchived)
	if !ok || ts.ByID[archived.ID] != nil {
		return nil
	}
	t, err := ts.readmit(archived.Task)
	if err == nil {
		ts.Archive.Guests = append(ts.Archive.Guests, guest{Task: t, Kept: archived.Task})
	}
	return err
}

// Begin begins a turn. No archived task has one of the absent ids.
func (a *archive) Begin(absent map[string]bool) { a.Missing, a.absent = a.Missing[:0], absent }

// TakeGuests returns the guests of the turn, and forgets them.
func (a *archive) TakeGuests() []guest {
	guests := a.Guests
	a.Guests = nil
	return guests
}

// Dismiss removes the guests of a turn without records.
func (a *archive) Dismiss(t *tasks) {
	for _, g := range a.Guests {
		t.drop(g.Task)
	}
	a.Guests = nil
}

// needed reports whether the State has a task that depends on k.
func (ts *tasks) needed(t *Task) bool {
	for range ts.Graph.Waiting(t.Node) {
		return true
	}
	return false
}

// Leave queues a task to be archived, if it has ended and may be archived now. It must be called
// whenever that may have become true.
func (ts *tasks) Leave(t *Task) {
	if !t.leaving && ts.Archive.on && ts.mayArchive(t) {
		t.leaving = true
		heap.Push(&ts.Archive.leaving, t)
	}
}

// NextToArchive returns the task that ended first among the tasks that may be archived, or nil.
func (ts *tasks) NextToArchive() *Task {
	a := &ts.Archive
	for len(a.leaving) > 0 {
		if t := a.leaving[0]; ts.mayArchive(t) {
			return t
		}
		heap.Pop(&a.leaving).(*Task).leaving = false // it is queued again when it is no longer needed
	}
	return nil
}

// LeaveReleased queues tasks with a response that no agent waits for.
func (s *State) LeaveReleased() {
	for _, t := range s.Agents.released {
		s.Tasks.Leave(t)
	}
	s.Agents.released = nil
}

// mayArchive reports whether a task has ended and is not needed in the State.
func (ts *tasks) mayArchive(t *Task) bool {
	if !t.Left || t.children > 0 || ts.needed(t) {
		return false
	}
	for e := range ts.Graph.Needs(t.Node) {
		if !ts.Nodes[ts.Graph.Edge(e).Up].View.State.Final() {
			return false // its dependency may yet be resolved
		}
	}
	if d := t.Delegation(); d != nil && d.Owed {
		return false
	}
	return (t.Extra == nil || t.Extra.Work == nil && t.Extra.Block == nil) && isTaskID(t.View.ID)
}

// Archived returns the content of the record of an archived task.
func (ts *tasks) Archived(t *Task) SnapshotTask {
	kept := t.Snapshot()
	kept.Needs = nil
	for n := range ts.needs(t) {
		kept.Needs = append(kept.Needs, n)
	}
	return kept
}

// A Need is a dependency of a task, with the facts about the other task that the task shows.
type Need struct {
	On       string         `json:"on"`
	Kind     graph.Kind     `json:"kind,omitzero"`
	Key      string         `json:"key,omitzero"`
	Resolved bool           `json:"resolved,omitzero"`
	At       int64          `json:"at,omitzero"`
	Number   int64          `json:"number"`
	Private  bool           `json:"private,omitzero"`
	State    wire.TaskState `json:"state"`
	Ended    int64          `json:"ended,omitzero"`
	Length   int            `json:"length,omitzero"`    // of the result
	Status   string         `json:"status,omitzero"`    // of the delivery with the key
	Logged   bool           `json:"delivered,omitzero"` // that delivery has data

	result wire.Raw  // if the State has it
	given  *delivery // likewise
}

// needs iterates over the dependencies of a task, in the order of their creation.
func (ts *tasks) needs(t *Task) iter.Seq[Need] {
	return func(yield func(Need) bool) {
		if t.Extra != nil {
			for _, n := range t.Extra.Needs { // of an archived task, which has no others
				if !yield(n) {
					return
				}
			}
		}
		for e := range ts.Graph.Needs(t.Node) {
			if !yield(ts.need(e)) {
				return
			}
		}
	}
}

func (ts *tasks) need(e graph.Edge) Need {
	v := ts.Graph.Edge(e)
	up := ts.Nodes[v.Up]
	n := Need{
		On: up.View.ID, Kind: v.Kind, Key: v.Key, Resolved: v.Resolved, At: v.At, Number: v.Number, Private: v.Private,
		State: up.View.State, Ended: up.Ended, Length: up.result, result: up.View.Result,
	}
	if n.Kind == graph.Input {
		if n.given = up.Delivery(v.Key); n.given != nil {
			n.Status, n.Logged = n.given.status, n.given.logged
		}
	}
	return n
}

// A taskFilter selects the tasks that a request lists.
type TaskFilter struct {
	*wire.QueryTasks
	From  Actor
	All   bool // the caller sees all tasks
	Loose bool // it also sees tasks that no agent has submitted, and that no other agent holds
}

// Ended reports whether the filter selects tasks that have ended.
func (f *TaskFilter) Ended() bool {
	return slices.ContainsFunc([]wire.TaskState{wire.TaskDone, wire.TaskFailed, wire.TaskCancelled}, func(s wire.TaskState) bool {
		return (f.Status == "" || s.Status() == f.Status || string(s) == f.Status || s.Hub() == f.State) && (f.State == "" || s.Hub() == f.State)
	})
}

// takesAll reports whether all tasks are selected.
func (f *TaskFilter) takesAll() bool {
	return f.All && f.Status == "" && f.State == "" && f.ProjectID == "" && f.ConversationID == "" && f.RequiredRole == ""
}

// Takes reports whether a task is selected that the caller sees in a state.
func (f *TaskFilter) Takes(v *storedTask, state wire.TaskState, conversation string) bool {
	if (f.Status != "" && state.Status() != f.Status && string(state) != f.Status && state.Hub() != f.State) || f.State != "" && state.Hub() != f.State {
		return false
	}
	if f.ProjectID != "" && (v.Details == nil || v.ProjectID != f.ProjectID) || f.ConversationID != "" && conversation != f.ConversationID {
		return false
	}
	if f.RequiredRole != "" && v.RequiredRole != f.RequiredRole {
		return false
	}
	return f.All || AgentOf(v.SubmittedBy) == f.From.Name || v.AssignedTo == f.From.Name ||
		f.Loose && AgentOf(v.SubmittedBy) == "" && v.AssignedTo == ""
}

// Conversation returns the id of the conversation that a task belongs to, or "".
func (t *Task) Conversation() string {
	if d := t.Delegation(); d != nil {
		return d.Context.ConversationID
	}
	return ""
}

// archivedPage returns the page that adds the archived tasks to a list, or false if there are
// none.
func (ts *tasks) archivedPage(after, until int64, takes func(*wire.Task, string) bool) (history.Page, bool) {
	a := &ts.Archive
	if a.Size() == 0 {
		return history.Page{}, false
	}
	present := make(map[string]bool, len(a.Recalled))
	for id := range a.Recalled {
		present[id] = true
	}
	return history.Page{Archived: &history.ArchivedPage{
		After: after, Until: until, Present: present,
		Takes: func(v *wire.Task, conversation string) bool { return !present[v.ID] && takes(v, conversation) },
	}}, true
}

// Archived implements history.Archived.
func (t *TaskArchived) Archived() (v *wire.Task, created int64, conversation string, err error) {
	var kept struct {
		View   wire.Task `json:"view"`
		Needs  []Need    `json:"needs"`
		Handed *struct {
			Context delegation.Context `json:"context"`
		} `json:"handed"`
	}
	if err := object.DecodeOwn(t.Task, &kept); err != nil {
		return nil, 0, "", err
	}
	showLinks(slices.Values(kept.Needs), &kept.View)
	if kept.Handed != nil {
		conversation = kept.Handed.Context.ConversationID
	}
	return &kept.View, t.Created, conversation, nil
}
