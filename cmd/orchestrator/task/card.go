package task

import (
	"context"
	"fmt"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
)

// taskContext holds what the card of a task shows of other tasks. Parts that cannot be read
// are left out.
type taskContext struct {
	needs  []string // dependencies, a line each
	parent string   // the task that its submitter was working on
	notes  int

	response *delegation.Response // the latest response to a delegated task
}

func surroundings(ctx context.Context, a *cli.App, d *client.Client, t *wire.Task) *taskContext {
	s := &taskContext{needs: dependencies(ctx, a, d, t)}
	if t.Details != nil && t.ParentTaskID != "" {
		s.parent = need(ctx, a, d, t.ParentTaskID, true)
	}
	if HandedOn(t) {
		s.response, _, _ = askResponse(ctx, a, d, "get-task-response", wire.GetTaskResponse{TaskID: t.ID})
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
