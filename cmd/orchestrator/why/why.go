// Package why holds the why command, which explains the state of a task or an agent.
package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Command returns the why command.
func Command(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "why TASK|AGENT",
		Short: "Explain the state of a task or an agent",
		Long: `Explains why a task does not move or an agent does not work: the causes in order, the next
step, and your options.

For a task it shows the time of its last change, the tasks it waits for, its
requirements, how each agent fits, and earlier attempts. For an agent it shows its state
and the reason, the ends of its runs, its last output, and its tasks.`,
		Example:           "  orchestrator why 5be1\n  orchestrator why coder-1\n  orchestrator why 5be1 --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.OneArg(a.Completion(completeAnything)),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return why(ctx, a, d, args[0]) })
		},
	}
}

// Text returns the output of the command about a task or an agent of the orchestrator at a socket.
func Text(ctx context.Context, socket, word string) (string, error) {
	var text strings.Builder
	a := cli.New(cli.Env{Stdout: &text, Stderr: io.Discard})
	err := why(ctx, a, a.NewClient(client.Target{Socket: socket}), word)
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		err = &wire.Error{Code: f.Code, Message: f.Message, Hint: f.Hint, Details: f.Details}
	}
	return text.String(), err
}

// completeAnything completes agents and tasks.
func completeAnything(a *cli.App, verb *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	agents, _ := a.CompleteAgents(verb, nil, begun)
	tasks, directive := task.CompleteTasks(a, true)(verb, nil, begun)
	return append(agents, tasks...), directive
}

// why explains the agent named word, or else the task.
func why(ctx context.Context, a *cli.App, d *client.Client, word string) error {
	status, _, err := a.Status(ctx, d)
	if err != nil {
		return err
	}
	for i := range status.Agents {
		if status.Agents[i].Name == word {
			return whyAgent(ctx, a, d, &status, &status.Agents[i])
		}
	}
	find := task.NewFinder(a, d)
	id, err := find.ID(ctx, word)
	if err != nil {
		return neither(err, word, &status)
	}
	return explainTask(ctx, a, d, find, &status, id)
}

// neither adds to the error about an unknown task that no agent has the name, or that it
// names several replicas.
func neither(err error, word string, status *control.Status) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Details["fits"] != nil || f.Code != wire.CodeNotFound {
		return err
	}
	var names, replicas []string
	for i := range status.Agents {
		names = append(names, status.Agents[i].Name)
		if status.Agents[i].Block == word {
			replicas = append(replicas, status.Agents[i].Name)
		}
	}
	if n := len(replicas); n > 0 {
		f.Message = fmt.Sprintf("%q is %s, %s to %s", word, term.Count(n, "agent"), replicas[0], replicas[n-1])
		f.Hint = "Name one: orchestrator why " + term.OneLine(replicas[0])
		return f
	}
	f.Message = fmt.Sprintf("no agent is called %q, and no task id begins with it%s", word, cli.DidYouMean(word, names))
	f.Hint = "List them: orchestrator ps     orchestrator task ls"
	return f
}

// tried is an attempt and its result.
type tried struct {
	Seq   int64  `json:"seq"` // number of the event
	Agent string `json:"agent,omitzero"`
	At    string `json:"at"`
	Kind  string `json:"kind"`
	Text  string `json:"text"`
}

// maxTried is how many attempts are shown, the latest ones.
const maxTried = 5

func triedOf(found []wire.Event, kinds ...string) []tried {
	var all []tried
	for i := range found {
		if e := &found[i]; slices.Contains(kinds, e.Kind) {
			all = append(all, tried{Seq: e.Seq, Agent: e.Agent, At: e.At, Kind: e.Kind, Text: e.Text})
		}
	}
	return all
}

// addTried adds the latest attempts to a card.
func addTried(c *term.Card, label string, all []tried, now time.Time) {
	var lines []string
	for _, t := range all[max(0, len(all)-maxTried):] {
		first, below := term.FirstAndLast(t.Text)
		line := term.Clock(t.At, now, time.TimeOnly) + " " + first
		if t.Kind == events.TaskRequeued && t.Agent != "" {
			line += " (" + term.OneLine(t.Agent) + " had it)"
		}
		lines = append(lines, line)
		for _, output := range below {
			lines = append(lines, "  "+output)
		}
	}
	if older := len(all) - maxTried; older > 0 {
		lines = append([]string{isEarlier(older)}, lines...)
	}
	c.Rows(label, lines)
}

func isEarlier(n int) string { return fmt.Sprintf("%d earlier", n) }

// since returns since when a state lasts, and for how long.
func since(stamp string, now time.Time) string {
	if stamp == "" {
		return ""
	}
	words := " since " + term.Clock(stamp, now, time.TimeOnly)
	if passed, ok := term.Between(stamp, object.Timestamp(now)); ok {
		words += " (" + term.Duration(max(0, passed)) + ")"
	}
	return words
}

// standing describes the activity of an agent.
func standing(v *control.AgentView) string {
	held := term.HeldUp(v.Activity, time.Now())
	switch {
	case v.State == control.StateRunning && held != "":
		return held
	case v.State == control.StateRunning && len(v.Tasks) == 0:
		return "idle"
	case v.State == control.StateRunning:
		return "busy with " + heldLabels(v.Tasks)
	case v.State == control.StateWaiting && len(v.DependsOn) > 0:
		return "waits for " + term.OneLine(strings.Join(v.DependsOn, ", "))
	}
	words := wire.Visible(string(v.State))
	if v.State == control.StateBackoff {
		words = "in backoff"
	}
	return words + term.Colon(term.AgentNote(*v))
}

// heldLabels returns the names of a few of an agent's tasks.
func heldLabels(tasks []control.TaskLabel) string {
	const few = 2
	var labels []string
	for _, t := range tasks[:min(few, len(tasks))] {
		label := term.TaskLabel(t.ID, t.Name)
		if progress := term.Percent(t.Progress); progress != "" {
			label += " (" + progress + ")"
		}
		labels = append(labels, label)
	}
	words := strings.Join(labels, ", ")
	if len(tasks) > few {
		words += fmt.Sprintf(" and %d more", len(tasks)-few)
	}
	return words
}

// maxDamage is how many damaged facts readable goes around.
const maxDamage = 20

// readable returns the events that a query selects. It goes on behind facts of the record that are damaged.
func readable(ctx context.Context, d *client.Client, query url.Values, wanted func(*wire.Event) bool) (found []wire.Event, err error) {
	behind := int64(0)
	for range maxDamage {
		part, err := client.Collect(ctx, d, "events", query, wanted)
		found = append(found, part...)
		f, failed := errors.AsType[*cli.Failure](err)
		if !failed || f.Code != wire.CodeDamaged {
			return found, err
		}
		seq, _ := f.Details["seq"].(float64)
		behind = max(behind+1, int64(seq)) // a fact that is missing cannot be the place to begin
		query = maps.Clone(query)
		query.Set("since", strconv.FormatInt(behind, 10))
	}
	return found, nil
}
