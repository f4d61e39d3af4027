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

	"orchestrator/wire/object"
)

// retryAfter is the pause after a failed write to a log file.
const retryAfter = 5 * time.Second

// A File stores one stream of one run: complete lines, each with its time. It consists of files
// of limited size named RUN-PART.out or .err. The two numbers give the order of the files. No
// file is created before the first write.
//
// If a write fails, the lines are counted instead, without waiting. The next try comes after retryAfter. A line is
// written completely or not at all. A File must not be used concurrently.
type File struct {
	Dir    string
	Prefix string // the run
	Suffix string // .out or .err
	Limits Limits
	Note   func(lost int64, now time.Time) []byte // returns the line that replaces lost ones; nil: a default text

	file    *os.File
	part    int
	size    int64
	lost    int64 // lines lost since the first failed write
	retryAt time.Time
}

// name returns the path of the current file.
func (f *File) name() string {
	return filepath.Join(f.Dir, fmt.Sprintf("%s-%02d%s", f.Prefix, max(1, f.part), f.Suffix))
}

// Write appends complete lines. Of consecutive failures only the first is returned; Lost counts
// the lines.
func (f *File) Write(text []byte, lines int64, now time.Time) error {
	if f.lost > 0 && now.Before(f.retryAt) {
		f.lost += lines
		return nil
	}
	err := f.ready(int64(len(text)))
	if err == nil && f.lost > 0 {
		err = f.append(f.gap(now))
	}
	if err == nil {
		err = f.append(text)
	}
	switch {
	case err == nil:
		f.lost = 0
		return nil
	case f.lost > 0:
		err = nil // returned before
	}
	f.lost += lines
	f.retryAt = now.Add(retryAfter)
	return err
}

// Skip counts lines that were not passed to Write.
func (f *File) Skip(lines int64) { f.lost += lines }

// gap returns the line that replaces lost ones.
func (f *File) gap(now time.Time) []byte {
	if f.Note != nil {
		return f.Note(f.lost, now)
	}
	return fmt.Appendf(nil, "%s [%d lines before this one could not be written]\n", Stamp(now), f.lost)
}

// append writes text completely or leaves the file unchanged.
func (f *File) append(text []byte) error {
	if _, err := f.file.Write(text); err != nil {
		_ = f.file.Truncate(f.size)
		return err
	}
	f.size += int64(len(text))
	return nil
}

// ready opens the file, or the next one if this one is full.
func (f *File) ready(more int64) error {
	if f.file != nil && (f.size == 0 || f.size+more <= f.Limits.MaxSize) {
		return nil
	}
	f.shut()
	fresh, err := makeDir(f.Dir)
	if err != nil {
		return err
	}
	f.part++
	file, err := os.OpenFile(f.name(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		f.part--
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	f.file, f.size = file, info.Size()
	if !fresh {
		f.prune()
	}
	return nil
}

// makeDir makes a folder and the one above it. It reports whether the folder is new and thus empty. A state
// directory that was moved away does not come back.
func makeDir(dir string) (fresh bool, err error) {
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.Mkdir(filepath.Dir(dir), 0o700); err == nil || errors.Is(err, os.ErrExist) {
			err = os.Mkdir(dir, 0o700)
		}
	}
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// prune removes the oldest files of this stream beyond Limits.Keep, but never the current one.
func (f *File) prune() {
	names := fileNames(f.Dir, f.Suffix)
	for _, name := range names[:max(0, len(names)-f.Limits.Keep)] {
		if name := filepath.Join(f.Dir, name); name != f.name() {
			_ = os.Remove(name) // a remaining file is removed next time
		}
	}
}

// Close closes the current file. It first writes the number of lost lines, if there are any and
// the disk takes it.
func (f *File) Close() {
	if f.lost > 0 && f.ready(0) == nil && f.append(f.gap(time.Now())) == nil {
		f.lost = 0
	}
	f.shut()
}

func (f *File) shut() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// fileNames returns the log files of a stream in a folder, oldest first. It ignores files with
// other names.
func fileNames(dir, suffix string) []string {
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

// logAge parses the run and the part in the name of a log file. They must be compared as
// numbers: as text, part 100 would be older than part 11.
func logAge(name string) (run, part int, ok bool) {
	front, back, _ := strings.Cut(strings.TrimSuffix(name, filepath.Ext(name)), "-")
	run, err := strconv.Atoi(front)
	if err != nil {
		return 0, 0, false
	}
	part, err = strconv.Atoi(back)
	return run, part, err == nil
}

// NextRun returns the number after the last run that has files in dir.
func NextRun(dir string) int {
	last := 0
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 1 // the error appears when the file is created
	}
	for _, entry := range entries {
		if run, _, ok := logAge(entry.Name()); ok {
			last = max(last, run)
		}
	}
	return last + 1
}

// RunPrefix returns the beginning of the file names of a run.
func RunPrefix(run int) string { return fmt.Sprintf("%06d", run) }

// stampLayout is the format of times in log files. Its length is fixed.
const stampLayout = "2006-01-02T15:04:05.000Z"

// Stamp formats a time as in log files.
func Stamp(at time.Time) string { return object.Timestamp(at) }
