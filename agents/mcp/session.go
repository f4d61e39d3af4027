package mcp

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
	"orchestrator/wire/tools"
)

// A workItem is a job of the member in a session.
type workItem struct {
	*tools.WorkItem
	begun     bool   // it is a task, and the member has reported that it works on it
	requested string // when, for a review
	percent   float64
	number    int64 // of the next message in its session
}

// rank returns the place of a work item in the list: the member does one at a time, and has begun
// it if it is a task.
func (w *workItem) rank() int {
	switch {
	case w.begun:
		return 0
	case w.Review != nil:
		return 1
	}
	return 2
}

// current returns the open task of the member, and the work item that the call of a tool is about.
// The item is nil if the call is about the open task, or about none.
func (s *server) current(ctx context.Context, tool string, arguments wire.Raw) (open task, item *workItem, err error) {
	if open, err = s.openTask(ctx); err != nil {
		return task{}, nil, err
	}
	items, tasks, err := s.workItems(ctx)
	if err != nil {
		return task{}, nil, err
	}
	if tasks[open.ID] {
		open = task{} // only its session can end it
	}
	if tool == tools.ForReviews {
		review, _ := object.TextOf(arguments, "review_id")
		items = slices.DeleteFunc(items, func(w *workItem) bool { return w.Review == nil || review != "" && w.ID() != review })
	}
	if len(items) == 0 {
		return open, nil, nil
	}
	item = slices.MinFunc(items, func(a, b *workItem) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.requested, b.requested))
	})
	if tool != tools.ForReviews && open.ID != "" && (open.State == wire.TaskRunning || item.rank() == 2) {
		return open, nil, nil
	}
	return open, item, nil
}

// workItems returns the work items of the member in its sessions, and all its tasks in them.
func (s *server) workItems(ctx context.Context) (items []*workItem, tasks map[string]bool, err error) {
	if s.options.Agent == "" {
		return nil, nil, nil
	}
	var list session.List
	if err := s.team.Ask(ctx, "list-sessions", nil, &list); err != nil {
		return nil, nil, err
	}
	tasks = make(map[string]bool)
	for _, brief := range list.Sessions {
		if brief.State != session.Open || brief.Open == 0 {
			continue
		}
		var view wire.SessionView
		if err := s.team.Ask(ctx, "get-session", wire.GetSession{SessionID: brief.ID, Limit: 1}, &view); err != nil {
			return nil, nil, err
		}
		for i := range view.Tasks {
			t := &view.Tasks[i]
			tasks[t.TaskID] = tasks[t.TaskID] || t.Developer == s.options.Agent
			found, err := s.itemsOf(ctx, &view, t)
			if err != nil {
				return nil, nil, err
			}
			items = append(items, found...)
		}
	}
	return items, tasks, nil
}

// itemsOf returns the work items of the member for a task of a session: the task, or its reviews.
func (s *server) itemsOf(ctx context.Context, view *wire.SessionView, t *wire.SessionTask) (items []*workItem, err error) {
	works := t.Developer == s.options.Agent && (t.Phase == session.PhaseAssigned || t.Phase == session.PhaseWorking)
	requested := make(map[string]string)
	for _, r := range view.Reviews {
		if r.TaskID == t.TaskID && r.Reviewer == s.options.Agent && r.Verdict == "" {
			requested[r.ReviewID] = r.RequestedAt
		}
	}
	if !works && len(requested) == 0 {
		return nil, nil
	}
	log, err := s.log(ctx, view.ID, t.CorrelationID)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*workItem)
	for i := range log {
		if log[i].Refused != "" {
			continue
		}
		m, refusal := session.Read(log[i].Document, maxDepth)
		if refusal != nil {
			continue
		}
		m.To = session.Agent{AgentID: s.options.Agent, AgentType: m.To.AgentType} // it may name a replica in another way
		w := tools.WorkItemOf(m)
		switch {
		case w == nil:
		case w.Assignment != nil && works && w.ID() == t.TaskID: // the last one, if it was repeated
			found["task "+w.ID()] = &workItem{WorkItem: w, begun: t.Phase == session.PhaseWorking, percent: t.Progress * 100}
		case w.Review != nil && requested[w.ID()] != "":
			found["review "+w.ID()] = &workItem{WorkItem: w, requested: requested[w.ID()]}
		}
	}
	for _, w := range found {
		if w.number = view.SequenceNumber + 1; !w.Reported(log) {
			items = append(items, w)
		}
	}
	return items, nil
}

// maxDepth is how deeply a session message may be nested.
const maxDepth = 64

// log returns the messages of a session about a task.
func (s *server) log(ctx context.Context, id, chain string) (entries []session.Entry, err error) {
	page := wire.SessionView{More: true}
	for page.More {
		ask := wire.GetSession{SessionID: id, CorrelationID: chain, After: page.Next, Limit: session.MaxPage}
		page = wire.SessionView{}
		if err := s.team.Ask(ctx, "get-session", ask, &page); err != nil {
			return nil, err
		}
		entries = append(entries, page.Messages...)
	}
	return entries, nil
}

// report performs the call of a tool that is about a work item.
func (s *server) report(ctx context.Context, w *workItem, tool string, arguments wire.Raw) (string, error) {
	switch {
	case tool == "task_current":
		return w.Prompt(), nil
	case tool == "task_progress" && w.Review != nil: // a session has no progress of reviews
		return "reported", nil
	case tool == "task_progress":
		progress, err := w.Progress(arguments, w.percent)
		if err != nil {
			return "", err
		}
		return "reported", s.reply(ctx, w, session.TypeTaskProgress, progress)
	}
	kind, body, err := w.Report(tool, arguments)
	if err != nil {
		return "", err
	}
	return (&tools.Request{Operation: "send-session-message"}).Answer(nil), s.reply(ctx, w, kind, body)
}

// begin returns a work item as a prompt. A task is acknowledged.
func (s *server) begin(ctx context.Context, w *workItem) (string, error) {
	if w.Review != nil || w.begun {
		return w.Prompt(), nil
	}
	return w.Prompt(), s.reply(ctx, w, session.TypeAcknowledgment, struct{}{})
}

// reply answers the message that asked for a work item.
func (s *server) reply(ctx context.Context, w *workItem, kind string, body any) error {
	return s.team.Ask(ctx, "send-session-message", tools.Reply(w.Asked, uuid.NewString(), time.Now(), w.number, kind, body), nil)
}
