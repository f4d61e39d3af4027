package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Pragmas of the connections.
//
// journal_mode WAL appends to a file beside the database, so that readers always see a complete
// log. synchronous FULL syncs that file in every commit; NORMAL would lose commits at a power
// failure. The two fullfsync are for macOS, where a plain fsync ends in the memory of the disk.
// The write-ahead log is moved into the database after 4000 pages, 16 MB, and remains when the
// log is closed. Overwriting a file of full size makes the commit of one row cheaper than
// appending to a plain file. A file that is never deleted also cannot reappear after a power
// failure. locking_mode NORMAL lets the sqlite3 program read at the same time.
//
// SQLite does not report an error while it moves pages into the database. The error is
// harmless, because the pages stay in the write-ahead log until a move succeeds.
const (
	asAnybody = `PRAGMA busy_timeout = 1000; PRAGMA trusted_schema = OFF; `
	asReader  = asAnybody + `PRAGMA query_only = ON`
	asWriter  = asAnybody + `PRAGMA locking_mode = NORMAL; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16384; `
	durable   = asWriter + `PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON`
	unsynced  = asWriter + `PRAGMA synchronous = NORMAL`

	// flush moves the whole write-ahead log into the database and restarts it. After a failed
	// sync, the kernel may treat pages in its memory as written; this writes them again.
	flush = `PRAGMA wal_checkpoint(RESTART)`
)

// tail is how many of the newest facts are verified when a log is opened.
const tail = 1000

// Open opens the log in a file, which it creates if necessary. It verifies the newest facts. If the chain is broken, it
// returns a *ChainError, unless the log is opened for reading, or a stored state includes the damaged facts.
func Open(ctx context.Context, o Options) (*SQLite, error) {
	if o.library == nil {
		o.library = onVFS(o.VFS)
	}
	if o.sync == nil {
		o.sync = syncFolder
	}
	l := &SQLite{path: o.Path}
	err := l.connect(ctx, o)
	if err == nil {
		return l, nil
	}
	if damaged(err) && !errors.Is(err, ErrForeign) {
		err = l.why(err)
	}
	return nil, fmt.Errorf("opening event log %s: %w", o.Path, errors.Join(err, l.release()))
}

func (l *SQLite) connect(ctx context.Context, o Options) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.ReadOnly {
		l.over = ErrReadOnly
		if _, err := os.Stat(o.Path); err != nil {
			return err
		}
	} else if err := l.connectWriter(o); err != nil {
		return err
	}
	if err := l.connectReader(o); err != nil {
		return err
	}
	end, err := l.newest()
	if _, damaged := errors.AsType[*ChainError](err); err != nil && !(o.ReadOnly && damaged) {
		return err
	}
	l.last.Store(end)
	if !o.ReadOnly {
		if err := l.continues(ctx, o); err != nil {
			return err
		}
	}
	return l.connectIndexes()
}

