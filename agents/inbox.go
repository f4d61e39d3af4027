package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// inbox holds the errands of a developer or a reviewer, one for each message that asks for
// work.
type inbox struct {
	*Session
	begin   func(*Said) *errand // nil for a message that asks for no work
	hear    func(*Said)         // may be nil
	stop    context.CancelCauseFunc
	running sync.WaitGroup
	turns   chan struct{} // held by errands at work
	others  *work         // for tasks outside the session; may be nil

	mu         sync.Mutex
	errands    map[string]*errand // that are not answered, by key
	answered   recent[*errand]    // by the message_id of the answer
	unfinished int
}

// work processes events until the agent has to shut down, or the stream or ctx ends. It also runs
// the worker, unless it is nil.
func (i *inbox) work(ctx context.Context, capacity int, worker *Worker) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if worker != nil {
		i.others = i.conn.working(ctx, *worker, stop)
	}
	i.stop, i.turns, i.errands = stop, make(chan struct{}, capacity), make(map[string]*errand)
	for e := range i.conn.events(ctx, true) {
		i.heed(ctx, e)
	}
	stop(i.conn.ending()) // an earlier cause prevails
	i.running.Wait()
	unfinished := i.unfinished
	if i.others != nil {
		i.others.running.Wait()
		unfinished += i.others.unfinished
	}
	i.conn.allSaid(context.WithoutCancel(ctx)) // the work is done, but its outcome may not be sent yet
	return parting(ctx, unfinished)
}

// heed processes an event without blocking.
func (i *inbox) heed(ctx context.Context, e event) {
	switch {
	case e.notice != nil:
		i.noticed(e.notice)
		if i.others != nil { // each passes over the tasks that only the other knows
			i.others.heed(ctx, *e.notice)
		}
	case e.lost != nil:
		i.lost(ctx, e.lost)
	default:
		i.told(ctx, e.said)
	}
}

func (i *inbox) noticed(notice *Notice) {
	var about wire.TaskNotice
	switch {
	case notice.Name == Shutdown:
		i.stop(ErrShutdown)
	case notice.Name == TaskCancelled && notice.Read(&about) == nil:
		i.cancel(about.TaskID, about.Reason)
	}
}

func (i *inbox) told(ctx context.Context, said *Said) {
	i.saw(said)
	if i.hear != nil {
		i.hear(said)
	}
	switch body := said.Body.(type) {
	case *session.Abort:
		i.abort(body)
	case *session.StatusQuery:
		i.running.Go(func() { i.troubled(i.tellStatus(ctx, said, body.TaskID)) })
	default:
		if e := i.begin(said); e != nil {
			i.start(ctx, e)
		}
	}
}

// abort cancels the errands that an architect aborts. It ignores aborts of other sessions.
func (i *inbox) abort(what *session.Abort) {
	switch {
	case what.Scope == session.AbortTask:
		i.cancel(what.TargetID, what.Reason)
	case i.me.Session == "" || i.me.Session == what.TargetID:
		i.cancel("", what.Reason)
	}
}

// cancel stops the errands of a task, or all if task is "". It removes them at once, even if
// they still run, because the task may be assigned again before they end.
func (i *inbox) cancel(task, reason string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, e := range i.errands {
		if task == "" || task == e.task {
			delete(i.errands, key)
			e.stop(fmt.Errorf("%w: %s", ErrCancelled, reason))
		}
	}
}

// troubled reports an error of one errand.
func (i *inbox) troubled(err error) { i.conn.troubled(i.stop, err) }

// panicked logs where a function of the agent's author panicked, and returns the error to
// report.
func (i *inbox) panicked(task string, reason any) error { return i.conn.panicked("it", task, reason) }

// remembered is how many session messages a connection remembers. Duplicates arrive soon,
// because only messages that may not have arrived are repeated.
const remembered = 4096

// recent holds the latest values by key.
type recent[V any] struct {
	byKey map[string]V
	order []string // keys; a ring buffer once full
	next  int      // index of the oldest key, once full
}

// add adds a value and drops the oldest one if full. It reports whether the key is new; the
// value of a known key stays.
func (r *recent[V]) add(key string, value V) bool {
	if _, there := r.byKey[key]; there {
		return false
	}
	if r.byKey == nil {
		r.byKey = make(map[string]V)
	}
	r.byKey[key] = value
	if len(r.order) < remembered {
		r.order = append(r.order, key)
		return true
	}
	delete(r.byKey, r.order[r.next])
	r.order[r.next] = key
	r.next = (r.next + 1) % remembered
	return true
}

