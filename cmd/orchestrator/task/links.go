package task

import (
	"fmt"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// linksOf returns the dependencies of a task.
func linksOf(t *wire.Task) []wire.Link {
	if len(t.Links) > 0 {
		return t.Links
	}
	var links []wire.Link
	for _, id := range t.Dependencies {
		links = append(links, wire.Link{On: id, Type: hub.DependsBlocks})
	}
	return links
}

// ByID returns a map from ids to tasks.
func ByID(tasks []Seen) map[string]*Seen {
	found := make(map[string]*Seen, len(tasks))
	for i := range tasks {
		found[tasks[i].ID] = &tasks[i]
	}
	return found
}

func linkRows(t *Seen, links []wire.Link, tasks map[string]*Seen, p term.Paint, now time.Time) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("DEP"), term.Text("TASK"), term.Text("NAME"), term.Text("STATE"), term.Text("KIND"), term.Text("RESOLVED")}}
	for i := range links {
		l := &links[i]
		name, state := term.Text("-"), term.Text("-")
		if on := tasks[l.On]; on != nil {
			name = term.Text(term.Clip(term.OneLine(on.Name), 40))
			state = term.Cell{Text: wire.Visible(string(on.State)), Ink: func(s string) string { return p.Task(on.State, s) }}
		}
		rows = append(rows, []term.Cell{
			term.Text(wire.Visible(l.ID)), term.Text(term.ID(l.On)), name, state, term.Text(kindWords(l)), term.Text(resolvedWords(t, l, now)),
		})
	}
	return rows
}

// kindWords returns the kind of a dependency.
func kindWords(l *wire.Link) string {
	switch {
	case l.Type == hub.DependsInput:
		return "input " + term.OneLine(l.Contract)
	case l.Soft:
		return "related, its end"
	}
	return term.OneLine(l.Type)
}

// resolvedWords returns since when a dependency is resolved, and what was delivered.
func resolvedWords(t *Seen, l *wire.Link, now time.Time) string {
	switch {
	case !l.Resolved:
		return "-"
	case l.Type != hub.DependsInput:
		return term.Clock(l.ResolvedAt, now, time.TimeOnly)
	}
	return term.Clock(l.ResolvedAt, now, time.TimeOnly) + ", " + inputWords(t.ResolvedInputs, l.Contract)
}

// inputWords returns how much was delivered for a contract.
func inputWords(inputs wire.Inputs, contract string) string {
	for _, in := range inputs {
		if in.Key == contract && in.Data != nil && in.Data.Kind() != 'n' {
			return fmt.Sprintf("%s delivered", sizeWords(len(in.Data)))
		}
	}
	return "nothing delivered"
}

// sizeWords returns a number of bytes with its unit.
func sizeWords(n int) string {
	if n < 1000 {
		return term.Count(n, "byte")
	}
	return term.Bytes(int64(n))
}
