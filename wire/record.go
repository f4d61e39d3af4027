package wire

import (
	"time"
)

// A Record is one fact, as stored in the log. A record never changes; its consequences are
// further records.
type Record struct {
	Seq         int64     // its number, from 1 without gaps; the log assigns it
	At          time.Time // UTC, milliseconds
	From        string    // the actor that caused it
	To          string    // its recipient; "" for none
	Topic       string    // of mail
	Kind        string    // its kind, such as "task.created"
	Payload     []byte    // JSON in the form of its kind, stored as it is
	ReplyTo     int64     // the seq of the record that it answers; 0: none
	Key         string    // unique for each From, when not ""
	Correlation string    // groups related records
}

// IsMail reports whether a record is a message from one actor to another.
func (r *Record) IsMail() bool { return r.Topic != "" }

// A Search selects records: mail, which has a topic and a recipient, or the one record with a
// key.
type Search struct {
	To       []string // recipients of the mail; none: all
	After    int64    // mail behind this number
	Until    int64    // mail up to this number; 0: no limit
	Backward bool     // the newest first

	// With a key, the fields above are ignored. The search finds the one record of this sender
	// with this key.
	From, Key string
}
