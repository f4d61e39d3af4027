package dispatch

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// An audit writes one line of JSON for each request, granted or not, to a file. Lines are
// gathered in memory and written a moment later, so no request waits for them.
type audit struct {
	log  hclog.Logger
	file AuditFile
	done chan struct{}
	wake chan struct{}
	quit chan struct{}      // closed by close
	now  chan chan struct{} // closed by run when all lines are written

	mu      sync.Mutex
	text    []byte
	lines   int64
	lost    int64 // lines dropped because text was full
	folds   map[string]*fold
	whole   bool // folding has ended
	closing bool
	ended   bool // the file is closed; it is opened again for the ends of the last streams
}

// A fold counts the refusals of one kind to one actor within foldTime, or the equal requests of a program that polls.
// The first ones have a line each: foldAfter, or foldReads, or foldStdout on the stdout of an agent, because its
// protocol wants each request audited. The rest share one line, so that they do not push all else out of the files.
type fold struct {
	began, last time.Time
	seen        int
	folded      int64  // those without a line
	line        []byte // of the last one, without its end
	end         *time.Timer
}

const (
	foldAfter  = 10
	foldStdout = 1000
	foldReads  = 1 // granted requests that read, and that no decision is about
	foldTime   = 10 * time.Second
	maxFolds   = 256 // of further kinds all have a line

	maxFoldKind = 200 // bytes of a type of message, which its sender chooses
)

const (
	auditPause    = 200 * time.Millisecond // how long lines are gathered
	auditAtOnce   = 256 << 10              // this many bytes are written at once
	maxAuditBytes = 8 << 20                // bytes kept in memory while the disk accepts no writes
)

func newAudit(file AuditFile, log hclog.Logger) *audit {
	a := &audit{log: log, file: file, done: make(chan struct{}), wake: make(chan struct{}, 1), quit: make(chan struct{}), now: make(chan chan struct{})}
	go a.run()
	return a
}

// auditGap implements AuditGap.
func auditGap(lost int64, now time.Time) []byte {
	b := append(object.AppendTimestamp([]byte(`{"at":"`), now), `","outcome":"lost","lines":`...)
	return append(strconv.AppendInt(b, lost, 10), '}', '\n')
}

// requests adds a line for each request among inputs, with its outcome. A nil audit adds none.
func (a *audit) requests(inputs []handlers.Input, w *work) {
	if a == nil {
		return
	}
	b, lines := w.trail[:0], int64(0)
	var from, to int // the beginning of the last line in b
	var last *handlers.Input
	var kind called
	for i := range inputs {
		in := &inputs[i]
		r, ok := in.Message.(*wire.Request)
		if !ok || in.From.Audited {
			continue
		}
		began := len(b)
		if what := calledOf(r); last != nil && what == kind && in.At.Equal(last.At) && in.From == last.From { // a run of alike is usual
			b = append(b, b[from:to]...)
		} else {
			b = appendWho(b, in.At, in.From, what.String())
			kind = what
		}
		last, from, to = in, began, len(b)
		b = appendOutcome(r.AppendRawID(b), w.verdicts[i])
		lines++
	}
	a.add(b, lines)
	w.trail = b
}

// note adds a line for a message that was refused before a decision. The id is its JSON text,
// or nil.
func (a *audit) note(at time.Time, from handlers.Actor, kind string, id []byte, verdict *wire.Error) {
	if a == nil {
		return
	}
	if id == nil {
		id = []byte("null")
	}
	line := appendOutcome(append(appendWho(nil, at, from, kind), id...), verdict)
	first := foldAfter
	if from.Via == "" {
		first = foldStdout
	}
	if verdict == nil || len(kind) > maxFoldKind || !a.fold(from.String()+"\x00"+kind+"\x00"+string(verdict.Code), first, at, line) {
		a.add(line, 1)
	}
}

// asked adds a line for a request that no decision was about. Such requests come over HTTP only.
func (a *audit) asked(at time.Time, from handlers.Actor, kind string, stage identity.Stage, reads bool, verdict *wire.Error) {
	if a == nil {
		return
	}
	if verdict != nil && stage == "" {
		a.note(at, from, kind, object.Quote(uuid.NewString()), verdict)
		return
	}
	line := object.AppendText(appendWho(nil, at, from, kind), uuid.NewString())
	if stage != "" {
		line = object.AppendText(append(line, `,"stream":`...), string(stage))
	}
	line = appendOutcome(line, verdict)
	if !reads || stage != "" || !a.fold(from.String()+source(from.Via)+"\x00"+kind, foldReads, at, line) {
		a.add(line, 1)
	}
}

// source returns the Via of an actor without the port, which differs for each connection of a program.
func source(via string) string {
	const member = `,"address":"`
	rest, ok := strings.CutPrefix(via, member)
	if !ok {
		return via
	}
	address, others, _ := strings.Cut(rest, `"`)
	return address[:max(0, strings.LastIndexByte(address, ':'))] + others
}

