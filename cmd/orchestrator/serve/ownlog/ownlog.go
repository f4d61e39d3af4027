// Package ownlog is the log of a program in the background: its stdout and stderr are the file
// orchestrator.log, which is rotated while it is written.
package ownlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"orchestrator/supervisor/output"
)

// Size is the maximum size of the log of the program in the background before it is rotated. It is
// small because the log has no output of agents.
const Size = 16 << 20

// maxOldLogs is the number of earlier logs that are kept. The newest ends in .1.
const maxOldLogs = 4

// shift gives each log the name of the next older one. The oldest is replaced.
func shift(logName string) error {
	name := func(age int) string {
		if age == 0 {
			return logName
		}
		return logName + "." + strconv.Itoa(age)
	}
	for age := maxOldLogs; age > 0; age-- {
		if err := os.Rename(name(age-1), name(age)); err != nil && (age == 1 || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// Rotate rotates a log above Size.
func Rotate(logName string) error {
	info, err := os.Stat(logName)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() <= Size {
		return nil
	}
	if err != nil {
		return err
	}
	return shift(logName)
}

// Keep rotates the log of the program in the background until ctx is done. It also
// creates a deleted log again.
func Keep(ctx context.Context, logName string, report func(error)) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	said := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		err := turnNow(logName)
		if err != nil && !said {
			report(err)
		}
		said = err != nil
	}
}

// turnNow rotates a log that this program has open, and redirects its output to the new
// file. It does not touch the log of another program.
func turnNow(logName string) error {
	ours, err := os.Stdout.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(logName)
	gone := errors.Is(err, os.ErrNotExist)
	switch {
	case gone:
	case err != nil:
		return err
	case !os.SameFile(ours, there) || there.Size() <= Size:
		return nil
	default:
		if err := shift(logName); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(logName, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	return errors.Join(dup(int(file.Fd()), 1), dup(int(file.Fd()), 2))
}

// A Log writes lines to the log. It never fails: lines without room on the disk are counted, and
// the next line that can be written is preceded by their number.
type Log struct {
	mu   sync.Mutex
	to   io.Writer
	lost int
	torn bool // the last line was written in part
}

// New returns a Log that writes to a file.
func New(to io.Writer) *Log { return &Log{to: to} }

// Write writes complete lines.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		gap := fmt.Sprintf("%s [%d earlier lines could not be written]\n", output.Stamp(time.Now()), l.lost)
		if l.torn {
			gap = "\n" + gap
		}
		if n, err := io.WriteString(l.to, gap); err != nil {
			l.lost, l.torn = l.lost+bytes.Count(text, []byte("\n")), l.torn && n == 0 || n > 1
			return len(text), nil
		}
	}
	n, err := l.to.Write(text)
	l.lost, l.torn = 0, false
	if err != nil {
		l.lost = bytes.Count(text[n:], []byte("\n"))
		l.torn = n > 0 && text[n-1] != '\n'
	}
	return len(text), nil
}
