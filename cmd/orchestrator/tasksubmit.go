package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) taskSubmitCommand() *cobra.Command {
	format := choice{value: "d", of: []string{"d"}}
	wait := false
	verb := &cobra.Command{
		Use:   "submit FILE|-",
		Short: "Submit a task request",
		Long: `Hands a task on to the agent that it names, or to one that does what its type says.
The request is one JSON object, in a file or on stdin, and goes to the agent as it is:
orchestrator help delegation. That form is called d, and is the only one: --format is
there because others may come, and a script that names it will mean the same then.

A request without an id gets one, a UUID. The id and the words of an earlier one are
that one once more: it is not done twice.

With --wait it comes back when the task has ended, with the last response; the exit
code is 0 when the task is completed.`,
		Example: `  orchestrator task submit request.json
  orchestrator task submit - --wait <request.json
  orchestrator task submit request.json --wait --json`,
		Args: argCount(1, 1),
		ValidArgsFunction: func(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(already) == 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.submitTask(args[0], wait) },
	}
	verb.Flags().Var(&format, "format", "what the request is written in: d, a task request")
	verb.Flags().BoolVar(&wait, "wait", false, "come back when it has ended, as task wait does")
	_ = verb.RegisterFlagCompletionFunc("format", format.complete)
	return verb
}

func (a *app) submitTask(file string, wait bool) error {
	request, err := a.readRequest(file)
	if err != nil {
		return err
	}
	return a.speak(func(ctx context.Context, d *client) error {
		r, text, err := a.askResponse(ctx, d, "submit-task-request", request.Document)
		if err != nil {
			return a.notHandedOn(ctx, d, request, err)
		}
		for _, note := range request.Notes {
			a.note("%s %s", a.paint(a.stderr).warn("Note:"), plain.OneLine(note))
		}
		told := ""
		if !a.flags.json {
			told, err = a.showResponse(ctx, d, r)
		} else if !wait {
			err = a.answer(text)
		}
		if err != nil || !wait {
			return err
		}
		return a.waitForResponse(ctx, d, r.ID, told)
	})
}

// anyDepth is how deep a document may nest that is judged elsewhere.
const anyDepth = 10_000

// readRequest reads a request out of a file, and says everything that is wrong with
// it.
func (a *app) readRequest(file string) (*wire.TaskRequest, error) {
	source, name := "@"+file, file
	if file == "-" {
		source, name = file, "stdin"
	}
	text, err := a.readArg("FILE", source)
	if err != nil {
		return nil, err
	}
	request, wrong := wire.ReadTaskRequest(withID(text), anyDepth)
	if wrong == nil {
		return request, nil
	}
	f := &failure{
		exit: exitNo, code: codeFailed, message: fmt.Sprintf("%s is no task request: %s", name, wrong.Message),
		hint: "What one looks like: orchestrator help delegation", details: wrong.Details,
	}
	all, _ := wrong.Details["errors"].([]wire.Problem)
	for _, problem := range all {
		f.because = append(f.because, problem.String())
	}
	return nil, f
}

// withID is a request with an id: a new one if it has none. What is no object stays
// as it is.
func withID(text string) []byte {
	var members map[string]wire.Raw
	if err := wire.Decode([]byte(text), &members); err != nil || members == nil {
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

// notHandedOn adds to why a request was refused where that stands in it, and who was
// probably meant.
func (a *app) notHandedOn(ctx context.Context, d *client, request *wire.TaskRequest, err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	switch f.details["reason"] {
	case "agent_not_found":
		if unknown, ok := errors.AsType[*failure](a.isAgent(ctx, d, request.Routing.Target)); ok && unknown.code == wire.CodeNotFound {
			unknown.details = f.details
			return unknown
		}
	case "capability_not_found":
		f.hint = "See who does what: orchestrator agent show NAME"
	case "id_reused":
		f.hint = "Give every request an id of its own; one without an id gets a new one"
	}
	return problemsBelow(f, func(pointer string) string { return strings.TrimPrefix(pointer, "/payload") })
}

// waitForResponse goes on as task wait does, and ends with the last response.
func (a *app) waitForResponse(ctx context.Context, d *client, id, told string) error {
	v := a.vigil(d, []string{id}, false)
	v.told[0] = told
	if err := v.keep(ctx); err != nil {
		return err
	}
	r, text, err := a.askResponse(ctx, d, "get-task-response", wire.GetTaskResponse{TaskID: id})
	if err != nil {
		return err
	}
	if err := a.showWhole(r, text); err != nil {
		return err
	}
	return v.verdict()
}