// take removes and returns the value of a key.
func (r *recent[V]) take(key string) (V, bool) {
	value, there := r.byKey[key]
	delete(r.byKey, key)
	return value, there
}

// Status is the answer of a developer or reviewer to a status query.
type Status struct {
	State string       `json:"status"` // idle or busy
	Tasks []TaskStatus `json:"tasks"`
}

// TaskStatus is the status of one task.
type TaskStatus struct {
	TaskID  string  `json:"task_id"`
	Percent float64 `json:"progress_percent"` // from 0 to 100
	Step    string  `json:"current_step"`
}

// tellStatus answers a status query about one task, or about all if task is "".
func (i *inbox) tellStatus(ctx context.Context, query *Said, task string) error {
	status := Status{State: "idle", Tasks: []TaskStatus{}}
	i.mu.Lock()
	for _, e := range i.errands {
		status.State = "busy"
		if task == "" || task == e.task {
			status.Tasks = append(status.Tasks, e.status())
		}
	}
	i.mu.Unlock()
	slices.SortFunc(status.Tasks, func(a, b TaskStatus) int { return cmp.Compare(a.TaskID, b.TaskID) })
	_, err := i.TellStatus(ctx, query, status)
	if gaveUp(ctx, err) {
		return nil
	}
	return err
}

// errand is work that a session message asks for.
type errand struct {
	key, task string
	do        func(ctx context.Context, e *errand) error // until it is answered
	correct   func(ctx context.Context, e *errand, why *Undelivered) error
	status    func() TaskStatus

	stop      context.CancelCauseFunc
	before    *errand       // the errand that it replaces
	done      chan struct{} // closed when do has returned
	corrected int
}

// corrections is how often a refused answer is corrected.
const corrections = 3

var errAgain = errors.New("the task was assigned again")

// start begins an errand. An older errand with the same key is stopped: the last message
// counts.
func (i *inbox) start(ctx context.Context, e *errand) {
	ctx, e.stop = context.WithCancelCause(ctx)
	e.done = make(chan struct{})
	i.mu.Lock()
	e.before = i.errands[e.key]
	i.errands[e.key] = e
	i.mu.Unlock()
	if e.before != nil {
		e.before.stop(errAgain)
	}
	i.running.Go(func() {
		defer close(e.done)
		defer e.stop(nil)
		i.finish(e, e.do(ctx, e))
		if e.before != nil { // a caller that waits for this one waits for both
			<-e.before.done
		}
	})
}

// turn waits until an errand may be done, and returns a function that releases its place.
// Errands with the same key never run together, because they would change the same files.
func (i *inbox) turn(ctx context.Context, e *errand) (leave func(), err error) {
	if e.before != nil {
		select {
		case <-e.before.done:
			e.before = nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case i.turns <- struct{}{}:
		return func() { <-i.turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// off reports whether an errand was cancelled or replaced.
func off(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrCancelled) || errors.Is(cause, errAgain)
}

// finish removes an errand and reports its error.
func (i *inbox) finish(e *errand, err error) {
	i.mu.Lock()
	if i.errands[e.key] == e {
		delete(i.errands, e.key)
	}
	if errors.Is(err, errUnfinished) {
		i.unfinished++
	}
	i.mu.Unlock()
	if err != nil && !errors.Is(err, errUnfinished) {
		i.troubled(fmt.Errorf("task %s: %w", e.task, err))
	}
}

// expects remembers the answer of an errand, because it may be refused. It handles a refusal
// that has already arrived.
func (i *inbox) expects(ctx context.Context, e *errand, answer *Sent) {
	i.mu.Lock()
	i.answered.add(answer.MessageID, e)
	i.mu.Unlock()
	if answer.Err() != nil {
		i.lost(ctx, answer)
	}
}

// lost handles a message of the agent that was not delivered.
func (i *inbox) lost(ctx context.Context, sent *Sent) {
	i.mu.Lock()
	e, answer := i.answered.take(sent.MessageID)
	i.mu.Unlock()
	why := sent.undelivered()
	i.running.Go(func() {
		switch {
		case !answer && (sent.kind == session.TypeTaskCompletion || sent.kind == session.TypeReviewResult): // expects comes yet
		case !answer:
			i.troubled(why)
		case e.corrected >= corrections:
			i.troubled(fmt.Errorf("task %s, given up: %w", e.task, why))
		default:
			e.corrected++
			i.finish(e, e.correct(ctx, e, why))
		}
	})
}
