package task

import (
	"strings"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// tree is a graph as rows of a table: below each task those that depend on it.
type tree struct {
	graph *graph
	most  int
	paint term.Paint
	Rows  [][]term.Cell
	Of    []int  // the task of each row
	drawn []bool // in full
	drew  int
}

// Deepest is how deep a tree goes. What lies deeper begins again at the left,
// where there is room for it.
const Deepest = 24

// NewTree makes the tree of a graph.
func NewTree(g *graph, most int, p term.Paint) *tree {
	return &tree{graph: g, most: most, paint: p, drawn: make([]bool, len(g.Tasks))}
}

// Grow draws the tasks: first below those that depend on nothing shown, then
// what lies too deep for that.
func (t *tree) Grow() {
	for _, n := range t.graph.Chosen() {
		if !t.drawn[n] && len(t.parents(n)) == 0 {
			t.draw(n, nil, "", "", 0)
		}
	}
	for _, n := range t.graph.Chosen() {
		if !t.drawn[n] {
			t.draw(n, nil, "", "", 0)
		}
	}
}

// Left is how many tasks there was no room for.
func (t *tree) Left() int { return len(t.graph.Chosen()) - t.drew }

// parents are the tasks below which one stands.
func (t *tree) parents(n int) []edge { return t.along(t.graph.needs[n]) }

// along are the edges that hold something up, each end once, if they are shown.
func (t *tree) along(edges []edge) []edge {
	var found []edge
	known := make(map[int]bool, len(edges))
	for _, e := range edges {
		if e.gates() && t.graph.shown[e.to] && !known[e.to] {
			known[e.to] = true
			found = append(found, e)
		}
	}
	return found
}

// draw adds a task and what stands below it. It came by an edge, behind the lead
// that its row begins with; below is what the rows under it begin with.
func (t *tree) draw(n int, by *edge, lead, below string, depth int) {
	if t.drew >= t.most {
		return
	}
	task := &t.graph.Tasks[n]
	t.Of = append(t.Of, n)
	if t.drawn[n] {
		t.Rows = append(t.Rows, []term.Cell{term.Text(t.name(n, lead)), term.Text("(above)"), term.Text(""), term.Text(edgeWords(by))})
		return
	}
	t.drawn[n] = true
	t.drew++
	t.Rows = append(t.Rows, []term.Cell{
		term.Text(t.name(n, lead)),
		{Text: wire.Visible(string(task.State)), Ink: func(s string) string { return t.paint.Task(task.State, s) }},
		term.Text(term.OneLine(task.AssignedTo)), term.Text(t.notes(n, by)),
	})
	if depth == Deepest {
		return
	}
	children := t.along(t.graph.feeds[n])
	for i := range children {
		knee, pipe := "├─ ", "│  "
		if i == len(children)-1 {
			knee, pipe = "└─ ", "   "
		}
		t.draw(children[i].to, &children[i], below+knee, below+pipe, depth+1)
	}
}

func (t *tree) name(n int, lead string) string {
	task := &t.graph.Tasks[n]
	return lead + term.ID(task.ID) + " " + term.Clip(term.OneLine(task.Name), 40)
}

// notes are what else there is to know: how far it is, what it gets of the task
// above it, and what it is related to.
func (t *tree) notes(n int, by *edge) string {
	task := &t.graph.Tasks[n]
	var notes []string
	if progress := term.Percent(task.Progress); progress != "" && !task.State.Final() {
		notes = append(notes, progress)
	}
	if words := edgeWords(by); words != "" {
		notes = append(notes, words)
	}
	for _, e := range t.graph.needs[n] {
		if !e.gates() {
			notes = append(notes, "related to "+term.ID(e.link.On))
		}
	}
	return strings.Join(notes, ", ")
}

// edgeWords say what a task gets by an edge.
func edgeWords(e *edge) string {
	if e == nil || e.link.Type != wire.DependsInput {
		return ""
	}
	return "gets " + term.OneLine(e.link.Contract)
}
