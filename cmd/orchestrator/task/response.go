package task

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

func taskResponseCommand(a *cli.App) *cobra.Command {
	artifact := ""
	verb := &cobra.Command{
		Use:   "response ID",
		Short: "Show the response to a delegated task, or an artifact",
		Long: `Shows the latest response to a task request: the status, the result or the error, the
question and the artifacts. A task that was not delegated is shown in the same form.

With --artifact it prints only the unchanged content of one artifact.`,
		Example: `  orchestrator task response 91c0
  orchestrator task response 91c0 --json
  orchestrator task response 91c0 --artifact draft.md > draft.md`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(verb *cobra.Command, args []string) error {
			if !verb.Flags().Changed("artifact") {
				return onTask(a, args[0], response)
			}
			switch {
			case a.Flags.JSON:
				return cli.UsageError("--artifact and --json cannot be combined", "Leave out one of them: the JSON has all artifacts")
			case term.IsTerminal(a.Stdout):
				return cli.UsageError("--artifact does not print to a terminal: the content could control it", "Redirect it: "+verb.CommandPath()+" ID --artifact NAME > FILE")
			}
			return onTask(a, args[0], func(ctx context.Context, a *cli.App, d *client.Client, id string) error {
				return printArtifact(ctx, a, d, id, artifact)
			})
		},
	}
	verb.Flags().StringVar(&artifact, "artifact", "", "print only the content of the artifact `NAME`; not on a terminal")
	_ = verb.RegisterFlagCompletionFunc("artifact", cobra.NoFileCompletions)
	return verb
}

// askResponse calls an operation that answers with a task response. It returns the response
// and the unchanged answer.
func askResponse(ctx context.Context, a *cli.App, d *client.Client, operation string, request any) (*delegation.Response, []byte, error) {
	text, err := a.Ask(ctx, d, operation, request)
	if err != nil {
		return nil, nil, err
	}
	r, wrong := wire.ReadTaskResponse(text, anyDepth)
	if wrong != nil {
		return nil, nil, fmt.Errorf("reading the orchestrator's answer: %w", wrong)
	}
	return r, text, nil
}

func getResponse(ctx context.Context, a *cli.App, d *client.Client, id string) (*delegation.Response, []byte, error) {
	r, text, err := askResponse(ctx, a, d, "get-task-response", wire.GetTaskResponse{TaskID: id})
	return r, text, explained(ctx, a, d, err)
}

func response(ctx context.Context, a *cli.App, d *client.Client, id string) error {
	r, text, err := getResponse(ctx, a, d, id)
	if err != nil {
		return err
	}
	return showWhole(a, r, text)
}

// showWhole prints a response in full.
func showWhole(a *cli.App, r *delegation.Response, text []byte) error {
	switch {
	case a.Flags.JSON:
		return a.Answer(text)
	case a.Flags.Quiet:
		return nil
	}
	return a.Print("%s", responseCard(r, a.Paint(a.Stdout), time.Now()))
}

// showResponse prints the status of a delegated task in a line. It returns the state it has
// shown, so that a following wait does not repeat it.
func showResponse(ctx context.Context, a *cli.App, d *client.Client, r *delegation.Response) (told string, err error) {
	if a.Flags.Quiet {
		return "", a.Print("%s\n", wire.Visible(r.ID))
	}
	var known *wire.Task
	if t, _, err := GetTask(ctx, a, d, r.ID); err == nil {
		known, told = &t.Task, stateOf(ctx, a, d, &t)
	}
	p := a.Paint(a.Stdout)
	return told, a.Print("%s %s\n", p.Strong(term.ID(r.ID)), responseWords(r, p, known))
}

// printArtifact prints the content of the last artifact with a name.
func printArtifact(ctx context.Context, a *cli.App, d *client.Client, id, name string) error {
	r, _, err := getResponse(ctx, a, d, id)
	if err != nil {
		return err
	}
	var names []string
	var made *delegation.Artifact
	for i := range r.Artifacts {
		names = append(names, term.OneLine(r.Artifacts[i].Name))
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
	return a.Print("%s", made.Content)
}

// elsewhere returns the failure for an artifact without content, which is lost or
// elsewhere.
func elsewhere(made *delegation.Artifact) *cli.Failure {
	f := &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Details: map[string]any{"ref": made.Ref}}
	if delegation.IsArtifactRef(made.Ref) { // the content would be here if it were not lost
		f.Message = fmt.Sprintf("the content of %q is lost", made.Name)
		f.Because = []string{
			"It was stored in <state_dir>/artifacts as " + term.OneLine(made.Ref) + ", but the file is gone or was changed",
			"See the log of the orchestrator for the reason",
		}
		f.Hint = "Restore it from a backup, or request the work again with a new id: orchestrator task submit FILE"
		return f
	}
	f.Message = fmt.Sprintf("%q is stored elsewhere", made.Name)
	f.Because = []string{"It is at " + term.OneLine(made.Ref)}
	f.Hint = "Fetch it from there: its agent reported only the location"
	return f
}