// fold reports whether a request only counts, because it is not one of the first.
func (a *audit) fold(kind string, first int, at time.Time, line []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.folds[kind]
	switch {
	case a.whole:
		return false
	case f == nil:
		if len(a.folds) >= maxFolds {
			a.forget(at)
		}
		if len(a.folds) >= maxFolds {
			return false
		}
		if a.folds == nil {
			a.folds = make(map[string]*fold)
		}
		f = &fold{began: at}
		a.folds[kind] = f
	case f.folded == 0 && at.Sub(f.began) >= foldTime:
		f.began, f.seen = at, 0
	}
	if f.seen++; f.seen <= first {
		return false
	}
	f.last, f.line = at, append(f.line[:0], line[:len(line)-len("}\n")]...)
	if f.folded++; f.folded == 1 {
		f.end = time.AfterFunc(foldTime-at.Sub(f.began), func() { a.unfold(f) })
	}
	return true
}

// forget removes expired folds that count no request. The lock must be held.
func (a *audit) forget(now time.Time) {
	for kind, f := range a.folds {
		if f.folded == 0 && now.Sub(f.began) >= foldTime {
			delete(a.folds, kind)
		}
	}
}

// unfold adds the line of the refusals that were only counted.
func (a *audit) unfold(f *fold) {
	a.mu.Lock()
	if f.folded == 0 {
		a.mu.Unlock()
		return
	}
	line := append(strconv.AppendInt(append(f.line, `,"folded":`...), f.folded, 10), '}', '\n')
	f.began, f.seen, f.folded, f.line = f.last, 0, 0, nil
	a.mu.Unlock()
	a.add(line, 1)
}

// appendWho appends the beginning of a line, up to the id.
func appendWho(b []byte, at time.Time, from handlers.Actor, kind string) []byte {
	b = object.AppendTimestamp(append(b, `{"at":"`...), at)
	b = append(b, `","actor":`...)
	b = object.AppendText(b, from.String())
	b = append(b, from.Via...)
	b = append(b, `,"type":`...)
	b = object.AppendText(b, kind)
	return append(b, `,"id":`...)
}

// appendOutcome appends the rest of a line, after the id.
func appendOutcome(b []byte, verdict *wire.Error) []byte {
	if verdict == nil {
		return append(b, `,"outcome":"granted"}`+"\n"...)
	}
	b = append(append(b, `,"outcome":"`...), verdict.Code...)
	b = object.AppendText(append(b, `","why":`...), verdict.Message)
	return append(b, '}', '\n')
}

// add appends complete lines to the text that waits to be written.
func (a *audit) add(text []byte, lines int64) {
	if lines == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		_ = a.file.Write(text, lines, time.Now()) // too late to log an error
		a.file.Close()
		return
	}
	if len(a.text) > maxAuditBytes {
		a.lost += lines
		return
	}
	first := a.lines == 0
	a.text = append(a.text, text...)
	a.lines += lines
	if first || len(a.text) > auditAtOnce {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// run writes the gathered lines until the audit is closed.
func (a *audit) run() {
	defer close(a.done)
	defer a.end()
	var text []byte
	pause := time.NewTimer(auditPause)
	defer pause.Stop()
	for closing := false; !closing; {
		select {
		case <-a.wake:
		case written := <-a.now:
			text, closing = a.write(text)
			close(written)
			continue
		case <-a.quit:
		}
		pause.Reset(auditPause)
		select { // wait for more lines unless there are enough
		case <-a.wake:
		case <-pause.C:
		case <-a.quit:
		}
		text, closing = a.write(text)
	}
}

// end writes the lines that came while the last ones were written, and closes the file.
func (a *audit) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended = true; a.lines > 0 {
		_ = a.file.Write(a.text, a.lines, time.Now())
	}
	a.file.Close()
}

// write writes the gathered lines and returns them, so that their buffer can be used again.
func (a *audit) write(spare []byte) (text []byte, closing bool) {
	a.mu.Lock()
	text, a.text = a.text, spare[:0]
	lines, lost := a.lines, a.lost
	a.lines, a.lost = 0, 0
	closing = a.closing
	a.mu.Unlock()
	a.file.Skip(lost)
	if lines == 0 {
		return text, closing
	}
	if err := a.file.Write(text, lines, time.Now()); err != nil {
		a.log.Warn("the audit log cannot be written: lines are counted until it works again", "error", err)
	}
	return text, closing
}

// flush writes all lines so far.
func (a *audit) flush() {
	if a == nil {
		return
	}
	a.mu.Lock()
	folds := slices.Collect(maps.Values(a.folds))
	a.mu.Unlock()
	for _, f := range folds {
		a.unfold(f)
	}
	written := make(chan struct{})
	select {
	case a.now <- written:
		<-written
	case <-a.done:
	}
}

// close writes the remaining lines at once and stops the audit.
func (a *audit) close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.whole = true
	folds := slices.Collect(maps.Values(a.folds))
	for _, f := range folds {
		if f.end != nil {
			f.end.Stop()
		}
	}
	a.mu.Unlock()
	for _, f := range folds {
		a.unfold(f)
	}
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	close(a.quit)
	<-a.done
}
