package snapshot

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"orchestrator/handlers/bus"
	"orchestrator/handlers/graph"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// Restore returns the core in a snapshot. It reports false if the snapshot cannot be used, for
// instance because another version wrote it.
func Restore(rules state.Rules, text []byte, spread state.Spread) (*state.State, bool) {
	var kept snapshot
	s := restoring{State: state.New(rules)}
	var waiting []wire.Raw
	kept.Tasks.Read = func(task wire.Raw) (err error) {
		if !kept.known() { // the version stands before the tasks
			return errors.New("the snapshot is of another version")
		}
		if waiting = append(waiting, task); len(waiting) == state.Together {
			s.Tasks.Reserve(min(kept.Count, len(text)/len(task)))
			err, waiting = s.readTasks(waiting, spread), waiting[:0]
		}
		return err
	}
	if err := object.DecodeOwn(text, &kept); err != nil || !kept.known() || s.readTasks(waiting, spread) != nil {
		return nil, false
	}
	s.LastSeq, s.Stopping, s.Questions.Numbered, s.Drained = kept.Seq, kept.Stopping, kept.Numbered, kept.Drained
	s.StartedAt, _ = object.ParseTime(kept.Since)
	for _, c := range kept.Access {
		s.Access.Add(c)
	}
	slices.SortFunc(s.Tasks.List, func(a, b *state.Task) int { return cmp.Compare(a.Number, b.Number) })
	for _, d := range s.awaiting {
		s.restoreAwaited(d[0], d[1])
	}
	s.restoreLinks(&kept)
	for i := range kept.Agents {
		s.restoreAgent(&kept.Agents[i])
	}
	s.restoreDuties()
	for _, a := range s.Agents.Order {
		s.AddIdle(a)
	}
	s.Tasks.Finished = s.named(kept.Finished)
	s.restoreArchive(&kept)
	s.restoreBus(&kept)
	for i := range kept.Sessions {
		s.restoreSession(&kept.Sessions[i])
	}
	for _, q := range kept.Questions {
		s.restoreQuestion(q)
	}
	return s.State, !s.broken
}

// restoreDuties rebuilds the indexes of task owners, holders and waiters.
func (r *restoring) restoreDuties() {
	for _, t := range r.Tasks.List {
		for _, actor := range t.Owners() {
			r.Tasks.Owns(actor, t)
		}
		r.Count(t, +1)
		if !t.View.State.Final() {
			r.Agents.Opened(t, +1)
		}
		r.Tasks.Enqueue(t)
		d := t.Delegation()
		if d == nil {
			continue
		}
		if !t.View.State.Final() {
			r.Agents.HandsOn(t, +1)
		}
		if a := r.Agents.ByID[state.AgentOf(t.View.SubmittedBy)]; a != nil && d.Owed {
			a.Owed = append(a.Owed, d)
		}
	}
}

// restoreArchive restores the facts about archived tasks, and the tasks to archive next.
func (r *restoring) restoreArchive(kept *snapshot) {
	for state, count := range kept.Archived {
		r.Tasks.Archive.Counts[state] = count
		r.Tasks.Counts[state] += count
	}
	for state, count := range kept.Parts {
		r.Tasks.Archive.Parts[state] = count
		r.Tasks.Parts[state] += count
	}
	for _, id := range kept.Recalled {
		r.Tasks.Archive.Recalled[id] = r.task(id)
	}
	whole := make(map[*state.Task]bool, len(r.Tasks.Finished))
	for _, t := range r.Tasks.Finished {
		whole[t] = true
	}
	for _, t := range r.Tasks.List {
		if t.View.State.Final() && !whole[t] {
			t.Left = true
			r.Tasks.Leave(t)
		}
	}
}

// A restoring is a State that is being built from a snapshot.
type restoring struct {
	*state.State
	broken   bool                 // the snapshot is inconsistent
	read     []state.SnapshotTask // room for the tasks that are read together
	awaiting [][2]string          // a delegated task, and the task that waits for it
	links    []link
}

// A link is a dependency of a task that was read.
type link struct {
	down graph.Node
	state.Need
}

func (s *snapshot) known() bool { return s.Version >= oldestVersion && s.Version <= SnapshotVersion }

