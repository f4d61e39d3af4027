package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
)

// Causes of the end of a handler's context, as context.Cause returns them.
var (
	ErrCancelled = errors.New("the task was cancelled")
	ErrShutdown  = errors.New("the agent is to shut down")
)

// A Handler does a task and returns its result: any JSON value, such as a Result, or nil
// for success without a result. Its context ends when the task is cancelled or the agent has to
// shut down; the Handler should then return soon.
type Handler func(ctx context.Context, task wire.Task) (result any, err error)

// Worker configures WorkAs. Agents that need only a Handler can call Conn.Work instead.
type Worker struct {
	// Do is a Handler that can also receive updates about its task and ask for help.
	Do func(ctx context.Context, job *Job) (result any, err error)
	// Plan returns a plan for a task, an object or a text, if a person has to approve it. It is
	// called again when the plan is sent back; the task's PlanFeedback then has the reason. If
	// Plan is nil, a default text is submitted. If Plan fails, the agent adds a note to the
	// task and leaves it to people.
	Plan func(ctx context.Context, job *Job) (plan any, err error)

	// Mail handles a message to the agent's actor. It is called with one message at a time, in
	// the order of their numbers, beside the tasks. Its context ends when the agent has to shut
	// down.
	//
	// If Mail returns nil, the message is acknowledged; return nil for unknown topics too. If it
	// returns an error, the agent sends GO a task.failed and then acknowledges the message. The code
	// is the code of a Fatal, FAILED for other errors, and PANIC for a panic. The failure of a
	// task.failed or of a bus notice is only logged, because reporting it could go on for ever.
	//
	// A message is not acknowledged if Mail returns the error of its context or of a request
	// because the agent shuts down. The next run gets it again, also if the agent dies right
	// after Mail has returned. So Mail must be safe to repeat.
	// If Mail is nil, messages are ignored and not acknowledged.
	Mail func(ctx context.Context, mail mail.Message) error
	// Beat is the interval between heartbeats; 0 means the orchestrator's. Heartbeats are sent
	// only if Mail is set. An actor counts as missing after three minutes without one.
	Beat time.Duration
}

// Work does assigned tasks, each in its own goroutine, until the agent has to shut down, or the
// stream or ctx ends. Then it waits for the handlers and returns. The orchestrator limits how many
// tasks run at a time to the agent's capacity, 1 by default. Matched tasks that have not begun
// count only if scheduler.count_assigned is set; otherwise the agent may be assigned and begin
// more.
//
// A task that is not running is started. While it waits for other tasks or for the approval of
// its plan, other tasks go on.
//
// The result of a handler completes the task; an error or a panic fails it. The report is
// repeated if it is refused for the rate limit. A cancelled task is not reported.
// If the result fails its verification so often that a person is asked, the handler is called
// again after the answer, which is in the Help of its task.
//
// At a shutdown, a handler may give up by returning the error of its context or of a request. Its
// task is not reported: the orchestrator decides about it. Work then returns an error. The agent
// must exit with a failure, because a successful exit may complete its task:
//
//	if err := conn.Work(ctx, do); err != nil {
//		fmt.Fprintln(os.Stderr, err)
//		os.Exit(1)
//	}
//
// Work returns nil after a shutdown without unfinished work, the cause of ctx if ctx ended, and
// otherwise the error of a stream.
func (c *Conn) Work(ctx context.Context, do Handler) error {
	return c.WorkAs(ctx, Worker{Do: func(ctx context.Context, job *Job) (any, error) { return do(ctx, job.Task) }})
}

// WorkAs is like Work, with the settings of a Worker. It also waits for Mail. Only one WorkAs
// at a time may handle a connection's mail.
func (c *Conn) WorkAs(ctx context.Context, worker Worker) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := c.working(ctx, worker, stop)
	for notice := range c.News(ctx) {
		w.heed(ctx, notice)
	}
	stop(c.ending()) // an earlier cause prevails
	w.running.Wait()
	return parting(ctx, w.unfinished)
}

// working starts a Worker. The caller passes notices to heed, and waits for running.
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
	jobs       map[string]*Job // by task; without cancelled jobs
	unfinished int
}

