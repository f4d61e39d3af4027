package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// Seen is a task with its unchanged JSON, which keeps keys unknown to this version.
type Seen struct {
	wire.Task
	raw wire.Raw
}

func seeTask(raw wire.Raw) (Seen, error) {
	t, err := client.Decode[wire.Task](raw)
	return Seen{Task: t, raw: raw}, err
}

// taskDocument and tasksDocument are the JSON answers with one task and with several.
type taskDocument struct {
	FormatVersion string   `json:"format_version"`
	Task          wire.Raw `json:"task"`
}

type tasksDocument struct {
	FormatVersion string     `json:"format_version"`
	Tasks         []wire.Raw `json:"tasks"`
}

func documentOf(tasks []Seen) tasksDocument {
	document := tasksDocument{FormatVersion: wire.FormatVersion}
	for i := range tasks {
		document.Tasks = append(document.Tasks, tasks[i].raw)
	}
	return document
}

// askTask calls an operation that answers with a task. It returns the task and the
// unchanged answer.
func askTask(ctx context.Context, a *cli.App, d *client.Client, operation string, request any) (Seen, []byte, error) {
	text, err := a.Ask(ctx, d, operation, request)
	if err != nil {
		return Seen{}, nil, explained(ctx, a, d, err)
	}
	reply, err := client.Decode[taskDocument](text)
	if err != nil {
		return Seen{}, nil, err
	}
	t, err := seeTask(reply.Task)
	return t, text, err
}

// GetTask returns a task and the unchanged answer.
func GetTask(ctx context.Context, a *cli.App, d *client.Client, id string) (Seen, []byte, error) {
	return askTask(ctx, a, d, "get-task", wire.TaskID{TaskID: id})
}

// everyTask is a limit above the length of any list of tasks.
const everyTask = 1 << 30

