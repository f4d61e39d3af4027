package wire

import (
	"time"
)

// Record is one fact: something that became true, in the words of the log. A
// fact is never changed; what follows from it is another fact.
type Record struct {
	Seq         int64     // its number, from 1 without holes; the log gives it
	At          time.Time // UTC, milliseconds
	From        string    // who caused it
	To          string    // its addressee; "" for none
	Topic       string    // of mail
	Kind        string    // what it is, such as "task.created"
	Payload     []byte    // JSON, as its kind says; it is not parsed on the way
	ReplyTo     int64     // the seq that it answers; 0: none
	Key         string    // unique for each From, when not ""
	Correlation string    // what it belongs together with
}

// IsMail reports whether a record is a message from one actor to another.
func (r *Record) IsMail() bool { return r.Topic != "" }

// Search says which records are wanted, where not all are: mail, which is what
// has a topic and an addressee; or the one that has a key.
type Search struct {
	To       []string // addressees of the mail; none: all
	After    int64    // mail behind this number
	Until    int64    // and up to this one; 0: all there is
	Backward bool     // the newest first

	// With a key all of the above is passed over: wanted is the one record of
	// this sender with this key.
	From, Key string
}
