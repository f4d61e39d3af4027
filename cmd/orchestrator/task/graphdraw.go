package task

import (
	"fmt"
	"strings"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// fill returns the color of a state in a drawing. The box names the state, too.
func fill(s wire.TaskState) string {
	switch s {
	case wire.TaskDone:
		return "#d5f0d5"
	case wire.TaskRunning, wire.TaskVerifying:
		return "#cfe3ff"
	case wire.TaskPlanReview, wire.TaskNeedsHuman, wire.TaskInReview:
		return "#fff0c2"
	case wire.TaskFailed:
		return "#ffd6d6"
	case wire.TaskCancelled:
		return "#e6e6e6"
	}
	return "#ffffff"
}

// labelLines returns the two lines of text in the box of a task.
func labelLines(t *Seen) (name, state string) {
	state = HeldWords(&t.Task)
	if progress := term.Percent(t.Progress); progress != "" && !t.State.Final() {
		state += ", " + progress
	}
	return term.ID(t.ID) + " " + term.Clip(term.OneLine(t.Name), 60), state
}

// dot returns the graph for Graphviz. Arrows lead from a task to its dependents.
func (g *graph) dot() string {
	var b strings.Builder
	b.WriteString("digraph tasks {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\"];\n")
	for _, n := range g.Chosen() {
		name, state := labelLines(&g.Tasks[n])
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=%q];\n", dotText(g.Tasks[n].ID), dotText(name, state), fill(g.Tasks[n].State))
	}
	for _, n := range g.Chosen() {
		for _, e := range g.needs[n] {
			if !g.shown[e.to] {
				continue
			}
			look := ""
			switch e.link.Type {
			case hub.DependsInput:
				look = " [label=" + dotText(term.OneLine(e.link.Contract)) + "]"
			case hub.DependsRelated:
				look = " [style=dashed, arrowhead=none]"
			}
			fmt.Fprintf(&b, "  %s -> %s%s;\n", dotText(e.link.On), dotText(g.Tasks[n].ID), look)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes lines of text for Graphviz, and escapes backslashes and quotes.
func dotText(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i := range lines {
		lines[i] = escape.Replace(lines[i])
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// mermaid returns the graph for Markdown. It numbers the tasks, because their ids may have
// a meaning in Mermaid.
func (g *graph) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	classes := map[wire.TaskState][]string{}
	for _, n := range g.Chosen() {
		t := &g.Tasks[n]
		name, state := labelLines(t)
		fmt.Fprintf(&b, "  t%d[\"%s<br/>%s\"]\n", n+1, mermaidText(name), mermaidText(state))
		classes[t.State] = append(classes[t.State], fmt.Sprintf("t%d", n+1))
	}
	for _, n := range g.Chosen() {
		for _, e := range g.needs[n] {
			if !g.shown[e.to] {
				continue
			}
			arrow := "-->"
			switch e.link.Type {
			case hub.DependsInput:
				arrow = fmt.Sprintf("-->|\"%s\"|", mermaidText(term.OneLine(e.link.Contract)))
			case hub.DependsRelated:
				arrow = "-.-"
			}
			fmt.Fprintf(&b, "  t%d %s t%d\n", e.to+1, arrow, n+1)
		}
	}
	for _, state := range wire.TaskStates {
		if members := classes[state]; len(members) > 0 {
			fmt.Fprintf(&b, "  classDef %s fill:%s,color:#000\n  class %s %s\n", state, fill(state), strings.Join(members, ","), state)
		}
	}
	return b.String()
}

// mermaidText escapes special characters of Mermaid as entities. A quote ends a text, #
// begins an entity, %% a comment, a backquote Markdown, and < an HTML tag.
func mermaidText(text string) string {
	return strings.NewReplacer(
		"#", "#35;", `"`, "#quot;", "%", "#37;", "`", "#96;", "<", "#lt;", ">", "#gt;", "&", "#amp;",
	).Replace(text)
}

// A tree is a graph as rows of a table: below each task its dependents.
type tree struct {
	graph *graph
	most  int
	paint term.Paint
	Rows  [][]term.Cell
	Of    []int  // task of each row
	drawn []bool // tasks drawn in full
	drew  int
}

// Deepest is the maximum depth of a tree. Deeper tasks begin again at the left.
const Deepest = 24

// NewTree returns the tree of a graph.
func NewTree(g *graph, most int, p term.Paint) *tree {
	return &tree{graph: g, most: most, paint: p, drawn: make([]bool, len(g.Tasks))}
}

// Grow draws the tasks: first the trees of tasks without shown dependencies, then the tasks
// that are too deep in these trees.
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

// Left returns how many tasks were not drawn because of the limit.
func (t *tree) Left() int { return len(t.graph.Chosen()) - t.drew }

// parents returns the edges to the tasks that n is drawn below.
func (t *tree) parents(n int) []edge { return t.along(t.graph.needs[n]) }

// along returns the blocking edges to shown tasks, one for each task.
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

// draw adds the row of a task and the rows of its dependents. The row begins with lead, the
// rows below it with below.
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

// notes returns the remarks on a task: its progress, its input from the task above it, and
// its related tasks.
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

// edgeWords returns the input that an edge delivers, or "".
func edgeWords(e *edge) string {
	if e == nil || e.link.Type != hub.DependsInput {
		return ""
	}
	return "gets " + term.OneLine(e.link.Contract)
}
