package handlers

import (
	"container/heap"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Tasks that have ended long ago are archived: they leave the State, and a record of the kind
// task.archived holds what the State had of them. When an input names such a task, Handle decides
// nothing and returns its id in Outcome.Missing. The caller reads the record and repeats the input
// with it. The task is then a guest of the State for this turn. If the turn records something,
// the task is recalled: a record of the kind task.recalled puts it back, and it is archived again
// later.
//
// So the State depends only on the records, as before, and what it holds of ended tasks is bounded.

// maxArchived is the maximum number of tasks that one turn archives.
const maxArchived = 8

// An archive knows which tasks are not in the State, and what the present turn needs of them.
type archive struct {
	on       bool
	counts   map[wire.TaskState]int // archived tasks
	parts    map[wire.TaskState]int // those of them that are parts of others
	leaving  byEnd                  // with all tasks that may be archived
	recalled map[string]*task       // tasks of the State that have been archived before

	missing []string        // ids that the turn has not found
	absent  map[string]bool // ids of the input that no archived task has
	guests  []guest         // archived tasks of this turn
}

// byEnd is a heap of tasks that have ended, the earliest first.
type byEnd []*task

func (b byEnd) Len() int           { return len(b) }
func (b byEnd) Less(i, j int) bool { return b[i].ended < b[j].ended }
func (b byEnd) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byEnd) Push(k any)        { *b = append(*b, k.(*task)) }

func (b *byEnd) Pop() any {
	last := len(*b) - 1
	k := (*b)[last]
	(*b)[last], *b = nil, (*b)[:last]
	return k
}

// A guest is an archived task that is in the State for one turn.
type guest struct {
	*task
	kept wire.Raw // its record
}

func (a *archive) size() int {
	n := 0
	for _, count := range a.counts {
		n += count
	}
	return n
}

// find returns a task, or nil. It notes an id that an archived task may have.
func (t *tasks) find(id string) *task {
	k := t.byID[id]
	if k == nil && len(t.archive.counts) > 0 && !t.archive.absent[id] && isTaskID(id) {
		t.archive.missing = append(t.archive.missing, id)
	}
	return k
}

// isTaskID reports whether an id has the form of those that are given here. A task with another
// id is not archived, so that it is found without a look into the log.
func isTaskID(id string) bool {
	return len(id) == len("00000000-0000-0000-0000-000000000000") && object.CanonicalID(id) == id
}

// A taskArchived takes a task that has ended out of the State.
type taskArchived struct {
	ID      string   `json:"task"`
	Name    string   `json:"name"`
	Created int64    `json:"created"` // its first record
	Task    wire.Raw `json:"state"`
}

func (*taskArchived) kind() string { return events.TaskArchived }

func (t *taskArchived) apply(s *core, _ *wire.Record) {
	k := s.tasks.byID[t.ID]
	if s.tasks.nextToArchive() == k {
		heap.Pop(&s.tasks.archive.leaving)
	}
	k.left = false
	var ups []*task
	for e := range s.tasks.graph.Needs(k.node) {
		ups = append(ups, s.tasks.nodes[s.tasks.graph.Edge(e).Up])
	}
	s.tasks.drop(k)
	for _, up := range ups {
		s.tasks.leave(up)
	}
	if k.parent != nil {
		s.tasks.leave(k.parent)
	}
	s.tasks.archive.counts[k.view.State]++
	if k.view.Details.IsPart() {
		s.tasks.archive.parts[k.view.State]++
	}
	delete(s.tasks.archive.recalled, t.ID)
	s.tasks.list = s.tasks.list.Without(k)
	for _, actor := range k.owners() {
		s.tasks.owned[actor] = s.tasks.owned[actor].Without(k)
		if len(s.tasks.owned[actor]) == 0 {
			delete(s.tasks.owned, actor)
		}
	}
}

// owners returns the actors that see a task, when it has ended.
func (t *task) owners() []string {
	actors := []string{t.view.SubmittedBy}
	if t.view.AssignedTo != "" {
		actors = append(actors, agentPrefix+t.view.AssignedTo)
	}
	return actors
}

// drop removes a task, except from the lists.
func (t *tasks) drop(k *task) {
	t.graph.RemoveNode(k.node)
	t.nodes[k.node] = nil
	delete(t.byID, k.view.ID)
	if k.parent != nil {
		k.parent.children--
	}
}

// A taskRecalled puts an archived task back into the State.
type taskRecalled struct {
	ID   string   `json:"task"`
	Name string   `json:"name"`
	Task wire.Raw `json:"state"`

	guest *task // that becomes the task
}

func (*taskRecalled) kind() string { return events.TaskRecalled }

