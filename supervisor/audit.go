package supervisor

import (
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// audit is the trail of requests: one line of JSON each, granted or not, in
// files of bounded size below the state directory. Lines are gathered in memory
// and written a moment later: nobody waits for them.
type audit struct {
	log  hclog.Logger
	file logFile
	done chan struct{}
	wake chan struct{}

	mu      sync.Mutex
	text    []byte
	lines   int64
	lost    int64 // lines that there was no room for
	closing bool
}

const (
	auditPause  = 200 * time.Millisecond // how long lines are gathered
	auditAtOnce = 64 << 10               // when there is this much, it is written at once
	auditMost   = 8 << 20                // more is not kept: the disk takes nothing
)

func newAudit(stateDir string, log hclog.Logger) *audit {
	dir := filepath.Join(stateDir, "audit")
	a := &audit{log: log, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	a.file = logFile{
		dir: dir, prefix: runPrefix(nextRun(dir)), suffix: ".jsonl", limits: Output{MaxSize: 16 << 20, Keep: 8},
		note: func(lost int64, now time.Time) []byte {
			return append(strconv.AppendInt([]byte(`{"at":"`+stamp(now)+`","outcome":"lost","lines":`), lost, 10), '}', '\n')
		},
	}
	go a.run()
	return a
}

// note adds what became of a message: kind is request: or event:, name the rest
// of its type. A nil audit keeps nothing.
func (a *audit) note(at time.Time, from handlers.Actor, kind, name, id string, verdict *wire.Error) {
	a.add(at, from, kind, name, verdict, func(b []byte) []byte { return wire.AppendQuoted(b, id) })
}

// noteRaw is note for an id as it stood in the line, or nil.
func (a *audit) noteRaw(at time.Time, from handlers.Actor, what string, id []byte, verdict *wire.Error) {
	a.add(at, from, "", what, verdict, func(b []byte) []byte {
		if id == nil {
			return append(b, "null"...)
		}
		return append(b, id...)
	})
}

func (a *audit) add(at time.Time, from handlers.Actor, kind, name string, verdict *wire.Error, id func([]byte) []byte) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.text) > auditMost {
		a.lost++
		return
	}
	b := append(a.text, `{"at":"`...)
	b = wire.AppendTimestamp(b, at)
	b = append(b, `","actor":`...)
	b = wire.AppendQuoted(b, from.String())
	b = append(b, `,"type":`...)
	if kind == "" {
		b = wire.AppendQuoted(b, name)
	} else { // ours, or one that is known
		b = append(append(append(append(b, '"'), kind...), name...), '"')
	}
	b = id(append(b, `,"id":`...))
	if verdict == nil {
		b = append(b, `,"outcome":"granted"}`...)
	} else {
		b = append(append(b, `,"outcome":"`...), verdict.Code...)
		b = wire.AppendQuoted(append(b, `","why":`...), verdict.Message)
		b = append(b, '}')
	}
	a.text = append(b, '\n')
	a.lines++
	if a.lines == 1 || len(a.text) > auditAtOnce {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// run writes what has been gathered until the audit is closed.
func (a *audit) run() {
	defer close(a.done)
	defer a.file.close()
	var text []byte
	pause := time.NewTimer(auditPause)
	defer pause.Stop()
	for closing := false; !closing; {
		<-a.wake
		pause.Reset(auditPause)
		select { // more may come; a page that is full does not wait
		case <-a.wake:
		case <-pause.C:
		}
		text, closing = a.write(text)
	}
}

// write writes what has been gathered, and returns the buffer to gather in next.
func (a *audit) write(spare []byte) (text []byte, closing bool) {
	a.mu.Lock()
	text, a.text = a.text, spare[:0]
	lines, lost := a.lines, a.lost
	a.lines, a.lost = 0, 0
	closing = a.closing
	a.mu.Unlock()
	a.file.lost += lost
	if lines == 0 {
		return text, closing
	}
	if err := a.file.write(text, lines, time.Now()); err != nil {
		a.log.Warn("the audit cannot be written: lines are counted until it works again", "error", err)
	}
	return text, closing
}

// close writes what is left.
func (a *audit) close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
	<-a.done
}
