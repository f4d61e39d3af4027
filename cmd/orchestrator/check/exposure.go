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

// exposures is the JSON answer of check --security.
type exposures struct {
	FormatVersion string    `json:"format_version"`
	File          string    `json:"file"`
	Agents        []exposed `json:"agents"`
}

// anyExposure stands for all exposures.
const anyExposure = "any"

// checkSecurity lists the rights and the reach of the agents of the file. It returns ExitNo if an
// agent has an exposure that forbidden names.
func checkSecurity(a *cli.App, verb *cobra.Command, names, forbidden []string) error {
	for _, flag := range []string{"as", "full", "wait", "grace"} {
		if verb.Flags().Changed(flag) {
			return cli.UsageError("--security cannot be combined with --"+flag, "Usage: orchestrator check --security [AGENT…]")
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "-") {
			return cli.UsageError("flags come before the agents: "+name, "Usage: orchestrator check --security "+term.Word(name)+" "+term.Word(names[0]))
		}
	}
	c, err := serve.ReadTeam(a, nil, names, "check --security")
	if err != nil {
		return err
	}
	s := &surroundings{config: c}
	s.find(a)
	answer := exposures{FormatVersion: wire.FormatVersion, File: c.File, Agents: s.exposeAll(names)}
	if err := known(answer.Agents, forbidden); err != nil {
		return err
	}
	failed := slices.DeleteFunc(slices.Clone(answer.Agents), func(e exposed) bool { return !e.has(forbidden) })
	switch {
	case a.Flags.JSON:
		err = a.Document(answer)
	case a.Flags.Quiet:
		err = a.Print("%s", lines(failed))
	case len(names) == 0:
		err = a.Print("%s\nDetails: orchestrator check --security AGENT\n", lines(answer.Agents))
	default:
		err = a.Print("%s", details(a, answer.Agents))
	}
	if err == nil && len(failed) > 0 {
		return cli.ExitWith(cli.ExitNo)
	}
	return err
}

// known returns an error if no agent has a row with one of some names.
func known(agents []exposed, names []string) error {
	rows := []string{anyExposure}
	for _, e := range agents {
		for _, r := range e.Rows {
			if !slices.Contains(rows, r.What) {
				rows = append(rows, r.What)
			}
		}
	}
	for _, name := range names {
		// A team without a coding agent has no row for permissions.
		if !slices.Contains(rows, name) && name != "permission" {
			return cli.UsageError("unknown exposure "+strconv.Quote(name), "Choose from: "+strings.Join(rows, ", "))
		}
	}
	return nil
}

// has reports whether an agent has one of some exposures, at least partly.
func (e *exposed) has(names []string) bool {
	return slices.ContainsFunc(e.Rows, func(r exposureRow) bool {
		return r.Exposed != no && (slices.Contains(names, r.What) || slices.Contains(names, anyExposure))
	})
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

// lines returns a line for each agent: its exposures, those in part at the end.
func lines(all []exposed) string {
	rows := make([][]term.Cell, len(all))
	wide := 0
	for i := range all {
		name := term.Clip(all[i].Agent, 24)
		rows[i], wide = []term.Cell{term.Text(name), {}}, max(wide, term.Width(name))
	}
	for i := range all {
		rows[i][1].Text = term.Clip(all[i].summary(), rowWidth-wide-len("  "))
	}
	return term.Table(rows)
}

// summary names the exposures of an agent.
func (e *exposed) summary() string {
	found := make(map[extent][]string)
	for _, r := range e.Rows {
		found[r.Exposed] = append(found[r.Exposed], r.What)
	}
	parts := found[yes]
	if len(found[partly]) > 0 {
		parts = append(parts, "partly "+strings.Join(found[partly], ", "))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
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
		b.WriteString(p.Strong(e.Agent) + "\n")
		table := [][]term.Cell{{{Text: "exposure", Ink: p.Dim}, {Text: "exposed", Ink: p.Dim}, {}}}
		for _, r := range e.Rows {
			table = append(table, []term.Cell{term.Text(r.What), {Text: string(r.Exposed), Ink: extentInk(p, r.Exposed)}, term.Text(r.Text)})
			for _, name := range r.Names {
				if filepath.IsAbs(name) {
					name = a.Short(name)
				}
				table = append(table, []term.Cell{{}, {}, {Text: term.Clip(wire.Visible(name), rowWidth-nameColumn), Ink: p.Dim}})
			}
		}
		b.WriteString(term.Table(table))
	}
	return b.String()
}

// nameColumn is the offset of the texts and names in a row.
const nameColumn = len("configuration") + len("exposed") + 2*len("  ")

func extentInk(p term.Paint, is extent) func(string) string {
	switch is {
	case no:
		return p.Good
	case partly:
		return p.Warn
	}
	return p.Bad
}
