package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// finder turns what people type into whole ids. Only for a prefix the tasks need
// to be asked for, and once.
type finder struct {
	app    *app
	door   *client
	tasks  []taskSeen
	listed bool
}

func (a *app) finder(d *client) *finder { return &finder{app: a, door: d} }

// list asks for all tasks.
func (f *finder) list(ctx context.Context) ([]taskSeen, error) {
	if f.listed {
		return f.tasks, nil
	}
	var err error
	f.tasks, err = f.app.listTasks(ctx, f.door, wire.QueryTasks{Limit: everyTask})
	f.listed = err == nil
	return f.tasks, err
}

// id is the task that a word stands for.
func (f *finder) id(ctx context.Context, word string) (string, error) {
	switch {
	case word == "":
		return "", usageError("the id of a task is missing: it is empty", "See which there are: orchestrator task ls")
	case wholeID(word):
		return word, nil
	}
	tasks, err := f.list(ctx)
	if err != nil {
		return "", err
	}
	return taskOf(tasks, word)
}

// taskIDs turns what people type into whole ids, each once.
func (a *app) taskIDs(ctx context.Context, d *client, words []string) ([]string, error) {
	var ids []string
	find := a.finder(d)
	for _, word := range words {
		id, err := find.id(ctx, word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// wholeID reports whether a word is as long and looks as the ids that the
// orchestrator makes.
func wholeID(word string) bool {
	return len(word) == 36 && word[8] == '-' && word[13] == '-' && word[18] == '-' && word[23] == '-'
}

// taskOf finds the id that a prefix stands for.
func taskOf(tasks []taskSeen, prefix string) (string, error) {
	var fits []taskSeen
	for _, t := range tasks {
		if t.ID == prefix {
			return t.ID, nil
		}
		if strings.HasPrefix(t.ID, prefix) {
			fits = append(fits, t)
		}
	}
	switch len(fits) {
	case 0:
		return "", &failure{
			exit: exitNotFound, code: wire.CodeNotFound,
			message: fmt.Sprintf("no task has an id that begins with %q", prefix),
			hint:    noTaskHint, details: map[string]any{"task": prefix},
		}
	case 1:
		return fits[0].ID, nil
	}
	return "", ambiguous(prefix, fits)
}

// ambiguous says which tasks a prefix stands for, a few of them by name.
func ambiguous(prefix string, fits []taskSeen) *failure {
	const few = 5
	var ids, shown []string
	for i := range fits {
		ids = append(ids, fits[i].ID)
		id := plain.ID(fits[i].ID)
		if len(prefix) >= len(id) { // then the difference comes later
			id = wire.Visible(fits[i].ID)
		}
		shown = append(shown, id+" "+plain.Clip(plain.OneLine(fits[i].Name), 40))
	}
	if len(shown) > few {
		shown = append(shown[:few], fmt.Sprintf("and %d more", len(fits)-few))
	}
	return &failure{
		exit: exitNotFound, code: wire.CodeNotFound,
		message: fmt.Sprintf("%q fits %d tasks: %s", prefix, len(fits), strings.Join(shown, ", ")),
		hint:    "Write more of the id", details: map[string]any{"task": prefix, "fits": ids},
	}
}
