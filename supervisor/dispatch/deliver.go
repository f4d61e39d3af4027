package dispatch

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"orchestrator/handlers"
	"orchestrator/handlers/state"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/stdio"
)

// recipients holds the destinations of letters: the mailboxes of agents, and callers that wait
// for an answer over HTTP.
type recipients struct {
	mu      sync.RWMutex
	agents  map[string]recipient
	folders map[string]runFolder // of the latest run of each agent
	waiters map[string]chan<- handlers.Letter
}

// A recipient is one run of an agent.
type recipient struct {
	run  string
	mail *stdin.Mailbox
	lost *lost // undelivered messages that are not reported yet; guarded by recipients.mu
}

// lost counts the undelivered messages of a run that are not reported yet.
type lost struct {
	told  time.Time // of the last report
	count int64
}

func (r *recipients) open(agent, run string, mail *stdin.Mailbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agents == nil {
		r.agents = make(map[string]recipient)
	}
	r.agents[agent] = recipient{run: run, mail: mail, lost: new(lost)}
}

// A Folder is where a run of an agent works, and how its files are read for the agent.
type Folder struct {
	Path string      // "" if it is not known
	Is   os.FileInfo // the folder when the run was started: the agent may have put another in its place
	// Do calls a function with the agent's rights to files. A nil Do means the rights of this process.
	Do func(func() error) error
	// Remote is the run, if it is on another machine. The other fields are empty then.
	Remote Remote
}

// A Remote is a run on another machine.
type Remote interface {
	Host() string // the name of the machine
	// ReadFile reads a file of at most so many bytes in the folder of the run.
	ReadFile(path string, most int64) (string, error)
	// Work sends the machine a request about the agent, and returns its reply.
	Work(ctx context.Context, request []byte) ([]byte, error)
}

// FolderOf returns the folder of the latest run of an agent.
func (d *Dispatcher) FolderOf(agent string) Folder {
	d.recipients.mu.RLock()
	defer d.recipients.mu.RUnlock()
	return d.recipients.folders[agent].folder
}

// A runFolder is the working folder of a run of an agent.
type runFolder struct {
	run    string
	folder Folder
}

// SetFolder sets the working folder of a run of an agent, before the run begins.
func (d *Dispatcher) SetFolder(agent, run string, folder Folder) {
	r := &d.recipients
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folders == nil {
		r.folders = make(map[string]runFolder)
	}
	r.folders[agent] = runFolder{run: run, folder: folder}
}

// folder returns the folder of the run that sends a message, without a path if the orchestrator did not
// start it. A caller with a key of the agent may be on another machine.
func (r *recipients) folder(from handlers.Actor) Folder {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if h := r.folders[from.Name]; from.Kind == handlers.Agent && (h.run == from.Run || h.run == from.Only) {
		return h.folder
	}
	return Folder{}
}

// collect takes the artifacts of a request into the store. It runs on the goroutine of the caller,
// because it waits for the disk.
func (d *Dispatcher) collect(from handlers.Actor, r *wire.Request) *wire.Error {
	c, ok := r.Body.(*wire.CompleteTask)
	if !ok || len(c.Artifacts) == 0 {
		return nil
	}
	return d.options.Artifacts.Collect(d.recipients.folder(from), c.Artifacts)
}

// artifactsOf returns the references to artifacts in a message.
func artifactsOf(m wire.Message) (refs []string) {
	switch m := m.(type) {
	case *wire.Request:
		if c, ok := m.Body.(*wire.CompleteTask); ok {
			for i := range c.Artifacts {
				refs = append(refs, c.Artifacts[i].Ref)
			}
		}
	case *wire.AgentEvent:
		if r, ok := m.Body.(*delegation.Response); ok {
			for i := range r.Artifacts {
				refs = append(refs, r.Artifacts[i].Ref)
			}
		}
	}
	return refs
}

// messages formats a number of messages.
func messages(n int64) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// Detach ends the delivery to a run of an agent that has ended, and reports the messages that
// it did not get.
func (d *Dispatcher) Detach(agent, run string) {
	d.mail.end(agent)
	if lost := d.recipients.close(agent); lost > 0 {
		d.Note(&wire.Event{
			Kind: events.AgentUndelivered, Agent: agent, Run: run, Text: messages(lost) + " could not be delivered",
			Figures: wire.Figures{Count: lost},
		})
	}
}

