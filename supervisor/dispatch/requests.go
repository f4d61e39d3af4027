package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"sort"
	"strconv"
	"time"

	"github.com/google/uuid"

	"orchestrator/handlers"
	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// ErrOver is the error of requests to an orchestrator that has ended.
var ErrOver = &wire.Error{Code: wire.CodeConflict, Message: "the orchestrator has stopped"}

// Requests performs operations for callers outside the pipes of agents, such as operators.
type Requests struct{ dispatcher *Dispatcher }

// Requests returns the Requests of a Dispatcher.
func (d *Dispatcher) Requests() Requests { return Requests{d} }

// Ask performs an operation and returns its answer. The answer is a document of package wire. A
// refusal is a *wire.Error.
func (r Requests) Ask(ctx context.Context, from handlers.Actor, operation string, payload []byte) (any, error) {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	request := asking(operation)
	request.Payload = payload
	if err := handlers.Prepare(request, r.dispatcher.options.Protocol.Depth); err != nil {
		return nil, r.Refuse(from, operation, err)
	}
	return r.dispatcher.ask(ctx, from, request)
}

// Do is like Ask, for a payload that was decoded already.
func (r Requests) Do(ctx context.Context, from handlers.Actor, operation string, body any) (any, error) {
	request := asking(operation)
	request.Body = body
	return r.dispatcher.ask(ctx, from, request)
}

func asking(operation string) *wire.Request {
	return &wire.Request{ID: uuid.NewString(), Operation: operation, Timestamp: object.Timestamp(time.Now())}
}

// Refuse records a refusal before a decision in the audit, and returns it.
func (r Requests) Refuse(from handlers.Actor, operation string, err *wire.Error) *wire.Error {
	r.dispatcher.refused(time.Now(), from, "request:"+operation, object.Quote(uuid.NewString()), err)
	return err
}

func (d *Dispatcher) ask(ctx context.Context, from handlers.Actor, r *wire.Request) (any, error) {
	if from.Kind == handlers.Agent {
		d.options.Audience.NoteMessage(from.Name)
	}
	if why := d.stall.reason(); why != nil {
		if r.Declaration().IsWrite() {
			return nil, why
		}
		return d.askCommitted(ctx, from, r)
	}
	begun := d.stall.beginning()
	refusal := d.prepare(from, r, func() { d.settleUnlessStalled() })
	if refusal == nil {
		refusal = d.collect(from, r)
	}
	from.Run = callerPrefix + strconv.FormatInt(d.callers.Add(1), 10)
	answer := d.recipients.wait(from.Run)
	defer d.recipients.leave(from.Run)
	d.submit([]handlers.Input{{At: time.Now(), From: from, Message: r, Random: randomBytes(), Refusal: refusal}}, new(work))
	var letter handlers.Letter
	select {
	case letter = <-answer:
	case <-begun:
		if !r.Declaration().IsWrite() {
			return d.askCommitted(ctx, from, r)
		}
		return nil, d.slow()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.options.Done:
		select {
		case letter = <-answer: // answered at the end
		default:
			return nil, ErrOver
		}
	}
	if letter.Refusal != nil {
		return nil, letter.Refusal
	}
	if err := d.complete(&letter); err != nil {
		return nil, err
	}
	return letter.Payload, nil
}

// Await waits for a value until ctx is done or over is closed, after which it returns ErrOver.
func Await[T any](ctx context.Context, over <-chan struct{}, answer <-chan T) (T, error) {
	var none T
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-over:
		select {
		case v := <-answer: // answered at the end
			return v, nil
		default:
			return none, ErrOver
		}
	}
}

// A MailReader reads the mail of an actor: the recorded messages first, then new ones. It holds
// no messages, so a slow reader only reads later.
type MailReader struct {
	dispatcher *Dispatcher
	actor      string
	after      int64
	ready      <-chan int64
	read       bool // everything, until ready receives
}

// OpenMail opens the mail of an actor for a caller that may read it, until ctx ends. Reading
// begins after cursor, or after the last message that the actor has acked. Actor "" means the
// caller.
func (r Requests) OpenMail(ctx context.Context, from handlers.Actor, actor string, cursor *int64) (*MailReader, error) {
	answer, err := r.Do(ctx, from, "poll-messages", &wire.PollMessages{Actor: actor, Cursor: cursor, Limit: 1})
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*mail.List)
	if !ok {
		return nil, fmt.Errorf("poll-messages was answered with a %T", answer)
	}
	waiter, remove := r.dispatcher.notifier.add(list.Actor)
	context.AfterFunc(ctx, remove)
	reader := &MailReader{dispatcher: r.dispatcher, actor: list.Actor, after: list.Cursor, ready: waiter.ready}
	if cursor != nil {
		reader.after = *cursor
	}
	return reader, nil
}

// maxReadBytes is how many bytes a reader gets at once, as there may be many slow readers. A larger
// message is delivered by itself.
const maxReadBytes = 32 << 10

