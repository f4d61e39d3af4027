package handlers

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/bus"
	"orchestrator/handlers/graph"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// A spread calls do for parts of the numbers below n, until each was in one part. It may make these
// calls at the same time. A nil spread makes one call.
type spread func(n int, do func(from, to int))

func (s spread) over(n int, do func(from, to int)) {
	if s == nil {
		do(0, n)
		return
	}
	s(n, do)
}

// together is how many tasks or facts are read before they are applied.
const together = 2048

// restoreCore returns the core in a snapshot. It reports false if the snapshot cannot be used, for
// instance because another version wrote it.
func restoreCore(rules Rules, text []byte, spread spread) (*core, bool) {
	var kept snapshot
	s := restoring{core: newCore(rules)}
	var waiting []wire.Raw
	kept.Tasks.Read = func(task wire.Raw) (err error) {
		if !kept.known() { // the version stands before the tasks
			return errors.New("the snapshot is of another version")
		}
		if waiting = append(waiting, task); len(waiting) == together {
			s.tasks.reserve(min(kept.Count, len(text)/len(task)))
			err, waiting = s.readTasks(waiting, spread), waiting[:0]
		}
		return err
	}
	if err := object.DecodeOwn(text, &kept); err != nil || !kept.known() || s.readTasks(waiting, spread) != nil {
		return nil, false
	}
	s.seq, s.stopping, s.questions.numbered, s.drained = kept.Seq, kept.Stopping, kept.Numbered, kept.Drained
	s.since, _ = object.ParseTime(kept.Since)
	for i := range kept.Access {
		s.access.Add(&access.Credential{Credential: kept.Access[i].Credential, Hash: kept.Access[i].Hash, Revoked: kept.Access[i].Revoked})
	}
	slices.SortFunc(s.tasks.list, func(a, b *task) int { return cmp.Compare(a.created, b.created) })
	for _, d := range s.awaiting {
		s.restoreAwaited(d[0], d[1])
	}
	s.restoreLinks(&kept)
	for i := range kept.Agents {
		s.restoreAgent(&kept.Agents[i])
	}
	s.restoreDuties()
	for _, a := range s.agents.order {
		s.addIdle(a)
	}
	s.tasks.finished = s.named(kept.Finished)
	s.restoreArchive(&kept)
	s.restoreBus(&kept)
	for i := range kept.Sessions {
		s.restoreSession(&kept.Sessions[i])
	}
	for i := range kept.Questions {
		s.restoreQuestion(&kept.Questions[i])
	}
	return s.core, !s.broken
}

// restoreDuties restores what is derived from tasks: who owns, holds and awaits them.
func (r *restoring) restoreDuties() {
	for _, k := range r.tasks.list {
		for _, actor := range k.owners() {
			r.tasks.owns(actor, k)
		}
		r.count(k, +1)
		if !k.view.State.Final() {
			r.agents.opened(k, +1)
		}
		r.tasks.enqueue(k)
		d := k.delegation()
		if d == nil {
			continue
		}
		if !k.view.State.Final() {
			r.agents.handsOn(k, +1)
		}
		if a := r.agents.byID[agentOf(k.view.SubmittedBy)]; a != nil && d.owed {
			a.owed = append(a.owed, d)
		}
	}
}

// restoreArchive restores what is known of archived tasks, and which are to be archived next.
func (r *restoring) restoreArchive(kept *snapshot) {
	for state, count := range kept.Archived {
		r.tasks.archive.counts[state] = count
		r.tasks.counts[state] += count
	}
	for state, count := range kept.Parts {
		r.tasks.archive.parts[state] = count
		r.tasks.parts[state] += count
	}
	for _, id := range kept.Recalled {
		r.tasks.archive.recalled[id] = r.task(id)
	}
	whole := make(map[*task]bool, len(r.tasks.finished))
	for _, k := range r.tasks.finished {
		whole[k] = true
	}
	for _, k := range r.tasks.list {
		if k.view.State.Final() && !whole[k] {
			k.left = true
			r.tasks.leave(k)
		}
	}
}

// reserve makes room for n tasks at once, before the first of them.
func (t *tasks) reserve(n int) {
	if n > 0 && len(t.list) == 0 {
		t.byID, t.list, t.nodes = make(map[string]*task, n), make(queue.List[*task], 0, n), make([]*task, 0, n)
	}
}

