package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// applicationID marks the file as an event log ("orEL"), and schemaVersion is the version of
// the tables. `file` and `PRAGMA user_version` show them.
const (
	applicationID = 0x6f72454c
	schemaVersion = 4
)

// schema creates everything in the file. A program refuses a file of a newer version. It must
// read every older version, and upgrades the file when it opens it for writing: see upgrade.
//
// events has one row for each fact, numbered from 1 without gaps:
//
//	seq              its number
//	at               when, RFC 3339 in UTC with milliseconds: 2026-11-02T15:04:05.678Z
//	actor_from       who caused it
//	actor_to         its addressee; NULL for none
//	topic            of mail; NULL for everything else
//	kind             the kind of fact, such as task.created
//	payload          JSON in the form of its kind; NULL for none
//	reply_to         the seq that it answers; NULL for none
//	idempotency_key  unique for each actor_from; NULL for none
//	correlation      an id that it shares with related facts; NULL for none
//	crc              the chain: see chain
//
// Go's "" and 0 are stored as NULL, which makes `IS NULL` useful and keeps the partial indexes
// small. actor_from and kind are never NULL, because a unique index does not compare NULLs.
//
// The index mail finds the letters of an actor after a cursor. It has only rows with a topic
// and a recipient, because other rows would cost every append a second B-tree. The index
// letters finds all mail after a number, or the newest, without reading other rows; version 1
// does not have it. The index once lets a repeated request find its first answer. The indexes
// archive and archived find the tasks that are only in the log, in the order of their creation and
// by their ids; versions 1 and 2 do not have them. The index refs finds the records of tasks that
// may refer to artifacts; versions 1 to 3 do not have it.
//
// base has one row if records were removed: the number and the checksum of the last of them and its
// time, when it was removed, and the time of the first record of all. The chain of the first record
// that is left continues base. Versions 1 to 3 do not have it.
//
// snapshots has at most two states. It is in the same file as the log, so that a copy of the file is complete. A state
// includes the events up to seq and is stored in parts of 1 MiB, numbered from 0. The last part is shorter and may be
// empty. The crc of the first part continues the crc of the event with the same seq. Each other crc continues the crc
// of the part before.
const schema = `CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  actor_from TEXT NOT NULL,
  actor_to TEXT,
  topic TEXT,
  kind TEXT NOT NULL,
  payload TEXT,
  reply_to INTEGER,
  idempotency_key TEXT,
  correlation TEXT,
  crc INTEGER NOT NULL
) STRICT;
CREATE INDEX mail ON events (actor_to, seq) WHERE topic IS NOT NULL AND actor_to IS NOT NULL;
` + lettersIndex + `;
` + archiveIndexes + `;
` + refsIndex + `;
` + baseTable + `;
CREATE UNIQUE INDEX once ON events (actor_from, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE snapshots (
  seq INTEGER NOT NULL,
  part INTEGER NOT NULL,
  state BLOB NOT NULL,
  crc INTEGER NOT NULL,
  PRIMARY KEY (seq, part)
) STRICT;`

const baseTable = `CREATE TABLE base (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL,
  crc INTEGER NOT NULL,
  at TEXT NOT NULL,
  removed TEXT NOT NULL,
  began TEXT NOT NULL
) STRICT`

const lettersIndex = `CREATE INDEX letters ON events (seq) WHERE topic IS NOT NULL AND actor_to IS NOT NULL`

// The first record of an archived task is in reply_to.
const archiveIndexes = `CREATE INDEX archive ON events (reply_to, seq) WHERE kind = 'task.archived';
CREATE INDEX archived ON events (correlation, seq) WHERE kind = 'task.archived'`

// refers selects the records that may refer to artifacts. Few records are compared with the text.
const refers = `kind >= 'task.' AND kind < 'task/' AND instr(payload, '"sha256:') > 0`

const refsIndex = `CREATE INDEX refs ON events (seq) WHERE ` + refers

// The queries for mail name their index. SQLite does not know how few facts are mail, and might
// instead scan the table by number. A missing index also becomes an error instead of a slow
// query.
const (
	mailOf = `SELECT seq FROM events INDEXED BY mail WHERE topic IS NOT NULL AND actor_to = ?4 AND seq > ?1 AND seq <= ?2 ORDER BY seq`
	allOf  = `SELECT seq FROM events INDEXED BY letters WHERE topic IS NOT NULL AND actor_to IS NOT NULL AND seq > ?1 AND seq <= ?2 ORDER BY seq`

	selectMail        = mailOf + ` LIMIT ?3`
	selectMailBack    = mailOf + ` DESC LIMIT ?3`
	selectLetters     = allOf + ` LIMIT ?3`
	selectLettersBack = allOf + ` DESC LIMIT ?3`
	selectArchive     = `SELECT seq, reply_to FROM events INDEXED BY archive WHERE kind = 'task.archived' AND reply_to > ?1 AND seq <= ?2 ORDER BY reply_to, seq`
	selectArchived    = `SELECT seq FROM events INDEXED BY archived WHERE kind = 'task.archived' AND correlation = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1`
	selectRefs        = `SELECT seq FROM events INDEXED BY refs WHERE ` + refers + ` AND seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3`
	selectAddressee   = `SELECT actor_to FROM events INDEXED BY mail WHERE topic IS NOT NULL AND actor_to > ?1 ORDER BY actor_to LIMIT 1`
)

