package history

import (
	"fmt"
	"iter"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/session"
)

// A Page names the records that hold the missing part of an answer.
type Page struct {
	Task   string  // the task
	Parts  []int64 // records of its words and documents, in order
	Ended  int64   // record of its end; 0: not shown as ended
	Inputs []Input
	Notes  []int64
	Output int64 // record of its last partial result

	Results []Result

	Mail *MailPage // messages of an actor
	Sent int64     // record of a message

	Status *StatusPage // the states of a message

	Reply bool // a message answers a record, which should be a message

	Session *SessionPage // the log of a session

	Archived *ArchivedPage // archived tasks

	Response int64               // record of a task response
	Metadata delegation.Metadata // of the task: fills in members that the response lacks
}

// An Input is a contract to read from the record of a task's end.
type Input struct {
	Key   string
	Ended int64
}

// A Result is a dependency with a result that must be read from the record of a task's end.
type Result struct {
	Link  int // its place
	Ended int64
}

// An Archive reads the log.
type Archive interface {
	Record(seq int64) (wire.Record, error)
	Find(wire.Search) iter.Seq2[wire.Record, error] // the records that match
	After(seq int64) iter.Seq2[wire.Record, error]  // the records after a number
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
		Made() []delegation.Artifact
	}

	// A Note is a note about a task.
	Note interface {
		Note(r *wire.Record) wire.Note
	}

	// An Entry is in the log of a session. It fills in the entry and returns its addressee.
	Entry interface {
		Entry(e *session.Entry) (to string)
	}

	// A Receipt returns a state of mail, or nil if it is about other mail.
	Receipt interface {
		Receipt(of *mail.Message) *mail.State
	}

	// An Archived is a task that is only in the log. Created is its first record.
	Archived interface {
		Archived() (v *wire.Task, created int64, conversation string, err error)
	}

	// A Line returns the line that was sent to an agent.
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

// LineOf returns the line that a record sends to its recipient.
func LineOf(f any, r *wire.Record) (wire.Raw, error) {
	if l, ok := f.(Line); ok {
		return l.Line(), nil
	}
	return nil, fmt.Errorf("record %d, a %s, keeps no line", r.Seq, r.Kind)
}

// A MailPage selects a page of an actor's mail, which is only in the log.
type MailPage struct {
	Actor string
	After int64 // messages behind this number
	Until int64 // messages up to this number; 0: all
	Limit int64
	Told  bool // without assignments, since the actor gets separate notices of them
}

// mailPageBytes is the maximum size of a page. A larger message is a page by itself.
const mailPageBytes = 4 << 20

// isFor reports whether mail is for an actor: addressed to it, or a broadcast of another actor.
func isFor(actor string, m *mail.Message) bool {
	return m.To == actor || m.To == mail.Broadcast && m.From != actor
}

// completeMail completes an answer with messages from the log.
func completeMail(answer any, pages []Page, record Archive) (any, error) {
	if len(pages) == 0 {
		return answer, nil
	}
	switch a := answer.(type) {
	case *mail.List:
		messages, _, more, err := ReadMail(MailIn(record), *pages[0].Mail, mailPageBytes)
		if err != nil {
			return nil, err
		}
		return &mail.List{Actor: a.Actor, Messages: messages, Cursor: a.Cursor, More: more}, nil
	case *mail.Sent:
		whole := *a
		if seq := pages[0].Sent; seq != 0 {
			r, err := record.Record(seq)
			if err != nil {
				return nil, err
			}
			whole.Message = wire.MailOf(&r)
		}
		about := whole.ReplyTo
		if about == nil || *about >= whole.Seq {
			return &whole, nil
		}
		r, err := record.Record(*about)
		if err == nil && !r.IsMail() {
			whole.Warnings = append(slices.Clone(whole.Warnings), fmt.Sprintf("it answers %d, which is not a message", *about))
		}
		return &whole, err
	}
	return answer, nil
}

// Mail is a message with the kind of its record.
type Mail struct {
	mail.Message
	Kind string
}

// MailOf returns the mail in a record.
func MailOf(r *wire.Record) Mail { return Mail{Message: wire.MailOf(r), Kind: r.Kind} }

// A FindMail returns the mail that a search for recipients selects, oldest first.
type FindMail func(wire.Search) iter.Seq2[Mail, error]

// MailIn returns the FindMail that searches an archive.
func MailIn(record Archive) FindMail {
	return func(s wire.Search) iter.Seq2[Mail, error] {
		return func(yield func(Mail, error) bool) {
			for r, err := range record.Find(s) {
				if !yield(MailOf(&r), err) || err != nil {
					return
				}
			}
		}
	}
}

// ReadMail reads a page of an actor's mail. seen is the number after which the next page begins.
// Broadcasts of the actor itself are skipped.
func ReadMail(find FindMail, page MailPage, most int) (messages []mail.Message, seen int64, more bool, err error) {
	messages, seen = []mail.Message{}, page.After
	size := 0
	search := wire.Search{To: []string{page.Actor, mail.Broadcast}, After: page.After, Until: page.Until}
	for m, err := range find(search) {
		if err != nil {
			return nil, 0, false, err
		}
		if isFor(page.Actor, &m.Message) && !(page.Told && m.Kind == events.TaskAssigned) {
			if size += len(m.Payload); int64(len(messages)) == page.Limit || size > most && len(messages) > 0 {
				return messages, seen, true, nil
			}
			messages = append(messages, m.Message)
		}
		seen = m.Seq
	}
	return messages, seen, false, nil
}
