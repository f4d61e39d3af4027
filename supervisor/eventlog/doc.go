// Package eventlog stores the facts: an append-only log that the whole state of the orchestrator can be rebuilt from.
//
// # Operations
//
// A Log appends a batch of facts, reads facts in order, and finds some of them. It also stores
// and returns a state built from them, so that a restart need not begin at the first fact.
// Append is given the number of the log's last fact. If the log ends elsewhere, another program
// has written to it, and Append fails with ErrMoved. This check is the only fencing; there is
// no lease and no clock.
//
// There are three logs. Memory is lost with the process. SQLite is one file that the sqlite3 program can read while it
// grows; schema.go describes its tables. Shared is the log of several hubs. The rules in package logtest define the
// duties of a log, and run against each.
//
// # Shared logs
//
// An Engine, such as a server, keeps the entries of a Shared. An entry is a batch of facts, or a
// part of a batch that is too large for one. A hub appends by adding an entry after the last one
// that it has read. If another hub was first, Append returns ErrMoved. A batch in parts counts with
// its last part. If an entry of another hub comes before that, the batch counts nowhere.
//
// Each hub has a copy of the facts, which is an SQLite log and answers all questions. It also has the hub's states. The
// copy is not synced, because the engine has all facts: Follow fetches the facts that the copy has lost, or all if its
// files were deleted. An entry has the checksum of the chain before it, so a copy that differs refuses the next entry.
// OpenShared compares the last batch of the copy with the log. If the log ends before the copy, the engine has lost
// facts that it had confirmed, and OpenShared returns a *ShorterError.
//
// # Moving a record
//
// Move copies a local log into a shared one, and Shared.MoveOut makes a copy a local log again. The facts keep their
// numbers, times and sums. During a move each entry names the hub that has the rest, and no hub can append: see
// move.go. An interrupted move goes on at the same place, because the entries of the log are compared with the local
// log.
//
// # Guarantees
//
// A batch is in the log completely or not at all. When Append of a durable log returns nil, the
// batch is on the disk. The batch is not in the log, and never will be, when it returns
// ErrInvalid, ErrMoved, ErrTaken, ErrBusy, ErrReadOnly, fs.ErrClosed or a context error. After
// any other error of a write, the batch may or may not be there. The log is then broken and
// refuses every further append. A second attempt after a failed sync could lose data: the
// kernel forgets the pages that it could not write, and the next sync succeeds. Open the log
// again and read how it ends.
//
// A context cancels an append only before it begins. A running append is completed, so that its
// outcome is always known.
//
// # The chain
//
// SQLite returns flipped bits as if they were data. Therefore every row has a CRC-32C of its
// fields that continues the checksum of the row before. A flipped bit, a missing row and a
// manual edit are detected when the row is read, and the ChainError has its number. The
// checksum is not a signature: a program that can write the file can also compute it.
//
// Open verifies the newest rows and refuses to write after a broken chain. With ReadOnly it opens a broken log as well.
// Older rows, and rows that a stored state includes, are verified when they are read: a range over Records from 0
// verifies all. A reader gets an error at a break. Appending is still possible, because new rows continue the newest
// row, which was verified.
//
// # Concurrency
//
// SQLite has one connection for writing and one for reading. Records fetches a page of rows at a time. Find fetches a
// page of numbers and one row. Neither holds a lock while the caller handles a fact. So a slow reader delays no append
// and keeps no old page of the file in use. Neither returns a fact before its Append has returned.
//
// # Finding mail
//
// Few of the facts may be letters, and agents ask for theirs as long as the log exists. A
// search must neither read all of ten million facts nor hold every letter in memory. So Find
// uses an index for its two kinds of search: mail by recipient and number, and the one fact
// with a key.
//
// A fact that Find returns is verified with the row before it. An index has no checksums. A
// damaged index that leads to a wrong row is detected, but one that omits a letter is not.
// Records uses no index and returns every fact.
//
// # Removing old facts
//
// Trim removes facts from the front, in transactions of 256 rows. The table base has the number
// and the checksum of the last of them, so the chain begins there and is checked as before. A kill
// between two transactions leaves a log that begins later. Freed pages go back to the file system
// with the incremental vacuum; a file that an older version created keeps and reuses them.
//
// Files of a fixed number of facts would be simpler to delete. But a search by recipient or key
// would ask each file, a backup would be many files, and open work would hold a whole file.
//
// Reading behind the base is a *wire.RemovedError, never an empty answer. Trim keeps all facts after the older of the
// two states, because the removed facts can be known only from a state.
//
// # Limits
//
// The package does not parse payloads or interpret kinds. It does not prevent
// another process from opening the file for writing: the owner of the state directory locks it,
// and ErrMoved keeps such a mistake harmless. The package starts no goroutines. It does not
// collect batches either, because the caller collects facts while the batch before is being
// committed.
package eventlog