// task returns a task that the snapshot names. If it does not exist, task returns an empty one
// and sets broken.
func (r *restoring) task(id string) *state.Task {
	if t := r.Tasks.ByID[id]; t != nil {
		return t
	}
	r.broken = true
	return new(state.Task)
}

func (r *restoring) named(ids []string) []*state.Task {
	var tasks []*state.Task
	for _, id := range ids {
		tasks = append(tasks, r.task(id))
	}
	return tasks
}

// readTasks reads tasks and adds them to the State.
func (r *restoring) readTasks(texts []wire.Raw, spread state.Spread) error {
	r.read = slices.Grow(r.read[:0], len(texts))[:len(texts)]
	read, failed := r.read, make([]error, len(texts))
	spread.Over(len(texts), func(from, to int) {
		var plain state.PlainReader
		for i := from; i < to; i++ {
			read[i] = state.SnapshotTask{}
			if !plain.Read(texts[i], &read[i]) {
				read[i] = state.SnapshotTask{}
				failed[i] = object.DecodeOwn(texts[i], &read[i])
			}
		}
	})
	for i := range read {
		r.restoreTask(&read[i])
	}
	return errors.Join(failed...)
}

func (r *restoring) restoreTask(kept *state.SnapshotTask) {
	t := kept.Restore()
	r.broken = r.broken || r.Tasks.ByID[t.View.ID] != nil
	r.Tasks.Include(t)
	if d := t.View.Details; d != nil && d.Verify != nil {
		r.Verifies.Store(true)
	}
	for _, n := range kept.Links {
		r.links = append(r.links, link{down: t.Node, Need: n})
	}
	if t.Postponed() {
		r.Tasks.Later.Add(t)
	}
	if d := t.Delegation(); d != nil {
		r.Delegations.When(d, d.Next, d.Asked)
		if kept.Handed.Awaited != "" {
			r.awaiting = append(r.awaiting, [2]string{t.View.ID, kept.Handed.Awaited})
		}
	}
}

// restoreAwaited links a delegated task to the task that waits for it.
func (r *restoring) restoreAwaited(task, on string) {
	d, parent := r.task(task).Delegation(), r.task(on)
	if r.broken || d == nil {
		r.broken = true
		return
	}
	d.Awaited = parent
	m := parent.EnsureExtra()
	m.HandedOn = append(m.HandedOn, d)
}

// restoreLinks makes the graph.
func (r *restoring) restoreLinks(kept *snapshot) {
	for _, l := range r.links {
		kept.Links = append(kept.Links, graph.View{
			Down: l.down, Up: r.task(l.On).Node, Kind: l.Kind, Key: l.Key, Resolved: l.Resolved, At: l.At, Number: l.Number, Private: l.Private,
		})
	}
	slices.SortFunc(kept.Links, func(a, b graph.View) int { return cmp.Compare(a.Number, b.Number) })
	for _, l := range kept.Links {
		n := graph.Node(len(r.Tasks.List))
		if l.Down < 0 || l.Up < 0 || l.Down >= n || l.Up >= n || l.Kind > graph.Related || l.Number <= r.Tasks.Graph.Last() || l.Number > kept.LastLink {
			r.broken = true
			return
		}
		r.Tasks.Graph.Put(l)
	}
	r.Tasks.Graph.Skip(kept.LastLink)
}

func (r *restoring) restoreAgent(kept *snapshotAgent) {
	a := state.NewAgent(kept.Member.ID)
	a.Member, a.StoredAgent, a.Remote, a.Unreachable, a.Holds = kept.Member, kept.StoredAgent, kept.Remote, kept.Deaf, r.named(kept.Holds)
	a.Said = hub.ReadCapabilities(kept.Said)
	if kept.Conversation != nil {
		a.Conversation = &state.Conversation{Conversation: *kept.Conversation}
	}
	for i := range kept.Memories {
		m := &kept.Memories[i]
		if t := m.Task; t != nil { // an earlier version did not say its block
			if k := r.Tasks.ByID[t.Task.ID]; k != nil && k.View.Details != nil {
				t.Task.Details = t.Task.Details.InBlock(k.View.Block)
			}
		}
		memory := a.Memories.Keep(m.Key)
		memory.Err, memory.Answer, memory.Seq = m.Err, m.Reply(), m.Seq
	}
	r.broken = r.broken || r.Agents.ByID[a.ID] != nil
	r.Meet(a)
	if !a.Limited.IsZero() {
		r.Agents.Limited.Add(state.Parked{KnownAgent: a})
	}
	abilities := a.Said
	if abilities == nil {
		abilities = hub.ReadCapabilities(a.Abilities)
	}
	if m := a.Remote; m != nil && a.State == state.Up {
		r.Agents.Hear(a, m.Seen)
	}
	r.IndexCapabilities(a, abilities)
}

