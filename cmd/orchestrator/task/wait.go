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
			return a.WithClient(func(ctx context.Context, d *cli.Client) error {
				return waitTasks(ctx, a, d, args, until.Value == "any")
			})
		},
	}
	verb.Flags().Var(&until, "for", "what is waited for: done, or any end")
	_ = verb.RegisterFlagCompletionFunc("for", until.Complete)
	return verb
}

func waitTasks(ctx context.Context, a *cli.App, d *cli.Client, words []string, anyEnd bool) error {
	ids, err := TaskIDs(ctx, a, d, words)
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
	door   *cli.Client
	anyEnd bool // wait for any end, not only for done
	tasks  []Seen
	told   []string // last printed state of each task
	hush   func()   // ends the line that shows what is awaited
}

func vigil(a *cli.App, d *cli.Client, ids []string, anyEnd bool) *waiter {
	v := &waiter{app: a, door: d, anyEnd: anyEnd, tasks: make([]Seen, len(ids)), told: make([]string, len(ids)), hush: func() {}}
	for i, id := range ids {
		v.tasks[i].ID = id
	}
	return v
}

// keep waits. It reads the number of the last event first, then the tasks, and then follows
// the events after that number, so that it misses none.
func (v *waiter) keep(ctx context.Context) error {
	since, err := v.latest(ctx)
	if err != nil {
		return v.explained(err)
	}
	for i := range v.tasks {
		if err := v.look(ctx, i); err != nil {
			return v.explained(err)
		}
	}
	if v.over() {
		return nil
	}
	return v.explained(v.follow(ctx, since))
}

// query returns the query for the events: by id for one task, else for all tasks.
func (v *waiter) query() url.Values {
	if len(v.tasks) == 1 {
		return url.Values{"task": {v.tasks[0].ID}}
	}
	return url.Values{"type": {"task.*"}}
}

// latest returns the number of the last event, or 0 from an orchestrator without that
// field. From 0 all past events are read again, which is slower but correct.
func (v *waiter) latest(ctx context.Context) (int64, error) {
	text, err := v.app.Ask(ctx, v.door, "status", struct{}{})
	if err != nil {
		return 0, err
	}
	status, err := cli.Decode[struct {
		Seq int64 `json:"seq"`
	}](text)
	return status.Seq, err
}

// follow reads a task again after each event about it, until the wait is over.
func (v *waiter) follow(ctx context.Context, since int64) error {
	query := v.query()
	query.Set("follow", "true")
	query.Set("since", strconv.FormatInt(since, 10))
	v.await()
	defer func() { v.hush() }()
	body, err := v.door.Get(ctx, "events", query)
	if err != nil {
		return err
	}
	for line, err := range v.door.Lines(ctx, body) {
		if err != nil {
			return err
		}
		event, err := cli.Decode[wire.Event](line)
		if err != nil {
			return err
		}
		if err := v.hear(ctx, &event); err != nil || v.over() {
			return err
		}
	}
	if err := v.app.Ended(ctx); err != nil {
		return err
	}
	return &cli.Failure{
		Exit: cli.ExitNotRunning, Code: cli.CodeNotRunning, Message: "the orchestrator has stopped",
		Hint: "Start it: orchestrator up",
	}
}

// hear reads the tasks again that an event may be about.
func (v *waiter) hear(ctx context.Context, e *wire.Event) error {
	if e.Kind == events.TaskProgress {
		return nil
	}
	for i := range v.tasks {
		if t := &v.tasks[i]; t.State.Final() || e.Kind != events.OrchestratorGap && e.Task != t.ID {
			continue
		}
		v.quiet()
		if err := v.look(ctx, i); err != nil {
			return err
		}
		if v.over() {
			return nil
		}
		v.await()
	}
	return nil
}

// look reads a task and prints a change of its state.
func (v *waiter) look(ctx context.Context, i int) error {
	a := v.app
	t, _, err := GetTask(ctx, a, v.door, v.tasks[i].ID)
	if err != nil {
		return err
	}
	v.tasks[i] = t
	if a.Flags.JSON || a.Flags.Quiet {
		return nil
	}
	words := stateOf(ctx, a, v.door, &t)
	if words == v.told[i] {
		return nil
	}
	v.told[i] = words
	p := a.Paint(a.Stdout)
	return a.Print("%s %s\n", p.Strong(term.ID(t.ID)), p.Task(t.State, words))
}

// over reports whether there is nothing more to wait for.
func (v *waiter) over() bool {
	for i := range v.tasks {
		if state := v.tasks[i].State; state.Final() && state != wire.TaskDone && !v.anyEnd {
			return true
		}
	}
	return len(v.open()) == 0
}

// open returns the ids of the tasks that have not ended.
func (v *waiter) open() []string {
	var ids []string
	for i := range v.tasks {
		if !v.tasks[i].State.Final() {
			ids = append(ids, v.tasks[i].ID)
		}
	}
	return ids
}

// verdict returns the exit code of a finished wait, as an error.
func (v *waiter) verdict() error {
	bad := func(t Seen) bool { return t.State != wire.TaskDone }
	if !v.anyEnd && slices.ContainsFunc(v.tasks, bad) {
		return cli.ExitWith(cli.ExitNo)
	}
	return nil
}

// await starts to show what is awaited.
func (v *waiter) await() {
	v.quiet()
	labels := v.labels()
	what := labels[0]
	if len(labels) > 1 {
		what = term.Count(len(labels), "task")
	}
	v.hush = v.app.ShowWait(what)
}

func (v *waiter) quiet() {
	v.hush()
	v.hush = func() {}
}

// labels returns the names and states of the tasks that have not ended.
func (v *waiter) labels() []string {
	var labels []string
	for i := range v.tasks {
		switch t := &v.tasks[i].Task; {
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
func (v *waiter) explained(err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || len(v.open()) == 0 {
		return err
	}
	switch f.Exit {
	case cli.ExitTimeout, cli.ExitInterrupted, cli.ExitTerminated, cli.ExitHungUp:
		f.Hint = "Nothing was stopped. Wait again: orchestrator task wait " + ShortIDs(v.open())
	case cli.ExitNotRunning:
	default:
		return err
	}
	const few = 3
	labels := v.labels()
	if more := len(labels) - few; more > 0 {
		labels = append(labels[:few], fmt.Sprintf("%d more", more))
	}
	f.Because = append(f.Because, "Still open: "+strings.Join(labels, ", "))
	f.Details = map[string]any{"open": v.open()}
	return f
}
