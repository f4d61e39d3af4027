package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// A LostError reports that a file of the log was deleted or replaced while the log was open. No other process can read
// later appends, and they are lost when this process ends.
type LostError struct {
	Path     string
	Replaced bool // another file has the name now
	Folder   bool // Path is the folder of the file, which is gone
}

func (e *LostError) Error() string {
	if e.Replaced {
		return e.Path + " was replaced by another file while the orchestrator ran"
	}
	if e.Folder {
		return "the folder " + e.Path + " was moved or deleted while the orchestrator ran"
	}
	return e.Path + " was deleted while the orchestrator ran"
}

// InPlace returns a *LostError if name no longer leads to the open file. If the folder cannot
// be read, it returns nil, because the open file may still be in place.
func InPlace(name string, open os.FileInfo) error {
	now, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if dir := filepath.Dir(name); isGone(dir) {
			return &LostError{Path: dir, Folder: true}
		}
		return &LostError{Path: name}
	case err != nil:
		return nil
	case !os.SameFile(open, now):
		return &LostError{Path: name, Replaced: true}
	}
	return nil
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// meet returns the files of a log. SQLite holds them open, so their inode numbers are not
// reused.
func meet(path string) (map[string]os.FileInfo, error) {
	files := make(map[string]os.FileInfo)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) && name == path+"-shm" {
			continue // some systems have none
		}
		if err != nil {
			return nil, err
		}
		files[name] = info
	}
	return files, nil
}

// Sound returns a *LostError if a file of the log was moved or deleted. It reads only the
// folder, and waits for no lock of SQLite.
func (l *SQLite) Sound() error {
	for name, open := range l.files {
		if err := InPlace(name, open); err != nil {
			return err
		}
	}
	return nil
}

// The tip records the end of the log when the newest append returned. It is a file of 16 bytes
// beside the database: the number of the newest fact, its checksum, and the CRC-32C of both. It
// is overwritten after each batch and never synced. So after a power failure it may be older
// than the log, which is harmless. A log that ends before its tip has lost acknowledged facts:
// its write-ahead log was deleted, cut or damaged.

// tipSize is the size of the file.
const tipSize = 16

// tipOf returns the name of the tip of a log.
func tipOf(path string) string { return path + "-tip" }

// A tip is the file, open for writing. A nil tip ignores writes.
type tip struct {
	file *os.File
	room [tipSize]byte
}

func openTip(path string) (*tip, error) {
	file, err := os.OpenFile(tipOf(path), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &tip{file: file}, nil
}

// put records the newest fact. If the write fails, the older tip remains, which is harmless.
func (t *tip) put(seq int64, sum uint32) {
	if t == nil {
		return
	}
	b := binary.BigEndian.AppendUint64(t.room[:0], uint64(seq))
	b = binary.BigEndian.AppendUint32(b, sum)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
	_, _ = t.file.WriteAt(b, 0)
}

func (t *tip) close() error {
	if t == nil {
		return nil
	}
	return t.file.Close()
}

// readTip returns the newest fact that was acknowledged, 0 if that is not known.
func readTip(path string) (seq int64, sum uint32) {
	b, err := os.ReadFile(tipOf(path))
	if err != nil || len(b) != tipSize || crc32.Checksum(b[:12], castagnoli()) != binary.BigEndian.Uint32(b[12:]) {
		return 0, 0
	}
	return int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint32(b[8:])
}

// An EmptyError reports that the file of a log is empty or missing, although facts were
// recorded in it.
type EmptyError struct {
	Path    string
	Missing bool
	Acked   int64 // the newest fact that was acknowledged; 0: unknown
}

func (e *EmptyError) Error() string {
	state := "is empty"
	if e.Missing {
		state = "is missing"
	}
	if e.Acked == 0 {
		return e.Path + " " + state + ", but there is a write-ahead log for it"
	}
	return fmt.Sprintf("%s %s, but facts up to %d were recorded in it", e.Path, state, e.Acked)
}

// mayBegin returns an *EmptyError if Open would create a new log in place of one that had
// facts. It must run first, because SQLite deletes the write-ahead log of an empty database
// when it reads it.
func mayBegin(path string) error {
	info, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing && (err != nil || info.Size() > 0) {
		return err
	}
	const header = 32 // size of an empty write-ahead log
	acked, _ := readTip(path)
	if wal, err := os.Stat(path + "-wal"); acked > 0 || err == nil && wal.Size() > header {
		return &EmptyError{Path: path, Missing: missing, Acked: acked}
	}
	return nil
}

// reaches returns a *ChainError if a log that ends at last is shorter than its tip, or differs
// from it.
func (l *SQLite) reaches(last, seq int64, sum uint32) error {
	if seq == 0 {
		return nil
	}
	if seq > last {
		return &ChainError{Seq: last + 1, What: fmt.Sprintf("it is missing, and facts up to %d were acknowledged", seq)}
	}
	l.reading.Lock()
	defer l.reading.Unlock()
	have, found, base, err := l.sumAt(seq)
	if err == nil && !found && seq < base.Seq {
		return nil // the tip is older than a power failure
	}
	if err == nil && (!found || have != sum) {
		return &ChainError{Seq: seq, What: "it is not the one that was acknowledged"}
	}
	return err
}