// listTasks returns the tasks for a query, oldest first.
func listTasks(ctx context.Context, a *cli.App, d *client.Client, q wire.QueryTasks) ([]Seen, error) {
	text, err := a.Ask(ctx, d, "query-tasks", q)
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[tasksDocument](text)
	if err != nil {
		return nil, err
	}
	tasks := make([]Seen, len(list.Tasks))
	for i, raw := range list.Tasks {
		if tasks[i], err = seeTask(raw); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

// explained adds details to an error: the tasks that a task waits for and their states, or
// the tasks of a dependency cycle.
func explained(ctx context.Context, a *cli.App, d *client.Client, err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok {
		return err
	}
	switch {
	case f.Code == wire.CodeConflict && f.Details["reason"] == "blocked":
		if ids := term.TextsOf(f.Details["waitsFor"]); len(ids) > 0 {
			f.Because = append(f.Because, "It waits for "+needs(ctx, a, d, ids, true)+".")
			f.Hint = "Wait for its dependencies: orchestrator task wait " + ShortIDs(ids)
		}
	case f.Code == wire.CodeConflict && f.Details["reason"] == "cycle":
		f.Because = append(f.Because, "They would wait for each other: "+way(ctx, a, d, term.TextsOf(f.Details["path"]))+".")
	case f.Code == wire.CodeNotFound && f.Details["agent"] != nil:
		f.Hint = cli.NoAgentHint
	}
	return cli.WithHint(err, wire.CodeNotFound, cli.NoTaskHint)
}

// way formats a dependency cycle and leaves the middle of a long one out.
func way(ctx context.Context, a *cli.App, d *client.Client, ids []string) string {
	const half = 4
	var steps []string
	for i, id := range ids {
		switch {
		case len(ids) <= 2*half || i < half || i >= len(ids)-half:
			steps = append(steps, need(ctx, a, d, id, false))
		case i == half:
			steps = append(steps, fmt.Sprintf("%d more", len(ids)-2*half))
		}
	}
	return strings.Join(steps, " -> ")
}

// needs returns the names of the first few tasks, with their states if far is set.
func needs(ctx context.Context, a *cli.App, d *client.Client, ids []string, far bool) string {
	const few = 3
	var shown []string
	for _, id := range ids[:min(few, len(ids))] {
		shown = append(shown, need(ctx, a, d, id, far))
	}
	all := strings.Join(shown, ", ")
	if len(ids) > few {
		all += fmt.Sprintf(" and %d more", len(ids)-few)
	}
	return all
}

// need returns the name of a task, or its id if the task cannot be read.
func need(ctx context.Context, a *cli.App, d *client.Client, id string, far bool) string {
	text, err := a.Ask(ctx, d, "get-task", wire.TaskID{TaskID: id})
	if err != nil {
		return term.ID(id)
	}
	reply, err := client.Decode[wire.TaskReply](text)
	if err != nil {
		return term.ID(id)
	}
	label := term.TaskLabel(id, reply.Task.Name)
	if far {
		label += " (" + FarWords(&reply.Task) + ")"
	}
	return label
}

// FarWords returns the state of a task and its progress.
func FarWords(t *wire.Task) string {
	words := HeldWords(t)
	if progress := term.Percent(t.Progress); progress != "" && !t.State.Final() {
		words += ", " + progress
	}
	return words
}

// stateOf returns the state of a task, with the names of the tasks it waits for.
func stateOf(ctx context.Context, a *cli.App, d *client.Client, t *Seen) string {
	return stateWords(&t.Task, needs(ctx, a, d, t.WaitsFor, false))
}

// ShortIDs returns short ids for a command line.
func ShortIDs(ids []string) string {
	short := make([]string, len(ids))
	for i, id := range ids {
		short[i] = term.ID(id)
	}
	return strings.Join(short, " ")
}

// stateWords returns the state of a task. Needs names the tasks that it waits for.
func stateWords(t *wire.Task, needs string) string {
	switch {
	case t.State == wire.TaskDone:
		return joined("done", tookWords(" in ", t), resultWords(t.Result))
	case t.State == wire.TaskFailed:
		return joined("failed", tookWords(" after ", t), term.Colon(t.Error))
	case t.State == wire.TaskCancelled:
		return "cancelled" + term.Colon(t.Reason)
	case t.State == wire.TaskPending && needs != "":
		return "waits for " + needs
	case term.NotBefore(t, time.Now(), time.TimeOnly) != "":
		return "queued until " + term.NotBefore(t, time.Now(), time.TimeOnly)
	case IsMatched(t):
		return "pending until an agent is matched"
	case t.State == wire.TaskPending && !AsksByName(t) && !HandedOn(t):
		return "queued until an agent takes it"
	case t.State == wire.TaskPending:
		return "queued"
	}
	return HeldWords(t)
}

// HeldWords returns the stored state of a task and its agent.
func HeldWords(t *wire.Task) string {
	if t.AssignedTo == "" || t.State.Final() {
		return wire.Visible(string(t.State))
	}
	on := " on "
	if t.State == wire.TaskAssigned {
		on = " to "
	}
	return wire.Visible(string(t.State)) + on + term.OneLine(t.AssignedTo)
}

func joined(parts ...string) string { return strings.Join(parts, "") }

// tookWords returns how long an ended task took, after the text before.
func tookWords(before string, t *wire.Task) string {
	took, ok := term.Between(t.StartedAt, t.EndedAt)
	if !ok {
		return ""
	}
	return before + term.Duration(took)
}

// resultWords returns the summary of a result, or else the result, for the end of a line.
// It returns "" for an empty result.
func resultWords(result wire.Raw) string {
	said := resultText(result)
	if summary := summaryOf(result).Summary; summary != "" {
		said = summary
	}
	if said == "" || said == `{"success":true}` {
		return ""
	}
	return "   result: " + term.Clip(term.OneLine(said), 100)
}

// summarized holds the summary in a result.
type summarized struct {
	Summary     string `json:"summary"`
	CompletedBy string `json:"completed_by"` // set if the result has only a summary
}

// summaryOf returns the summary of a result, or a zero value.
func summaryOf(result wire.Raw) summarized {
	if len(result) == 0 || result.Kind() != '{' {
		return summarized{}
	}
	sum, err := client.Decode[summarized](result)
	if err != nil {
		return summarized{}
	}
	return sum
}

// resultText returns a result for people: a string or a summary as text, anything else as
// JSON.
func resultText(result wire.Raw) string {
	if len(result) == 0 || result.Kind() == 'n' {
		return ""
	}
	if result.Kind() == '"' {
		if text, err := client.Decode[string](result); err == nil {
			return text
		}
	}
	if sum := summaryOf(result); sum.CompletedBy != "" {
		return sum.Summary
	}
	return string(result)
}
