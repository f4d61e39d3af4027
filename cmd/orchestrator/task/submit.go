package task

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

func taskSubmitCommand(a *cli.App) *cobra.Command {
	format := cli.Choice{Value: "d", Of: []string{"d"}}
	wait := false
	verb := &cobra.Command{
		Use:   "submit FILE|-",
		Short: "Submit a task request",
		Long: `Delegates a task to the agent that the request names, or to one with the capability
that its type names. The request is a JSON object, in a file or on stdin, and is
forwarded unchanged. See orchestrator help delegation. The only --format is d.

A request without an id gets a new UUID. An identical request with the same id is not
executed again.

With --wait the command waits until the task has ended and prints the last response.
The exit code is 0 if the task is completed.`,
		Example: `  orchestrator task submit request.json
  orchestrator task submit - --wait <request.json
  orchestrator task submit request.json --wait --json`,
		Args: cli.ArgCount(1, 1),
		ValidArgsFunction: func(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(already) == 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return submitTask(a, args[0], wait) },
	}
	verb.Flags().Var(&format, "format", "format of the request: d, a task request")
	verb.Flags().BoolVar(&wait, "wait", false, "wait until the task has ended, as task wait does")
	_ = verb.RegisterFlagCompletionFunc("format", format.Complete)
	return verb
}

func submitTask(a *cli.App, file string, wait bool) error {
	request, err := readRequest(a, file)
	if err != nil {
		return err
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		r, text, err := askResponse(ctx, a, d, "submit-task-request", request.Document)
		if err != nil {
			return notHandedOn(ctx, a, d, request, err)
		}
		for _, note := range request.Notes {
			a.Note("%s %s", a.Paint(a.Stderr).Warn("Note:"), term.OneLine(note))
		}
		told := ""
		if !a.Flags.JSON {
			told, err = showResponse(ctx, a, d, r)
		} else if !wait {
			err = a.Answer(text)
		}
		if err != nil || !wait {
			return err
		}
		return waitForResponse(ctx, a, d, r.ID, told)
	})
}

// anyDepth is the depth limit for documents that the orchestrator checks itself.
const anyDepth = 10_000

// readRequest reads a request from a file. Its error lists everything that is wrong.
func readRequest(a *cli.App, file string) (*delegation.Request, error) {
	source, name := "@"+file, file
	if file == "-" {
		source, name = file, "stdin"
	}
	text, err := a.ReadArg("FILE", source)
	if err != nil {
		return nil, err
	}
	request, wrong := wire.ReadTaskRequest(withID(text), anyDepth)
	if wrong == nil {
		return request, nil
	}
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: fmt.Sprintf("%s is not a task request: %s", name, wrong.Message),
		Hint: "The format: orchestrator help delegation", Details: wrong.Details,
	}
	all, _ := wrong.Details["errors"].([]object.Problem)
	for _, problem := range all {
		f.Because = append(f.Because, problem.String())
	}
	return nil, f
}

// withID adds an id to a request without one. It returns text that is not an object
// unchanged.
func withID(text string) []byte {
	var members map[string]wire.Raw
	if err := object.Decode([]byte(text), &members); err != nil || members == nil {
		return []byte(text)
	}
	if _, has := members["id"]; has {
		return []byte(text)
	}
	comma := ","
	if len(members) == 0 {
		comma = ""
	}
	return fmt.Appendf(nil, `{"id":%q%s%s`, uuid.NewString(), comma, strings.TrimSpace(text)[1:])
}

// notHandedOn adds to the error of a request the places of the mistakes and the agent that
// was probably meant.
func notHandedOn(ctx context.Context, a *cli.App, d *client.Client, request *delegation.Request, err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok {
		return err
	}
	switch f.Details["reason"] {
	case "agent_not_found":
		if unknown, ok := errors.AsType[*cli.Failure](isAgent(ctx, a, d, request.Routing.Target)); ok && unknown.Code == wire.CodeNotFound {
			unknown.Details = f.Details
			return unknown
		}
	case "capability_not_found":
		f.Hint = "List the task types of an agent: orchestrator agent show NAME"
	case "id_reused":
		f.Hint = "Use a new id for each request. A request without an id gets a new one"
	}
	return cli.ProblemsBelow(f, func(pointer string) string { return strings.TrimPrefix(pointer, "/payload") })
}

// waitForResponse waits as task wait does and then prints the last response.
func waitForResponse(ctx context.Context, a *cli.App, d *client.Client, id, told string) error {
	v := vigil(a, d, []string{id}, false)
	v.told[0] = told
	if err := v.keep(ctx); err != nil {
		return err
	}
	r, text, err := askResponse(ctx, a, d, "get-task-response", wire.GetTaskResponse{TaskID: id})
	if err != nil {
		return err
	}
	if err := showWhole(a, r, text); err != nil {
		return err
	}
	return v.verdict()
}
