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
	case wire.TaskRunning:
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
