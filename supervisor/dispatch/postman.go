package dispatch

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"orchestrator/handlers"
	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// A postman reads the record for agents. It delivers new mail to running agents, and the answers and lines that need
// text of the record or of artifacts. It is one goroutine that lives as long as it has work. So decisions and commits
// never wait for a page, and at most one page is in memory.
//
// A round is the delivery of mail to one run. One page is put into the agent's mailbox, and the
// next page only after the first was written. A slow agent therefore holds at most one page in
// memory. Messages that the agent has not acked are delivered again to its next run.
type postman struct {
	dispatcher *Dispatcher

	mu      sync.Mutex
	rounds  map[string]*round        // by actor
	agents  map[string]*round        // by agent
	written []writtenMail            // the latest, oldest first
	loads   map[string]*delayedLines // lines to deliver, by run
	due     []func()                 // functions to call next
	walking bool
	over    bool
	home    sync.WaitGroup
}

// A round is the delivery of mail to one run.
type round struct {
	actor  string
	to     handlers.Actor
	mail   *stdin.Mailbox
	after  int64 // number of the last message delivered
	due    bool  // there may be more
	inHand bool  // a page is not written yet
	waits  bool  // waiting for room in the mailbox
	over   bool
}

// A writtenMail is a message that was written to the stdin of an agent.
type writtenMail struct {
	seq   int64
	agent string
	at    time.Time
}

// maxWritten is how many messages a postman remembers with the time when they were written.
const maxWritten = 10_000

// Limits of one page of mail.
const (
	pageMessages = 128
	pageBytes    = 256 << 10
)

// begin starts the round of a run.
func (p *postman) begin(r *round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rounds == nil {
		p.rounds, p.agents = make(map[string]*round), make(map[string]*round)
	}
	p.rounds[r.actor], p.agents[r.to.Name] = r, r
	p.schedule(r)
}

// end ends the round of an agent's run.
func (p *postman) end(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.agents[agent]
	if r == nil {
		return
	}
	r.over = true
	delete(p.agents, agent)
	if p.rounds[r.actor] == r {
		delete(p.rounds, r.actor)
	}
}

// notify schedules the rounds of the running agents that have mail among records.
func (p *postman) notify(records []wire.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range records {
		switch r := &records[i]; {
		case !r.IsMail():
		case r.To == mail.Broadcast:
			for _, round := range p.rounds {
				p.schedule(round)
			}
		default:
			p.schedule(p.rounds[r.To])
		}
	}
}

// schedule queues a visit of a round. p.mu must be held.
func (p *postman) schedule(r *round) {
	if r == nil || r.due || r.over || r.inHand || r.waits {
		return // it is scheduled again when that has ended
	}
	r.due = true
	p.do(func() { p.visit(r) })
}

// later queues a function that reads the record.
func (p *postman) later(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do(do)
}

// do is later with p.mu held.
func (p *postman) do(do func()) {
	if p.over {
		return
	}
	p.due = append(p.due, do)
	if !p.walking {
		p.walking = true
		p.home.Go(p.walk)
	}
}

func (p *postman) walk() {
	for {
		p.mu.Lock()
		if len(p.due) == 0 || p.over {
			p.walking, p.due = false, nil
			p.mu.Unlock()
			return
		}
		next := p.due[0]
		p.due[0] = nil
		p.due = p.due[1:]
		p.mu.Unlock()
		next()
	}
}

// close stops all deliveries and waits for the current one.
func (p *postman) close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.home.Wait()
}

// visit delivers the next page of mail to a run.
func (p *postman) visit(r *round) {
	p.mu.Lock()
	r.due = false
	over := r.over
	p.mu.Unlock()
	if over {
		return
	}
	room, ok := r.mail.PageRoom()
	if !ok {
		p.await(r)
		return
	}
	page := history.MailPage{Actor: r.actor, After: r.after, Limit: int64(min(pageMessages, room.Messages)), Told: true}
	messages, seen, _, err := history.ReadMail(p.dispatcher.notifier.find(p.dispatcher), page, int(min(pageBytes, room.Bytes)))
	if err != nil {
		p.dispatcher.log.Error("mail cannot be read; trying again", "actor", r.actor, "error", err)
		time.AfterFunc(time.Second, func() { p.again(r) }) // has no effect after the end
		return
	}
	if len(messages) > 0 && !p.bring(r, messages) {
		return
	}
	r.after = seen
}

