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
	k := (*b)[last]
	(*b)[last], *b = nil, (*b)[:last]
	return k
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
func (t *tasks) Find(id string) *Task {
	k := t.ByID[id]
	if k == nil && len(t.Archive.Counts) > 0 && !t.Archive.absent[id] && isTaskID(id) {
		t.Archive.Missing = append(t.Archive.Missing, id)
	}
	return k
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
func (t *tasks) drop(k *Task) {
	t.Graph.RemoveNode(k.Node)
	t.Nodes[k.Node] = nil
	delete(t.ByID, k.View.ID)
	if k.parent != nil {
		k.parent.children--
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
func (t *tasks) readmit(text wire.Raw) (*Task, error) {
	var kept SnapshotTask
	if err := object.DecodeOwn(text, &kept); err != nil {
		return nil, fmt.Errorf("an archived task cannot be read: %w", err)
	}
	k := kept.Restore()
	k.Saved = t.Saved // it is not in the snapshot that is being spelled
	t.admit(k)
	return k, nil
}

// Visit makes an archived task a guest of the turn.
func (t *tasks) Visit(r *wire.Record) error {
	f, err := Decode(r, new([]object.Member))
	if err != nil {
		return err
	}
	archived, ok := f.(*TaskArchived)
	if !ok || t.ByID[archived.ID] != nil {
		return nil
	}
	k, err := t.readmit(archived.Task)
	if err == nil {
		t.Archive.Guests = append(t.Archive.Guests, guest{Task: k, Kept: archived.Task})
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
func (t *tasks) needed(k *Task) bool {
	for range t.Graph.Waiting(k.Node) {
		return true
	}
	return false
}

// Leave queues a task to be archived, if it has ended and may be archived now. It must be called
// whenever that may have become true.
func (t *tasks) Leave(k *Task) {
	if !k.leaving && t.Archive.on && t.mayArchive(k) {
		k.leaving = true
		heap.Push(&t.Archive.leaving, k)
	}
}

// NextToArchive returns the task that ended first among the tasks that may be archived, or nil.
func (t *tasks) NextToArchive() *Task {
	a := &t.Archive
	for len(a.leaving) > 0 {
		if k := a.leaving[0]; t.mayArchive(k) {
			return k
		}
		heap.Pop(&a.leaving).(*Task).leaving = false // it is queued again when it is no longer needed
	}
	return nil
}

// LeaveReleased queues tasks with a response that no agent waits for.
func (s *State) LeaveReleased() {
	for _, k := range s.Agents.released {
		s.Tasks.Leave(k)
	}
	s.Agents.released = nil
}

// mayArchive reports whether a task has ended and is not needed in the State.
func (t *tasks) mayArchive(k *Task) bool {
	if !k.Left || k.children > 0 || t.needed(k) {
		return false
	}
	for e := range t.Graph.Needs(k.Node) {
		if !t.Nodes[t.Graph.Edge(e).Up].View.State.Final() {
			return false // its dependency may yet be resolved
		}
	}
	if d := k.Delegation(); d != nil && d.Owed {
		return false
	}
	return (k.Extra == nil || k.Extra.Work == nil && k.Extra.Block == nil) && isTaskID(k.View.ID)
}

// Archived returns the content of the record of an archived task.
func (t *tasks) Archived(k *Task) SnapshotTask {
	kept := k.Snapshot()
	kept.Needs = nil
	for n := range t.needs(k) {
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
func (t *tasks) needs(k *Task) iter.Seq[Need] {
	return func(yield func(Need) bool) {
		if k.Extra != nil {
			for _, n := range k.Extra.Needs { // of an archived task, which has no others
				if !yield(n) {
					return
				}
			}
		}
		for e := range t.Graph.Needs(k.Node) {
			if !yield(t.need(e)) {
				return
			}
		}
	}
}

func (t *tasks) need(e graph.Edge) Need {
	v := t.Graph.Edge(e)
	up := t.Nodes[v.Up]
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
func (t *tasks) archivedPage(after, until int64, takes func(*wire.Task, string) bool) (history.Page, bool) {
	a := &t.Archive
	if a.Size() == 0 {
		return history.Page{}, false
	}
	present := make(map[string]bool, len(a.Recalled))
	for id := range a.Recalled {
		present[id] = true
	}
	return history.Page{Archived: &history.ArchivedPage{
		After: after, Until: until,
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
