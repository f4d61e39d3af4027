package agents

import (
	"context"
	"errors"
	"sync"

	"orchestrator/wire"

	"github.com/google/uuid"
)

// Lead is what an agent does that gives out the work of a session, for those to
// which one function is not enough.
type Lead struct {
	// Do gives out tasks, and waits for what comes of them. Its context ends when the
	// agent has to go.
	Do func(ctx context.Context, a *Architect) error
	// Hear is told every message before it is heeded, in order: progress, feedback and
	// the like go nowhere else. It must not wait.
	Hear func(*Said)
}

// Lead calls a function that gives out the work of a session, and returns what it
// returns. As long as it runs, the Architect hears what becomes of the tasks; all
// its methods may be called at the same time, so that several tasks go on beside
// each other.
func (s *Session) Lead(ctx context.Context, do func(ctx context.Context, a *Architect) error) error {
	return s.LeadAs(ctx, Lead{Do: do})
}

// LeadAs is Lead for those who want to hear everything.
func (s *Session) LeadAs(ctx context.Context, lead Lead) error {
	if err := s.opened(wire.AgentArchitect); err != nil {
		return err
	}
	listens, stop := context.WithCancelCause(ctx)
	a := &Architect{Session: s, hear: lead.Hear, stop: stop}
	var listening sync.WaitGroup
	listening.Go(func() { a.listen(listens) })
	defer listening.Wait()
	defer stop(nil)
	defer s.conn.allSaid(ctx)
	return lead.Do(listens, a)
}

// Architect gives out tasks and has them reviewed.
type Architect struct {
	*Session
	hear func(*Said)
	stop context.CancelCauseFunc

	mu    sync.Mutex
	tasks taskIndex
}

// Task is a task of the session, by its id, no matter which agent assigned it. One that no agent
// holds is forgotten when there have been a few thousand others since.
func (a *Architect) Task(id string) *SessionTask {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tasks.find(id)
	if t == nil {
		t = &SessionTask{architect: a, id: id, bell: make(chan struct{}, 1)}
		a.tasks.enter(id, t)
	}
	return t
}

// Assign gives a task to a developer, and an id if it has none.
func (a *Architect) Assign(ctx context.Context, developer string, work Assignment) (*SessionTask, error) {
	if work.Task.TaskID == "" {
		work.Task.TaskID = uuid.NewString()
	}
	t := a.Task(work.Task.TaskID)
	t.first = work.Task.Description
	return t, t.assign(ctx, developer, work)
}

// AbortSession ends the session for all its members. One of them has to be told:
// any of them.
func (a *Architect) AbortSession(ctx context.Context, to wire.AgentIdentifier, reason string) error {
	_, err := a.Abort(ctx, to, Abort{Scope: wire.AbortSession, Reason: reason})
	return err
}

// listen brings what is said to the caller that waits for it, until ctx ends or the stream
// does.
func (a *Architect) listen(ctx context.Context) {
	for e := range a.conn.events(ctx, true) {
		switch {
		case e.notice != nil:
			a.noticed(e.notice)
		case e.said != nil:
			a.told(e.said)
		}
	}
	a.stop(a.conn.ending())
}

func (a *Architect) noticed(notice *Notice) {
	var about wire.TaskNotice
	switch notice.Name {
	case Shutdown:
		a.stop(ErrShutdown)
	case TaskCancelled, TaskUpdated:
		if notice.Read(&about) == nil && about.TaskID != "" {
			a.Task(about.TaskID).put(update{notice: &about, cancelled: notice.Name == TaskCancelled})
		}
	}
}

func (a *Architect) told(said *Said) {
	a.saw(said)
	if a.hear != nil {
		a.hear(said)
	}
	switch body := said.Body.(type) {
	case *wire.Completion:
		var what Completion
		if said.Read(&what) == nil {
			a.Task(body.TaskID).put(update{completion: &what})
		}
	case *wire.ReviewResult:
		var what ReviewResult
		if said.Read(&what) == nil {
			a.Task(body.TaskID).put(update{result: &what})
		}
	case *wire.Feedback:
		if body.TaskID != "" && body.ActionRequired && said.ReplyTo != "" {
			a.Task(body.TaskID).put(update{feedback: body, answers: said.ReplyTo})
		}
	}
}

// Why nothing comes of a task.
var (
	ErrIncomplete = errors.New("the developer has not completed it")
	ErrRejected   = errors.New("the reviewer has rejected it: it has to be planned anew")
	ErrUnreviewed = errors.New("the reviewer cannot review it")
)