func (p *postman) again(r *round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule(r)
}

// bring puts a page into a run's mailbox. The round continues when the page is written.
func (p *postman) bring(r *round, messages []mail.Message) bool {
	e := stdin.Entry{Lines: len(messages), Retriable: true, Told: func(written bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.inHand = false; written {
			p.noteWritten(r.to.Name, messages)
			p.schedule(r)
		}
	}}
	for i := range messages {
		envelope := stdio.Envelope{ID: messageID(), At: time.Now()}
		e.Text = envelope.AppendNotice(e.Text, wire.NoticeMessage, &messages[i])
	}
	p.mu.Lock()
	r.inHand = true // before Put, because the page may be written at once
	p.mu.Unlock()
	_, err := r.mail.Put(e)
	if err == nil {
		return true
	}
	p.mu.Lock()
	r.inHand = false
	p.mu.Unlock()
	if errors.Is(err, stdin.ErrFull) {
		p.await(r)
	}
	return false
}

// noteWritten remembers that messages were written to an agent. p.mu must be held.
func (p *postman) noteWritten(agent string, messages []mail.Message) {
	now := time.Now()
	for i := range messages {
		p.written = append(p.written, writtenMail{seq: messages[i].Seq, agent: agent, at: now})
	}
	p.written = p.written[max(0, len(p.written)-maxWritten):]
}

// addStates adds the states that are not in the record to the status of a message. If the record was not read to its
// end, the state tells whether the message is acked. Otherwise the state must not be asked: it may be ahead of the
// record, and would tell the last step without those before it.
func (p *postman) addStates(to *mail.Status, cut bool) {
	p.mu.Lock()
	for _, w := range p.written {
		if w.seq == to.Seq && !slices.ContainsFunc(to.States, func(s mail.State) bool { return s.State == mail.StateWritten && s.Agent == w.agent }) {
			to.States = slices.Insert(to.States, 1, mail.State{State: mail.StateWritten, At: object.Timestamp(w.at), Agent: w.agent})
		}
	}
	p.mu.Unlock()
	slices.SortStableFunc(to.States, func(a, b mail.State) int { return strings.Compare(a.At, b.At) })
	if !cut || to.Has(mail.StateAcked) {
		return
	}
	acked := false
	p.dispatcher.Look(func(s *handlers.State) { acked = s.Acked(to.To, to.Seq) })
	if acked {
		to.States = append(to.States, mail.State{State: mail.StateAcked, Actor: to.To})
	}
}

// await schedules a round again when its mailbox has room.
func (p *postman) await(r *round) {
	p.mu.Lock()
	r.waits = true
	p.mu.Unlock()
	r.mail.WhenRoomy(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.waits = false
		p.schedule(r)
	})
}

// answer completes an answer from the record and puts it into the mailbox, when that is
// drained.
func (p *postman) answer(l handlers.Letter, mail *stdin.Mailbox) {
	p.later(func() {
		if !mail.IsDrained() {
			mail.WhenDrained(func() {
				if mail.Takes() { // otherwise no agent would get the answer
					p.answer(l, mail)
				}
			})
			return
		}
		d := p.dispatcher
		text := d.spell(nil, &l, stdio.Envelope{ID: messageID(), At: time.Now()})
		d.put(mail, stdin.Entry{Text: text, Lines: 1, Answers: 1}, l.To)
	})
}

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
			d.options.Alarm("a line in the record cannot be read; trying again", "agent", l.To.Name, "seq", l.Kept, "error", err)
			time.AfterFunc(time.Second, again) // has no effect after the end
			return
		}
		// No receipt reports the loss, because a lost receipt means that the agent did not
		// read.
		d.log.Error("a line in the record cannot be read and is skipped: this run of its agent does not get it",
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

// maxTries is how often an unreadable line is tried, a second apart. Later lines wait until then.
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

// drop discards the lines of a run after its mailbox is closed.
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
			line, err = state.LineOf(r)
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
