package dispatch

import (
	"errors"
	"sync"
	"time"

	"orchestrator/handlers"
	"orchestrator/handlers/history"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A postman reads the record for agents. It delivers new mail to running agents, and the
// answers and lines that need something from the record or from artifacts. It is one goroutine
// that lives as long as it has work. So decisions and commits never wait for a page, and at
// most one page is in memory.
//
// A round is the delivery of mail to one run. One page is put into the agent's mailbox, and the
// next page only after the first was written. A slow agent therefore holds at most one page in
// memory. Messages that the agent has not acked are delivered again to its next run.
type postman struct {
	dispatcher *Dispatcher

	mu      sync.Mutex
	rounds  map[string]*round        // by actor
	agents  map[string]*round        // by agent
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
	messages, seen, _, err := history.ReadMail(p.dispatcher, page, int(min(pageBytes, room.Bytes)))
	if err != nil {
		p.dispatcher.log.Error("mail cannot be read; it is tried again", "actor", r.actor, "error", err)
		time.AfterFunc(time.Second, func() { p.again(r) }) // does nothing after the end
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
func (p *postman) bring(r *round, messages []wire.Mail) bool {
	e := stdin.Entry{Lines: len(messages), Retriable: true, Told: func(written bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.inHand = false; written {
			p.schedule(r)
		}
	}}
	for i := range messages {
		envelope := wire.Envelope{ID: messageID(), At: time.Now()}
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
				if mail.Takes() { // otherwise no agent would get what is read
					p.answer(l, mail)
				}
			})
			return
		}
		d := p.dispatcher
		text := d.spell(nil, &l, time.Now())
		d.put(mail, stdin.Entry{Text: text, Lines: 1, Answers: 1}, l.To)
	})
}
