package agents

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"orchestrator/wire"
)

// Job is a task at work, for the skill that does it.
type Job struct {
	Task wire.Task // as it was when Do or Plan was called

	conn *Conn
	id   string
	stop context.CancelCauseFunc

	mu      sync.Mutex
	said    []string      // not taken yet
	changed chan struct{} // closed at the next news
}

func newJob(conn *Conn, id string, stop context.CancelCauseFunc) *Job {
	return &Job{conn: conn, id: id, stop: stop, changed: make(chan struct{})}
}

// Updates are what the orchestrator says of the task while it is at work, in
// words and from the first on: that its plan is approved or what is wrong with
// it, the answer of a person, an urgent note. It ends when ctx does. Each is told
// once.
func (j *Job) Updates(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			message, ok := j.next(ctx)
			if !ok || !yield(message) {
				return
			}
		}
	}
}

// next waits for an update; false when ctx ends first.
func (j *Job) next(ctx context.Context) (string, bool) {
	for ctx.Err() == nil {
		message, ok, changed := j.take()
		if ok {
			return message, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return "", false
}

// take takes the oldest update, if there is one, and says what to wait for.
func (j *Job) take() (message string, ok bool, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.said) == 0 {
		return "", false, j.changed
	}
	message, j.said = j.said[0], j.said[1:]
	return message, true, nil
}

// news is closed at the next news. A caller asks for it before looking at the
// task misses none.
func (j *Job) news() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// hear tells all who wait that something is new.
func (j *Job) hear(messages ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, messages...)
	close(j.changed)
	j.changed = make(chan struct{})
}

// ErrWithdrawn means that no answer will come: the task went on without.
var ErrWithdrawn = errors.New("the question was withdrawn")

// Help asks a person something about the task, which is out of the agent's hands
// until it is answered, and waits for that: it may take as long as people
// do. What goes with the question may be anything, or nil.
//
// AskUser is for a question that has nothing to do with a task, or a time limit.
func (j *Job) Help(ctx context.Context, question string, about any) (answer string, err error) {
	asked, err := j.conn.RequestHelp(ctx, j.id, question, about)
	if err != nil {
		return "", err
	}
	for {
		news := j.news()
		task, err := j.look(ctx)
		switch help := helpOf(&task); {
		case err != nil:
			return "", err
		case help.QuestionID == helpOf(&asked).QuestionID && help.AnsweredAt != "":
			return help.Answer, nil
		case task.State != wire.TaskNeedsHuman:
			return "", ErrWithdrawn
		}
		if err := await(ctx, news); err != nil {
			return "", err
		}
	}
}

func helpOf(task *wire.Task) wire.Help {
	if task.Details == nil || task.Details.Help == nil {
		return wire.Help{}
	}
	return *task.Details.Help
}

// look asks how the task is.
func (j *Job) look(ctx context.Context) (wire.Task, error) {
	var answer wire.TaskReply
	err := j.conn.askPatiently(ctx, "get-task", wire.TaskID{TaskID: j.id}, &answer)
	return *tidy(&answer.Task), err
}

// lookAgain is how long one waits for news without a look: what is said to an
// agent that does not read in time may get lost.
const lookAgain = time.Minute

// await waits for news, or until it is time to look again.
func await(ctx context.Context, news <-chan struct{}) error {
	select {
	case <-news:
		return nil
	case <-time.After(lookAgain):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