// A restoring is a State that is being built from a snapshot.
type restoring struct {
	*core
	broken   bool        // the snapshot is inconsistent
	awaiting [][2]string // a delegated task, and the task that waits for it
	links    []link
}

// A link is a dependency of a task that was read.
type link struct {
	down graph.Node
	need
}

func (s *snapshot) known() bool { return s.Version >= oldestVersion && s.Version <= snapshotVersion }

// task returns a task that the snapshot names. If it does not exist, task returns an empty one
// and sets broken.
func (r *restoring) task(id string) *task {
	if k := r.tasks.byID[id]; k != nil {
		return k
	}
	r.broken = true
	return new(task)
}

func (r *restoring) named(ids []string) []*task {
	var tasks []*task
	for _, id := range ids {
		tasks = append(tasks, r.task(id))
	}
	return tasks
}

// readTasks reads tasks and adds them to the State.
func (r *restoring) readTasks(texts []wire.Raw, spread spread) error {
	read, failed := make([]snapshotTask, len(texts)), make([]error, len(texts))
	spread.over(len(texts), func(from, to int) {
		var room []object.Member
		for i := from; i < to; i++ {
			if !read[i].readPlain(texts[i], &room) {
				read[i] = snapshotTask{}
				failed[i] = object.DecodeOwn(texts[i], &read[i])
			}
		}
	})
	for i := range read {
		r.restoreTask(&read[i])
	}
	return errors.Join(failed...)
}

func (r *restoring) restoreTask(kept *snapshotTask) {
	k := kept.restore()
	r.broken = r.broken || r.tasks.byID[k.view.ID] != nil
	r.tasks.include(k)
	if d := k.view.Details; d != nil && d.Verify != nil {
		r.Verifies.Store(true)
	}
	for _, n := range kept.Links {
		r.links = append(r.links, link{down: k.node, need: n})
	}
	if k.postponed() {
		r.tasks.later.Add(k)
	}
	if d := k.delegation(); d != nil {
		r.delegations.when(d, d.next, d.asked)
		if kept.Handed.Awaited != "" {
			r.awaiting = append(r.awaiting, [2]string{k.view.ID, kept.Handed.Awaited})
		}
	}
}

// restore returns a task without its place in the State.
func (s *snapshotTask) restore() *task {
	k := &task{
		view: stored(&s.View), urgency: hub.Urgency(s.View.Priority), run: s.Run, deaths: s.Deaths,
		created: s.Created, ended: s.Ended, result: s.Result, stub: s.Stub, way: s.Way,
	}
	k.view.Details = k.view.Details.Filled()
	if s.Block != nil { // the view of an earlier version did not have it
		k.view.Details = k.view.Details.InBlock(s.Block.Name)
	}
	if string(k.view.Result) == "null" {
		k.view.Result = nil // the encoding of a missing result
	}
	m := taskExtra{
		patient: s.Patient, promises: s.Promises, maxFiles: s.MaxFiles, parts: s.Parts, notes: s.Notes,
		planFirst: s.PlanFirst, spent: s.Spent, block: s.Block, question: s.Question, history: s.History, used: s.Used, needs: s.Needs, trace: s.Trace, output: s.Output,
	}
	if d := k.view.Details; d != nil {
		m.after, _ = object.ParseTime(d.After)
	}
	if s.Handed != nil {
		m.delegation = s.Handed.restore(k)
	}
	if s.Wants != nil {
		m.wants = wantsOf(s.Wants)
	}
	if s.Delivered != nil {
		m.delivered = deliveries(s.View.Result)
	}
	if m.delivered == nil {
		for _, d := range s.Delivered {
			m.delivered = append(m.delivered, delivery{key: d.Key, status: d.Status, logged: d.Logged})
		}
	}
	if !m.empty() {
		k.more = &m
	}
	return k
}

func (s *snapshotHandedOn) restore(k *task) *delegatedWork {
	d := &delegatedWork{
		task: k, request: s.Request, target: s.Target, chain: s.Chain, sum: s.Sum, number: s.Number,
		retries: s.Retries, forwarded: s.Forwarded, out: s.Out, said: s.Said, latest: s.Latest, owed: s.Owed, sent: s.Sent, returned: s.Returned,
		context: s.Context,
	}
	d.given, _ = object.ParseTime(s.Given)
	d.next, _ = object.ParseTime(s.Next)
	d.asked, _ = object.ParseTime(s.Asked)
	return d
}

