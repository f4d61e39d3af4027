package output

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/wire"
)

// RetryAfter is how long a log file that could not be written is left alone.
const RetryAfter = 5 * time.Second

// File is where one stream of one run goes: whole lines, each with its
// time, in files of bounded size named RUN-PART.out or .err, both numbers, so
// that their names tell their age. Nothing is made before there is something
// to write.
//
// When the disk refuses, lines are counted instead of written, nothing waits,
// and after a while it is tried again; a line is in the file whole or not at
// all. It is used by one goroutine.
type File struct {
	Dir    string
	Prefix string // the run
	Suffix string // .out or .err
	Limits Limits
	Note   func(lost int64, now time.Time) []byte // the line that stands for lost ones; nil: in words

	file    *os.File
	Part    int
	size    int64
	Lost    int64 // lines since the first refusal
	retryAt time.Time
}

// name of the current file.
func (f *File) name() string {
	return filepath.Join(f.Dir, fmt.Sprintf("%s-%02d%s", f.Prefix, max(1, f.Part), f.Suffix))
}

// Write appends whole lines. While it fails it returns the error once, when
// the trouble begins; lost counts on.
func (f *File) Write(text []byte, lines int64, now time.Time) error {
	if f.Lost > 0 && now.Before(f.retryAt) {
		f.Lost += lines
		return nil
	}
	err := f.ready(int64(len(text)))
	if err == nil && f.Lost > 0 {
		err = f.append(f.gap(now))
	}
	if err == nil {
		err = f.append(text)
	}
	switch {
	case err == nil:
		f.Lost = 0
		return nil
	case f.Lost > 0:
		err = nil // said before
	}
	f.Lost += lines
	f.retryAt = now.Add(RetryAfter)
	return err
}

// gap is the line that stands for those that are missing.
func (f *File) gap(now time.Time) []byte {
	if f.Note != nil {
		return f.Note(f.Lost, now)
	}
	return fmt.Appendf(nil, "%s [%d lines before this one could not be written]\n", Stamp(now), f.Lost)
}

// append writes all of text or leaves the file as it was.
func (f *File) append(text []byte) error {
	if _, err := f.file.Write(text); err != nil {
		_ = f.file.Truncate(f.size)
		return err
	}
	f.size += int64(len(text))
	return nil
}

// ready opens the file, or turns to the next one when this one is full.
func (f *File) ready(more int64) error {
	if f.file != nil && (f.size == 0 || f.size+more <= f.Limits.MaxSize) {
		return nil
	}
	f.Close()
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	f.Part++
	file, err := os.OpenFile(f.name(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		f.Part--
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	f.file, f.size = file, info.Size()
	f.Prune()
	return nil
}

// Prune removes the oldest files of this stream beyond what is kept, but never
// the one that is written.
func (f *File) Prune() {
	names := FileNames(f.Dir, f.Suffix)
	for _, name := range names[:max(0, len(names)-f.Limits.Keep)] {
		if name := filepath.Join(f.Dir, name); name != f.name() {
			_ = os.Remove(name) // one that stays is removed next time
		}
	}
}

// Close closes the current file.
func (f *File) Close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// logNames lists the log files of a stream in a folder, oldest first. What is
// named otherwise is not ours, neither to read nor to remove.
func FileNames(dir, suffix string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if _, _, ok := logAge(entry.Name()); ok && filepath.Ext(entry.Name()) == suffix {
			names = append(names, entry.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		run, part, _ := logAge(a)
		otherRun, otherPart, _ := logAge(b)
		return cmp.Or(cmp.Compare(run, otherRun), cmp.Compare(part, otherPart))
	})
	return names
}

// logAge reads the run and the part in a log file's name. They are numbers of
// any length: as text, part 100 would be older than part 11.
func logAge(name string) (run, part int, ok bool) {
	front, back, _ := strings.Cut(strings.TrimSuffix(name, filepath.Ext(name)), "-")
	run, err := strconv.Atoi(front)
	if err != nil {
		return 0, 0, false
	}
	part, err = strconv.Atoi(back)
	return run, part, err == nil
}

// NextRun is the number of the run after all that have files in dir.
func NextRun(dir string) int {
	last := 0
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 1 // the trouble shows when the file is made
	}
	for _, entry := range entries {
		if run, _, ok := logAge(entry.Name()); ok {
			last = max(last, run)
		}
	}
	return last + 1
}

// RunPrefix is what the files of a run begin with.
func RunPrefix(run int) string { return fmt.Sprintf("%06d", run) }

// StampLayout is how log files spell a time; its length is fixed.
const StampLayout = "2006-01-02T15:04:05.000Z"

// Stamp spells a time as log files have it.
func Stamp(at time.Time) string { return wire.Timestamp(at) }