func (t *taskRecalled) apply(s *core, _ *wire.Record) {
	k := t.guest
	if k == nil {
		k, _ = s.tasks.readmit(t.Task) // see check
	}
	s.tasks.archive.counts[k.view.State]--
	if k.view.Details.IsPart() {
		s.tasks.archive.parts[k.view.State]--
	}
	s.tasks.archive.recalled[t.ID] = k
	s.tasks.list = s.tasks.list.With(k)
	for _, actor := range k.owners() {
		s.tasks.owns(actor, k)
	}
	s.tasks.finished = append(s.tasks.finished, k)
}

// readmit adds an archived task from its record, except to the lists.
func (t *tasks) readmit(text wire.Raw) (*task, error) {
	var kept snapshotTask
	if err := object.DecodeOwn(text, &kept); err != nil {
		return nil, fmt.Errorf("an archived task cannot be read: %w", err)
	}
	k := kept.restore()
	k.saved = t.saved // it is not in the snapshot that is being spelled
	t.admit(k)
	return k, nil
}

// visit makes an archived task a guest of the turn.
func (t *tasks) visit(r *wire.Record) error {
	f, err := decode(r, new([]object.Member))
	if err != nil {
		return err
	}
	archived, ok := f.(*taskArchived)
	if !ok || t.byID[archived.ID] != nil {
		return nil
	}
	k, err := t.readmit(archived.Task)
	if err == nil {
		t.archive.guests = append(t.archive.guests, guest{task: k, kept: archived.Task})
	}
	return err
}

// A missedTask is the panic of a turn that needs archived tasks before it can record anything.
type missedTask struct{}

