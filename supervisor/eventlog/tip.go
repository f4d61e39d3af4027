package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
)

// The tip records the end of the log when the newest append returned. It is a file of 16
// bytes beside the database: the number of the newest fact, its checksum, and the
// CRC-32C of both. It is overwritten after each batch and never synced, so after a power
// failure it may be older than the log, which proves nothing. A log that ends before its
// tip has lost facts that were acknowledged: its write-ahead log was deleted, cut or
// damaged.

// tipSize is the size of the file.
const tipSize = 16

// tipOf is the name of the tip of a log.
func tipOf(path string) string { return path + "-tip" }

// tip is the file, open for writing. A nil tip takes nothing.
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

// put notes the newest fact. A disk that does not take it keeps the tip before, which is
// older and so harmless.
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

// EmptyError reports that the file of a log is empty or missing, although facts were
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

// mayBegin returns an *EmptyError where a new log would be begun in place of one that
// had facts. SQLite deletes the write-ahead log of an empty database when it first reads
// it, so this is asked before.
func mayBegin(path string) error {
	info, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing && (err != nil || info.Size() > 0) {
		return err
	}
	const header = 32 // of a write-ahead log that holds nothing yet
	acked, _ := readTip(path)
	if wal, err := os.Stat(path + "-wal"); acked > 0 || err == nil && wal.Size() > header {
		return &EmptyError{Path: path, Missing: missing, Acked: acked}
	}
	return nil
}

// reaches returns a *ChainError if a log with last facts ends before its tip, or differs
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
	have, found, err := firstInt(l.sumOf, ofInt(seq))
	if err == nil && (!found || uint32(have) != sum) {
		return &ChainError{Seq: seq, What: "it is not the one that was acknowledged"}
	}
	return err
}
