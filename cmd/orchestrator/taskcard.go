package main

import (
	"context"
	"fmt"
	"strings"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// taskContext are what a task's card says of others: found out one by one, and
// left out where that cannot be.
type taskContext struct {
	needs  []string // what it depends on, a line each
	parent string   // what its submitter was working on
	notes  int

	response *wire.TaskResponse // of a task that was handed on: the latest
}

func (a *app) surroundings(ctx context.Context, d *client, t *wire.Task) *taskContext {
	s := &taskContext{needs: a.dependencies(ctx, d, t)}
	if t.Details != nil && t.ParentTaskID != "" {
		s.parent = a.need(ctx, d, t.ParentTaskID, true)
	}
	if handedOn(t) {
		s.response, _, _ = a.askResponse(ctx, d, "get-task-response", wire.GetTaskResponse{TaskID: t.ID})
	}
	text, err := a.ask(ctx, d, "list-notes", wire.TaskID{TaskID: t.ID})
	if err != nil {
		return s
	}
	list, _ := decode[wire.NoteList](text)
	s.notes = len(list.Notes)
	return s
}

// dependencies are what a task depends on, a line each.
func (a *app) dependencies(ctx context.Context, d *client, t *wire.Task) []string {
	const enough = 20
	links := linksOf(t)
	var lines []string
	for i := range links[:min(enough, len(links))] {
		l := &links[i]
		line := a.need(ctx, d, l.On, true)
		if l.Type != wire.DependsBlocks {
			line += ", " + kindWords(l)
		}
		if l.Type == wire.DependsInput && l.Resolved {
			line += ": " + inputWords(t.ResolvedInputs, l.Contract)
		}
		lines = append(lines, line)
	}
	if len(links) > enough {
		lines = append(lines, fmt.Sprintf("and %d more: orchestrator task deps %s", len(links)-enough, plain.ID(t.ID)))
	}
	return lines
}

// details are the rows of what few tasks have.
func (c *card) details(t *wire.Task, s *taskContext) {
	c.row("part of", s.parent)
	if t.Details == nil {
		return
	}
	c.row("repo", t.TargetRepo)
	c.row("project", t.ProjectID)
	c.row("session", t.SessionID)
	c.rows("accepted if", t.AcceptanceCriteria)
	c.row("for programs", specWords(t.StructuredSpec))
	c.delegation(t)
}

// rounds are the rows of what was said between a task's agent and people.
func (c *card) rounds(t *wire.Task, s *taskContext) {
	if t.Details != nil {
		c.text("plan", resultText(t.Plan))
		c.text("to revise", t.PlanFeedback)
		if h := t.Help; h != nil {
			c.text("question", h.QuestionID+" "+h.Question)
			c.text("answer", h.Answer)
		}
	}
	if s.notes > 0 {
		c.row("notes", fmt.Sprintf("%d: orchestrator task notes %s", s.notes, plain.ID(t.ID)))
	}
}

// inputs are the rows of what was delivered to a task.
func (c *card) inputs(t *wire.Task) {
	var lines []string
	for _, in := range t.ResolvedInputs {
		lines = append(lines, in.Key+"  "+inputWords(t.ResolvedInputs, in.Key))
	}
	c.rows("gets", lines)
}

// specWords are a task spec in short: all of it is in the JSON.
func specWords(document wire.Raw) string {
	if document == nil {
		return ""
	}
	spec, err := decode[struct {
		Requirements []wire.Raw `json:"requirements"`
	}](document)
	if err != nil {
		return sizeWords(len(document))
	}
	words := plain.Count(len(spec.Requirements), "requirement")
	read := wire.ReadSpec(document)
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
