package dispatch

import (
	"slices"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// The postman delivers lines that cannot be passed on unchanged.

// isLine reports whether a letter is a line that is passed on.
func isLine(l *handlers.Letter) bool { return l.Line != nil || l.Kept != 0 }

// isElsewhere reports whether a line, or part of it, must first be read from the record or from
// a file. Session messages are passed on as they came, even with artifact references.
func isElsewhere(l *handlers.Letter) bool {
	return l.Kept != 0 || l.Task != "" && delegation.HasArtifactRefs(l.Line)
}

// appendReceipt appends the receipt of a line if the line needs one.
func appendReceipt(all []wire.Delivered, l *handlers.Letter) []wire.Delivered {
	if l.Task == "" && l.Said == 0 {
		return all
	}
	return append(all, wire.Delivered{Agent: l.To.Name, Run: l.To.Run, Task: l.Task, Said: l.Said})
}

// delayedLines holds the lines that the postman must still deliver to one run. It has the lines
// that must be read first, and all lines after the first of them, because messages about a task
// keep their order. A line is read only when the mailbox has room. For a line in the record
// only its number is in memory, so their count is not limited. The other lines are limited as
// in a mailbox.
type delayedLines struct {
	to    handlers.Actor
	mail  *stdin.Mailbox
	lines []handlers.Letter
	fresh stdin.Limits    // the part that is in memory
	tries int             // failed attempts to read the first line
	done  []chan struct{} // closed when all lines are delivered
}

// add appends a line. It returns false if too much is in memory already. p.mu must be held.
func (d *delayedLines) add(l handlers.Letter) bool {
	if l.Kept == 0 && len(d.lines) > 0 && !d.mail.AllowsBeside(d.fresh) {
		return false
	}
	d.lines = append(d.lines, l)
	d.count(&l, 1)
	d.mail.Reserve(1)
	return true
}

func (d *delayedLines) count(l *handlers.Letter, sign int) {
	if l.Kept == 0 {
		d.fresh.Messages += sign
		d.fresh.Bytes += int64(sign * len(l.Line))
	}
}

// carry queues a line that must be read first, or that follows such a line. It returns false if
// the line can be passed on at once.
//
// A queued line counts as reserved in the mailbox, because the agent could otherwise ask for
// such lines without end.
func (p *postman) carry(l handlers.Letter, mail *stdin.Mailbox) bool {
	reads := isElsewhere(&l)
	p.mu.Lock()
	o := p.loads[l.To.Run]
	if !reads && o == nil {
		p.mu.Unlock()
		return false
	}
	if o == nil {
		o = &delayedLines{to: l.To, mail: mail}
		if p.loads == nil {
			p.loads = make(map[string]*delayedLines)
		}
		p.loads[l.To.Run] = o
		p.do(func() { p.bringLine(o) })
	}
	taken := o.add(l)
	p.mu.Unlock()
	if !taken {
		p.dispatcher.fail(mail, stdin.Entry{Lines: 1, Receipts: appendReceipt(nil, &l)}, l.To, stdin.ErrFull)
	}
	return true
}

// bringLine reads the first line of a load and puts it into the mailbox if there is room. It is
// called again until the load is empty, and never concurrently for the same load.
func (p *postman) bringLine(o *delayedLines) {
	d := p.dispatcher
	again := func() { p.later(func() { p.bringLine(o) }) }
	switch {
	case !o.mail.Takes():
		p.drop(o)
		return
	case !o.mail.IsDrained():
		o.mail.WhenDrained(again)
		return
	}
	p.mu.Lock()
	l := o.lines[0]
	p.mu.Unlock()
	line, err := d.lineOf(&l)
	if err != nil {
		if o.tries++; o.tries < maxTries && d.record != nil {
			d.options.Alarm("a line cannot be read in the record; it is tried again", "agent", l.To.Name, "seq", l.Kept, "error", err)
			time.AfterFunc(time.Second, again) // does nothing after the end
			return
		}
		// No receipt reports the loss, because a lost receipt means that the agent did not
		// read.
		d.log.Error("a line cannot be read in the record, and is passed over: this run of its agent does not get it",
			"agent", l.To.Name, "task", l.Task, "seq", l.Kept, "error", err)
		p.lineDone(o)
		return
	}
	if overtakes(o.mail, &l) {
		d.fail(o.mail, stdin.Entry{Lines: 1, Receipts: appendReceipt(nil, &l)}, l.To, stdin.ErrOvertakes)
		p.lineDone(o)
		return
	}
	d.put(o.mail, stdin.Entry{Text: slices.Concat(line, []byte("\n")), Lines: 1, Receipts: appendReceipt(nil, &l)}, l.To)
	p.lineDone(o)
}

// maxTries is how often an unreadable line is tried, a second apart. The lines after it wait
// meanwhile.
const maxTries = 5

// lineDone removes the first line of a load, which is in the mailbox or was given up.
func (p *postman) lineDone(o *delayedLines) {
	p.mu.Lock()
	o.count(&o.lines[0], -1)
	o.lines[0] = handlers.Letter{}
	o.lines, o.tries = o.lines[1:], 0
	if len(o.lines) > 0 {
		p.do(func() { p.bringLine(o) })
	} else {
		p.unload(o)
	}
	p.mu.Unlock()
	o.mail.Reserve(-1)
}

// drop discards the lines of a run whose mailbox accepts nothing any more.
func (p *postman) drop(o *delayedLines) {
	p.mu.Lock()
	p.unload(o)
	p.mu.Unlock()
	e := stdin.Entry{Lines: len(o.lines)}
	for i := range o.lines {
		e.Receipts = appendReceipt(e.Receipts, &o.lines[i])
	}
	p.dispatcher.put(o.mail, e, o.to) // refused by the closed mailbox, so the loss is counted
	o.mail.Reserve(-e.Lines)
}

// unload removes a load. p.mu must be held.
func (p *postman) unload(o *delayedLines) {
	delete(p.loads, o.to.Run)
	for _, done := range o.done {
		close(done)
	}
}

// lineOf returns a line as its recipient reads it.
func (d *Dispatcher) lineOf(l *handlers.Letter) (wire.Raw, error) {
	line := l.Line
	if l.Kept != 0 {
		r, err := d.Record(l.Kept)
		if err == nil {
			line, err = handlers.LineOf(r)
		}
		if err != nil || r.Kind == events.SessionMessage {
			return line, err
		}
	}
	if l.Metadata != nil {
		line = l.Metadata.FillIn(line)
	}
	if delegation.HasArtifactRefs(line) {
		line = d.options.Artifacts.Attach(line)
	}
	return line, nil
}

// caughtUp returns a channel that is closed when all lines queued now for a run are delivered.
func (p *postman) caughtUp(run string) <-chan struct{} {
	done := make(chan struct{})
	p.later(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if o := p.loads[run]; o != nil {
			o.done = append(o.done, done)
			return
		}
		close(done)
	})
	return done
}