// heed handles a notice. It does not wait for handlers.
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

// deliver puts mail into the mailbox that receive reads.
func (w *work) deliver(notice Notice) {
	var mail mail.Message
	if w.worker.Mail != nil && notice.Read(&mail) == nil {
		w.conn.posted(mail)
	}
}

// begin starts a job. The orchestrator repeats an assignment if its arrival is uncertain, or if
// it wants a plan after all. A running job then looks at its task.
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

// cancel stops a job and removes it at once, even if its handler still runs, because the task
// may be assigned again.
func (w *work) cancel(task, reason string) {
	w.mu.Lock()
	j := w.jobs[task]
	delete(w.jobs, task)
	w.mu.Unlock()
	if j != nil {
		j.stop(fmt.Errorf("%w: %s", ErrCancelled, reason))
	}
}

// update passes an update to a job. Updates of finished jobs are ignored.
func (w *work) update(task, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[task]; j != nil {
		j.hear(message)
	}
}

var errUnfinished = errors.New("left unfinished")

// finish removes a job and reports its error.
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

// troubled reports the error of one task or message.
func (w *work) troubled(err error) { w.conn.troubled(w.stop, err) }

// States of a task before it can be done, and the next step from each:
//
//	assigned     start-task; refused as long as the task waits for other tasks
//	planning     Plan, submit-plan
//	plan_review  a person approves the plan: running; or sends it back: planning
//	needs_human  a person answers: running
//	running      Do
//
// A task that was matched by role and capabilities is running once its agent is notified. The
// agent itself starts any other task.

var errNotYet = errors.New("it is not for the agent to go on")

// begun brings a task to the state running. It returns false if the task needs no work.
func (w *work) begun(ctx context.Context, j *Job) (bool, error) {
	for {
		news := j.news()
		task, err := j.look(ctx)
		if err != nil {
			return false, err
		}
		j.Task = task
		switch task.State {
		case wire.TaskPending, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled:
			return false, nil
		case wire.TaskAssigned:
			if err = j.start(ctx); err == nil {
				return true, nil
			}
		case wire.TaskPlanning:
			err = w.plan(ctx, j)
		case wire.TaskPlanReview, wire.TaskNeedsHuman, wire.TaskInReview:
			err = errNotYet
		default:
			return true, nil
		}
		if err := patience(ctx, news, err); err != nil {
			return false, err
		}
	}
}

// patience handles a request that was refused because of the task's state: it waits for news,
// or returns nil so that the caller looks at the task again.
func patience(ctx context.Context, news <-chan struct{}, err error) error {
	switch {
	case refusedFor(ReasonWrongState, err): // it has moved since
		return nil
	case errors.Is(err, errNotYet), refusedFor(ReasonBlocked, err):
		return await(ctx, news)
	}
	return err
}

// start reports the start of the work. It keeps ResolvedInputs, because only the answer to
// get-task contains them.
func (j *Job) start(ctx context.Context) error {
	var answer wire.TaskReply
	err := j.conn.askPatiently(ctx, "start-task", wire.TaskID{TaskID: j.id}, &answer)
	if err == nil {
		inputs := j.Task.ResolvedInputs
		j.Task = *tidy(&answer.Task)
		j.Task.ResolvedInputs = inputs
	}
	return err
}

// noPlan is the plan of a worker without a Plan function.
const noPlan = "no plan: this agent works as it is told"

// plan submits a plan for the task. If planning fails, it adds a note for people: a task that
// has not begun cannot fail.
func (w *work) plan(ctx context.Context, j *Job) error {
	text, err := w.planned(ctx, j)
	if err == nil {
		err = w.conn.askPatiently(ctx, "submit-plan", wire.SubmitPlan{TaskID: j.id, Plan: text}, nil)
	}
	if err == nil || gaveUp(ctx, err) || ctx.Err() != nil || refusedFor(ReasonWrongState, err) {
		return err
	}
	err = fmt.Errorf("it cannot be planned: %w", err)
	return errors.Join(err, w.conn.askPatiently(ctx, "add-note", wire.AddNote{TaskID: j.id, Content: err.Error()}, nil))
}

