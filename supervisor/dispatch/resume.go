package dispatch

import (
	"context"
	"math"
	"sort"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// observer is the actor of requests on behalf of Hooks. The audit records them; Hooks do not
// see them.
var observer = handlers.Actor{Kind: handlers.Operator, Name: "telemetry"}

// A ResumePoint tells a reader of the record how far back to start so that it sees every
// open task.
type ResumePoint struct {
	// Behind is the number of a fact. The facts after it include the creation of every open
	// task and of its parents.
	Behind   int64
	Sessions []string // that are open
}

// Hindsight returns the ResumePoint of a reader that has read up to since. Tasks that ended
// after since count as open. The point is as late as possible, because a record may be long.
func (r Requests) Hindsight(ctx context.Context, since int64) (ResumePoint, error) {
	h := ResumePoint{Behind: r.dispatcher.last.Load()}
	if r.dispatcher.record == nil {
		return h, nil
	}
	sessions, err := r.Do(ctx, observer, "list-sessions", &wire.Nothing{})
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
	oldest, err := r.oldestOpen(ctx, since)
	if err != nil || oldest == "" {
		return h, err
	}
	h.Behind = r.dispatcher.behind(oldest)
	return h, nil
}

// oldestOpen returns the creation time of the oldest task that is open or a parent of an open
// one. It returns "" if no task is open.
func (r Requests) oldestOpen(ctx context.Context, since int64) (oldest string, err error) {
	known := make(map[string]bool)
	others, err := r.dispatcher.endedBehind(ctx, since)
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
		answer, err := r.Do(ctx, observer, "query-tasks", &wire.QueryTasks{Status: status, Limit: math.MaxInt32})
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
		answer, err := r.Do(ctx, observer, "get-task", &wire.TaskID{TaskID: id})
		if err != nil {
			return "", err
		}
		if reply, ok := answer.(*wire.TaskReply); ok {
			meet(&reply.Task)
		}
	}
	return oldest, nil
}

// endedBehind returns the ids of the tasks that ended after a fact.
func (d *Dispatcher) endedBehind(ctx context.Context, since int64) (ids []string, err error) {
	for r, err := range d.record.Records(ctx, since) {
		if err != nil {
			return nil, d.unreadable(err)
		}
		switch r.Kind {
		case events.TaskDone, events.TaskFailed, events.TaskCancelled:
			ids = append(ids, r.Correlation)
		}
	}
	return ids, nil
}

// behind returns the number of the last fact before a time. It uses binary search, because a
// record may be long. If the clock was set back, the result may be too late and an old task is
// missed.
func (d *Dispatcher) behind(when string) int64 {
	at, err := time.Parse(time.RFC3339Nano, when)
	last := d.last.Load()
	if err != nil {
		return last
	}
	before := sort.Search(int(last), func(n int) bool {
		r, err := d.Record(int64(n) + 1)
		return err != nil || !r.At.Before(at)
	})
	return int64(before)
}
