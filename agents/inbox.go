package agents

import (
	"context"
	"fmt"
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

// work processes events until the agent is told to shut down, or the stream or ctx ends. It
// also runs the worker, if there is one.
func (d *inbox) work(ctx context.Context, capacity int, worker *Worker) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if worker != nil {
		d.others = d.conn.working(ctx, *worker, stop)
	}
	d.stop, d.turns, d.errands = stop, make(chan struct{}, capacity), make(map[string]*errand)
	for e := range d.conn.events(ctx, true) {
		d.heed(ctx, e)
	}
	stop(d.conn.ending()) // which is why there is nothing more, if nothing else was
	d.running.Wait()
	unfinished := d.unfinished
	if d.others != nil {
		d.others.running.Wait()
		unfinished += d.others.unfinished
	}
	d.conn.allSaid(context.WithoutCancel(ctx)) // the work is done, but its outcome may not be sent yet
	return parting(ctx, unfinished)
}

// heed processes an event without blocking.
func (d *inbox) heed(ctx context.Context, e event) {
	switch {
	case e.notice != nil:
		d.noticed(e.notice)
		if d.others != nil { // each passes over the tasks that only the other knows
			d.others.heed(ctx, *e.notice)
		}
	case e.lost != nil:
		d.lost(ctx, e.lost)
	default:
		d.told(ctx, e.said)
	}
}

func (d *inbox) noticed(notice *Notice) {
	var about wire.TaskNotice
	switch {
	case notice.Name == Shutdown:
		d.stop(ErrShutdown)
	case notice.Name == TaskCancelled && notice.Read(&about) == nil:
		d.cancel(about.TaskID, about.Reason)
	}
}

func (d *inbox) told(ctx context.Context, said *Said) {
	d.saw(said)
	if d.hear != nil {
		d.hear(said)
	}
	switch body := said.Body.(type) {
	case *session.Abort:
		d.abort(body)
	case *session.StatusQuery:
		d.running.Go(func() { d.troubled(d.tellStatus(ctx, said, body.TaskID)) })
	default:
		if e := d.begin(said); e != nil {
			d.start(ctx, e)
		}
	}
}

// abort cancels what an architect aborts. It ignores aborts of other sessions.
func (d *inbox) abort(what *session.Abort) {
	switch {
	case what.Scope == session.AbortTask:
		d.cancel(what.TargetID, what.Reason)
	case d.me.Session == "" || d.me.Session == what.TargetID:
		d.cancel("", what.Reason)
	}
}

// cancel stops the errands of a task, or all if task is "". It removes them at once, even if
// they still run, because the task may be assigned again meanwhile.
func (d *inbox) cancel(task, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, e := range d.errands {
		if task == "" || task == e.task {
			delete(d.errands, key)
			e.stop(fmt.Errorf("%w: %s", ErrCancelled, reason))
		}
	}
}

// troubled reports an error of one errand.
func (d *inbox) troubled(err error) { d.conn.troubled(d.stop, err) }

// panicked logs where a function of the agent's author panicked, and returns the error to
// report.
func (d *inbox) panicked(task string, reason any) error { return d.conn.panicked("it", task, reason) }