// restoreAwaited links a delegated task to the task that waits for it.
func (r *restoring) restoreAwaited(task, on string) {
	d, parent := r.task(task).delegation(), r.task(on)
	if r.broken || d == nil {
		r.broken = true
		return
	}
	d.awaited = parent
	m := parent.needsMore()
	m.handedOn = append(m.handedOn, d)
}

// empty reports whether m has no members.
func (t *taskExtra) empty() bool {
	return !t.planFirst && t.spent == 0 && !t.patient && t.block == nil && t.promises == nil && t.maxFiles == 0 && t.wants == nil && t.parts == nil && t.notes == nil && t.output == 0 &&
		t.delivered == nil && t.question == "" && t.history == nil && t.trace == nil && t.delegation == nil && t.needs == nil && t.used == (activity.Used{}) && t.after.IsZero()
}

// restoreLinks makes the graph.
func (r *restoring) restoreLinks(kept *snapshot) {
	for _, l := range r.links {
		kept.Links = append(kept.Links, graph.View{
			Down: l.down, Up: r.task(l.On).node, Kind: l.Kind, Key: l.Key, Resolved: l.Resolved, At: l.At, Number: l.Number, Private: l.Private,
		})
	}
	slices.SortFunc(kept.Links, func(a, b graph.View) int { return cmp.Compare(a.Number, b.Number) })
	for _, l := range kept.Links {
		n := graph.Node(len(r.tasks.list))
		if l.Down < 0 || l.Up < 0 || l.Down >= n || l.Up >= n || l.Kind > graph.Related || l.Number <= r.tasks.graph.Last() || l.Number > kept.LastLink {
			r.broken = true
			return
		}
		r.tasks.graph.Put(l)
	}
	r.tasks.graph.Skip(kept.LastLink)
}

func (r *restoring) restoreAgent(kept *snapshotAgent) {
	a := newAgent(kept.Member.ID)
	a.Member, a.configured, a.state, a.run, a.system = kept.Member, kept.File, kept.State, kept.Run, kept.System
	a.host, a.ended, a.past = kept.Host, kept.Ended, kept.Past
	a.farewell, a.wrecked = kept.Farewell, kept.Wrecked
	a.returns = kept.Returns
	a.stale, a.deaf, a.given, a.holds = kept.Stale, kept.Deaf, kept.Given, r.named(kept.Holds)
	a.said = hub.ReadCapabilities(kept.Said)
	a.grants, a.usage, a.late = kept.Grants, kept.Usage, kept.Late
	if kept.Conversation != nil {
		a.conversation = &conversation{*kept.Conversation}
	}
	for i := range kept.Memories {
		m := &kept.Memories[i]
		if t := m.Task; t != nil { // an earlier version did not say its block
			if k := r.tasks.byID[t.Task.ID]; k != nil && k.view.Details != nil {
				t.Task.Details = t.Task.Details.InBlock(k.view.Block)
			}
		}
		memory := a.memories.Keep(m.Key)
		memory.Err, memory.Answer, memory.Seq = m.Err, m.Reply(), m.Seq
	}
	r.broken = r.broken || r.agents.byID[a.ID] != nil
	r.meet(a)
	if a.limited, _ = object.ParseTime(kept.Limited); !a.limited.IsZero() {
		a.limitedBy = kept.LimitedBy
		r.agents.limited.Add(parked{a})
	}
	abilities := a.said
	if abilities == nil {
		abilities = hub.ReadCapabilities(a.Abilities)
	}
	if m := kept.Remote; m != nil {
		a.remote = &remote{hostname: m.Hostname, ip: m.IP, os: m.OS, repos: m.Repos, keyless: m.Keyless}
		seen, ok := object.ParseTime(m.Seen)
		r.broken = r.broken || !ok
		a.remote.seen = seen
		if a.state == up {
			r.agents.hear(a, seen)
		}
	}
	r.indexCapabilities(a, abilities)
}

// restoreBus restores the actors of the bus. The keys of their mail are only in the log, which
// the caller searches.
func (r *restoring) restoreBus(kept *snapshot) {
	r.bus.Keys = bus.NewKeys(kept.Seq)
	var all []*busActor
	for i := range kept.Actors {
		k := &kept.Actors[i]
		c := &busActor{
			ID: k.ID, Number: k.Number, Since: k.Since, OfRun: k.OfRun, Cursor: k.Cursor, Latest: k.Latest,
			Beats: k.Beats, Due: k.Due, Stale: k.Stale,
		}
		c.Seen, _ = object.ParseTime(k.Seen)
		c.Beat, _ = object.ParseTime(k.Beat)
		if k.Agent != "" {
			if c.Agent = r.agents.byID[k.Agent]; c.Agent == nil || c.Agent.mail != nil {
				r.broken = true
				return
			}
			c.Agent.mail = c
		}
		all = append(all, c)
	}
	r.broken = r.broken || !r.bus.Restore(all, kept.Met)
}

