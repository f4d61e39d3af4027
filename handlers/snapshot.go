package handlers

import (
	"cmp"
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
	Number  int64         `json:"number"`
	Run     string        `json:"run,omitzero"`
	Door    bool          `json:"door,omitzero"`
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
	slices.SortFunc(kept.Owned, func(a, b snapshotOwner) int { return cmp.Compare(a.Actor, b.Actor) })
	for _, q := range s.asked {
		kept.Questions = append(kept.Questions, snapshotQuestion{
			View: q.view, Number: q.number, Run: q.run, Door: q.door, Request: q.request,
		})
	}
	text, err := wire.Encode(kept)
	if err != nil {
		return nil, fmt.Errorf("spelling the state: %w", err)
	}
	return text, nil
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