// planned returns the plan that the worker makes, or noPlan.
func (w *work) planned(ctx context.Context, j *Job) (wire.Raw, error) {
	if w.worker.Plan == nil {
		return value(noPlan)
	}
	plan, err := w.call(ctx, j, w.worker.Plan)
	if err != nil {
		return nil, err
	}
	text, err := value(plan)
	if text == nil && err == nil {
		return value(noPlan)
	}
	return text, err
}

// perform does a task from its assignment to its report. If a person is asked whether the result will do, it waits for
// the answer and does the task again.
func (w *work) perform(ctx context.Context, j *Job) error {
	for {
		if begun, err := w.begun(ctx, j); err != nil || !begun || errors.Is(context.Cause(ctx), ErrCancelled) {
			return failure(ctx, err)
		}
		result, err := w.call(ctx, j, w.worker.Do)
		switch {
		case errors.Is(context.Cause(ctx), ErrCancelled):
			return nil
		case gaveUp(ctx, err):
			return errUnfinished
		case err != nil:
			return w.fail(ctx, j.id, err.Error())
		}
		if err = w.complete(ctx, j, result); !refusedFor(reasonNeedsHuman, err) {
			return failure(ctx, err)
		}
		j.discard()
	}
}

// failure returns the error to report for a task. A cancelled task has none.
func failure(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(context.Cause(ctx), ErrCancelled):
		return nil
	case gaveUp(ctx, err):
		return errUnfinished
	}
	return err
}

// gaveUp reports whether err only means that the agent has to shut down. A call may fail at the
// end of the stream before the shutdown notice is processed.
func gaveUp(ctx context.Context, err error) bool {
	if errors.Is(err, errUnasked) || errors.Is(err, errUnanswered) {
		return true
	}
	return err != nil && ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// call calls a function of the worker. A panic fails the task, not the agent. Its stack is
// reported separately, in an error event.
func (w *work) call(ctx context.Context, j *Job, do func(context.Context, *Job) (any, error)) (result any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = w.panicked(j.id, reason)
		}
	}()
	return do(ctx, j)
}

// panicked reports where a function of the worker panicked, with the task if there is one. It
// returns the error to report.
func (w *work) panicked(task string, reason any) error {
	return w.conn.panicked("the handler", task, reason)
}

// complete reports a result. If the orchestrator refuses it, the task fails; otherwise it would
// run for ever. It may be tried again if the result was not verified, has another form than it should, or is in no
// workspace. A result whose verification was interrupted is reported again after the next news.
func (w *work) complete(ctx context.Context, j *Job, result any) error {
	text, err := value(result)
	if err != nil {
		return w.fail(ctx, j.id, "its result cannot be told: "+err.Error())
	}
	for {
		news := j.news()
		err = w.conn.settle(ctx, "complete-task", wire.CompleteTask{TaskID: j.id, Result: hub.ResultOf(text), Artifacts: j.artifacts()})
		if !refusedFor(reasonInterrupted, err) {
			break
		}
		if err := await(ctx, news); err != nil {
			return err
		}
	}
	var refused *Refusal
	switch {
	case errors.As(err, &refused) && refused.Code == InvalidRequest && refused.Reason() == "":
		return w.fail(ctx, j.id, "its result was refused: "+refused.Message)
	case refusedFor(reasonNotVerified, err), refusedFor(reasonResult, err), refusedFor(reasonNoWorkspace, err):
		return w.conn.settle(ctx, "fail-task", wire.FailTask{TaskID: j.id, Error: "its result was refused: " + refused.Message, Retryable: true})
	case errors.Is(err, errUnsaid):
		return w.fail(ctx, j.id, "its result cannot be told: "+err.Error())
	}
	return err
}

// fail reports that a task failed. The reason is never empty.
func (w *work) fail(ctx context.Context, id, why string) error {
	if strings.TrimSpace(why) == "" {
		why = "it failed without a word"
	}
	return w.conn.settle(ctx, "fail-task", wire.FailTask{TaskID: id, Error: why})
}
