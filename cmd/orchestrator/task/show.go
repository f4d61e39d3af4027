package task

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
)

func taskShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a task in full",
		Long: `Shows everything about a task: its submitter, agent, requirements, dependencies and
inputs, its spec, plan, question, result and artifacts. For a delegated task it also
shows source and target, and the trace.`,
		Example:           "  orchestrator task show 91c0\n  orchestrator task show 91c0 --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE:              func(_ *cobra.Command, args []string) error { return onTask(a, args[0], showTask) },
	}
}

func showTask(ctx context.Context, a *cli.App, d *client.Client, id string) error {
	t, text, err := GetTask(ctx, a, d, id)
	switch {
	case err != nil:
		return err
	case a.Flags.JSON:
		return a.Answer(text)
	case a.Flags.Quiet:
		return a.Print("%s\n", wire.Visible(t.ID))
	}
	return a.Print("%s", taskCard(&t.Task, contextOf(ctx, a, d, &t.Task), a.Paint(a.Stdout), time.Now()))
}

// ChangedBy returns who has changed the text of a task last, or "" if that is its submitter.
func ChangedBy(t *wire.Task) string {
	if t.Details == nil || t.ChangedBy == "" || t.ChangedBy == t.SubmittedBy {
		return ""
	}
	return "by " + wire.Visible(strings.TrimPrefix(t.ChangedBy, "agent:"))
}

// taskCard returns the description of a task in full.
func taskCard(t *wire.Task, s *taskContext, p term.Paint, now time.Time) string {
	at := func(stamp string) string { return term.Clock(stamp, now, time.TimeOnly) }
	c := term.Card{}
	c.Row("type", t.Type)
	c.Row("created", at(t.CreatedAt)+" by "+strings.TrimPrefix(t.SubmittedBy, "agent:"))
	details(&c, t, s)
	c.Row("requires", Requirements(t))
	c.Row("priority", strings.Trim(string(t.Priority), `"`))
	if t.AssignedTo != "" {
		assigned := strings.TrimSpace(at(t.AssignedAt) + " to " + t.AssignedTo)
		if t.Attempts > 1 {
			assigned += fmt.Sprintf(", attempt %d", t.Attempts)
		}
		c.Row("assigned", assigned)
	}
	c.Row("not before", term.NotBefore(t, now, time.TimeOnly))
	c.Row("started", at(t.StartedAt))
	if t.EndedAt != "" {
		c.Row(string(t.State), at(t.EndedAt)+tookWords(" after ", t))
	}
	if !t.State.Final() {
		c.Row("progress", strings.TrimSpace(term.Percent(t.Progress)+"  "+t.Message))
	}
	if t.Details != nil {
		c.Row("used", term.Used(t.Used))
		var commands []string
		for _, argv := range t.Verify {
			commands = append(commands, term.OneLine(strings.Join(argv, " ")))
		}
		c.Row("verify", strings.Join(commands, "; "))
		c.Row("block", t.Block)
		if w := t.Workspace; w != nil {
			where := term.OneLine(w.Path) + "  " + term.OneLine(w.Branch)
			if w.Host != "" {
				where += " on " + term.OneLine(w.Host)
			}
			c.Row("workspace", where)
			c.Row("branch", s.merge)
		}
	}
	c.Rows("needs", s.needs)
	inputs(&c, t)
	c.Text("spec", t.Description)
	c.Text("payload", string(t.Payload))
	rounds(&c, t, s)
	c.Text("result", resultText(t.Result))
	if t.Details != nil {
		c.Text("result so far", resultText(t.Output))
		c.Row("failure", t.FailureClass)
	}
	c.Text("error", t.Error)
	c.Text("reason", t.Reason)
	if s.response != nil {
		artifacts(&c, s.response)
	} else {
		listedArtifacts(&c, t)
	}
	head := fmt.Sprintf("%s  %s  %s\n", p.Strong(wire.Visible(t.ID)), term.OneLine(t.Name), p.Task(t.State, wire.Visible(string(t.State))))
	return head + term.Table(c.Lines)
}

// Requirements describes the requirements of a task.
func Requirements(t *wire.Task) string {
	var words []string
	if t.RequiredRole != "" {
		words = append(words, "role "+t.RequiredRole)
	}
	if len(t.RequiredCapabilities) > 0 {
		words = append(words, "capabilities "+strings.Join(t.RequiredCapabilities, ", "))
	}
	if t.Details != nil {
		if wants := wantWords(t.Details.Requirements); wants != "" {
			words = append(words, wants)
		}
	}
	switch {
	case HandedOn(t): // the request names the agent, or the type requires a capability
		return ""
	case len(words) > 0:
		return strings.Join(words, ", ")
	case t.State == wire.TaskPending:
		return "nothing; an agent has to take it"
	}
	return "nothing"
}