// Next waits for new messages and returns them.
func (r *MailReader) Next(ctx context.Context) ([]mail.Message, error) {
	d := r.dispatcher
	for {
		if r.read {
			first, err := Await(ctx, d.options.Done, r.ready)
			if err != nil {
				return nil, err
			}
			r.after, r.read = max(r.after, first-1), false // so that the latest mail may be enough
		}
		page := history.MailPage{Actor: r.actor, After: r.after, Limit: pageMessages}
		messages, seen, more, err := history.ReadMail(d.notifier.find(d), page, maxReadBytes)
		if err != nil {
			return nil, d.unreadable(err)
		}
		if r.after, r.read = seen, !more; len(messages) > 0 {
			return messages, nil
		}
	}
}

// A MailQuery selects messages.
type MailQuery struct {
	Topic  string // a glob; "": all
	Actor  string // sender or recipient; "": all
	Since  int64  // only messages after this number
	Last   int    // number of latest messages; 0: all
	Follow bool
	People bool // leaves out housekeeping
}

func (q *MailQuery) wants(m *mail.Message) bool {
	if q.Actor != "" && m.From != q.Actor && m.To != q.Actor && (m.To != mail.Broadcast || m.From == q.Actor) {
		return false
	}
	if q.People && m.Housekeeping() {
		return false
	}
	if q.Topic == "" {
		return true
	}
	fits, _ := path.Match(q.Topic, m.Topic) // Messages has refused invalid patterns
	return fits
}

// Messages sends messages, oldest first, and then new ones if asked to.
func (r Requests) Messages(ctx context.Context, q MailQuery, send func(mail.Message) error) error {
	if _, err := path.Match(q.Topic, ""); err != nil {
		return &wire.Error{Code: wire.CodeInvalid, Message: "the topic is no pattern: " + q.Topic}
	}
	d := r.dispatcher
	d.settleUnlessStalled()
	waiter, remove := d.notifier.add("")
	defer remove()
	if q.Since > 0 {
		if err := d.since(q.Since); err != nil {
			return d.unreadable(err)
		}
	}
	after, err := d.past(ctx, q, send)
	for err == nil && q.Follow {
		if _, err = Await(ctx, d.options.Done, waiter.ready); err == nil {
			after, err = d.messages(ctx, wire.Search{After: after}, q, send)
		}
	}
	return err
}

// errEnough ends a search early.
var errEnough = errors.New("enough")

