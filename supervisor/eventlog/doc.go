// Package eventlog keeps the facts: an append-only log from which everything
// that the orchestrator knows can be made again.
//
// # The five verbs
//
// A Log appends a batch of facts, reads them back in order, finds some of them,
// and keeps and returns a state made from them, so that a restart need not
// begin at the first one. Append names the number that the log is believed to
// end with. If it ends elsewhere, another program has written, and the append
// fails with ErrMoved: this one condition is all the fencing there is, and all
// that a distributed engine will need; there is no lease and no clock.
//
// There are two engines. Memory forgets with the process. SQLite is one file
// that people can read with the sqlite3 program while it grows; its tables
// are described in schema.go. What an engine must do is written down once, in
// the conformance tests, and run against each.
//
// # What is promised
//
// A batch is there whole or not at all. When Append of a durable log returns
// nil, the batch has reached the disk. When it returns ErrInvalid, ErrMoved,
// ErrTaken, ErrBusy, ErrReadOnly, fs.ErrClosed or the error of a context,
// nothing of it is there or ever will be. Any other error of a write leaves the
// fate of the batch open: the log is broken then, and says so to every further
// append, because a second attempt after a failed sync is how databases lose
// data that they had promised (the kernel forgets what it could not write, and
// the next sync succeeds). Open the log anew and read how it ends.
//
// A context ends an append only before it begins. Once begun it runs to its
// end, so that cancelling cannot make an outcome unknown.
//
// # The chain
//
// SQLite returns flipped bits as if they were data. Therefore every row carries
// a CRC-32C of its fields that continues the checksum of the row before: a
// flipped bit, a missing row and an edit by hand are found when the row is
// read, and the ChainError names its number. It is a checksum, no signature:
// who can write the file can also compute it.
//
// Opening verifies the newest rows and refuses to write behind a broken chain;
// opening with ReadOnly shows what is there. The rows before are verified when
// they are read: ranging over Records from 0 verifies all. A reader that finds a
// break gets the error. Appending goes on, because new rows follow from the newest
// one, which was verified.
//
// # Reading and writing at once
//
// SQLite has one connection for writing and one for reading. Records fetches a
// page of rows at a time, Find a page of numbers and a row, and both hold
// nothing while the caller looks at them, so a slow reader delays no append and
// keeps no old page of the file alive. Neither ever shows a fact whose append
// has not returned.
//
// # Finding mail
//
// Letters may be few among the facts, and agents ask for theirs as long as the
// log lives. In a log of ten million facts that must not mean reading ten
// million, nor holding every letter in memory in case it is asked for. Hence
// Find, which is all there is of searching: mail by addressee and number, and
// the one fact that has a key, each by an index.
//
// What is found is verified by the row before it. An index has no checksums: a
// damaged one can lead to a wrong row, which is noticed, and it can leave a
// letter out, which is not. Records needs no index and shows everything.
//
// # What it will not do
//
// It does not parse payloads, know kinds, or remove facts. It does not keep a
// second process from opening the file for writing: the owner of the state
// directory locks it; the fence then keeps the mistake harmless. It starts no
// goroutine, and gathers no batches: the caller has them already, as what came
// in while the batch before was being made durable.
package eventlog
