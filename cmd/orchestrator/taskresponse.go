package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) taskResponseCommand() *cobra.Command {
	artifact := ""
	verb := &cobra.Command{
		Use:   "response ID",
		Short: "Show the response to a delegated task",
		Long: `Shows the latest response to a task request: the status, the result or why there is
none, what is asked, and what was made.

With --artifact it prints what is in one artifact, as it is, and nothing else.`,
		Example: `  orchestrator task response 91c0
  orchestrator task response 91c0 --json
  orchestrator task response 91c0 --artifact draft.md > draft.md`,
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeOneTask(true),
		RunE: func(verb *cobra.Command, args []string) error {
			if !verb.Flags().Changed("artifact") {
				return a.speak(func(ctx context.Context, d *client) error { return a.response(ctx, d, args[0]) })
			}
			switch {
			case a.flags.json:
				return usageError("--artifact and --json exclude each other", "Leave one out: the JSON has all artifacts")
			case isTerminal(a.stdout):
				return usageError("--artifact is not for a terminal: agents could do anything to it", "Send it elsewhere: "+verb.CommandPath()+" ID --artifact NAME > FILE")
			}
			return a.speak(func(ctx context.Context, d *client) error { return a.artifact(ctx, d, args[0], artifact) })
		},
	}
	verb.Flags().StringVar(&artifact, "artifact", "", "only what is in the artifact of this `NAME`, as it is; not on a terminal")
	_ = verb.RegisterFlagCompletionFunc("artifact", cobra.NoFileCompletions)
	return verb
}

// askResponse calls an operation that answers with a task response: that, and the
// answer as it came.
func (a *app) askResponse(ctx context.Context, d *client, operation string, request any) (*wire.TaskResponse, []byte, error) {
	text, err := a.ask(ctx, d, operation, request)
	if err != nil {
		return nil, nil, err
	}
	r, wrong := wire.ReadTaskResponse(text, anyDepth)
	if wrong != nil {
		return nil, nil, fmt.Errorf("reading the orchestrator's answer: %w", wrong)
	}
	return r, text, nil
}

func (a *app) getResponse(ctx context.Context, d *client, word string) (*wire.TaskResponse, []byte, error) {
	id, err := a.finder(d).id(ctx, word)
	if err != nil {
		return nil, nil, err
	}
	r, text, err := a.askResponse(ctx, d, "get-task-response", wire.GetTaskResponse{TaskID: id})
	return r, text, a.explained(ctx, d, err)
}

func (a *app) response(ctx context.Context, d *client, word string) error {
	r, text, err := a.getResponse(ctx, d, word)
	if err != nil {
		return err
	}
	return a.showWhole(r, text)
}

// showWhole shows a response with everything in it.
func (a *app) showWhole(r *wire.TaskResponse, text []byte) error {
	switch {
	case a.flags.json:
		return a.answer(text)
	case a.flags.quiet:
		return nil
	}
	return a.print("%s", responseCard(r, a.paint(a.stdout), time.Now()))
}

// showResponse says in a line how a task stands. Told is what there is to say of
// its state, so that it is not sent again.
func (a *app) showResponse(ctx context.Context, d *client, r *wire.TaskResponse) (told string, err error) {
	if a.flags.quiet {
		return "", a.print("%s\n", wire.Visible(r.ID))
	}
	var known *wire.Task
	if t, _, err := a.getTask(ctx, d, r.ID); err == nil {
		known, told = &t.Task, a.words(ctx, d, &t)
	}
	p := a.paint(a.stdout)
	return told, a.print("%s %s\n", p.strong(plain.ID(r.ID)), responseWords(r, p, known))
}

// artifact prints what is in an artifact: the last of its name.
func (a *app) artifact(ctx context.Context, d *client, word, name string) error {
	r, _, err := a.getResponse(ctx, d, word)
	if err != nil {
		return err
	}
	var names []string
	var made *wire.Artifact
	for i := range r.Artifacts {
		names = append(names, plain.OneLine(r.Artifacts[i].Name))
		if r.Artifacts[i].Name == name {
			made = &r.Artifacts[i]
		}
	}
	switch {
	case made == nil:
		return noArtifact(r.ID, name, names)
	case made.Content == "" && made.Ref != "":
		return elsewhere(made)
	}
	return a.print("%s", made.Content)
}

