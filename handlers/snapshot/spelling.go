package snapshot

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"orchestrator/handlers/state"
	"orchestrator/wire/object"
)

// A Snapshot is a snapshot of a State as it was at one time, spelled piece by piece while the State
// goes on. A task that changes before its turn comes is spelled as it was.
type Snapshot struct {
	state  *state.State
	number uint32 // tasks with it are spelled
	seq    int64
	rest   []any  // to be spelled before the tasks: a string is a text, anything else an element of a list
	after  int64  // the last task that had its turn
	early  []byte // tasks that were spelled before their turn, each after a comma
	text   []byte // spelled, and not yet returned
	listed bool   // the present list has an element
	err    error
}

// Begin begins a snapshot of the present State. It ends an earlier unfinished one.
func Begin(s *state.State) *Snapshot {
	kept := snapshot{
		Version: SnapshotVersion, Seq: s.LastSeq, Stopping: s.Stopping, Numbered: s.Questions.Numbered, Since: state.Stamped(s.StartedAt), Drained: s.Drained, Met: s.Bus.Met(),
		Finished: state.Ids(s.Tasks.Finished), LastLink: s.Tasks.Graph.Last(), Count: len(s.Tasks.List), Recalled: slices.Sorted(maps.Keys(s.Tasks.Archive.Recalled)),
	}
	if s.Tasks.Archive.Size() > 0 {
		kept.Archived = s.Tasks.Archive.Counts
		if len(s.Tasks.Archive.Parts) > 0 {
			kept.Parts = s.Tasks.Archive.Parts
		}
	}
	for c := range s.Access.All() {
		kept.Access = append(kept.Access, c)
	}
	s.Tasks.Saved++
	sn := &Snapshot{state: s, number: s.Tasks.Saved, seq: s.LastSeq}
	s.Tasks.Saving = sn
	head := sn.element(nil, &kept)
	sn.text = bytes.TrimSuffix(head[1:], []byte(`"tasks":[]}`))
	sn.rest = append(sn.rest, `"agents":[`)
	for _, a := range s.Agents.Order {
		sn.rest = append(sn.rest, memberOf(a))
	}
	sn.rest = append(sn.rest, `],"actors":[`)
	for _, c := range s.Bus.All() {
		sn.rest = append(sn.rest, actorOf(c))
	}
	sn.rest = append(sn.rest, `],"sessions":[`)
	for _, x := range s.Sessions.Order {
		sn.rest = append(sn.rest, sessionOf(x))
	}
	sn.rest = append(sn.rest, `],"questions":[`)
	for _, q := range s.Questions.Open {
		sn.rest = append(sn.rest, q.StoredQuestion)
	}
	sn.rest = append(sn.rest, `],"tasks":[`)
	return sn
}

// Text returns the whole text at once.
func (s *Snapshot) Text() ([]byte, error) {
	text, _, err := s.Next(math.MaxInt)
	return text, err
}

// Next returns the next part of the text, and whether that was the last. It has about size bytes,
// and the tasks that have changed since the last call. After an end it returns io.ErrClosedPipe.
// The State must not be used at the same time.
func (s *Snapshot) Next(size int) (text []byte, done bool, err error) {
	if s.state.Tasks.Saving != s {
		return nil, false, io.ErrClosedPipe
	}
	for ; len(s.rest) > 0 && len(s.text) < size; s.rest = s.rest[1:] {
		if literal, ok := s.rest[0].(string); ok {
			s.text, s.listed = append(s.text, literal...), false
		} else {
			s.list(s.element(nil, s.rest[0]))
		}
	}
	if len(s.rest) == 0 && s.spellTasks(size) {
		s.text, done = append(s.text, "]}"...), true
		s.End()
	}
	text, s.text = s.text, nil
	return text, done, s.err
}

// spellTasks spells tasks, and reports whether these were the last.
func (s *Snapshot) spellTasks(size int) bool {
	s.list(s.early)
	s.early = nil
	tasks, looked := &s.state.Tasks, 0
	for _, t := range tasks.List.After(s.after) {
		if t.Number > s.seq {
			break
		}
		if looked++; len(s.text)+16*looked > size { // one that is spelled costs time too
			return false
		}
		s.after = t.Number
		s.BeforeChange(t)
		s.list(s.early)
		s.early = s.early[:0]
	}
	return true
}

// list adds elements, each after a comma, to the present list.
func (s *Snapshot) list(elements []byte) {
	if !s.listed && len(elements) > 0 {
		s.listed, elements = true, elements[1:]
	}
	s.text = append(s.text, elements...)
}

// element appends a comma and an element of a list.
func (s *Snapshot) element(b []byte, v any) []byte {
	if a, ok := v.(*snapshotAgent); ok {
		for i := range a.saved {
			a.Memories = append(a.Memories, a.saved[i].Stored())
		}
	}
	text, err := object.Encode(v)
	if err != nil {
		s.err = fmt.Errorf("spelling a part of the state: %w", err)
	}
	return append(append(b, ','), text...)
}

// End ends a snapshot before it is complete.
func (s *Snapshot) End() {
	if s.state.Tasks.Saving == s {
		s.state.Tasks.Saving = nil
	}
}

// BeforeChange spells a task that is about to change, unless its turn was before.
func (s *Snapshot) BeforeChange(t *state.Task) {
	if t.Saved == s.number || t.Number > s.seq {
		return
	}
	t.Saved = s.number
	var links []state.Need
	for e := range s.state.Tasks.Graph.Needs(t.Node) {
		v := s.state.Tasks.Graph.Edge(e)
		links = append(links, state.Need{
			On: s.state.Tasks.Nodes[v.Up].View.ID, Kind: v.Kind, Key: v.Key, Resolved: v.Resolved, At: v.At, Number: v.Number, Private: v.Private,
		})
	}
	if t.Extra == nil && links == nil {
		s.early = t.AppendPlain(append(s.early, ','))
		return
	}
	kept := t.Snapshot()
	kept.Links = links
	s.early = s.element(s.early, &kept)
}
