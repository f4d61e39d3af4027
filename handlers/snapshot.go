package handlers

import (
	"fmt"
	"slices"

	"orchestrator/wire"
)

// snapshotVersion is the form of snapshots. One of another form is passed over,
// and the records tell everything.
const snapshotVersion = 1

// snapshot is a State as it is kept, so that a restart need not begin at the
// first record. What can be made of other parts is not in it.
type snapshot struct {
	Version   int                `json:"version"`
	Seq       int64              `json:"seq"`
	Stopping  bool               `json:"stopping,omitzero"`
	Numbered  int64              `json:"numbered,omitzero"`
	Agents    []snapshotAgent    `json:"agents"`
	Tasks     []snapshotTask     `json:"tasks"`    // oldest first
	Finished  []string           `json:"finished"` // kept whole, in the order in which they ended
	Owned     []snapshotOwner    `json:"owned"`
	Questions []snapshotQuestion `json:"questions"`
	Keys      map[string]string  `json:"keys"`
}

type snapshotAgent struct {
	Member   wire.Member      `json:"member"`
	State    agentState       `json:"state"`
	Run      string           `json:"run,omitzero"`
	Stale    bool             `json:"stale,omitzero"`
	Deaf     bool             `json:"deaf,omitzero"`
	Given    int64            `json:"given,omitzero"`
	Holds    []string         `json:"holds,omitzero"`
	Memories []snapshotMemory `json:"memories,omitzero"` // oldest first
}

type snapshotMemory struct {
	mark   `json:",inline"`
	Task   *wire.TaskReply  `json:"task,omitzero"`
	Answer *wire.UserAnswer `json:"answer,omitzero"`
	Err    *wire.Error      `json:"error,omitzero"`
}

type snapshotTask struct {
	View    wire.Task `json:"view"`
	Run     string    `json:"run,omitzero"`
	Deaths  int       `json:"deaths,omitzero"`
	Created int64     `json:"created"`
	Ended   int64     `json:"ended,omitzero"`
	Stub    bool      `json:"stub,omitzero"`
}

// snapshotOwner are the tasks of one actor; whose they are cannot be told from
// the tasks, since an agent keeps seeing what it has finished.
type snapshotOwner struct {
	Actor string   `json:"actor"`
	Tasks []string `json:"tasks"`
}

type snapshotQuestion struct {
	View    wire.Question `json:"view"`
	Run     string        `json:"run,omitzero"`
	Request *mark         `json:"request,omitzero"`
}

// Snapshot spells the State.
func (s *State) Snapshot() ([]byte, error) {
	kept := snapshot{Version: snapshotVersion, Seq: s.seq, Stopping: s.stopping, Numbered: s.numbered, Keys: s.keys}
	for _, a := range s.order {
		kept.Agents = append(kept.Agents, a.snapshot())
	}
	for _, k := range s.list {
		kept.Tasks = append(kept.Tasks, snapshotTask{
			View: k.view, Run: k.run, Deaths: k.deaths, Created: k.created, Ended: k.ended, Stub: k.stub,
		})
	}
	kept.Finished = ids(s.finished)
	for actor, mine := range s.owned {
		kept.Owned = append(kept.Owned, snapshotOwner{Actor: actor, Tasks: ids(mine)})
	}
	slices.SortFunc(kept.Owned, func(a, b snapshotOwner) int { return compare(a.Actor, b.Actor) })
	for _, q := range s.asked {
		kept.Questions = append(kept.Questions, snapshotQuestion{View: q.view, Run: q.run, Request: q.request})
	}
	text, err := wire.Encode(kept)
	if err != nil {
		return nil, fmt.Errorf("spelling the state: %w", err)
	}
	return text, nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func ids(tasks []*task) []string {
	list := make([]string, 0, len(tasks))
	for _, k := range tasks {
		list = append(list, k.view.ID)
	}
	return list
}

func (a *agent) snapshot() snapshotAgent {
	kept := snapshotAgent{
		Member: a.Member, State: a.state, Run: a.run, Stale: a.stale, Deaf: a.deaf, Given: a.given, Holds: ids(a.holds),
	}
	for i := range a.memories.ring {
		m := a.memories.ring[(a.memories.next+i)%len(a.memories.ring)]
		if a.memories.byID[m.ID] != m {
			continue // its id was used again
		}
		memory := snapshotMemory{mark: m.mark, Err: m.err}
		switch answer := m.answer.(type) {
		case *wire.TaskReply:
			memory.Task = answer
		case *wire.UserAnswer:
			memory.Answer = answer
		}
		kept.Memories = append(kept.Memories, memory)
	}
	return kept
}

// Restore makes the State that a snapshot spells. It says false when there is
// nothing to be made of it, for instance because another version wrote it.
func Restore(rules Rules, text []byte) (*State, bool) {
	var kept snapshot
	if err := wire.DecodeOwn(text, &kept); err != nil || kept.Version != snapshotVersion {
		return nil, false
	}
	s := New(rules)
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
	for _, q := range kept.Questions {
		restored := &question{view: q.View, run: q.Run, request: q.Request}
		restored.deadline, _ = wire.ParseTime(q.View.Deadline)
		s.questions[q.View.ID] = restored
		s.asked = append(s.asked, restored)
	}
	return s, true
}

func (s *State) named(ids []string) []*task {
	var tasks []*task
	for _, id := range ids {
		tasks = append(tasks, s.tasks[id])
	}
	return tasks
}

func (s *State) restoreTask(kept *snapshotTask) {
	k := &task{
		view: kept.View, urgency: urgencyOf(kept.View.Priority), run: kept.Run, deaths: kept.Deaths,
		created: kept.Created, ended: kept.Ended, stub: kept.Stub,
	}
	s.tasks[k.view.ID] = k
	s.list = append(s.list, k)
}

func (s *State) restoreAgent(kept *snapshotAgent) {
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
	s.agents[a.ID] = a
	s.order = append(s.order, a)
}

// link makes what follows from the tasks: who waits for whom, the queues and the
// counts.
func (s *State) link(k *task) {
	if k.view.State.Final() {
		s.count(k, +1)
		return
	}
	for _, id := range k.view.Dependencies {
		if d := s.tasks[id]; d.view.State != wire.TaskDone {
			k.open++
			if !d.view.State.Final() {
				d.dependents = append(d.dependents, k)
			}
		}
	}
	s.count(k, +1)
	s.enqueue(k)
}
