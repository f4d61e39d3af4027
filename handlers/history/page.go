package history

import (
	"fmt"
	"iter"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// A Page names the records that hold the missing part of an answer.
type Page struct {
	Task   string  // the task
	Parts  []int64 // records of its words and documents, in order
	Ended  int64   // record of its end; 0: not shown as ended
	Inputs []Input
	Notes  []int64

	Results []Result

	Mail *MailPage // messages of an actor
	Sent int64     // record of a message

	Reply bool // a message answers a record, which should be a message

	Session *SessionPage // the log of a session

	Response int64               // record of a task response
	Metadata delegation.Metadata // of the task: fills in members that the response lacks
}

// An Input is a contract to read from the record of a task's end.
type Input struct {
	Key   string
	Ended int64
}

// A Result is a dependency whose result must be read from the record of a task's end.
type Result struct {
	Link  int // its place
	Ended int64
}

// An Archive reads the log.
type Archive interface {
	Record(seq int64) (wire.Record, error)
	Find(wire.Search) iter.Seq2[wire.Record, error] // the records that match
}

// A Log reads the facts in an Archive.
type Log struct {
	Archive
	Decode func(*wire.Record) (any, error) // returns the fact in a record
}

// The interfaces of facts.
type (
	// A Part changes parts of a task that are missing in an answer.
	Part interface {
		FillIn(t *wire.Task, r *wire.Record)
	}

	// A Success ends a task that is done.
	Success interface {
		Delivers() (result wire.Raw)
	}

	// A Note is a note about a task.
	Note interface {
		Note(r *wire.Record) wire.Note
	}

	// An Entry is in the log of a session. It fills in the entry and returns its addressee.
	Entry interface {
		Entry(e *wire.SessionEntry) (to string)
	}

	// A Line was sent to an agent as it is.
	Line interface {
		Line() wire.Raw
	}
)

// fact returns the fact in a record.
func (l Log) fact(seq int64) (any, *wire.Record, error) {
	r, err := l.Record(seq)
	if err != nil {
		return nil, nil, err
	}
	f, err := l.Decode(&r)
	return f, &r, err
}

// LineOf returns the line in a record, as it is sent to its recipient.
func LineOf(f any, r *wire.Record) (wire.Raw, error) {
	if l, ok := f.(Line); ok {
		return l.Line(), nil
	}
	return nil, fmt.Errorf("record %d, a %s, keeps no line", r.Seq, r.Kind)
}
