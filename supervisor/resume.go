package supervisor

import (
	"context"
	"math"
	"sort"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// observer is who looks on behalf of a Watch. The audit has it; a Watch does not
// hear of it.
var observer = handlers.Actor{Kind: handlers.Operator, Name: "telemetry"}

// A ResumePoint tells a reader of the record how far back to start so that it sees every
// open task.
type ResumePoint struct {
	// Behind is a number in the record behind which it tells of every task that is
	// open, and of those that they come from.
	Behind   int64
	Sessions []string // that are open
}

// Hindsight looks back no further than it has to: a record may be long. What has
// ended behind number since counts as open.
func (s *Supervisor) Hindsight(ctx context.Context, since int64) (ResumePoint, error) {
	h := ResumePoint{Behind: s.dispatcher.last.Load()}
	if s.dispatcher.record == nil {
		return h, nil
	}
	sessions, err := s.Do(ctx, observer, "list-sessions", &wire.Nothing{})
	if err != nil {
		return h, err
	}
	if list, ok := sessions.(*wire.SessionList); ok {
		for _, b := range list.Sessions {
			if b.State == wire.SessionOpen {
				h.Sessions = append(h.Sessions, b.ID)
			}
		}
	}
	oldest, err := s.oldestOpen(ctx, since)
	if err != nil || oldest == "" {
		return h, err
	}
	h.Behind = s.behind(oldest)
	return h, nil
}

// oldestOpen is when the oldest task was created that is open, or that an open one
// comes from; "" when none is open.
func (s *Supervisor) oldestOpen(ctx context.Context, since int64) (oldest string, err error) {
	known := make(map[string]bool)
	others, err := s.endedBehind(ctx, since)
	if err != nil {
		return "", err
	}
	meet := func(k *wire.Task) {
		known[k.ID] = true
		if oldest == "" || k.CreatedAt < oldest {
			oldest = k.CreatedAt
		}
		if k.Details != nil && k.ParentTaskID != "" {
			others = append(others, k.ParentTaskID)
		}
	}
	for _, status := range []string{wire.TaskPending.Status(), wire.TaskRunning.Status()} {
		answer, err := s.Do(ctx, observer, "query-tasks", &wire.QueryTasks{Status: status, Limit: math.MaxInt32})
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
		answer, err := s.Do(ctx, observer, "get-task", &wire.TaskID{TaskID: id})
		if err != nil {
			return "", err
		}
		if reply, ok := answer.(*wire.TaskReply); ok {
			meet(&reply.Task)
		}
	}
	return oldest, nil
}

// endedBehind are the tasks that have ended behind a fact.
func (s *Supervisor) endedBehind(ctx context.Context, since int64) (ids []string, err error) {
	for r, err := range s.dispatcher.record.Records(ctx, since) {
		if err != nil {
			return nil, s.dispatcher.unreadable(err)
		}
		switch r.Kind {
		case wire.EventTaskDone, wire.EventTaskFailed, wire.EventTaskCancelled:
			ids = append(ids, r.Correlation)
		}
	}
	return ids, nil
}

// behind is the number of the last fact before a time. A clock that was put back
// may lead it astray, and then an old task is not seen: it finds its place by a few
// looks at a record that may be long.
func (s *Supervisor) behind(when string) int64 {
	at, err := time.Parse(time.RFC3339Nano, when)
	last := s.dispatcher.last.Load()
	if err != nil {
		return last
	}
	before := sort.Search(int(last), func(n int) bool {
		r, err := s.dispatcher.Record(int64(n) + 1)
		return err != nil || !r.At.Before(at)
	})
	return int64(before)
}
