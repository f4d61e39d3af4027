package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"orchestrator/wire"
)

// Why the context of a handler ended, for context.Cause.
var (
	ErrCancelled = errors.New("the task was cancelled")
	ErrShutdown  = errors.New("the agent is to shut down")
)

// Handler does a task and returns its result: an object or a text, such as a
// Result, or nil for no more than that it went well. Its context ends when the
// task is cancelled or the agent has to go; then it should return soon.
type Handler func(ctx context.Context, task wire.Task) (result any, err error)

// Worker is what an agent does, when a Handler is not enough.
type Worker struct {
	// Do is a Handler that can hear of its task while it is at work, and ask for
	// help.
	Do func(ctx context.Context, job *Job) (result any, err error)
	// Plan says how a task will be done, an object or a text, when a person wants
	// to know that first. It is called again, with what is wrong in the task's
	// PlanFeedback, when the plan is sent back. Without it the plan is a sentence
	// that says that there is none. When it fails, a note on the task says so, and
	// the agent leaves the task to people.
	Plan func(ctx context.Context, job *Job) (plan any, err error)

	// Mail deals with a message that came for the agent's actor: one at a time, in
	// order of their numbers, beside the tasks. Its context ends when the agent has
	// to go.
	//
	// Nil acknowledges the message, and is for topics of which the agent knows
	// nothing as well. An error says that another agent should deal with it: GO is
	// sent a task.failed that answers it, with the code of a Fatal or FAILED, and
	// then it is acknowledged; a panic is PANIC. That is told only by the log when
	// the message was a task.failed, or from the bus: it would fail for ever.
	//
	// When the agent has to go and Mail returns the error of its context or of a
	// question, the message is not acknowledged, and comes again to the next run. So
	// it does when the agent dies after Mail has returned: what Mail does must be
	// right when it is done twice.
	//
	// Without Mail the agent's messages are passed over, and not acknowledged.
	Mail func(ctx context.Context, mail wire.Mail) error
	// Beat is how long it is from one heartbeat to the next; when it is 0, as long
	// as the orchestrator says.
	// Heartbeats are sent by those that have Mail: an actor is missed after three
	// minutes without.
	Beat time.Duration
}

// Work does tasks as they are assigned to the agent, each in a goroutine of its
// own, until the agent is to shut down, the stream ends or ctx does; then it
// waits for the handlers and returns. How many there are at a time is for the
// orchestrator to say: no more than the agent's capacity, one by default, run at a
// time. Of tasks that are matched, those that the agent has not begun count only
// where scheduler.count_assigned says so; else it may be assigned more, and begins
// them.
//
// A task that is not running yet is started, and one that cannot be started yet,
// because it waits for others or for a person to approve its plan, waits for
// news; the others go on meanwhile.
//
// What a handler returns completes the task, an error or a panic fails it; that
// is said again when the agent has said too much of other things to be heard. A
// task that was cancelled is not reported: what became of it is decided.
//
// Neither is one that the handler gave up because the agent has to go, returning
// the error of its context or of a question: the orchestrator knows what is to
// become of the tasks of an agent that is gone. Work then returns an error, and
// an agent that ends well in spite of it would say that its task is done:
//
//	if err := conn.Work(ctx, do); err != nil {
//		fmt.Fprintln(os.Stderr, err)
//		os.Exit(1)
//	}
//
// It returns nil after a shutdown that left nothing unfinished, the cause of ctx
// when that ended, and what is wrong with the streams when there is something.
func (c *Conn) Work(ctx context.Context, do Handler) error {
	return c.WorkAs(ctx, Worker{Do: func(ctx context.Context, job *Job) (any, error) { return do(ctx, job.Task) }})
}

// WorkAs is Work for a Worker. It waits for Mail as it does for handlers. Only one
// at a time may have a connection's mail.
func (c *Conn) WorkAs(ctx context.Context, worker Worker) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := c.working(ctx, worker, stop)
	for notice := range c.News(ctx) {
		w.heed(ctx, notice)
	}
	stop(c.ending()) // which is why there is no more news, if nothing else was
	w.running.Wait()
	return parting(ctx, w.unfinished)
}

// working begins what a Worker does. The caller has it heed the notices, and
// waits for what is running.
func (c *Conn) working(ctx context.Context, worker Worker, stop context.CancelCauseFunc) *work {
	w := &work{conn: c, worker: worker, stop: stop, jobs: make(map[string]*Job)}
	if worker.Mail != nil {
		w.running.Go(func() { w.receive(ctx) })
		w.running.Go(func() { w.beat(ctx) })
	}
	return w
}

// work is one call of WorkAs, or the Work of a role.
type work struct {
	conn    *Conn
	worker  Worker
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu         sync.Mutex
	jobs       map[string]*Job // by task; one that is cancelled is there no more
	unfinished int
}

// heed does what a notice asks for. It does not wait for handlers.
func (w *work) heed(ctx context.Context, notice Notice) {
	switch notice.Name {
	case Shutdown:
		w.stop(ErrShutdown)
		return
	case Message:
		w.deliver(notice)
		return
	}
	var about wire.TaskNotice
	if notice.Read(&about) != nil || about.TaskID == "" {
		return
	}
	switch notice.Name {
	case TaskAssigned:
		w.begin(ctx, about.TaskID)
	case TaskCancelled:
		w.cancel(about.TaskID, about.Reason)
	case TaskUpdated:
		w.update(about.TaskID, about.Message)
	}
}

// deliver puts mail where receive finds it.
func (w *work) deliver(notice Notice) {
	var mail wire.Mail
	if w.worker.Mail != nil && notice.Read(&mail) == nil {
		w.conn.posted(mail)
	}
}

// begin starts a job. The orchestrator repeats an assignment when it cannot be
// sure that it was heard, or when it wants a plan after all; a job that there is
// already has a look.
func (w *work) begin(ctx context.Context, task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[task]; j != nil {
		j.hear()
		return
	}
	ctx, stop := context.WithCancelCause(ctx)
	j := newJob(w.conn, task, stop)
	w.jobs[task] = j
	w.running.Go(func() {
		defer stop(nil)
		w.finish(j, w.perform(ctx, j))
	})
}

// cancel stops a job. It is forgotten at once, though its handler may take a
// while: the task may be assigned again meanwhile.
func (w *work) cancel(task, reason string) {
	w.mu.Lock()
	j := w.jobs[task]
	delete(w.jobs, task)
	w.mu.Unlock()
	if j != nil {
		j.stop(fmt.Errorf("%w: %s", ErrCancelled, reason))
	}
}

// update tells a job what is new. An agent without a job has said all there was
// to say.
func (w *work) update(task, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[task]; j != nil {
		j.hear(message)
	}
}

var errUnfinished = errors.New("left unfinished")

// finish is the end of a job.
func (w *work) finish(j *Job, err error) {
	w.mu.Lock()
	if w.jobs[j.id] == j {
		delete(w.jobs, j.id)
	}
	if errors.Is(err, errUnfinished) {
		w.unfinished++
	}
	w.mu.Unlock()
	if err != nil && !errors.Is(err, errUnfinished) {
		w.troubled(fmt.Errorf("task %s: %w", j.id, err))
	}
}

// troubled tells what went wrong with one task or one message.
func (w *work) troubled(err error) { w.conn.troubled(w.stop, err) }
