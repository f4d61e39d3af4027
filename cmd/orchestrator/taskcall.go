package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// taskSeen is a task, and its document as it came: programs are shown keys that
// we do not know yet too.
type taskSeen struct {
	wire.Task
	raw wire.Raw
}

func seeTask(raw wire.Raw) (taskSeen, error) {
	t, err := decode[wire.Task](raw)
	return taskSeen{Task: t, raw: raw}, err
}

// taskDocument and tasksDocument answer programs with one task, or many.
type taskDocument struct {
	FormatVersion string   `json:"format_version"`
	Task          wire.Raw `json:"task"`
}

type tasksDocument struct {
	FormatVersion string     `json:"format_version"`
	Tasks         []wire.Raw `json:"tasks"`
}

func documentOf(tasks []taskSeen) tasksDocument {
	document := tasksDocument{FormatVersion: wire.FormatVersion}
	for i := range tasks {
		document.Tasks = append(document.Tasks, tasks[i].raw)
	}
	return document
}

// askTask calls an operation that answers with a task: that, and the answer as
// it came.
func (a *app) askTask(ctx context.Context, d *client, operation string, request any) (taskSeen, []byte, error) {
	text, err := a.ask(ctx, d, operation, request)
	if err != nil {
		return taskSeen{}, nil, a.explained(ctx, d, err)
	}
	reply, err := decode[taskDocument](text)
	if err != nil {
		return taskSeen{}, nil, err
	}
	t, err := seeTask(reply.Task)
	return t, text, err
}

func (a *app) getTask(ctx context.Context, d *client, id string) (taskSeen, []byte, error) {
	return a.askTask(ctx, d, "get-task", wire.TaskID{TaskID: id})
}

// everyTask is a limit that no list of tasks reaches.
const everyTask = 1 << 30

// listTasks asks for tasks, oldest first.
func (a *app) listTasks(ctx context.Context, d *client, q wire.QueryTasks) ([]taskSeen, error) {
	text, err := a.ask(ctx, d, "query-tasks", q)
	if err != nil {
		return nil, err
	}
	list, err := decode[tasksDocument](text)
	if err != nil {
		return nil, err
	}
	tasks := make([]taskSeen, len(list.Tasks))
	for i, raw := range list.Tasks {
		if tasks[i], err = seeTask(raw); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

// Where to look for what was not found.
const (
	noTaskHint  = "See which there are: orchestrator task ls"
	noAgentHint = "See which there are: orchestrator agent ls"
)

// explained adds to a refusal what helps: where a task waits for others, which
// and how far they are; where tasks would wait for each other, which.
func (a *app) explained(ctx context.Context, d *client, err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	switch {
	case f.code == wire.CodeConflict && f.details["reason"] == "blocked":
		if ids := textsOf(f.details["waitsFor"]); len(ids) > 0 {
			f.because = append(f.because, "It waits for "+a.needs(ctx, d, ids, true)+".")
			f.hint = "Wait for what it needs: orchestrator task wait " + shortIDs(ids)
		}
	case f.code == wire.CodeConflict && f.details["reason"] == "cycle":
		f.because = append(f.because, "They would wait for each other: "+a.way(ctx, d, textsOf(f.details["path"]))+".")
	case f.code == wire.CodeNotFound && f.details["agent"] != nil:
		f.hint = noAgentHint
	}
	return hinted(err, wire.CodeNotFound, noTaskHint)
}

// way formats a dependency cycle and leaves the middle of a long one out.
func (a *app) way(ctx context.Context, d *client, ids []string) string {
	const half = 4
	var steps []string
	for i, id := range ids {
		switch {
		case len(ids) <= 2*half || i < half || i >= len(ids)-half:
			steps = append(steps, a.need(ctx, d, id, false))
		case i == half:
			steps = append(steps, fmt.Sprintf("%d more", len(ids)-2*half))
		}
	}
	return strings.Join(steps, " -> ")
}

// textsOf reads a list of texts out of the details of a refusal.
func textsOf(detail any) []string {
	var texts []string
	items, _ := detail.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// needs names tasks that are waited for, a few of them, and if asked how far
// they are.
func (a *app) needs(ctx context.Context, d *client, ids []string, far bool) string {
	const few = 3
	var shown []string
	for _, id := range ids[:min(few, len(ids))] {
		shown = append(shown, a.need(ctx, d, id, far))
	}
	all := strings.Join(shown, ", ")
	if len(ids) > few {
		all += fmt.Sprintf(" and %d more", len(ids)-few)
	}
	return all
}

// need names one; its id will do where there is no more to know.
func (a *app) need(ctx context.Context, d *client, id string, far bool) string {
	text, err := a.ask(ctx, d, "get-task", wire.TaskID{TaskID: id})
	if err != nil {
		return plain.ID(id)
	}
	reply, err := decode[wire.TaskReply](text)
	if err != nil {
		return plain.ID(id)
	}
	label := taskLabel(id, reply.Task.Name)
	if far {
		label += " (" + farWords(&reply.Task) + ")"
	}
	return label
}

// farWords are the state of a task and its progress.
func farWords(t *wire.Task) string {
	words := heldWords(t)
	if progress := plain.Percent(t.Progress); progress != "" && !t.State.Final() {
		words += ", " + progress
	}
	return words
}

// words are the state of a task with the names of what it waits for.
func (a *app) words(ctx context.Context, d *client, t *taskSeen) string {
	return stateWords(&t.Task, a.needs(ctx, d, t.WaitsFor, false))
}
