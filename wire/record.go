package wire

import "time"

// Record is one fact: something that became true, in the words of the log. A
// fact is never changed; what follows from it is another fact.
type Record struct {
	Seq         int64     // its number, from 1 without holes; the log gives it
	At          time.Time // UTC, milliseconds
	From        string    // who caused it
	To          string    // whom it is for; "" for nobody in particular
	Topic       string    // of mail
	Kind        string    // what it is, such as "task.created"
	Payload     []byte    // JSON, as its kind says; nobody parses it on the way
	ReplyTo     int64     // the seq that it answers; 0: none
	Key         string    // unique for each From, when not ""
	Correlation string    // what it belongs together with
}