func (r *restoring) restoreQuestion(kept *snapshotQuestion) {
	q := &question{view: kept.View, number: kept.Number, run: kept.Run, door: kept.Door, request: kept.Request, aside: kept.Aside, mailed: kept.Mailed}
	q.until, _ = object.ParseTime(kept.Until)
	q.deadline, _ = object.ParseTime(q.view.Deadline)
	r.broken = r.broken || r.questions.byID[q.view.ID] != nil
	r.questions.byID[q.view.ID] = q
	r.questions.open = append(r.questions.open, q)
	r.questions.keepDeadline(q)
}

// restoreSession restores a session. Tasks and agents must have been restored before.
func (r *restoring) restoreSession(kept *snapshotSession) {
	x := &sessionState{
		spec: kept.Spec, file: kept.File, closedAt: kept.ClosedAt, aborted: kept.Aborted, reason: kept.Reason, messages: kept.Messages,
		refused: kept.Refused, last: kept.Last, byReview: make(map[string]*reviewOf),
	}
	r.broken = r.broken || r.sessions.byID[x.spec.ID] != nil || len(kept.Numbers) != len(x.spec.Members)
	if r.broken {
		return
	}
	r.sessions.put(x)
	r.sessions.seatIn(x)
	for i, m := range x.members {
		m.number = kept.Numbers[i]
	}
	for i := range kept.Works {
		r.restoreWork(x, &kept.Works[i])
	}
	for i := range kept.Reviews {
		r.restoreReview(x, &kept.Reviews[i])
	}
	for i, k := range kept.Works {
		if v := x.byReview[k.Open]; v != nil {
			x.works[i].open = v
		}
	}
	for i := range kept.Parcels {
		r.restoreParcel(x, &kept.Parcels[i])
	}
}

func (r *restoring) restoreWork(x *sessionState, kept *snapshotWork) {
	w := &work{
		of: x, task: r.task(kept.Task), number: kept.Number, architect: kept.Architect, developer: kept.Developer, phase: kept.Phase,
		chain: kept.Chain, message: kept.Message, document: kept.Document, scope: kept.Scope, tested: kept.Tested, tries: kept.Tries, loop: kept.Loop,
		result: kept.Result, escalated: kept.Escalated, question: kept.Question, trouble: kept.Trouble,
		limit: time.Duration(kept.Limit) * time.Millisecond, overdue: kept.Overdue, wished: kept.Wished, expired: kept.Expired,
	}
	w.begun, _ = object.ParseTime(kept.Begun)
	w.heard, _ = object.ParseTime(kept.Heard)
	if kept.Revises != "" {
		if w.revises = r.task(kept.Revises).work(); w.revises == nil {
			r.broken = true
			return
		}
		w.revises.revision = w
	}
	w.task.needsMore().work = w
	x.works = append(x.works, w)
	x.track(w)
	r.watchWork(w)
}

func (r *restoring) restoreReview(x *sessionState, kept *snapshotReview) {
	w := r.task(kept.View.TaskID).work()
	r.broken = r.broken || w == nil
	v := &reviewOf{named: kept.Named, wanted: kept.Wanted, view: kept.View, work: w}
	x.reviews = append(x.reviews, v)
	x.byReview[v.view.ReviewID] = v
}

func (r *restoring) restoreParcel(x *sessionState, kept *snapshotParcel) {
	p := &outboxItem{
		seq: kept.Seq, to: x.member(kept.To), from: kept.From, id: kept.ID, kind: kept.Kind, task: kept.Task, by: kept.By, line: kept.Line,
		held: kept.Held, out: kept.Out, taken: kept.Taken, repeat: kept.Repeat, retries: kept.Retries,
	}
	if p.to == nil {
		r.broken = true
		return
	}
	p.to.outbox = append(p.to.outbox, p)
	if p.taken {
		p.given, _ = object.ParseTime(kept.Given)
	}
	if p.timed() {
		p.next, _ = object.ParseTime(kept.Next)
		r.sessions.posted.Add(p)
	}
}