const (
	columns = `seq, at, actor_from, actor_to, topic, kind, payload, reply_to, idempotency_key, correlation, crc`

	insertEvent   = `INSERT INTO events (` + columns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`
	selectEvents  = `SELECT ` + columns + ` FROM events WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3`
	selectSum     = `SELECT crc FROM events WHERE seq = ?1`
	selectEnd     = `SELECT seq FROM events ORDER BY seq DESC LIMIT 1`
	selectTaker   = `SELECT seq FROM events WHERE actor_from = ?1 AND idempotency_key = ?2`
	insertPart    = `INSERT INTO snapshots (seq, part, state, crc) VALUES (?1, ?2, ?3, ?4)`
	countParts    = `SELECT count(*) FROM snapshots WHERE seq = ?1`
	selectParts   = `SELECT part, state, crc FROM snapshots WHERE seq = ?1 ORDER BY part`
	forgetState   = `DELETE FROM snapshots WHERE seq = ?1`
	forgetStates  = `DELETE FROM snapshots WHERE seq NOT IN (SELECT DISTINCT seq FROM snapshots ORDER BY seq DESC LIMIT 2)`
	selectNewest  = `SELECT max(seq) FROM snapshots`
	selectBefore  = `SELECT max(seq) FROM snapshots WHERE seq < ?1`
	selectTables  = `SELECT count(*) FROM sqlite_schema`
	selectID      = `PRAGMA application_id`
	selectVersion = `PRAGMA user_version`

	// The last part of a state is shorter than partBytes.
	forgetUnfinished = `DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots WHERE length(state) < 1048576)`
)

// errNew reports that the file is still empty.
var errNew = errors.New("the file is empty")

// recognize returns nil if the file is an event log that this program knows.
func recognize(c connection) error {
	id, err := ask(c, selectID)
	if err != nil {
		return err
	}
	version, err := ask(c, selectVersion)
	if err != nil {
		return err
	}
	tables, err := ask(c, selectTables)
	switch {
	case err != nil:
		return err
	case id == 0 && version == 0 && tables == 0:
		return errNew
	case id != applicationID:
		return errors.New("it is a database, but not an event log")
	case version > schemaVersion:
		return &NewerError{Schema: version, Known: schemaVersion}
	case version < 1:
		return fmt.Errorf("its schema is %d, and this program reads 1 to %d", version, schemaVersion)
	}
	return nil
}

// create creates the tables, all or none.
func create(c connection) error {
	return c.exec(fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", schema, applicationID, schemaVersion))
}

// ask returns the first column of the first row as a number, or 0.
func ask(c connection, sql string, args ...value) (n int64, err error) {
	err = once(c, sql, args, func(row statement) { n = row.integer(0) })
	return n, err
}

// askText returns the first column of the first row as text.
func askText(c connection, sql string) (s string, err error) {
	err = once(c, sql, nil, func(row statement) { s = string(row.text(0)) })
	return s, err
}

func once(c connection, sql string, args []value, see func(row statement)) error {
	stmt, err := c.prepare(sql)
	if err != nil {
		return err
	}
	_, err = first(stmt, args, see)
	return errors.Join(err, stmt.close())
}

// first calls see with the first row and reports whether there is one.
func first(stmt statement, args []value, see func(row statement)) (found bool, err error) {
	if err := stmt.query(args); err != nil {
		return false, err
	}
	if found, err = stmt.next(); found {
		see(stmt)
	}
	if doneErr := stmt.done(); err == nil {
		err = doneErr
	}
	return found, err
}

// firstInt returns the first column of the first row as a number.
func firstInt(stmt statement, args ...value) (n int64, found bool, err error) {
	found, err = first(stmt, args, func(row statement) { n = row.integer(0) })
	return n, found, err
}

// upgrade converts a file of an older version. It checks the version again in its transaction,
// because another program may have converted the file.
func (l *SQLite) upgrade() error {
	if version, err := ask(l.writer, selectVersion); err != nil || version == schemaVersion {
		return err
	}
	return l.transact("adding indexes", func() error {
		version, err := ask(l.writer, selectVersion)
		if err != nil || version == schemaVersion {
			return err
		}
		indexes := refsIndex + "; " + baseTable
		if version <= 2 {
			indexes += "; " + archiveIndexes
		}
		if version == 1 {
			indexes += "; " + lettersIndex
		}
		return l.writer.exec(fmt.Sprintf("%s; PRAGMA user_version = %d", indexes, schemaVersion))
	}, func() {})
}

// addressees returns every actor that has mail. A file of version 1 has no index of all mail,
// so a search merges the mailboxes of these actors.
func (l *SQLite) addressees(ctx context.Context) (all []string, err error) {
	for name, found := "", true; found; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before := name
		if name, found, err = l.addressee(before); err != nil {
			return nil, err
		}
		if found && name <= before {
			return nil, &ChainError{Seq: 1, What: "the index of mail is out of order"}
		}
		if found {
			all = append(all, name)
		}
	}
	return all, nil
}

// addressee returns the next actor with mail, in the order of names.
func (l *SQLite) addressee(before string) (name string, found bool, err error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.reader == nil {
		return "", false, fs.ErrClosed
	}
	found, err = first(l.addressed, []value{ofText(before)}, func(row statement) { name = string(row.text(0)) })
	if damaged(err) {
		return "", false, &ChainError{Seq: 1, What: "the index of mail cannot be read", Cause: err}
	}
	return name, found, err
}