// close removes an agent and returns how many undelivered messages were not reported yet.
func (r *recipients) close(agent string) (lost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.agents[agent]; ok {
		lost = at.lost.count
	}
	delete(r.agents, agent)
	return lost
}

// mail returns the mailbox of the run that a letter is for, or nil if that run has ended.
func (r *recipients) mail(to handlers.Actor) *stdin.Mailbox {
	r.mu.RLock()
	defer r.mu.RUnlock()
	at := r.agents[to.Name]
	if at.run != to.Run {
		return nil
	}
	return at.mail
}

// callerPrefix begins the name that replaces the run for a caller over HTTP. Such a caller waits
// for its answer itself.
const callerPrefix = "door:"

// wait returns a channel for one answer.
func (r *recipients) wait(door string) <-chan handlers.Letter {
	answer := make(chan handlers.Letter, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters == nil {
		r.waiters = make(map[string]chan<- handlers.Letter)
	}
	r.waiters[door] = answer
	return answer
}

func (r *recipients) leave(door string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiters, door)
}

func (r *recipients) waiter(name string) chan<- handlers.Letter {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.waiters[name]
}

// deliver puts letters into mailboxes without blocking. Consecutive letters for one agent
// become one entry and so one write. The text is built in *room, which the caller keeps for the
// next call.
func (d *Dispatcher) deliver(letters []handlers.Letter, room *[]byte) {
	if len(letters) == 0 {
		return
	}
	letters = slices.DeleteFunc(letters, tacit) // most often all letters stay, and are not moved
	d.options.Watch.answered(letters)
	seal := newSealer(time.Now(), len(letters))
	for len(letters) > 0 {
		if to := letters[0].To.Run; !strings.HasPrefix(to, callerPrefix) {
			letters = letters[d.toAgent(letters, room, &seal):]
			continue
		} else if answer := d.recipients.waiter(to); answer != nil {
			answer <- letters[0] // does not block: the channel has room for its one answer
		}
		letters = letters[1:]
	}
}

// toAgent delivers the first letter together with the following ones that fit into the same
// entry. It returns how many it delivered.
func (d *Dispatcher) toAgent(letters []handlers.Letter, room *[]byte, s *sealer) int {
	to := letters[0].To
	mail := d.recipients.mail(to)
	if isLine(&letters[0]) {
		if mail != nil && d.mail.carry(letters[0], mail) {
			return 1
		}
		return d.pass(letters, mail, room)
	}
	if mail == nil {
		if task := letters[0].Task; task != "" {
			d.Receive([]wire.Delivered{{Agent: to.Name, Run: to.Run, Task: task}}, false)
		}
		return 1 // the run that asked has ended
	}
	e := stdin.Entry{Text: (*room)[:0]}
	for e.Lines < len(letters) {
		l := &letters[e.Lines]
		reads := d.isPart(l)
		if l.To.Run != to.Run || l.To.Name != to.Name || isLine(l) || e.Lines > 0 && (l.Task != "" || reads) {
			break
		}
		if reads {
			d.mail.answer(*l, mail)
			return 1
		}
		e.Text = d.spell(e.Text, l, s.seal())
		e.Lines++
		if l.Notice == "" {
			e.Answers++
		}
		e.Assigns = e.Assigns || l.Notice == wire.NoticeAssigned
		if l.Task != "" {
			e.Receipts, e.Priority = []wire.Delivered{{Agent: to.Name, Run: to.Run, Task: l.Task}}, true
			break
		}
	}
	d.put(mail, e, to)
	keepRoom(room, e.Text)
	return e.Lines
}

