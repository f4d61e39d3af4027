package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"orchestrator/wire"
)

// Check reads the whole log, and looks at the structure of its file. It returns the last fact of the intact part at the
// beginning, and the error that follows it, or nil.
func (l *SQLite) Check(ctx context.Context) (last int64, broken error) {
	last, broken = l.check(ctx, nil, func(wire.Record) bool { return true })
	if broken != nil {
		return last, broken
	}
	l.reading.Lock()
	defer l.reading.Unlock()
	found, err := askText(l.reader, "PRAGMA quick_check(1)")
	if err == nil && found != "ok" {
		err = fmt.Errorf("%w: %s", ErrDamaged, found)
	}
	return last, err
}

// check reads the whole log. If gaps has a replacement for a damaged fact, check shows the replacement and goes on.
func (l *SQLite) check(ctx context.Context, gaps *Gaps, show func(wire.Record) bool) (last int64, broken error) {
	acked, sum := readTip(l.path) // read first, because the log may be growing
	end, err := l.newest()
	if err != nil {
		end = math.MaxInt64 // read until the end is found
	}
	base, baseErr := l.lockedFront()
	if baseErr != nil {
		return 0, baseErr
	}
	last = base.Seq
	for more := true; more; {
		_, broken = l.read(ctx, last, end, func(r wire.Record) bool {
			last = r.Seq
			return show(r)
		})
		var fill wire.Record
		if fill, more = gaps.fill(last+1, broken); more {
			last, more = fill.Seq, show(fill)
		}
	}
	if broken == nil && err == nil && last == end {
		broken = l.reaches(last, acked, sum)
	}
	return last, broken
}

// Gaps are the facts that Salvage leaves out if they are damaged, instead of ending before them.
type Gaps struct {
	Without []int64
	Fill    func(seq int64) wire.Record // returns the fact that takes the place of one
	Left    []int64                     // that were damaged and left out
}

// fill returns the replacement of a fact, and reports whether the fact is damaged and to be left out.
func (g *Gaps) fill(seq int64, broken error) (wire.Record, bool) {
	if _, damaged := errors.AsType[*ChainError](broken); !damaged || g == nil || !slices.Contains(g.Without, seq) {
		return wire.Record{}, false
	}
	g.Left = append(g.Left, seq)
	r := g.Fill(seq)
	r.Seq = seq
	return r, true
}

// salvageBatch is the number of facts that are copied at a time.
const salvageBatch = 512

// Salvage copies the intact part at the beginning of a log into a new log, which must not
// exist. It returns the last fact copied and the error that followed it. The damaged log is not
// changed. gaps may be nil.
func Salvage(ctx context.Context, from, to string, gaps *Gaps) (last int64, lost, err error) {
	old, err := Open(ctx, Options{Path: from, ReadOnly: true})
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	if err := unused(to); err != nil {
		return 0, nil, err
	}
	made, err := Open(ctx, Options{Path: to, Durable: true})
	if err != nil {
		return 0, nil, err
	}
	var batch []wire.Record
	base, failed := old.lockedFront()
	if failed == nil && base.Seq > 0 {
		failed = made.beginAt(base)
	}
	flush := func() bool {
		failed = made.Append(ctx, made.Last(), batch)
		batch = batch[:0]
		return failed == nil
	}
	last, lost = old.check(ctx, gaps, func(r wire.Record) bool {
		if failed != nil {
			return false
		}
		batch = append(batch, r)
		return len(batch) < salvageBatch || flush()
	})
	if failed == nil {
		flush()
	}
	if failed == nil && ctx.Err() == nil {
		seq, state, kept := old.Snapshot(ctx)
		if kept == nil && seq > 0 && seq <= made.Last() {
			failed = made.Keep(ctx, seq, bytes.NewReader(state))
		}
	}
	err = errors.Join(ctx.Err(), failed, made.Close())
	if err != nil || last == 0 {
		return last, lost, errors.Join(err, removeAll(logFiles(to)))
	}
	return last, lost, removeAll(logFiles(to)[1:]) // the database has all facts, and can be moved without the other files
}

// beginAt makes an empty log begin after facts that were removed.
func (l *SQLite) beginAt(base front) error {
	l.appending.Lock()
	defer l.appending.Unlock()
	return l.transact("beginning the log", func() error { return setFront(l.writer, base) }, func() {
		l.last.Store(base.Seq)
		l.sum = base.sum
	})
}

// logFiles returns the names of the files of a log. The first has everything once the log is
// closed.
func logFiles(path string) []string {
	return []string{path, path + "-wal", path + "-shm", tipOf(path)}
}

// unused returns an error if a file of a log already exists. SQLite would take an old -wal for
// part of a new database.
func unused(path string) error {
	for _, name := range logFiles(path) {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist})
		}
	}
	return nil
}

