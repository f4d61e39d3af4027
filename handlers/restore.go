package handlers

import "orchestrator/wire"

// Restore makes the State that a snapshot spells. It says false when there is
// nothing to be made of it, for instance because another version wrote it.
func Restore(rules Rules, text []byte) (*State, bool) {
	var kept snapshot
	if err := wire.DecodeOwn(text, &kept); err != nil || kept.Version != snapshotVersion {
		return nil, false
	}
	s := restoring{State: New(rules)}
	s.seq, s.stopping, s.numbered = kept.Seq, kept.Stopping, kept.Numbered
	for hash, name := range kept.Keys {
		s.keys[hash] = name
	}
	for i := range kept.Tasks {
		s.restoreTask(&kept.Tasks[i])
	}
	for i := range kept.Agents {
		s.restoreAgent(&kept.Agents[i])
	}
	for _, k := range s.list {
		s.link(k)
	}
	s.finished = s.named(kept.Finished)
	for _, owner := range kept.Owned {
		s.owned[owner.Actor] = s.named(owner.Tasks)
	}
	for i := range kept.Questions {
		s.restoreQuestion(&kept.Questions[i])
	}
	return s.State, !s.broken
}

// restoring is a State that is being made of a snapshot.
type restoring struct {
	*State
	broken bool // the snapshot names what is not in it, or something twice
}

// task finds a task that the snapshot names. One that is not there is empty.
func (s *restoring) task(id string) *task {
	if k := s.tasks[id]; k != nil {
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
		view: kept.View, urgency: urgencyOf(kept.View.Priority), run: kept.Run, deaths: kept.Deaths,
		created: kept.Created, ended: kept.Ended, stub: kept.Stub,
	}
	s.broken = s.broken || s.tasks[k.view.ID] != nil
	s.tasks[k.view.ID] = k
	s.list = append(s.list, k)
}

func (s *restoring) restoreAgent(kept *snapshotAgent) {
	a := &agent{
		Member: kept.Member, actor: agentPrefix + kept.Member.ID, state: kept.State, run: kept.Run,
		stale: kept.Stale, deaf: kept.Deaf, given: kept.Given, holds: s.named(kept.Holds),
	}
	for i := range kept.Memories {
		m := &kept.Memories[i]
		memory := a.memories.keep(m.mark)
		memory.err = m.Err
		switch {
		case m.Task != nil:
			memory.answer = m.Task
		case m.Answer != nil:
			memory.answer = m.Answer
		}
	}
	s.broken = s.broken || s.agents[a.ID] != nil
	s.meet(a)
	s.market.offer(a)
}

func (s *restoring) restoreQuestion(kept *snapshotQuestion) {
	q := &question{view: kept.View, number: kept.Number, run: kept.Run, door: kept.Door, request: kept.Request}
	q.deadline, _ = wire.ParseTime(q.view.Deadline)
	s.broken = s.broken || s.questions[q.view.ID] != nil
	s.questions[q.view.ID] = q
	s.asked = append(s.asked, q)
	s.keepDeadline(q)
}

// link makes what follows from the tasks: who waits for whom, the market and the
// counts.
func (s *restoring) link(k *task) {
	if !k.view.State.Final() {
		for _, id := range k.view.Dependencies {
			k.depend(s.task(id))
		}
	}
	s.count(k, +1)
	s.enqueue(k)
}
