package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

// addFlags are what a new task is to be.
type addFlags struct {
	kind         string
	spec         string
	payload      string
	needs        []string
	role         choice
	capabilities []string
	priority     string
	wait         bool
}

// noRole is what --role says for a task that any role may do.
const noRole = "none"

func (a *app) taskAddCommand() *cobra.Command {
	f := addFlags{role: choice{of: append(slices.Clone(wire.Roles), noRole)}}
	verb := &cobra.Command{
		Use:   "add TITLE",
		Short: "Hand out a new task",
		Long: `Makes a task. It goes by itself to an idle agent that has the role and all of the
capabilities, as soon as the tasks it needs are done.

Without --role and --capability it is for a worker. --role none leaves the role
open, for whoever has the capabilities.

--spec and --payload take the text itself, @FILE for what is in a file, or - for
what comes on stdin.`,
		Example: `  orchestrator task add "Say hello"
  orchestrator task add "API handlers" --needs 7f3a --capability go --wait
  orchestrator task add "Review the API" --role reviewer --spec @review.md
  id=$(orchestrator task add "Write the spec" -q)`,
		Args:              words(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, args []string) error {
			if verb.Flags().Changed("needs") && len(f.needs) == 0 { // an empty variable is not "nothing"
				return misused("--needs is empty", "Leave it out for a task that needs no other")
			}
			return a.addTask(args[0], &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.kind, "type", "task", "what `KIND` of work it is; agents are told")
	set.StringVar(&f.spec, "spec", "", "what is to be done: `TEXT`, @FILE or -")
	set.StringVar(&f.payload, "payload", "", "a `JSON` object for the agent; or @FILE or -")
	set.StringSliceVar(&f.needs, "needs", nil, "tasks that must be done first: `ID,…`, may be repeated")
	set.Var(&f.role, "role", "the role of the agent: worker, planner, reviewer, or none for any")
	set.StringSliceVar(&f.capabilities, "capability", nil, "what the agent must be able to do: `NAME,…`, may be repeated")
	set.StringVar(&f.priority, "priority", "", "a number: `P` 1 comes first, 3 is what it has without one")
	set.BoolVar(&f.wait, "wait", false, "come back when it has ended, as task wait does")
	_ = verb.RegisterFlagCompletionFunc("needs", a.completeTasks(true))
	_ = verb.RegisterFlagCompletionFunc("role", f.role.complete)
	for _, name := range []string{"type", "capability", "priority"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return verb
}

// request is what is asked of the orchestrator; the tasks it needs are added
// later.
func (f *addFlags) request(a *app, title string) (*wire.SubmitTask, error) {
	if f.spec == "-" && f.payload == "-" {
		return nil, misused("--spec and --payload cannot both come from stdin", "Give one of them as @FILE")
	}
	if f.role.value == noRole && len(f.capabilities) == 0 {
		return nil, misused("--role none wants a --capability: a task that asks for nothing is given to nobody", "Leave --role out for any worker")
	}
	r := &wire.SubmitTask{Type: f.kind, Name: title, RequiredRole: f.role.value, RequiredCapabilities: f.capabilities}
	switch {
	case f.role.value == noRole:
		r.RequiredRole = ""
	case f.role.value == "" && len(f.capabilities) == 0:
		r.RequiredRole = wire.RoleWorker
	}
	if f.priority != "" {
		r.Priority = wire.Raw(f.priority)
		if !r.Priority.IsValid() || r.Priority.Kind() != '0' {
			return nil, misused("--priority cannot be \""+f.priority+"\"", "It is a number: 1 comes first, 3 is what a task has without one")
		}
	}
	var err error
	if r.Description, err = a.given("--spec", f.spec); err != nil {
		return nil, err
	}
	r.Payload, err = a.givenDocument("payload", f.payload)
	return r, err
}

func (a *app) addTask(title string, f *addFlags) error {
	request, err := f.request(a, title)
	if err != nil {
		return err
	}
	return a.speak(func(ctx context.Context, d *door) error {
		if request.Dependencies, err = a.taskIDs(ctx, d, f.needs); err != nil {
			return err
		}
		t, text, err := a.askTask(ctx, d, "submit-task", request)
		if err != nil {
			return err
		}
		words := ""
		switch {
		case a.flags.json && !f.wait:
			return a.answer(text)
		case a.flags.json:
		case a.flags.quiet:
			err = a.print("%s\n", wire.Visible(t.ID))
		default:
			words, err = a.created(ctx, d, t)
		}
		if err != nil || !f.wait {
			return err
		}
		return a.waitForNew(ctx, d, t.ID, words)
	})
}

// created says that there is a new task, and what has become of it meanwhile.
func (a *app) created(ctx context.Context, d *door, t taskSeen) (words string, err error) {
	if now, _, err := a.getTask(ctx, d, t.ID); err == nil {
		t = now
	}
	words = a.words(ctx, d, &t)
	return words, a.print("%s created, %s\n", a.paint(a.stdout).strong(shortID(t.ID)), words)
}

// waitForNew goes on as task wait does.
func (a *app) waitForNew(ctx context.Context, d *door, id, told string) error {
	v := a.vigil(d, []string{id}, false)
	v.told[0] = told
	if err := v.keep(ctx); err != nil {
		return err
	}
	if a.flags.json {
		if err := a.document(taskDocument{FormatVersion: wire.FormatVersion, Task: v.tasks[0].raw}); err != nil {
			return err
		}
	}
	return v.verdict()
}