func noArtifact(id, name string, names []string) *cli.Failure {
	f := &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
		Message: fmt.Sprintf("task %s has no artifact %q%s", term.ID(id), name, cli.DidYouMean(name, names)),
		Hint:    "See its response: orchestrator task response " + term.ID(id),
	}
	if len(names) > 0 {
		f.Because = []string{"It has " + strings.Join(names, ", ")}
	}
	return f
}

func taskInputCommand(a *cli.App) *cobra.Command {
	document := ""
	verb := &cobra.Command{
		Use:   "input ID [TEXT|@FILE|-]",
		Short: "Give a delegated task the input that its agent waits for",
		Long: `Gives a task the input that its agent has asked for: a text, or with --json-input any
JSON value. If the response lists options, the input must be one of them. The command
orchestrator inbox lists open questions.

The text and the JSON are given directly, as @FILE, or as - for stdin.`,
		Example: `  orchestrator task input 91c0 "without nuts"
  orchestrator task input 91c0 --json-input '{"servings": 4}'`,
		Args:              cli.ArgCount(1, 2),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(verb *cobra.Command, args []string) error {
			input, err := readInput(a, args[1:], verb.Flags().Changed("json-input"), document)
			if err != nil {
				return err
			}
			return onTask(a, args[0], func(ctx context.Context, a *cli.App, d *client.Client, id string) error {
				return bringInput(ctx, a, d, wire.UpdateTaskRequest{TaskID: id, Input: input})
			})
		},
	}
	verb.Flags().StringVar(&document, "json-input", "", "input as a `JSON` value, @FILE or -")
	return verb
}

// readInput returns the input for a task: a text, or else a JSON value.
func readInput(a *cli.App, text []string, isJSON bool, document string) (wire.Raw, error) {
	switch {
	case isJSON && len(text) > 0:
		return nil, cli.UsageError("a text and --json-input cannot be combined", "Leave one out")
	case !isJSON && len(text) == 0:
		return nil, cli.UsageError("the input for the task is missing", "Write the text, or --json-input JSON")
	case !isJSON:
		said, err := a.ReadArg("TEXT", text[0])
		return wire.Raw(object.Quote(said)), err
	}
	said, err := a.ReadArg("--json-input", document)
	if err != nil {
		return nil, err
	}
	input := wire.Raw(strings.TrimSpace(said))
	if !input.IsValid() {
		return nil, cli.UsageError("--json-input is not valid JSON: "+term.Clip(term.OneLine(said), 60), `For plain text, leave out --json-input`)
	}
	return input, nil
}

func bringInput(ctx context.Context, a *cli.App, d *client.Client, request wire.UpdateTaskRequest) error {
	r, text, err := askResponse(ctx, a, d, "update-task-request", request)
	switch {
	case err != nil:
		return cli.WithAnswers(explained(ctx, a, d, err))
	case a.Flags.JSON:
		return a.Answer(text)
	}
	_, err = showResponse(ctx, a, d, r)
	return err
}

// HandedOn reports whether a task was delegated by a task request. It is false for tasks
// from lists, which omit the details.
func HandedOn(t *wire.Task) bool { return t.Details != nil && t.Routing != nil }

// addDelegation adds the rows of a delegated task: source, target, conversation and trace.
func addDelegation(c *term.Card, t *wire.Task) {
	if r := t.Routing; r != nil {
		c.Row("requested by", r.Source)
		c.Row("target", r.Target)
		c.Row("via", strings.Join(r.Chain, " -> "))
	}
	if x := t.Context; x != nil {
		c.Row("conversation", x.ConversationID)
		c.Row("user", x.User)
		c.Row("requested at", x.Timestamp)
	}
	if trace := t.Observability; trace != nil {
		c.Row("trace", trace.TraceID)
		c.Row("span", trace.SpanID)
		if trace.Baggage != nil {
			c.Text("baggage", string(trace.Baggage))
		}
	}
}