// pass delivers the first letter, and the lines after it for the same run, unchanged. An entry
// fits into the mailbox completely or not at all. So lines that would make the entry too large
// are left for the next one.
func (d *Dispatcher) pass(letters []handlers.Letter, mail *stdin.Mailbox, room *[]byte) int {
	to, e := letters[0].To, stdin.Entry{Text: (*room)[:0]}
	if mail != nil && overtakes(mail, &letters[0]) {
		d.fail(mail, stdin.Entry{Lines: 1, Receipts: appendReceipt(nil, &letters[0])}, to, stdin.ErrOvertakes)
		return 1
	}
	for i := range letters {
		l := &letters[i]
		if l.To != to || !isLine(l) || i > 0 && (isElsewhere(l) || mail != nil && overtakes(mail, l) || len(e.Text)+len(l.Line) > stdin.BatchBytes) {
			break
		}
		e.Text = append(append(e.Text, l.Line...), '\n')
		e.Receipts = appendReceipt(e.Receipts, l)
		e.Lines++
	}
	if mail == nil {
		d.Receive(e.Receipts, false)
	} else {
		d.put(mail, e, to)
	}
	keepRoom(room, e.Text)
	return e.Lines
}

// roomKept is the largest buffer that is kept for the next letters.
const roomKept = 64 << 10

func keepRoom(room *[]byte, text []byte) {
	if *room = text; cap(text) > roomKept {
		*room = nil
	}
}

// Receive submits receipts, which tell whether their messages were written.
func (d *Dispatcher) Receive(receipts []wire.Delivered, written bool) {
	now := time.Now()
	inputs := make([]handlers.Input, len(receipts))
	for i := range receipts {
		receipts[i].Lost = !written
		inputs[i] = handlers.Input{At: now, Message: &receipts[i]}
	}
	d.submit(inputs, new(work))
}

// put puts an entry into a mailbox, or reports that the entry did not fit.
func (d *Dispatcher) put(mail *stdin.Mailbox, e stdin.Entry, to handlers.Actor) {
	if _, err := mail.Put(e); err != nil {
		d.fail(mail, e, to, err)
	}
}

// fail records that a run did not get an entry, and why.
func (d *Dispatcher) fail(mail *stdin.Mailbox, e stdin.Entry, to handlers.Actor, err error) {
	if len(e.Receipts) > 0 {
		mail.NoteRefused(e.Receipts)
		d.Receive(e.Receipts, false)
		if errors.Is(err, stdin.ErrFull) { // it gets no more mail until it reads again
			d.notifyRoom(mail, to)
		}
	}
	if lost := d.recipients.missed(to, e.Lines, time.Now()); lost > 0 {
		d.Note(&wire.Event{
			Kind: events.AgentUndelivered, Agent: to.Name, Run: to.Run,
			Text:    fmt.Sprintf("%s could not be delivered: %v", messages(lost), err),
			Figures: wire.Figures{Count: lost},
		})
	}
}

// notifyRoom records an event as soon as the agent reads again. Any number of failed deliveries
// leads to one event.
func (d *Dispatcher) notifyRoom(mail *stdin.Mailbox, to handlers.Actor) {
	mail.NotifyRoom(func() {
		d.Note(&wire.Event{Kind: events.AgentRecovered, Agent: to.Name, Run: to.Run, Text: "reads its stdin again"})
	})
}

// missed counts messages that an agent did not get. It returns the number to report now, at
// most once a second.
func (r *recipients) missed(to handlers.Actor, lines int, now time.Time) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.agents[to.Name]
	if at.run != to.Run || at.lost == nil {
		return 0
	}
	at.lost.count += int64(lines)
	if now.Sub(at.lost.told) < time.Second {
		return 0
	}
	count := at.lost.count
	*at.lost = lost{told: now}
	return count
}

// spell appends a letter in the form that the agent reads.
func (d *Dispatcher) spell(b []byte, l *handlers.Letter, envelope stdio.Envelope) []byte {
	if l.Notice != "" {
		return envelope.AppendNotice(b, l.Notice, l.Payload)
	}
	if err := d.complete(l); err != nil {
		return envelope.AppendReply(b, l.Form, l.Request, nil, err)
	}
	return envelope.AppendReply(b, l.Form, l.Request, l.Payload, l.Refusal)
}

// isPart reports whether part of an answer must be read from the record or from files.
func (d *Dispatcher) isPart(l *handlers.Letter) bool {
	answer, ok := l.Payload.(*wire.TaskAnswer)
	return l.Pages != nil && d.record != nil || ok && delegation.HasArtifactRefs(answer.Document)
}

