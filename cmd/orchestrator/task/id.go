package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// A Finder resolves prefixes of task ids. It lists the tasks once, and only if a word is
// not a full id.
type Finder struct {
	app    *cli.App
	door   *client.Client
	tasks  []Seen
	listed bool
}

// NewFinder returns a Finder.
func NewFinder(a *cli.App, d *client.Client) *Finder { return &Finder{app: a, door: d} }

// List returns all tasks.
func (f *Finder) List(ctx context.Context) ([]Seen, error) {
	if f.listed {
		return f.tasks, nil
	}
	var err error
	f.tasks, err = listTasks(ctx, f.app, f.door, wire.QueryTasks{Limit: everyTask})
	f.listed = err == nil
	return f.tasks, err
}

// ID returns the id of the task that a word names.
func (f *Finder) ID(ctx context.Context, word string) (string, error) {
	switch {
	case word == "":
		return "", cli.UsageError("the id of a task is missing: it is empty", "See which there are: orchestrator task ls")
	case term.WholeID(word):
		return word, nil
	}
	tasks, err := f.List(ctx)
	if err != nil {
		return "", err
	}
	return taskOf(tasks, word)
}

// TaskIDs returns the ids of the tasks that words name, each once.
func TaskIDs(ctx context.Context, a *cli.App, d *client.Client, words []string) ([]string, error) {
	var ids []string
	find := NewFinder(a, d)
	for _, word := range words {
		id, err := find.ID(ctx, word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// taskOf returns the only id that begins with prefix.
func taskOf(tasks []Seen, prefix string) (string, error) {
	var fits []Seen
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
		return "", &cli.Failure{
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
			Message: fmt.Sprintf("no task has an id that begins with %q", prefix),
			Hint:    cli.NoTaskHint, Details: map[string]any{"task": prefix},
		}
	case 1:
		return fits[0].ID, nil
	}
	return "", ambiguous(prefix, fits)
}

// ambiguous returns the failure for a prefix of several tasks, with a few of their names.
func ambiguous(prefix string, fits []Seen) *cli.Failure {
	const few = 5
	var ids, shown []string
	for i := range fits {
		ids = append(ids, fits[i].ID)
		id := term.ID(fits[i].ID)
		if len(prefix) >= len(id) { // the short ids may be equal
			id = wire.Visible(fits[i].ID)
		}
		shown = append(shown, id+" "+term.Clip(term.OneLine(fits[i].Name), 40))
	}
	if len(shown) > few {
		shown = append(shown[:few], fmt.Sprintf("and %d more", len(fits)-few))
	}
	return &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
		Message: fmt.Sprintf("%q fits %d tasks: %s", prefix, len(fits), strings.Join(shown, ", ")),
		Hint:    "Write more of the id", Details: map[string]any{"task": prefix, "fits": ids},
	}
}
