package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"orchestrator/wire"
)

// Why the context of a handler ended, for context.Cause.
var (
	ErrCancelled = errors.New("the task was cancelled")
	ErrShutdown  = errors.New("the agent is to shut down")
)

// Handler does a task and returns its result: an object or a text, or nil for no
// more than that it went well. Its context ends when the task is cancelled or
// the agent has to go; then it should return soon.
type Handler func(ctx context.Context, task wire.Task) (result any, err error)

// Work does tasks as they are assigned to the agent, each in a goroutine of its
// own, until the agent is to shut down, the stream ends or ctx does; then it
// waits for the handlers and returns. How many there are at a time is for the
// orchestrator to say: it assigns no more than the agent's capacity, one by
// default.
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
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &work{conn: c, do: do, stop: stop, jobs: make(map[string]*job)}
	for notice := range c.News(ctx) {
		w.heed(ctx, notice)
	}
	stop(c.ending()) // which is why there is no more news, if nothing else was
	w.running.Wait()
	switch cause := context.Cause(ctx); {
	case !errors.Is(cause, ErrShutdown) && !errors.Is(cause, io.EOF):
		return cause
	case w.unfinished > 0:
		return fmt.Errorf("%d of the tasks left unfinished: %w", w.unfinished, cause)
	}
	return nil
}

// work is one call of Work.
type work struct {
	conn    *Conn
	do      Handler
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu         sync.Mutex
	jobs       map[string]*job // by task; one that is cancelled is there no more
	unfinished int
}

// job is one handler at work.
type job struct {
	task string
	stop context.CancelCauseFunc
}

// heed does what a notice asks for. It does not wait for handlers.
func (w *work) heed(ctx context.Context, notice Notice) {
	var about wire.TaskNotice
	switch notice.Name {
	case Shutdown:
		w.stop(ErrShutdown)
	case TaskAssigned:
		if notice.Read(&about) == nil && about.TaskID != "" {
			w.begin(ctx, about.TaskID)
		}
	case TaskCancelled:
		if notice.Read(&about) == nil {
			w.cancel(about.TaskID, about.Reason)
		}
	}
}

// begin starts a job. The orchestrator repeats an assignment when it cannot be
// sure that it was heard; the second time changes nothing.
func (w *work) begin(ctx context.Context, task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[task] != nil {
		return
	}
	ctx, stop := context.WithCancelCause(ctx)
	j := &job{task: task, stop: stop}
	w.jobs[task] = j
	w.running.Go(func() {
		defer stop(nil)
		w.finish(j, w.perform(ctx, task))
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

var errUnfinished = errors.New("left unfinished")

// finish is the end of a job. What goes wrong concerns one task, and the others
// go on, unless nothing can be said any more.
func (w *work) finish(j *job, err error) {
	w.mu.Lock()
	if w.jobs[j.task] == j {
		delete(w.jobs, j.task)
	}
	if errors.Is(err, errUnfinished) {
		w.unfinished++
	}
	w.mu.Unlock()
	if err != nil && !errors.Is(err, errUnfinished) && !errors.Is(err, errTorn) {
		err = w.conn.Log("warn", "task "+j.task+": "+err.Error(), nil)
	}
	if errors.Is(err, errTorn) {
		w.stop(err)
	}
}
