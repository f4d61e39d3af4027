package check

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// maxScore is the score of an agent with everything.
const maxScore = 10

// exposures is the JSON answer of check --security.
type exposures struct {
	FormatVersion string    `json:"format_version"`
	File          string    `json:"file"`
	Agents        []exposed `json:"agents"`
}

// checkSecurity reports what the agents of the file may do and reach. It returns ExitNo if a score
// is above the threshold.
func checkSecurity(a *cli.App, verb *cobra.Command, names []string, threshold float64) error {
	for _, flag := range []string{"as", "full", "wait", "grace"} {
		if verb.Flags().Changed(flag) {
			return cli.UsageError("--security runs no program, so it has no use for --"+flag, "Write: orchestrator check --security [AGENT…]")
		}
	}
	if threshold < 0 || threshold > maxScore {
		return cli.UsageError("--threshold is a score from 0 to 10", "Write: orchestrator check --security --threshold 5")
	}
	for _, name := range names {
		if strings.HasPrefix(name, "-") {
			return cli.UsageError("flags come before the agents: "+name, "Write: orchestrator check --security "+term.Word(name)+" "+term.Word(names[0]))
		}
	}
	c, err := serve.ReadTeam(a, nil, names, "check --security")
	if err != nil {
		return err
	}
	s := &surroundings{config: c}
	s.find(a)
	answer := exposures{FormatVersion: wire.FormatVersion, File: c.File, Agents: s.exposeAll(names)}
	over := slices.DeleteFunc(slices.Clone(answer.Agents), func(e exposed) bool { return e.Score <= threshold })
	switch {
	case a.Flags.JSON:
		err = a.Document(answer)
	case a.Flags.Quiet:
		err = a.Print("%s", scores(a.Paint(a.Stdout), over))
	case len(names) == 0:
		err = a.Print("%s\n%sDetails: orchestrator check --security AGENT\n", scores(a.Paint(a.Stdout), answer.Agents), unfixed(answer.Agents))
	default:
		err = a.Print("%s", details(a, answer.Agents))
	}
	if err == nil && len(over) > 0 {
		return cli.ExitWith(cli.ExitNo)
	}
	return err
}

// exposeAll judges the agents with some names, or all. Replicas are judged once.
func (s *surroundings) exposeAll(names []string) []exposed {
	all := []exposed{}
	seen := func(a *config.Agent) bool {
		return slices.ContainsFunc(all, func(e exposed) bool { return e.Agent == a.Block })
	}
	for i := range s.config.Agents {
		one := &s.config.Agents[i]
		if !seen(one) && (len(names) == 0 || slices.Contains(names, one.Block) || slices.Contains(names, one.Name)) {
			all = append(all, s.expose(one))
		}
	}
	return all
}

// rowWidth is the width of the lines.
const rowWidth = 80

// scores returns a line for each agent: its score, and what adds most to it.
func scores(p term.Paint, all []exposed) string {
	rows := make([][]term.Cell, len(all))
	for i := range all {
		e := &all[i]
		rows[i] = []term.Cell{
			term.Text(term.Clip(e.Agent, 24)),
			{Text: scoreText(e.Score), Right: true, Ink: gradeInk(p, e.Grade)},
			{Text: e.Grade, Ink: gradeInk(p, e.Grade)},
			{},
		}
	}
	used := 0
	for line := range strings.Lines(term.Table(rows)) {
		used = max(used, term.Width(strings.TrimSuffix(line, "\n")))
	}
	for i := range all {
		rows[i][3].Text = term.Clip(all[i].worst(), rowWidth-used-len("  "))
	}
	return term.Table(rows)
}

// unfixed returns a line with the agents that may report other capabilities, or "".
func unfixed(all []exposed) string {
	var names []string
	for i := range all {
		if slices.ContainsFunc(all[i].Rows, func(r exposureRow) bool { return r.What == "capabilities" && r.Exposure > 0 }) {
			names = append(names, all[i].Agent)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return term.Clip("Capabilities are not fixed: "+strings.Join(names, ", "), rowWidth) + "\n"
}

// worst returns what is exposed, in the order of what it adds to the score.
func (e *exposed) worst() string {
	rows := slices.DeleteFunc(slices.Clone(e.Rows), func(r exposureRow) bool { return r.Exposure == 0 })
	slices.SortStableFunc(rows, func(a, b exposureRow) int { return cmp.Compare(b.Exposure*b.Weight, a.Exposure*a.Weight) })
	words := make([]string, len(rows))
	for i := range rows {
		words[i] = rows[i].What
	}
	return strings.Join(words, ", ")
}

// details returns the rows of agents, those with a name below them.
func details(a *cli.App, all []exposed) string {
	p := a.Paint(a.Stdout)
	var b strings.Builder
	for i := range all {
		e := &all[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Strong(e.Agent) + "  " + gradeInk(p, e.Grade)(scoreText(e.Score)+" "+e.Grade) + "\n")
		table := [][]term.Cell{{
			{Text: "what", Ink: p.Dim}, {Text: "whether", Ink: p.Dim}, {Text: "weight", Right: true, Ink: p.Dim}, {},
		}}
		for _, r := range e.Rows {
			table = append(table, []term.Cell{term.Text(r.What), whether(p, r.Exposure), term.Figure(strconv.Itoa(int(r.Weight))), term.Text(r.Text)})
			for _, name := range r.Names {
				if filepath.IsAbs(name) {
					name = a.Short(name)
				}
				table = append(table, []term.Cell{{}, {}, {}, {Text: term.Clip(wire.Visible(name), rowWidth-nameColumn), Ink: p.Dim}})
			}
		}
		b.WriteString(term.Table(table))
	}
	return b.String()
}

// nameColumn is the column in which the texts and names begin.
const nameColumn = len("configuration") + len("whether") + len("weight") + 3*len("  ")

func whether(p term.Paint, exposure float64) term.Cell {
	switch exposure {
	case 0:
		return term.Cell{Text: "no", Ink: p.Good}
	case 1:
		return term.Cell{Text: "yes", Ink: p.Bad}
	}
	return term.Cell{Text: "partly", Ink: p.Warn}
}

func scoreText(score float64) string { return strconv.FormatFloat(score, 'f', 1, 64) }

func gradeInk(p term.Paint, grade string) func(string) string {
	switch grade {
	case "safe", "ok":
		return p.Good
	case "medium":
		return p.Warn
	}
	return p.Bad
}