// removeAll removes the files that exist.
func removeAll(names []string) error {
	var all []error
	for _, name := range names {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Copy writes a copy of a log into a new file, while the log may be growing. Before the copy
// gets its name, it is read and compared with the facts acknowledged at the beginning. Copy
// returns the last fact in the copy.
func Copy(ctx context.Context, from, to string) (last int64, err error) {
	if err := unused(to); err != nil {
		return 0, err
	}
	if _, err := os.Stat(from); err != nil {
		return 0, err
	}
	dropParts(to)
	acked, _ := readTip(from)
	file, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".part-*") // SQLite uses an empty file and keeps its mode
	if err != nil {
		return 0, err
	}
	part := file.Name()
	defer func() { err = errors.Join(err, file.Close(), removeAll(partFiles(part))) }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	if err := vacuum(from, part); err != nil {
		return 0, orFull(to, err)
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	if last, err = whole(ctx, part); err != nil {
		return 0, fmt.Errorf("the copy is not whole: %w", err)
	}
	if last < acked {
		return 0, &ChainError{Seq: last + 1, What: fmt.Sprintf("it is missing, and facts up to %d were acknowledged", acked)}
	}
	if err := giveName(part, to); err != nil {
		return 0, err
	}
	return last, syncFolder(filepath.Dir(to))
}

// partFiles returns the names of the files of a copy that is being made.
func partFiles(part string) []string { return append(logFiles(part), part+"-journal") }

// dropParts removes the parts of killed copies to a file. A running copy holds a lock on its part.
func dropParts(to string) {
	parts, _ := filepath.Glob(escaped(to) + ".part-*")
	for _, part := range parts {
		file, err := os.Open(part)
		if err != nil {
			continue
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && !strings.HasSuffix(part, "-journal") {
			_ = removeAll(partFiles(part))
		}
		_ = file.Close()
	}
}

// escaped returns a path as a pattern of filepath.Glob that matches only the path.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// restoredOf returns the name of the copy that Restore puts in the place of a log.
func restoredOf(path string) string { return path + ".restored" }

// Restore puts a copy of the log in from in the place of the log at path, which must not be open. It moves the files of
// that log, also of a damaged one, to the folder aside, which it creates if needed. Before the first of them, when the
// copy has been verified, it calls ready. It returns the last fact in the copy, also with an error after ready. If it
// was interrupted after a file was moved, Open refuses the rest, and Restore can be called again.
func Restore(ctx context.Context, from, path, aside string, ready func() error) (last int64, err error) {
	part := restoredOf(path)
	if err := removeAll(logFiles(part)); err != nil { // of an interrupted call
		return 0, err
	}
	defer func() { err = errors.Join(err, removeAll(logFiles(part))) }()
	if last, err = Copy(ctx, from, part); err != nil {
		return 0, err
	}
	if err := ready(); err != nil {
		return 0, err
	}
	files, dir := logFiles(path), filepath.Dir(path)
	database, rest, tip := files[:1], files[1:3], files[3:]
	acked, _ := readTip(path)
	had, replaced := exists(path), false
	steps := []func() error{
		func() error { // while there is a tip without a database, Open refuses the log, instead of beginning a new one
			if acked == 0 {
				return refuse(path)
			}
			return nil
		},
		func() error { return moveAll(database, aside) },
		func() error { return moveAll(rest, aside) },
		func() error { // after the tip of the copy is in place, the copy itself is the last step
			if acked > 0 {
				if err := keepTip(path, aside); err != nil {
					return err
				}
			}
			return adoptTip(path, part)
		},
		func() error { return syncFolder(dir) },
		func() error {
			err := os.Rename(part, path)
			replaced = err == nil
			return err
		},
		func() error { return syncFolder(dir) },
	}
	for _, step := range steps {
		err := step()
		if err != nil && acked == 0 && !replaced && exists(path) == had { // the log is where it was
			err = errors.Join(err, removeAll(tip), syncFolder(dir))
		}
		if err != nil {
			return last, err
		}
	}
	return last, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// refuse makes Open refuse a log: it writes a tip that belongs to no log.
func refuse(path string) error {
	t, err := openTip(path)
	if err != nil {
		return err
	}
	t.put(1, 0)
	return errors.Join(t.file.Truncate(tipSize), t.file.Sync(), t.close())
}

// keepTip writes a copy of the tip of a log to the folder aside.
func keepTip(path, aside string) error {
	text, err := os.ReadFile(tipOf(path))
	if err == nil {
		err = os.MkdirAll(aside, 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(aside, filepath.Base(tipOf(path))), text, 0o600)
}

// adoptTip replaces the tip of a log, at once, by one for the log that will take its place.
func adoptTip(path, next string) error {
	l, err := Open(context.Background(), Options{Path: next, ReadOnly: true})
	if err != nil {
		return err
	}
	last := l.Last()
	l.reading.Lock()
	sum, _, _, err := l.sumAt(last)
	l.reading.Unlock()
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	t, err := openTip(next)
	if err != nil {
		return err
	}
	t.put(last, sum)
	if err := errors.Join(t.file.Sync(), t.close()); err != nil {
		return err
	}
	return os.Rename(tipOf(next), tipOf(path))
}

// moveAll moves the files that exist to a folder, which it creates if necessary.
func moveAll(names []string, to string) error {
	moved := false
	for _, name := range names {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		if err := os.Rename(name, filepath.Join(to, filepath.Base(name))); err != nil {
			return err
		}
		moved = true
	}
	if !moved {
		return nil
	}
	return errors.Join(syncFolder(to), syncFolder(filepath.Dir(to)))
}

// giveName gives a file a new name that must not be taken. Some file systems have no hard
// links; there it renames the file.
func giveName(part, to string) error {
	err := os.Link(part, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := unused(to); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// vacuum has SQLite write a copy of a database.
func vacuum(from, to string) error {
	c, err := ncruces(from, true)
	if err != nil {
		return err
	}
	if err = c.exec(asAnybody); err == nil {
		err = recognize(c)
	}
	if err == nil {
		err = c.exec("VACUUM INTO '" + strings.ReplaceAll(to, "'", "''") + "'")
	}
	return errors.Join(foreign(err), c.close())
}

// whole reads a copy and returns its last fact.
func whole(ctx context.Context, path string) (int64, error) {
	l, err := Open(ctx, Options{Path: path, ReadOnly: true})
	if err != nil {
		return 0, err
	}
	last, broken := l.Check(ctx)
	return last, errors.Join(broken, l.Close())
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