// taskContext holds the facts about other tasks on the card of a task. Parts that cannot be read
// are left out.
type taskContext struct {
	needs  []string // dependencies, a line each
	parent string   // the task that its submitter was working on
	merge  string   // whether its branch is merged
	notes  int

	response *delegation.Response // the latest response to a delegated task
}

func contextOf(ctx context.Context, a *cli.App, d *client.Client, t *wire.Task) *taskContext {
	s := &taskContext{needs: dependencies(ctx, a, d, t)}
	if t.Details != nil && t.ParentTaskID != "" {
		s.parent = need(ctx, a, d, t.ParentTaskID, true)
	}
	if HandedOn(t) {
		s.response, _, _ = askResponse(ctx, a, d, "get-task-response", wire.GetTaskResponse{TaskID: t.ID})
	}
	if t.Details != nil && t.Workspace != nil && t.State.Final() {
		if e := lastMerge(ctx, d, t.ID); e != nil {
			s.merge = term.OneLine(MergeWords(e))
		}
	}
	text, err := a.Ask(ctx, d, "list-notes", wire.TaskID{TaskID: t.ID})
	if err != nil {
		return s
	}
	list, _ := client.Decode[wire.NoteList](text)
	s.notes = len(list.Notes)
	return s
}

// dependencies returns the dependencies of a task, a line each.
func dependencies(ctx context.Context, a *cli.App, d *client.Client, t *wire.Task) []string {
	const enough = 20
	links := linksOf(t)
	var lines []string
	for i := range links[:min(enough, len(links))] {
		l := &links[i]
		line := need(ctx, a, d, l.On, true)
		if l.Type != hub.DependsBlocks {
			line += ", " + kindWords(l)
		}
		if l.Type == hub.DependsInput && l.Resolved {
			line += ": " + inputWords(t.ResolvedInputs, l.Contract)
		}
		lines = append(lines, line)
	}
	if len(links) > enough {
		lines = append(lines, fmt.Sprintf("and %d more: orchestrator task deps %s", len(links)-enough, term.ID(t.ID)))
	}
	return lines
}

// details adds the rows that few tasks have.
func details(c *term.Card, t *wire.Task, s *taskContext) {
	c.Row("changed", ChangedBy(t))
	c.Row("part of", s.parent)
	if t.Details == nil {
		return
	}
	c.Row("repo", t.TargetRepo)
	c.Row("project", t.ProjectID)
	c.Row("session", t.SessionID)
	c.Rows("accepted if", t.AcceptanceCriteria)
	c.Row("for programs", specWords(t.StructuredSpec))
	addDelegation(c, t)
}

// rounds adds the rows of the plan, the question and the notes of a task.
func rounds(c *term.Card, t *wire.Task, s *taskContext) {
	if t.Details != nil {
		c.Text("plan", resultText(t.Plan))
		c.Text("to revise", t.PlanFeedback)
		if h := t.Help; h != nil {
			c.Text("question", h.QuestionID+" "+h.Question)
			c.Text("answer", h.Answer)
		}
	}
	if s.notes > 0 {
		c.Row("notes", fmt.Sprintf("%d: orchestrator task notes %s", s.notes, term.ID(t.ID)))
	}
}

// inputs adds the rows of the inputs that were delivered to a task.
func inputs(c *term.Card, t *wire.Task) {
	var lines []string
	for _, in := range t.ResolvedInputs {
		lines = append(lines, in.Key+"  "+inputWords(t.ResolvedInputs, in.Key))
	}
	c.Rows("gets", lines)
}

// specWords returns a short description of a task spec. The JSON has all of it.
func specWords(document wire.Raw) string {
	if document == nil {
		return ""
	}
	spec, err := client.Decode[struct {
		Requirements []wire.Raw `json:"requirements"`
	}](document)
	if err != nil {
		return sizeWords(len(document))
	}
	words := term.Count(len(spec.Requirements), "requirement")
	read := hub.ReadSpec(document)
	if read == nil {
		return words
	}
	var promises []string
	for _, promise := range read.Promises {
		key := promise.Key
		if promise.Required {
			key += " (required)"
		}
		promises = append(promises, key)
	}
	if len(promises) > 0 {
		words += "; delivers " + strings.Join(promises, ", ")
	}
	return words
}
