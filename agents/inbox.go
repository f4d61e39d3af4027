package agents

import (
	"context"
	"fmt"
	"sync"

	"orchestrator/wire"
)

// inbox is where the work of a developer or a reviewer lies: an errand for each
// message that asks for some.
type inbox struct {
	*Session
	begin   func(*Said) *errand // nil for a message that asks for no work
	hear    func(*Said)         // may be nil
	stop    context.CancelCauseFunc
	running sync.WaitGroup
	turns   chan struct{} // has room for those at work
	others  *work         // what is not of the session; may be nil

	mu         sync.Mutex
	errands    map[string]*errand // that are not answered, by key
	answered   recent[*errand]    // by the message_id of the answer
	unfinished int
}

// work does errands until the agent is to shut down, the stream ends or ctx does,
// and beside them what a worker is for, if there is one.
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
	d.conn.allSaid(context.WithoutCancel(ctx)) // the work is over, what came of it may not be told yet
	return parting(ctx, unfinished)
}

// heed does what an event asks for. It waits for nothing.
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
	case *wire.Abort:
		d.abort(body)
	case *wire.StatusQuery:
		d.running.Go(func() { d.troubled(d.tellStatus(ctx, said, body.TaskID)) })
	default:
		if e := d.begin(said); e != nil {
			d.start(ctx, e)
		}
	}
}

// abort ends what an architect aborts. Of a session that is not the agent's there
// is nothing here.
func (d *inbox) abort(what *wire.Abort) {
	switch {
	case what.Scope == wire.AbortTask:
		d.cancel(what.TargetID, what.Reason)
	case d.me.Session == "" || d.me.Session == what.TargetID:
		d.cancel("", what.Reason)
	}
}

// cancel stops the errands of a task, or all of them. They are forgotten at once,
// though they may take a while: the task may be assigned again meanwhile.
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

// troubled tells what went wrong with one errand.
func (d *inbox) troubled(err error) { d.conn.troubled(d.stop, err) }

// panicked tells where a function of the agent's author panicked, and returns what
// there is to say of it.
func (d *inbox) panicked(task string, reason any) error { return d.conn.panicked("it", task, reason) }