// artifacts adds the rows of the artifacts of a response: names, types and sizes.
func artifacts(c *term.Card, r *delegation.Response) {
	var rows []artifactRow
	for i := range r.Artifacts {
		made := &r.Artifacts[i]
		where := sizeWords(len(made.Content))
		switch {
		case made.Content != "" || made.Ref == "":
		case delegation.IsArtifactRef(made.Ref): // the content would be here if it were not lost
			where = "lost: " + term.OneLine(made.Ref)
		default:
			where = "at " + term.OneLine(made.Ref)
		}
		rows = append(rows, artifactRow{made.Name, made.Type, where})
	}
	c.Rows("artifacts", artifactLines(rows))
}

// listedArtifacts adds the rows of the artifacts of a task, and how to get one.
func listedArtifacts(c *term.Card, t *wire.Task) {
	if t.Details == nil || len(t.Artifacts) == 0 {
		return
	}
	var rows []artifactRow
	for _, made := range t.Artifacts {
		where := sizeWords(int(made.Size))
		if made.Ref != "" {
			where = "at " + term.OneLine(made.Ref)
		}
		rows = append(rows, artifactRow{made.Name, made.Type, where})
	}
	c.Rows("artifacts", append(artifactLines(rows), "Get one: orchestrator task response "+term.ID(t.ID)+" --artifact NAME > FILE"))
}

// An artifactRow is an artifact in a list.
type artifactRow struct{ name, kind, where string }

func artifactLines(rows []artifactRow) []string {
	names, kinds := 0, 0
	for _, r := range rows {
		names, kinds = max(names, term.Width(term.OneLine(r.name))), max(kinds, term.Width(term.OneLine(r.kind)))
	}
	var lines []string
	for _, r := range rows {
		lines = append(lines, term.Pad(term.OneLine(r.name), names)+"  "+term.Pad(term.OneLine(r.kind), kinds)+"  "+r.where)
	}
	return lines
}

// responseCard returns a response in full.
func responseCard(r *delegation.Response, p term.Paint, now time.Time) string {
	c := term.Card{}
	m := r.Metadata
	at := func(stamp string) string { return term.Clock(stamp, now, time.TimeOnly) }
	c.Row("agent", m.Agent)
	c.Row("started", at(m.StartedAt))
	c.Row("ended", at(m.CompletedAt))
	if m.DurationMS != nil {
		c.Row("took", term.Duration(time.Duration(*m.DurationMS)*time.Millisecond))
	}
	if m.RetryCount != nil && *m.RetryCount > 0 {
		c.Row("retries", fmt.Sprint(*m.RetryCount))
	}
	c.Text("question", r.Question)
	var options []string
	for _, o := range r.Options {
		option := o.Value
		if o.Label != "" && o.Label != o.Value {
			option += "  " + o.Label
		}
		options = append(options, option)
	}
	c.Rows("answers", options)
	c.Text("result", resultText(r.Result))
	if f := r.Fault; f != nil {
		c.Text("error", f.Code+": "+f.Message)
		c.Text("details", string(f.Details))
		if f.Recoverable {
			c.Row("", "a retry may succeed")
		}
	}
	artifacts(&c, r)
	return p.Strong(wire.Visible(r.ID)) + "  " + inkResponse(p, r.Status, wire.Visible(r.Status)) + "\n" + term.Table(c.Lines)
}

// inkResponse paints a text in the color of the status of a response.
func inkResponse(p term.Paint, status, text string) string {
	for _, state := range wire.TaskStates {
		if state.Response() == status {
			return p.Task(state, text)
		}
	}
	return text
}

// responseWords returns a response in one line, without its id.
func responseWords(r *delegation.Response, p term.Paint, t *wire.Task) string {
	with := "no agent yet"
	if t != nil && t.AssignedTo != "" {
		with = "with " + term.OneLine(t.AssignedTo)
	}
	words := inkResponse(p, r.Status, wire.Visible(r.Status)) + ", " + with
	switch {
	case r.Fault != nil:
		words += term.Colon(r.Fault.Code + ": " + r.Fault.Message)
	case r.Question != "":
		words += term.Colon(r.Question)
	}
	return words + resultWords(r.Result)
}

// WasBrought reports whether a delegated task was forwarded to its current agent.
func WasBrought(found []wire.Event) bool {
	for _, e := range slices.Backward(found) {
		switch e.Kind {
		case events.TaskForwarded:
			return true
		case events.TaskAssigned, events.TaskReturned:
			return false
		}
	}
	return false
}