// touch looks up the tasks that a request names, before anything is recorded.
func (d *decision) touch(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		d.state.tasks.find(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			d.touch(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.touch(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			d.touch(v.Index(i))
		}
	}
}

// recallGuests keeps the guests of the turn. It must be called before the turn records something.
func (d *decision) recallGuests() {
	a := &d.state.tasks.archive
	if len(a.missing) > 0 && len(d.out.Records) == 0 {
		panic(missedTask{})
	}
	for _, g := range a.takeGuests() {
		d.own.fact("", g.view.ID, &taskRecalled{ID: g.view.ID, Name: g.view.Name, Task: g.kept, guest: g.task})
	}
}

// begin begins a turn. No archived task has one of the absent ids.
func (a *archive) begin(absent map[string]bool) { a.missing, a.absent = a.missing[:0], absent }

// takeGuests returns the guests of the turn, and forgets them.
func (a *archive) takeGuests() []guest {
	guests := a.guests
	a.guests = nil
	return guests
}

// dismiss removes the guests of a turn that has recorded nothing.
func (a *archive) dismiss(t *tasks) {
	for _, g := range a.guests {
		t.drop(g.task)
	}
	a.guests = nil
}

// needed reports whether the State has a task that depends on k.
func (t *tasks) needed(k *task) bool {
	for range t.graph.Waiting(k.node) {
		return true
	}
	return false
}

// leave queues a task to be archived, if it has ended and may be archived now. It must be called
// whenever that may have become true.
func (t *tasks) leave(k *task) {
	if !k.leaving && t.archive.on && t.mayArchive(k) {
		k.leaving = true
		heap.Push(&t.archive.leaving, k)
	}
}

// nextToArchive returns the task that ended first of those that may be archived, or nil.
func (t *tasks) nextToArchive() *task {
	a := &t.archive
	for len(a.leaving) > 0 {
		if k := a.leaving[0]; t.mayArchive(k) {
			return k
		}
		heap.Pop(&a.leaving).(*task).leaving = false // it is queued again when nothing needs it
	}
	return nil
}

// leaveReleased queues tasks whose response no agent waits for any more.
func (s *core) leaveReleased() {
	for _, k := range s.agents.released {
		s.tasks.leave(k)
	}
	s.agents.released = nil
}

// archive archives tasks in a turn that records something.
func (td taskDecision) archive() {
	td.state.leaveReleased()
	if len(td.out.Records) == 0 {
		return
	}
	for range maxArchived {
		k := td.state.tasks.nextToArchive()
		if k == nil {
			return
		}
		text, err := object.Encode(td.state.tasks.archived(k))
		if err != nil {
			panic("an ended task cannot be spelled: " + err.Error())
		}
		td.own.fact("", k.view.ID, &taskArchived{ID: k.view.ID, Name: k.view.Name, Created: k.created, Task: text})
	}
}

// mayArchive reports whether a task is an ended one that nothing in the State needs.
func (t *tasks) mayArchive(k *task) bool {
	if !k.left || k.children > 0 || t.needed(k) {
		return false
	}
	for e := range t.graph.Needs(k.node) {
		if !t.nodes[t.graph.Edge(e).Up].view.State.Final() {
			return false // its dependency may yet be resolved
		}
	}
	if d := k.delegation(); d != nil && d.owed {
		return false
	}
	return (k.more == nil || k.more.work == nil && k.more.block == nil) && isTaskID(k.view.ID)
}

// archived returns what the record of an archived task holds.
func (t *tasks) archived(k *task) snapshotTask {
	kept := k.snapshot()
	kept.Needs = nil
	for n := range t.needs(k) {
		kept.Needs = append(kept.Needs, n)
	}
	return kept
}

// A need is a dependency of a task, with what the task shows of the other one.
type need struct {
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
func (t *tasks) needs(k *task) iter.Seq[need] {
	return func(yield func(need) bool) {
		if k.more != nil {
			for _, n := range k.more.needs { // it has been archived, and has no others
				if !yield(n) {
					return
				}
			}
		}
		for e := range t.graph.Needs(k.node) {
			if !yield(t.need(e)) {
				return
			}
		}
	}
}

func (t *tasks) need(e graph.Edge) need {
	v := t.graph.Edge(e)
	up := t.nodes[v.Up]
	n := need{
		On: up.view.ID, Kind: v.Kind, Key: v.Key, Resolved: v.Resolved, At: v.At, Number: v.Number, Private: v.Private,
		State: up.view.State, Ended: up.ended, Length: up.result, result: up.view.Result,
	}
	if n.Kind == graph.Input {
		if n.given = up.delivery(v.Key); n.given != nil {
			n.Status, n.Logged = n.given.status, n.given.logged
		}
	}
	return n
}

// A taskFilter selects the tasks that a request lists.
type taskFilter struct {
	*wire.QueryTasks
	from  Actor
	all   bool // the caller sees all tasks
	loose bool // it also sees tasks that no agent has submitted, and that no other agent holds
}

func (td taskDecision) filter(q *wire.QueryTasks) taskFilter {
	f := taskFilter{QueryTasks: q, from: td.from, all: td.from.Kind != Agent}
	if td.from.ActsForOthers && td.state.agents.byID[td.from.Name] != nil {
		f.all, f.loose = f.all || td.managesAll(), true
	}
	return f
}

// ended reports whether the filter selects tasks that have ended.
func (f *taskFilter) ended() bool {
	return slices.ContainsFunc([]wire.TaskState{wire.TaskDone, wire.TaskFailed, wire.TaskCancelled}, func(s wire.TaskState) bool {
		return (f.Status == "" || s.Status() == f.Status || string(s) == f.Status || s.Hub() == f.State) && (f.State == "" || s.Hub() == f.State)
	})
}

// takes reports whether a task is selected that the caller sees in a state.
func (f *taskFilter) takes(v *storedTask, state wire.TaskState, conversation string) bool {
	if (f.Status != "" && state.Status() != f.Status && string(state) != f.Status && state.Hub() != f.State) || f.State != "" && state.Hub() != f.State {
		return false
	}
	if f.ProjectID != "" && (v.Details == nil || v.ProjectID != f.ProjectID) || f.ConversationID != "" && conversation != f.ConversationID {
		return false
	}
	if f.RequiredRole != "" && v.RequiredRole != f.RequiredRole {
		return false
	}
	return f.all || agentOf(v.SubmittedBy) == f.from.Name || v.AssignedTo == f.from.Name ||
		f.loose && agentOf(v.SubmittedBy) == "" && v.AssignedTo == ""
}

// conversation returns the id of the conversation that a task belongs to, or "".
func (t *task) conversation() string {
	if d := t.delegation(); d != nil {
		return d.context.ConversationID
	}
	return ""
}

// archivedPage returns the page that adds the archived tasks to a list, or false if there are
// none.
func (t *tasks) archivedPage(after, until int64, takes func(*wire.Task, string) bool) (history.Page, bool) {
	a := &t.archive
	if a.size() == 0 {
		return history.Page{}, false
	}
	present := make(map[string]bool, len(a.recalled))
	for id := range a.recalled {
		present[id] = true
	}
	return history.Page{Archived: &history.ArchivedPage{
		After: after, Until: until,
		Takes: func(v *wire.Task, conversation string) bool { return !present[v.ID] && takes(v, conversation) },
	}}, true
}

// Archived implements history.Archived.
func (t *taskArchived) Archived() (v *wire.Task, created int64, conversation string, err error) {
	var kept struct {
		View   wire.Task `json:"view"`
		Needs  []need    `json:"needs"`
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