// elsewhere says where the content of an artifact is, or that it was here and is lost.
func elsewhere(made *wire.Artifact) *failure {
	f := &failure{exit: exitNo, code: codeFailed, details: map[string]any{"ref": made.Ref}}
	if wire.IsArtifactRef(made.Ref) { // else the content would be in its place
		f.message = fmt.Sprintf("the content of %q is lost", made.Name)
		f.because = []string{
			"It was kept in <state_dir>/artifacts as " + plain.OneLine(made.Ref) + ", and is gone, or was changed",
			"The log of the orchestrator says why",
		}
		f.hint = "Put it back from a backup, or ask for the work again, with a new id: orchestrator task submit FILE"
		return f
	}
	f.message = fmt.Sprintf("%q is not here", made.Name)
	f.because = []string{"It is at " + plain.OneLine(made.Ref)}
	f.hint = "Get it from there: its agent has said where it is, and nothing more"
	return f
}

func noArtifact(id, name string, names []string) *failure {
	f := &failure{
		exit: exitNotFound, code: wire.CodeNotFound,
		message: fmt.Sprintf("task %s has no artifact %q%s", plain.ID(id), name, didYouMean(name, names)),
		hint:    "See what became of it: orchestrator task response " + plain.ID(id),
	}
	if len(names) > 0 {
		f.because = []string{"It has " + strings.Join(names, ", ")}
	}
	return f
}

func (a *app) taskInputCommand() *cobra.Command {
	document := ""
	verb := &cobra.Command{
		Use:   "input ID [TEXT|@FILE|-]",
		Short: "Give a delegated task the input that its agent waits for",
		Long: `Brings a task what its agent has asked for: a text, or with --json-input any JSON
value. Where the response lists answers it is one of them. What waits for an answer:
orchestrator inbox.

The text is the text itself, @FILE for what is in a file, or - for what comes on stdin;
so is the JSON.`,
		Example: `  orchestrator task input 91c0 "without nuts"
  orchestrator task input 91c0 --json-input '{"servings": 4}'`,
		Args:              argCount(1, 2),
		ValidArgsFunction: a.completeOneTask(false),
		RunE: func(verb *cobra.Command, args []string) error {
			input, err := a.readInput(args[1:], verb.Flags().Changed("json-input"), document)
			if err != nil {
				return err
			}
			return a.speak(func(ctx context.Context, d *client) error { return a.bringInput(ctx, d, args[0], input) })
		},
	}
	verb.Flags().StringVar(&document, "json-input", "", "what it needs, a `JSON` value; or @FILE or -")
	return verb
}

// readInput reads what a task is given: a text, or else a JSON value.
func (a *app) readInput(text []string, isJSON bool, document string) (wire.Raw, error) {
	switch {
	case isJSON && len(text) > 0:
		return nil, usageError("a text and --json-input exclude each other", "Leave one out")
	case !isJSON && len(text) == 0:
		return nil, usageError("nothing is given to the task", "Write the text, or --json-input JSON")
	case !isJSON:
		said, err := a.readArg("TEXT", text[0])
		return wire.Raw(wire.Quote(said)), err
	}
	said, err := a.readArg("--json-input", document)
	if err != nil {
		return nil, err
	}
	input := wire.Raw(strings.TrimSpace(said))
	if !input.IsValid() {
		return nil, usageError("--json-input is no JSON: "+plain.Clip(plain.OneLine(said), 60), `A text without --json-input needs no quotes`)
	}
	return input, nil
}

func (a *app) bringInput(ctx context.Context, d *client, word string, input wire.Raw) error {
	id, err := a.finder(d).id(ctx, word)
	if err != nil {
		return err
	}
	r, text, err := a.askResponse(ctx, d, "update-task-request", wire.UpdateTaskRequest{TaskID: id, Input: input})
	switch {
	case err != nil:
		return notAnswered(a.explained(ctx, d, err))
	case a.flags.json:
		return a.answer(text)
	}
	_, err = a.showResponse(ctx, d, r)
	return err
}
