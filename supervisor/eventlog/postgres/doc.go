// Package postgres keeps the entries of a shared event log in a table of PostgreSQL.
//
// The server is not part of this program, and other programs may use it too. Whether a confirmed entry
// survives the loss of the server's machine depends on how the server is run: an asynchronous replica that
// takes over has lost some, and a synchronous one has not. The engine refuses a server that could lose
// entries in a power failure, and waits for one that can be written.
//
// Hubs must reach the server itself, or a proxy that keeps sessions: a pooler that gives each statement
// another session loses the lock of the hub at work.
//
// # Tables
//
// orchestrator_entries has a row for each entry, by the name of the log and the number. A trigger refuses to change or
// delete them. orchestrator_logs has a row for each log: the key of its hubs, and the seat. orchestrator_objects has a
// row for each object, which is never changed either.
//
// # Writing
//
// An entry is added by one INSERT that has no effect unless the log ends where the hub expects. The primary key decides
// between two that run at once. An answer can be lost. So the same statement, with the same id, is sent until its
// outcome is known. If it adds no row, the id of the row at that place tells whether the row is our own. That row may
// be there and yet be lost: a server that stops waiting for its replica shows it. The question for the id therefore
// writes to the server's own log, and its answer comes only when everything before it is as durable as an entry must
// be.
//
// # The seat
//
// The hub at work holds a session lock of the server. The key of the lock is derived from the name of the log. The
// server releases it when the hub's process ends. A hub that hangs keeps it. So the hub also raises a counter, the
// beat, twice a second. The row of the log also has the description of the hub. So Ask returns:
//
//	state that another hub finds                             Ask returns
//	the lock is held, and the beat has moved within 1 s      the hub at work
//	the lock is held, and the beat has not                   ErrSilent
//	the lock was lost when the server was restarted          ErrSilent
//	the lock is not held, as 150 ms ago, and no entry came   ErrVacant
//	the lock is not held                                     ErrSilent
//
// A hub takes the lock a moment after it has taken its turn. A session can end while its hub goes on, and the
// hub then takes the lock again in a new one. The last three rows leave it the time for that, because a hub that
// is replaced stops its agents.
//
// The lock is a shared one, so a hub never waits for it. The hub that was given up because it hangs may still hold it.
// A hub that took its turn at a later entry overwrites the row, and an earlier one never overwrites the row of a later
// one that holds the lock. So the row always comes to describe the hub at work.
package postgres