// complete fills in the part of an answer that is in the record or in files.
func (d *Dispatcher) complete(l *handlers.Letter) *wire.Error {
	if l.Pages != nil && d.record != nil {
		if err := d.behindBase(l); err != nil {
			return d.unreadable(err)
		}
		whole, err := state.Complete(l.Payload, l.Pages, d)
		if refusal, ok := errors.AsType[*wire.Error](err); ok {
			return refusal
		}
		if err != nil {
			return d.unreadable(err)
		}
		if status, ok := whole.(*mail.Status); ok {
			d.mail.addStates(status, l.Pages[0].Status.Cut)
		}
		l.Payload = whole
	}
	if answer, ok := l.Payload.(*wire.TaskAnswer); ok && delegation.HasArtifactRefs(answer.Document) {
		whole := *answer // the original may be kept elsewhere
		whole.Document = d.options.Artifacts.Attach(answer.Document)
		l.Payload = &whole
	}
	return nil
}

// Record implements history.Archive.
func (d *Dispatcher) Record(seq int64) (wire.Record, error) {
	if d.record == nil {
		return wire.Record{}, errors.New("nothing is recorded")
	}
	for r, err := range d.record.Records(context.Background(), seq-1) {
		return r, err
	}
	return wire.Record{}, fmt.Errorf("record %d does not exist", seq)
}

// Find implements history.Archive.
func (d *Dispatcher) Find(s wire.Search) iter.Seq2[wire.Record, error] {
	return d.record.Find(context.Background(), s)
}

// After implements history.Archive.
func (d *Dispatcher) After(seq int64) iter.Seq2[wire.Record, error] {
	return d.record.Records(context.Background(), seq)
}

func (d *Dispatcher) unreadable(err error) *wire.Error {
	if removed, ok := errors.AsType[*wire.RemovedError](err); ok {
		return &wire.Error{
			Code: wire.CodeNotFound, Message: "it was removed: " + removed.Error(),
			Details: map[string]any{"reason": "removed", "base": removed.Base.Seq},
		}
	}
	d.log.Error("the record cannot be read", "error", err)
	return &wire.Error{Code: wire.CodeInternal, Message: "the record cannot be read; see the orchestrator's log"}
}

// A sealer makes the envelopes of messages that leave together. Their ids share an allocation.
type sealer struct {
	at  time.Time
	ids string // unused ids
}

// idLength is the length of a UUID.
const idLength = len("01234567-0123-4567-8901-234567890123")

func newSealer(at time.Time, messages int) sealer {
	var ids strings.Builder
	ids.Grow(idLength * messages)
	var room [idLength]byte
	id := appendMessageID(room[:0])
	next := rand.Uint32()
	for range messages { // they differ in their last eight digits
		var number [4]byte
		binary.BigEndian.PutUint32(number[:], next)
		hex.Encode(id[idLength-8:], number[:])
		_, _ = ids.Write(id)
		next++
	}
	return sealer{at: at, ids: ids.String()}
}

// seal returns the next envelope. Each envelope has a new id, even beyond the expected number of messages.
func (s *sealer) seal() stdio.Envelope {
	if s.ids == "" {
		return stdio.Envelope{ID: messageID(), At: s.at}
	}
	id := s.ids[:idLength]
	s.ids = s.ids[idLength:]
	return stdio.Envelope{ID: id, At: s.at}
}

// messageID returns a random UUID, version 4. The id need not be secret, so no system call is
// needed to make it.
func messageID() string { return string(appendMessageID(nil)) }

func appendMessageID(b []byte) []byte {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	b = append(hex.AppendEncode(b, raw[:4]), '-')
	b = append(hex.AppendEncode(b, raw[4:6]), '-')
	b = append(hex.AppendEncode(b, raw[6:8]), '-')
	b = append(hex.AppendEncode(b, raw[8:10]), '-')
	return hex.AppendEncode(b, raw[10:])
}

// overtakes reports whether the agent would read a session message before an earlier one that
// the mailbox refused.
func overtakes(mail *stdin.Mailbox, l *handlers.Letter) bool {
	return l.Said != 0 && l.Task == "" && mail.Overtakes(l.Said, l.After)
}