// restoreBus restores the actors of the bus. The keys of their mail are only in the log, which
// the caller searches.
func (r *restoring) restoreBus(kept *snapshot) {
	r.Bus.Keys = bus.NewKeys(kept.Seq)
	var all []*state.BusActor
	for i := range kept.Actors {
		k := &kept.Actors[i]
		c := &state.BusActor{Stored: k.Stored}
		if k.Agent != "" {
			if c.Agent = r.Agents.ByID[k.Agent]; c.Agent == nil || c.Agent.Mail != nil {
				r.broken = true
				return
			}
			c.Agent.Mail = c
		}
		all = append(all, c)
	}
	r.broken = r.broken || !r.Bus.Restore(all, kept.Met)
}

func (r *restoring) restoreQuestion(kept state.StoredQuestion) {
	q := &state.Question{StoredQuestion: kept}
	q.Deadline, _ = object.ParseTime(q.View.Deadline)
	r.broken = r.broken || r.Questions.ByID[q.View.ID] != nil
	r.Questions.ByID[q.View.ID] = q
	r.Questions.Open = append(r.Questions.Open, q)
	r.Questions.KeepDeadline(q)
}

// restoreSession restores a session. Tasks and agents must have been restored before.
func (r *restoring) restoreSession(kept *snapshotSession) {
	x := &state.SessionState{StoredSession: kept.StoredSession, ByReview: make(map[string]*state.ReviewOf)}
	r.broken = r.broken || r.Sessions.ByID[x.Spec.ID] != nil || len(kept.Numbers) != len(x.Spec.Members)
	if r.broken {
		return
	}
	r.Sessions.Put(x)
	r.Sessions.AddMembers(x)
	for i, m := range x.Members {
		m.Number = kept.Numbers[i]
	}
	for i := range kept.Works {
		r.restoreWork(x, &kept.Works[i])
	}
	for _, v := range kept.Reviews {
		r.restoreReview(x, v)
	}
	for i, k := range kept.Works {
		if v := x.ByReview[k.Open]; v != nil {
			x.Works[i].Open = v
		}
	}
	for i := range kept.Parcels {
		r.restoreOutboxItem(x, &kept.Parcels[i])
	}
}

func (r *restoring) restoreWork(x *state.SessionState, kept *snapshotWork) {
	w := &state.Work{StoredWork: kept.StoredWork, Of: x, Task: r.task(kept.Task), Limit: time.Duration(kept.Limit) * time.Millisecond}
	if kept.Revises != "" {
		if w.Revises = r.task(kept.Revises).Work(); w.Revises == nil {
			r.broken = true
			return
		}
		w.Revises.Revision = w
	}
	w.Task.EnsureExtra().Work = w
	x.Works = append(x.Works, w)
	x.Track(w)
	r.WatchWork(w)
}

func (r *restoring) restoreReview(x *state.SessionState, kept state.StoredReview) {
	w := r.task(kept.View.TaskID).Work()
	r.broken = r.broken || w == nil
	v := &state.ReviewOf{StoredReview: kept, Work: w}
	x.Reviews = append(x.Reviews, v)
	x.ByReview[v.View.ReviewID] = v
}

func (r *restoring) restoreOutboxItem(x *state.SessionState, kept *snapshotOutboxItem) {
	p := &state.OutboxItem{StoredItem: kept.StoredItem, To: x.Member(kept.To)}
	if p.To == nil {
		r.broken = true
		return
	}
	p.To.Outbox = append(p.To.Outbox, p)
	if p.Timed() {
		r.Sessions.Posted.Add(p)
	}
}