// continues prepares an intact log for appending. A log that it refuses is not changed, so the
// file is upgraded only here.
func (l *SQLite) continues(ctx context.Context, o Options) (err error) {
	end := l.last.Load()
	base, err := l.lockedFront()
	if err != nil {
		return err
	}
	if l.sum, err = l.verifyTail(ctx, base.Seq, end); err != nil {
		return err
	}
	if err := l.complete(); err != nil {
		return err
	}
	if !o.Durable {
		// A log that is not durable may end before its tip after a power failure.
		if err := os.Remove(tipOf(o.Path)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	acked, sum := readTip(o.Path)
	if err := l.reaches(end, acked, sum); err != nil {
		return err
	}
	if err := l.upgrade(); err != nil {
		return err
	}
	return l.settle(o)
}

// verifyTail verifies the newest facts, and returns the sum of the last one. If one of them is damaged and a state that
// can be read includes it, it verifies only the facts after the state: a start does not read earlier ones.
func (l *SQLite) verifyTail(ctx context.Context, base, end int64) (uint32, error) {
	sum, err := l.verify(ctx, max(end-tail, base), end)
	chain, broken := errors.AsType[*ChainError](err)
	if !broken {
		return sum, err
	}
	kept, _, unread := l.Snapshot(ctx)
	if unread != nil || kept < chain.Seq || kept > end {
		return sum, err
	}
	return l.verify(ctx, kept, end)
}

// complete returns a ChainError if the log was cut short: a stored state must not include facts
// that are missing.
func (l *SQLite) complete() error {
	kept, err := ask(l.reader, selectNewest)
	if last := l.last.Load(); err == nil && kept > last {
		return &ChainError{Seq: last + 1, What: fmt.Sprintf("it is missing, but a state of fact %d is kept", kept)}
	}
	return err
}

// connectWriter opens the file for writing, and creates the file and its tables if necessary.
func (l *SQLite) connectWriter(o Options) (err error) {
	if err := mayBegin(o.Path); err != nil {
		return err
	}
	file, err := os.OpenFile(o.Path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if l.writer, err = o.library(o.Path, false); err != nil {
		return err
	}
	if err := l.writer.exec(asAnybody); err != nil {
		return err
	}
	state := recognize(l.writer)
	if state != nil && !errors.Is(state, errNew) {
		return foreign(state)
	}
	pragmas := unsynced
	if o.Durable {
		pragmas = durable
	}
	if state != nil { // possible only before the write-ahead log exists
		pragmas = `PRAGMA auto_vacuum = INCREMENTAL; ` + pragmas
	}
	if err := l.writer.exec(pragmas); err != nil {
		return err
	}
	if err := obeys(l.writer, o.Durable); err != nil {
		return err
	}
	if err := l.writer.persistWAL(); err != nil {
		return err
	}
	if state != nil {
		if err := create(l.writer); err != nil {
			return fmt.Errorf("making the tables: %w", err)
		}
	}
	return l.prepare(l.writer, map[string]*statement{
		`BEGIN IMMEDIATE`: &l.begin, insertEvent: &l.insert, selectTaker: &l.taker, `COMMIT`: &l.commit, `ROLLBACK`: &l.rollback,
	})
}

// obeys checks the important pragmas, because SQLite ignores a pragma that it cannot follow.
func obeys(c connection, durable bool) error {
	if mode, err := askText(c, `PRAGMA journal_mode`); err != nil || mode != "wal" {
		return errors.Join(err, fmt.Errorf("the journal mode is %q, not wal: is it on a network file system?", mode))
	}
	if level, err := ask(c, `PRAGMA synchronous`); err != nil || durable && level != 2 {
		return errors.Join(err, fmt.Errorf("synchronous is %d, not 2 (FULL)", level))
	}
	return nil
}

func (l *SQLite) connectReader(o Options) (err error) {
	if l.reader, err = o.library(o.Path, true); err != nil {
		return err
	}
	if err := l.reader.exec(asReader); err != nil {
		return err
	}
	if err := recognize(l.reader); err != nil {
		return foreign(err)
	}
	if version, err := ask(l.reader, selectVersion); err != nil {
		return err
	} else if version >= 4 {
		if err := l.prepare(l.reader, map[string]*statement{selectBase: &l.base}); err != nil {
			return err
		}
	}
	return l.prepare(l.reader, map[string]*statement{
		selectEvents: &l.events, selectSum: &l.sumOf, selectEnd: &l.end, selectTaker: &l.keyed,
		selectMail: &l.mail, selectMailBack: &l.mailBack, selectAddressee: &l.addressed,
	})
}

// connectIndexes prepares the statements that need an index of a newer version.
func (l *SQLite) connectIndexes() error {
	version, err := ask(l.reader, selectVersion)
	if err == nil && version >= 2 {
		err = l.prepare(l.reader, map[string]*statement{selectLetters: &l.letters, selectLettersBack: &l.lettersBack})
	}
	if err == nil && version >= 3 {
		err = l.prepare(l.reader, map[string]*statement{selectArchive: &l.archive, selectArchived: &l.archived})
	}
	if err == nil && version >= 4 {
		err = l.prepare(l.reader, map[string]*statement{selectRefs: &l.refs})
	}
	if err == nil && version >= 4 && l.base == nil { // just upgraded
		err = l.prepare(l.reader, map[string]*statement{selectBase: &l.base})
	}
	return err
}

func (l *SQLite) prepare(c connection, statements map[string]*statement) (err error) {
	for sql, at := range statements {
		if *at, err = c.prepare(sql); err != nil {
			return fmt.Errorf("preparing %q: %w", sql, err)
		}
		l.open = append(l.open, *at)
	}
	return nil
}

// settle makes the file contents and the names of the files durable. SQLite syncs the folder
// when it creates a file, but ncruces does not.
func (l *SQLite) settle(o Options) error {
	if err := l.writer.exec(flush); err != nil {
		return fmt.Errorf("moving the write-ahead log into the database: %w", l.why(err))
	}
	var err error
	if l.files, err = meet(o.Path); err != nil {
		return err
	}
	for name, info := range l.files { // SQLite creates them readable for all users
		if info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err // only the owner of the file may change its mode
		}
	}
	dropParts(restoredOf(o.Path))
	if err := removeAll(logFiles(restoredOf(o.Path))); err != nil { // of an interrupted Restore
		return err
	}
	if !o.Durable {
		return nil
	}
	if l.tip, err = openTip(o.Path); err != nil {
		return err
	}
	l.tip.put(l.last.Load(), l.sum)
	return o.sync(filepath.Dir(o.Path))
}

// ErrFull reports that the disk, a quota or a limit of the process has no room left.
var ErrFull = errors.New("no space left on the disk")

// ErrDamaged reports that SQLite found the file malformed.
var ErrDamaged = errors.New("the file is damaged")

// why adds ErrFull to an error of SQLite that a lack of space caused, and ErrDamaged to the error of a malformed file.
// SQLite reports a write without space as an input/output error, so why asks the file system.
func (l *SQLite) why(err error) error {
	if damaged(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return orFull(l.path, err)
}

// orFull returns err, wrapped in ErrFull if no space is left.
func orFull(path string, err error) error {
	full := codeOf(err)&0xff == codeFull || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
	if full || codeOf(err)&0xff == codeIO && NoRoom(filepath.Dir(path)) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// NoRoom reports whether the file system of a folder is almost full.
func NoRoom(dir string) bool {
	const little = 1 << 20
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return false
	}
	return uint64(s.Bavail)*uint64(s.Bsize) < little || s.Files > 0 && s.Ffree == 0
}
