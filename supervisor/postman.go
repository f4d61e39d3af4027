package supervisor

import (
	"errors"
	"sync"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// postman reads the record for agents: mail, which it brings to those that run as it
// comes, and the answers and lines that need something of the record, or of what is
// too large for it. It is one goroutine that lives as long as there is something to
// do, so that neither those who decide nor those who record ever wait for a page, and
// so that not more than a page is in memory, however many agents there are.
//
// A round is where it stands with one run. A page of what is behind it is put into
// the agent's mailbox at once, and the next one not before that was taken: a slow
// agent costs nothing, and no memory but that page. What an agent has not
// acked is brought again to its next run.
type postman struct {
	dispatcher *dispatcher

	mu      sync.Mutex
	rounds  map[string]*round        // by actor
	agents  map[string]*round        // by agent
	loads   map[string]*delayedLines // lines that it has in hand, by run
	due     []func()                 // what is to be done next
	walking bool
	over    bool
	home    sync.WaitGroup
}

// round is the mail of one run.
type round struct {
	actor  string
	to     handlers.Actor
	mail   *stdin.Mailbox
	after  int64 // it has been brought all behind which this is the last
	due    bool  // there may be more
	inHand bool  // it has a page that was not taken yet
	waits  bool  // for room
	over   bool
}

// A page of mail is so long at most.
const (
	pageMessages = 128
	pageBytes    = 256 << 10
)

// begin opens the round of a run.
func (p *postman) begin(r *round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rounds == nil {
		p.rounds, p.agents = make(map[string]*round), make(map[string]*round)
	}
	p.rounds[r.actor], p.agents[r.to.Name] = r, r
	p.schedule(r)
}

// end closes it.
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

// ring has the mail among records brought to those who run.
func (p *postman) ring(records []wire.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range records {
		switch r := &records[i]; {
		case !r.IsMail():
		case r.To == wire.Broadcast:
			for _, round := range p.rounds {
				p.schedule(round)
			}
		default:
			p.schedule(p.rounds[r.To])
		}
	}
}

// schedule has a round looked at. The lock is held.
func (p *postman) schedule(r *round) {
	if r == nil || r.due || r.over || r.inHand || r.waits {
		return // or it is looked at when that is over
	}
	r.due = true
	p.do(func() { p.visit(r) })
}

// later has something done that reads the record.
func (p *postman) later(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do(do)
}

// do is later. The lock is held.
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

// close waits until nothing is brought any more.
func (p *postman) close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.home.Wait()
}

// visit brings a run a page of its mail.
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
	page := handlers.MailPage{Actor: r.actor, After: r.after, Limit: int64(min(pageMessages, room.Messages)), Told: true}
	messages, seen, _, err := handlers.ReadMail(p.dispatcher, page, int(min(pageBytes, room.Bytes)))
	if err != nil {
		p.dispatcher.log.Error("mail cannot be read; it is tried again", "actor", r.actor, "error", err)
		time.AfterFunc(time.Second, func() { p.again(r) }) // which does nothing when all is over
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

// bring puts a page into a run's mailbox, and goes on when it was taken.
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
	r.inHand = true // before it is put: it may be taken at once
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

// await has a round looked at when its agent has read.
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

// answer completes an answer out of the record and gives it to a run. One that
// takes nothing for now gets it when it does.
func (p *postman) answer(l handlers.Letter, mail *stdin.Mailbox) {
	p.later(func() {
		if !mail.IsDrained() {
			mail.WhenDrained(func() {
				if mail.Takes() { // else it would be read for no agent
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