// past sends the recorded messages and returns the number after which new ones begin. For
// q.Last it first counts from the end, so that no messages are held in memory.
func (d *Dispatcher) past(ctx context.Context, q MailQuery, send func(mail.Message) error) (int64, error) {
	search := wire.Search{After: q.Since}
	if q.Last == 0 {
		return d.messages(ctx, search, q, send)
	}
	if search.Until = d.last.Load(); search.Until <= q.Since {
		return q.Since, nil
	}
	from, n := search, 0
	from.Backward = true
	_, err := d.messages(ctx, from, q, func(m mail.Message) error {
		search.After = m.Seq - 1
		if n++; n == q.Last {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) || n == 0 {
		return search.Until, err
	}
	_, err = d.messages(ctx, search, q, send)
	return search.Until, err
}

// messages sends the messages that match a search and a query. It returns the number of the last message that it read.
func (d *Dispatcher) messages(ctx context.Context, search wire.Search, q MailQuery, send func(mail.Message) error) (int64, error) {
	last := search.After
	for r, err := range d.record.Find(ctx, search) {
		if err != nil {
			return last, d.unreadable(err)
		}
		last = r.Seq
		if m := wire.MailOf(&r); q.wants(&m) {
			if err := send(m); err != nil {
				return last, err
			}
		}
	}
	return last, ctx.Err()
}

// lookUp reads from the record whether the sender of a message with a key has used that key before, for the decision
// about the message. The State knows the latest messages itself, and rejects a look-up that is too old.
func (d *Dispatcher) lookUp(inputs []handlers.Input) {
	for i := range inputs {
		in := &inputs[i]
		if !keyed(in) {
			continue
		}
		var l *wire.Lookup
		var from, key string
		d.Look(func(s *handlers.State) { l, from, key = s.IdempotencyKey(in) })
		if l != nil {
			if err := d.sentBefore(l, from, key); err != nil {
				in.Refusal = err
			}
		}
	}
}

// findArchived adds to an input the records of archived tasks that it names.
func (d *Dispatcher) findArchived(in *handlers.Input, missing []string) {
	for _, id := range missing {
		if in.Absent == nil {
			in.Absent = make(map[string]bool)
		}
		in.Absent[id] = true // does not matter for a task that is found
		for r, err := range d.Find(wire.Search{Archived: true, Task: id}) {
			if err != nil {
				in.Refusal = d.unreadable(err)
				return
			}
			in.Archived = append(in.Archived, r)
		}
	}
}

// keyed reports whether an input is a message with a key. For a session message the key is its
// id, if that can be read.
func keyed(in *handlers.Input) bool {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return false
	}
	switch m := r.Body.(type) {
	case *wire.SendMessage:
		return m.Key != ""
	case *wire.SaySession:
		return m.Message != nil
	}
	return false
}

// sentBefore looks for an earlier message of the same sender with the same key.
func (d *Dispatcher) sentBefore(l *wire.Lookup, from, key string) *wire.Error {
	*l = wire.Lookup{Sender: from, Looked: math.MaxInt64}
	if d.record == nil {
		return nil
	}
	l.Looked = d.last.Load() // before the search, which may miss later records
	for r, err := range d.Find(wire.Search{From: from, Key: key}) {
		if err != nil {
			return d.unreadable(err)
		}
		l.Before, l.Sum = r.Seq, state.SumOf(&r)
	}
	return nil
}

// observer is the actor of requests on behalf of Hooks. The audit records them; Hooks do not
// see them.
var observer = handlers.Actor{Kind: handlers.Operator, Name: "telemetry"}

// A ResumePoint tells a reader of the record how far back to start so that it sees every
// open task.
type ResumePoint struct {
	// Behind is the number of a fact. The facts after it include the creation of every open
	// task and of its parents.
	Behind   int64
	Sessions []string // that are open
}

// ResumePoint returns the ResumePoint of a reader that has read up to since. Tasks that ended
// after since count as open. The point is as late as possible, because a record may be long.
func (r Requests) ResumePoint(ctx context.Context, since int64) (ResumePoint, error) {
	h := ResumePoint{Behind: r.dispatcher.last.Load()}
	if r.dispatcher.record == nil {
		return h, nil
	}
	sessions, err := r.Do(ctx, observer, "list-sessions", &wire.Nothing{})
	if err != nil {
		return h, err
	}
	if list, ok := sessions.(*session.List); ok {
		for _, b := range list.Sessions {
			if b.State == session.Open {
				h.Sessions = append(h.Sessions, b.ID)
			}
		}
	}
	oldest, err := r.oldestOpen(ctx, since)
	if err != nil || oldest == "" {
		return h, err
	}
	h.Behind = r.dispatcher.behind(oldest)
	return h, nil
}

// oldestOpen returns the creation time of the oldest task that is open or a parent of an open
// one. It returns "" if no task is open.
func (r Requests) oldestOpen(ctx context.Context, since int64) (oldest string, err error) {
	known := make(map[string]bool)
	others, err := r.dispatcher.endedBehind(ctx, since)
	if err != nil {
		return "", err
	}
	meet := func(t *wire.Task) {
		known[t.ID] = true
		if oldest == "" || t.CreatedAt < oldest {
			oldest = t.CreatedAt
		}
		if t.Details != nil && t.ParentTaskID != "" {
			others = append(others, t.ParentTaskID)
		}
	}
	for _, status := range []string{wire.TaskPending.Status(), wire.TaskRunning.Status()} {
		answer, err := r.Do(ctx, observer, "query-tasks", &wire.QueryTasks{Status: status, Limit: math.MaxInt32})
		if err != nil {
			return "", err
		}
		if list, ok := answer.(*wire.TaskList); ok {
			for i := range list.Tasks {
				meet(&list.Tasks[i])
			}
		}
	}
	for len(others) > 0 {
		id := others[0]
		if others = others[1:]; known[id] {
			continue
		}
		answer, err := r.Do(ctx, observer, "get-task", &wire.TaskID{TaskID: id})
		if err != nil {
			return "", err
		}
		if reply, ok := answer.(*wire.TaskReply); ok {
			meet(&reply.Task)
		}
	}
	return oldest, nil
}

// endedBehind returns the ids of the tasks that ended after a fact.
func (d *Dispatcher) endedBehind(ctx context.Context, since int64) (ids []string, err error) {
	for r, err := range d.record.Records(ctx, since) {
		if err != nil {
			return nil, d.unreadable(err)
		}
		switch r.Kind {
		case events.TaskDone, events.TaskFailed, events.TaskCancelled:
			ids = append(ids, r.Correlation)
		}
	}
	return ids, nil
}

// behind returns the number of the last fact before a time. It uses binary search, because a
// record may be long. If the clock was set back, the result may be too late and an old task is
// missed.
func (d *Dispatcher) behind(when string) int64 {
	at, err := time.Parse(time.RFC3339Nano, when)
	last := d.last.Load()
	if err != nil {
		return last
	}
	before := sort.Search(int(last), func(n int) bool {
		r, err := d.Record(int64(n) + 1)
		_, removed := errors.AsType[*wire.RemovedError](err)
		return !removed && (err != nil || !r.At.Before(at))
	})
	return int64(before)
}
