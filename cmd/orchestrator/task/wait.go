package task

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

func taskWaitCommand(a *cli.App) *cobra.Command {
	until := cli.Choice{Value: "done", Of: []string{"done", "any"}}
	verb := &cobra.Command{
		Use:   "wait ID…",
		Short: "Wait until tasks have ended",
		Long: `Waits until every task is done, and prints changes of their states. If a task fails or
is cancelled, the command ends at once with exit code 1.

With --for any it waits until every task has ended in any state; the exit code is 0.
After --timeout the exit code is 124, and the tasks continue.`,
		Example: `  orchestrator task wait 91c0 && echo done
  orchestrator task wait 91c0 5be1 --for any --timeout 30m`,
		Args:              cli.ArgCount(1, -1),
		ValidArgsFunction: CompleteTasks(a, true),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error {
				return waitTasks(ctx, a, d, args, until.Value == "any")
			})
		},
	}
	verb.Flags().Var(&until, "for", "wait for the state done, or for any end")
	_ = verb.RegisterFlagCompletionFunc("for", until.Complete)
	return verb
}

func waitTasks(ctx context.Context, a *cli.App, d *client.Client, words []string, anyEnd bool) error {
	ids, err := taskIDs(ctx, a, d, words)
	if err != nil {
		return err
	}
	v := vigil(a, d, ids, anyEnd)
	if err := v.keep(ctx); err != nil {
		return err
	}
	if a.Flags.JSON {
		if err := a.Document(documentOf(v.tasks)); err != nil {
			return err
		}
	}
	return v.verdict()
}

// A waiter waits for tasks to end. It reads their states with get-task, and again after
// each event about them.
type waiter struct {
	app    *cli.App
	door   *client.Client
	anyEnd bool // wait for any end, not only for done
	tasks  []Seen
	told   []string // last printed state of each task
	hush   func()   // ends the line about the wait
}

func vigil(a *cli.App, d *client.Client, ids []string, anyEnd bool) *waiter {
	v := &waiter{app: a, door: d, anyEnd: anyEnd, tasks: make([]Seen, len(ids)), told: make([]string, len(ids)), hush: func() {}}
	for i, id := range ids {
		v.tasks[i].ID = id
	}
	return v
}

// keep waits. It reads the number of the last event first, then the tasks, and then follows
// the events after that number, so that it misses none.
func (w *waiter) keep(ctx context.Context) error {
	since, err := w.latest(ctx)
	if err != nil {
		return w.explained(err)
	}
	for i := range w.tasks {
		if err := w.look(ctx, i); err != nil {
			return w.explained(err)
		}
	}
	if w.over() {
		return nil
	}
	return w.explained(w.follow(ctx, since))
}

// query returns the query for the events: by id for one task, else for all tasks.
func (w *waiter) query() url.Values {
	if len(w.tasks) == 1 {
		return url.Values{"task": {w.tasks[0].ID}}
	}
	return url.Values{"type": {"task.*"}}
}

// latest returns the number of the last event, or 0 from an orchestrator without that
// field. From 0 all past events are read again, which is slower but correct.
func (w *waiter) latest(ctx context.Context) (int64, error) {
	text, err := w.app.Ask(ctx, w.door, "status", struct{}{})
	if err != nil {
		return 0, err
	}
	status, err := client.Decode[struct {
		Seq int64 `json:"seq"`
	}](text)
	return status.Seq, err
}

// follow reads a task again after each event about it, until the wait is over.
func (w *waiter) follow(ctx context.Context, since int64) error {
	query := w.query()
	query.Set("follow", "true")
	query.Set("since", strconv.FormatInt(since, 10))
	w.await()
	defer func() { w.hush() }()
	body, err := w.door.Get(ctx, "events", query)
	if err != nil {
		return err
	}
	for line, err := range w.door.Lines(ctx, body) {
		if err != nil {
			return err
		}
		event, err := client.Decode[wire.Event](line)
		if err != nil {
			return err
		}
		if err := w.hear(ctx, &event); err != nil || w.over() {
			return err
		}
	}
	if err := w.app.Ended(ctx); err != nil {
		return err
	}
	return &cli.Failure{
		Exit: cli.ExitNotRunning, Code: cli.CodeNotRunning, Message: "the orchestrator has stopped",
		Hint: "Start it: orchestrator up",
	}
}

