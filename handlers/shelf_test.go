package handlers

import (
	"iter"
	"slices"

	"orchestrator/wire"
)

// shelf is a log in memory: record n at n-1.
type shelf []wire.Record

func (s shelf) Record(seq int64) (wire.Record, error) { return s[seq-1], nil }

func (s shelf) Find(search wire.Search) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		for _, r := range s {
			if found(&search, &r) && !yield(r, nil) {
				return
			}
		}
	}
}

// found reports whether a record matches a search, by key or by recipient.
func found(s *wire.Search, r *wire.Record) bool {
	if s.Key != "" {
		return r.From == s.From && r.Key == s.Key
	}
	return r.Topic != "" && (s.To == nil || slices.Contains(s.To, r.To)) && r.Seq > s.After && (s.Until == 0 || r.Seq <= s.Until)
}

// lookUp does the lookup in the log that precedes a decision about a message.
func (s shelf) lookUp(state *State, in *Input) {
	l, from, key := state.IdempotencyKey(in)
	if l == nil {
		return
	}
	*l = wire.Lookup{Looked: int64(len(s)), Sender: from}
	for r := range s.Find(wire.Search{From: from, Key: key}) {
		l.Before, l.Sum = r.Seq, SumOf(&r)
	}
}

// read is an archive that a test observes.
type read func(seq int64) (wire.Record, error)

func (r read) Record(seq int64) (wire.Record, error) { return r(seq) }

func (r read) Find(wire.Search) iter.Seq2[wire.Record, error] { panic("nothing is to be searched") }
