package supervisor

import (
	"slices"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// Lines that cannot be passed on as they are, and so are brought by the postman.

// isLine reports whether a letter is a line that is passed on.
func isLine(l *handlers.Letter) bool { return l.Line != nil || l.Kept != 0 }

// isElsewhere reports whether a line, or a part of it, has to be read first. Messages of
// sessions are passed on as they came, whatever stands in them.
func isElsewhere(l *handlers.Letter) bool {
	return l.Kept != 0 || l.Task != "" && wire.HasArtifactRefs(l.Line)
}

// appendReceipt appends the receipt of a line, if one is wanted.
func appendReceipt(all []wire.Delivered, l *handlers.Letter) []wire.Delivered {
	if l.Task == "" && l.Said == 0 {
		return all
	}
	return append(all, wire.Delivered{Agent: l.To.Name, Run: l.To.Run, Task: l.Task, Said: l.Said})
}

// delayedLines is what the postman has in hand for one run: lines that have to be read, and
// all that came behind the first of them, for what is said about a task comes in the
// order in which it was said. Each is read when there is room for it: with what is in
// the record alone nothing is in memory but its number, however much it is. What is
// not waits only as far as a mailbox would have it wait.
type delayedLines struct {
	to    handlers.Actor
	mail  *stdin.Mailbox
	lines []handlers.Letter
	fresh stdin.Limits    // how much of them is in memory
	tries int             // that the first could not be read
	done  []chan struct{} // closed when all is brought
}

// add puts a line behind the others; the lock of the postman is held. It says false
// when there is too much already.
func (o *delayedLines) add(l handlers.Letter) bool {
	if l.Kept == 0 && len(o.lines) > 0 && !o.mail.AllowsBeside(o.fresh) {
		return false
	}
	o.lines = append(o.lines, l)
	o.count(&l, 1)
	o.mail.Reserve(1)
	return true
}

func (o *delayedLines) count(l *handlers.Letter, sign int) {
	if l.Kept == 0 {
		o.fresh.Messages += sign
		o.fresh.Bytes += int64(sign * len(l.Line))
	}
}

// carry has a line brought that has to be read first, or that comes behind one. It says
// false of a line that can be passed on at once.
//
// A line in hand is owed to its agent, for that may be who asks for it, without end.
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

// bringLine reads the first line of a load and puts it into the mailbox, if there is
// room. For each load it is called again until that is empty, and never twice at once.
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
		if o.tries++; o.tries < mostTries && d.record != nil {
			d.alarm.raise("a line cannot be read in the record; it is tried again", "agent", l.To.Name, "seq", l.Kept, "error", err)
			time.AfterFunc(time.Second, again) // which does nothing when all is over
			return
		}
		// No receipt says that it is lost: that would be a fault of its agent, who reads.
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

// mostTries is how often a line is tried that cannot be read, a second apart. Those
// behind it wait so long.
const mostTries = 5

// lineDone notes that the first line of a load is in the mailbox, or never will be.
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

// drop loses what a run has not got that takes nothing any more.
func (p *postman) drop(o *delayedLines) {
	p.mu.Lock()
	p.unload(o)
	p.mu.Unlock()
	e := stdin.Entry{Lines: len(o.lines)}
	for i := range o.lines {
		e.Receipts = appendReceipt(e.Receipts, &o.lines[i])
	}
	p.dispatcher.put(o.mail, e, o.to) // which refuses it
	o.mail.Reserve(-e.Lines)
}

// unload lets go of a load. The lock is held.
func (p *postman) unload(o *delayedLines) {
	delete(p.loads, o.to.Run)
	for _, done := range o.done {
		close(done)
	}
}

// lineOf is a line as its addressee reads it.
func (d *dispatcher) lineOf(l *handlers.Letter) (wire.Raw, error) {
	line := l.Line
	if l.Kept != 0 {
		r, err := d.Record(l.Kept)
		if err == nil {
			line, err = handlers.LineOf(r)
		}
		if err != nil || r.Kind == wire.EventSessionSaid {
			return line, err
		}
	}
	if l.Metadata != nil {
		line = l.Metadata.FillIn(line)
	}
	if wire.HasArtifactRefs(line) {
		line = d.artifacts.attach(line)
	}
	return line, nil
}

// caughtUp is closed when all that is in hand now for a run is brought.
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