// hear reads the tasks again that an event may be about.
func (w *waiter) hear(ctx context.Context, e *wire.Event) error {
	if e.Kind == events.TaskProgress {
		return nil
	}
	for i := range w.tasks {
		if t := &w.tasks[i]; t.State.Final() || e.Kind != events.OrchestratorGap && e.Task != t.ID {
			continue
		}
		w.quiet()
		if err := w.look(ctx, i); err != nil {
			return err
		}
		if w.over() {
			return nil
		}
		w.await()
	}
	return nil
}

// look reads a task and prints a change of its state.
func (w *waiter) look(ctx context.Context, i int) error {
	a := w.app
	t, _, err := GetTask(ctx, a, w.door, w.tasks[i].ID)
	if err != nil {
		return err
	}
	w.tasks[i] = t
	if a.Flags.JSON || a.Flags.Quiet {
		return nil
	}
	words := stateOf(ctx, a, w.door, &t)
	if words == w.told[i] {
		return nil
	}
	w.told[i] = words
	p := a.Paint(a.Stdout)
	if err := a.Print("%s %s\n", p.Strong(term.ID(t.ID)), p.Task(t.State, words)); err != nil {
		return err
	}
	if h := (wire.Help{}); t.State == wire.TaskNeedsHuman && t.Details != nil && t.Help != nil {
		h = *t.Help
		a.Note("%s asks you: %s", term.OneLine(t.AssignedTo), term.Clip(term.OneLine(h.Question), 200))
		a.Note("Answer: orchestrator inbox answer %s VALUE%s", wire.Visible(h.QuestionID), a.Named())
	}
	return nil
}

// over reports whether the wait has ended.
func (w *waiter) over() bool {
	for i := range w.tasks {
		if state := w.tasks[i].State; state.Final() && state != wire.TaskDone && !w.anyEnd {
			return true
		}
	}
	return len(w.open()) == 0
}

// open returns the ids of the tasks that have not ended.
func (w *waiter) open() []string {
	var ids []string
	for i := range w.tasks {
		if !w.tasks[i].State.Final() {
			ids = append(ids, w.tasks[i].ID)
		}
	}
	return ids
}

// verdict returns the exit code of a finished wait, as an error.
func (w *waiter) verdict() error {
	bad := func(t Seen) bool { return t.State != wire.TaskDone }
	if !w.anyEnd && slices.ContainsFunc(w.tasks, bad) {
		return cli.ExitWith(cli.ExitNo)
	}
	return nil
}

// await starts to show the awaited event.
func (w *waiter) await() {
	w.quiet()
	labels := w.labels()
	what := labels[0]
	if len(labels) > 1 {
		what = term.Count(len(labels), "task")
	}
	w.hush = w.app.ShowWait(what)
}

func (w *waiter) quiet() {
	w.hush()
	w.hush = func() {}
}

// labels returns the names and states of the tasks that have not ended.
func (w *waiter) labels() []string {
	var labels []string
	for i := range w.tasks {
		switch t := &w.tasks[i].Task; {
		case t.State.Final():
		case t.State == "": // not read yet
			labels = append(labels, term.ID(t.ID))
		default:
			labels = append(labels, term.TaskLabel(t.ID, t.Name)+" ("+HeldWords(t)+")")
		}
	}
	return labels
}

// explained adds the tasks that continue to the error of an aborted wait.
func (w *waiter) explained(err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || len(w.open()) == 0 {
		return err
	}
	switch f.Exit {
	case cli.ExitTimeout, cli.ExitInterrupted, cli.ExitTerminated, cli.ExitHungUp:
		f.Hint = "The tasks continue. Wait again: orchestrator task wait " + ShortIDs(w.open())
	case cli.ExitNotRunning:
	default:
		return err
	}
	const few = 3
	labels := w.labels()
	if more := len(labels) - few; more > 0 {
		labels = append(labels[:few], fmt.Sprintf("%d more", more))
	}
	f.Because = append(f.Because, "Still open: "+strings.Join(labels, ", "))
	f.Details = map[string]any{"open": w.open()}
	return f
}
