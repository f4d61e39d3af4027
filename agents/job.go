package agents

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// Job is a running task, for the Worker function that does it.
type Job struct {
	Task wire.Task // as it was when Do or Plan was called

	conn *Conn
	id   string
	stop context.CancelCauseFunc

	mu      sync.Mutex
	said    []string // not taken yet
	made    []hub.Artifact
	changed chan struct{} // closed at the next news
}

func newJob(conn *Conn, id string, stop context.CancelCauseFunc) *Job {
	return &Job{conn: conn, id: id, stop: stop, changed: make(chan struct{})}
}

// Updates iterates over the orchestrator's updates of a running task: the approval of its plan or
// feedback on it, the answer of a person, an urgent note. It starts with the first update, yields
// each once, and ends when ctx does.
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

// next waits for an update. It returns false if ctx ends first.
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

// take takes the oldest update. Without an update, it returns the channel to wait for.
func (j *Job) take() (message string, ok bool, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.said) == 0 {
		return "", false, j.changed
	}
	message, j.said = j.said[0], j.said[1:]
	return message, true, nil
}

// news returns a channel that is closed at the next news. Call it before looking at the task,
// so that no news is missed.
func (j *Job) news() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// hear adds updates and wakes all waiting calls.
func (j *Job) hear(messages ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, messages...)
	close(j.changed)
	j.changed = make(chan struct{})
}

// Artifact keeps an artifact, which is handed in with the result. Its content is a text, or the
// path of a text file in the agent's folder, which is read when the task is completed. One that is
// stored elsewhere has a Ref.
func (j *Job) Artifact(artifact hub.Artifact) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.made = append(j.made, artifact)
}

// artifacts returns the artifacts so far.
func (j *Job) artifacts() []hub.Artifact {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.made)
}

// discard drops the artifacts so far, because the task is done again.
func (j *Job) discard() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.made = nil
}

// ErrWithdrawn means that no answer will come: the task went on without.
var ErrWithdrawn = errors.New("the question was withdrawn")

// Help asks a person a question about the task and waits for the answer, however long it takes.
// Until then the task is out of the agent's hands. The context about may be any value, or nil.
// AskUser is for a question without a task, or with a time limit.
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

// look asks for the current state of the task.
func (j *Job) look(ctx context.Context) (wire.Task, error) {
	var answer wire.TaskReply
	err := j.conn.askPatiently(ctx, "get-task", wire.TaskID{TaskID: j.id}, &answer)
	return *tidy(&answer.Task), err
}

// lookAgain bounds the wait for news, because a notice may be lost if the agent reads too
// slowly.
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
