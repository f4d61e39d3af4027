package handlers

import (
	"orchestrator/handlers/graph"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// Restore returns the State in a snapshot. It reports false if the snapshot cannot be used, for
// instance because another version wrote it.
func Restore(rules Rules, text []byte) (*State, bool) {
	var kept snapshot
	if err := object.DecodeOwn(text, &kept); err != nil || kept.Version != snapshotVersion {
		return nil, false
	}
	s := restoring{State: New(rules)}
	s.seq, s.stopping, s.questions.numbered = kept.Seq, kept.Stopping, kept.Numbered
	s.since, _ = object.ParseTime(kept.Since)
	for i := range kept.Access {
		s.access.keep(&credential{Credential: kept.Access[i].Credential, hash: kept.Access[i].Hash, revoked: kept.Access[i].Revoked})
	}
	for i := range kept.Tasks {
		s.restoreTask(&kept.Tasks[i])
	}
	for i := range kept.Tasks {
		s.restoreAwaited(&kept.Tasks[i])
	}
	s.restoreLinks(&kept)
	for i := range kept.Agents {
		s.restoreAgent(&kept.Agents[i])
	}
	for _, k := range s.tasks.list {
		s.count(k, +1)
		s.enqueue(k)
		d := k.delegation()
		if d == nil {
			continue
		}
		if !k.view.State.Final() {
			s.handsOn(k, +1)
		}
		if a := s.agents.byID[agentOf(k.view.SubmittedBy)]; a != nil && d.owed {
			a.owed = append(a.owed, d)
		}
	}
	for _, a := range s.agents.order {
		s.addIdle(a)
	}
	s.tasks.finished = s.named(kept.Finished)
	for _, owner := range kept.Owned {
		s.tasks.owned[owner.Actor] = s.named(owner.Tasks)
	}
	s.restoreBus(&kept)
	for i := range kept.Sessions {
		s.restoreSession(&kept.Sessions[i])
	}
	for i := range kept.Questions {
		s.restoreQuestion(&kept.Questions[i])
	}
	return s.State, !s.broken
}

// A restoring is a State that is being built from a snapshot.
type restoring struct {
	*State
	broken bool // the snapshot is inconsistent
}

// task returns a task that the snapshot names. If it does not exist, task returns an empty one
// and sets broken.
func (s *restoring) task(id string) *task {
	if k := s.tasks.byID[id]; k != nil {
		return k
	}
	s.broken = true
	return new(task)
}

func (s *restoring) named(ids []string) []*task {
	var tasks []*task
	for _, id := range ids {
		tasks = append(tasks, s.task(id))
	}
	return tasks
}

func (s *restoring) restoreTask(kept *snapshotTask) {
	k := &task{
		view: kept.View, urgency: wire.Urgency(kept.View.Priority), run: kept.Run, deaths: kept.Deaths,
		created: kept.Created, ended: kept.Ended, result: kept.Result, stub: kept.Stub, way: kept.Way,
	}
	k.view.Dependencies, k.view.Links, k.view.ResolvedInputs = nil, nil, nil
	k.view.Details = k.view.Details.Filled()
	if string(k.view.Result) == "null" {
		k.view.Result = nil // the encoding of a missing result
	}
	m := taskExtra{
		patient: kept.Patient, promises: kept.Promises, maxFiles: kept.MaxFiles, parts: kept.Parts, notes: kept.Notes,
		question: kept.Question, history: kept.History, trace: kept.Trace,
	}
	if kept.Handed != nil {
		m.delegation = kept.Handed.restore(k)
	}
	if kept.Wants != nil {
		m.wants = wantsOf(kept.Wants)
	}
	if kept.Delivered != nil {
		m.delivered = deliveries(kept.View.Result)
	}
	if m.delivered == nil {
		for _, d := range kept.Delivered {
			m.delivered = append(m.delivered, delivery{key: d.Key, status: d.Status, logged: d.Logged})
		}
	}
	if !m.empty() {
		k.more = &m
	}
	s.broken = s.broken || s.tasks.byID[k.view.ID] != nil
	s.include(k)
	if d := k.delegation(); d != nil {
		s.when(d, d.next, d.asked)
	}
}

func (kept *snapshotHandedOn) restore(k *task) *delegatedWork {
	d := &delegatedWork{
		task: k, request: kept.Request, target: kept.Target, chain: kept.Chain, sum: kept.Sum, number: kept.Number,
		retries: kept.Retries, forwarded: kept.Forwarded, out: kept.Out, said: kept.Said, latest: kept.Latest, owed: kept.Owed, sent: kept.Sent, returned: kept.Returned,
		context: kept.Context,
	}
	d.given, _ = object.ParseTime(kept.Given)
	d.next, _ = object.ParseTime(kept.Next)
	d.asked, _ = object.ParseTime(kept.Asked)
	return d
}

// restoreAwaited links a delegated task to the task that waits for it.
func (s *restoring) restoreAwaited(kept *snapshotTask) {
	if kept.Handed == nil || kept.Handed.Awaited == "" {
		return
	}
	d, parent := s.task(kept.View.ID).delegation(), s.task(kept.Handed.Awaited)
	if s.broken || d == nil {
		s.broken = true
		return
	}
	d.awaited = parent
	m := parent.needsMore()
	m.handedOn = append(m.handedOn, d)
}

// empty reports whether m has no members.
func (m *taskExtra) empty() bool {
	return !m.patient && m.promises == nil && m.maxFiles == 0 && m.wants == nil && m.parts == nil && m.notes == nil &&
		m.delivered == nil && m.question == "" && m.history == nil && m.trace == nil && m.delegation == nil
}

// restoreLinks makes the graph.
func (s *restoring) restoreLinks(kept *snapshot) {
	for _, l := range kept.Links {
		n := graph.Node(len(s.tasks.list))
		if l.Down < 0 || l.Up < 0 || l.Down >= n || l.Up >= n || l.Kind > graph.Related || l.Number <= s.tasks.graph.Last() || l.Number > kept.LastLink {
			s.broken = true
			return
		}
		s.tasks.graph.Put(graph.View(l))
	}
	s.tasks.graph.Skip(kept.LastLink)
}

func (s *restoring) restoreAgent(kept *snapshotAgent) {
	a := newAgent(kept.Member.ID)
	a.Member, a.configured, a.state, a.run, a.system = kept.Member, kept.File, kept.State, kept.Run, kept.System
	a.ended, a.past = kept.Ended, kept.Past
	a.farewell, a.wrecked = kept.Farewell, kept.Wrecked
	a.returns = kept.Returns
	a.stale, a.deaf, a.given, a.holds = kept.Stale, kept.Deaf, kept.Given, s.named(kept.Holds)
	a.said = hub.ReadCapabilities(kept.Said)
	for i := range kept.Memories {
		m := &kept.Memories[i]
		memory := a.memories.keep(m.requestKey)
		memory.err, memory.answer, memory.seq = m.Err, m.reply(), m.Seq
	}
	s.broken = s.broken || s.agents.byID[a.ID] != nil
	s.meet(a)
	abilities := a.said
	if abilities == nil {
		abilities = hub.ReadCapabilities(a.Abilities)
	}
	if m := kept.Remote; m != nil {
		a.remote = &remote{hostname: m.Hostname, ip: m.IP, os: m.OS, repos: m.Repos, keyless: m.Keyless}
		seen, ok := object.ParseTime(m.Seen)
		s.broken = s.broken || !ok
		a.remote.seen = seen
		if a.state == up {
			s.hear(a, seen)
		}
	}
	s.indexCapabilities(a, abilities)
}

// restoreBus restores the actors of the bus. The keys of their mail are only in the log, which
// the caller searches.
func (s *restoring) restoreBus(kept *snapshot) {
	s.bus.actors, s.bus.order, s.bus.met = make(map[string]*busActor), nil, kept.Met
	s.bus.keys.floor = kept.Seq
	for i := range kept.Actors {
		k := &kept.Actors[i]
		c := &busActor{
			id: k.ID, number: k.Number, since: k.Since, ofRun: k.OfRun, cursor: k.Cursor, latest: k.Latest,
			beats: k.Beats, due: k.Due, stale: k.Stale,
		}
		c.seen, _ = object.ParseTime(k.Seen)
		c.beat, _ = object.ParseTime(k.Beat)
		if k.Agent != "" {
			if c.agent = s.agents.byID[k.Agent]; c.agent == nil || c.agent.mail != nil {
				s.broken = true
				return
			}
			c.agent.mail = c
		}
		s.broken = s.broken || s.bus.actors[c.id] != nil || c.number > kept.Met
		s.bus.actors[c.id] = c
		s.bus.order = append(s.bus.order, c)
		if c.due {
			s.bus.due.add(c)
		}
	}
	s.broken = s.broken || s.bus.actors[mail.Global] == nil
}

func (s *restoring) restoreQuestion(kept *snapshotQuestion) {
	q := &question{view: kept.View, number: kept.Number, run: kept.Run, door: kept.Door, request: kept.Request}
	q.deadline, _ = object.ParseTime(q.view.Deadline)
	s.broken = s.broken || s.questions.byID[q.view.ID] != nil
	s.questions.byID[q.view.ID] = q
	s.questions.open = append(s.questions.open, q)
	s.keepDeadline(q)
}
