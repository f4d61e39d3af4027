package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

func taskMatchCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "match ID",
		Short: "Show which agents fit a task",
		Long: `Shows how well each agent fits a task, the best first. For a task with requirements it
shows the score and its parts, and what an agent lacks. The task is not changed. See
orchestrator help work for the scores.

A task without requirements is assigned by role and capabilities and has no scores.`,
		Example:           "  orchestrator task match 91c0\n  orchestrator task match 91c0 --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, false),
		RunE:              func(_ *cobra.Command, args []string) error { return onTask(a, args[0], matchTask) },
	}
}

func matchTask(ctx context.Context, a *cli.App, d *client.Client, id string) error {
	t, _, err := GetTask(ctx, a, d, id)
	if err != nil {
		return err
	}
	fits, err := Fits(ctx, a, d, &t)
	if err != nil {
		return err
	}
	switch {
	case a.Flags.JSON:
		return a.Document(matchDocument{FormatVersion: wire.FormatVersion, TaskID: id, Matches: matchesOf(fits)})
	case a.Flags.Quiet:
		good := slices.DeleteFunc(fits, func(f Fit) bool { return !f.Good() })
		return cli.PrintNames(a, good, func(f *Fit) string { return f.Agent })
	case len(fits) == 0:
		return a.Print("No agents. Add one: orchestrator help config\n")
	}
	if err := a.Print("%s", term.Table(fitRows(fits, Requires(&t.Task), a.Paint(a.Stdout)))); err != nil {
		return err
	}
	a.Note("%s", matchVerdict(&t, fits))
	return nil
}

// matchDocument is the JSON answer of task match. It is like the answer of match-agents, but takes
// the role and the capabilities into account.
type matchDocument struct {
	FormatVersion string `json:"format_version"`
	TaskID        string `json:"task_id"`
	hub.Matches
}

func matchesOf(fits []Fit) hub.Matches {
	m := hub.Matches{Servers: []hub.Match{}, Total: len(fits)}
	for i := range fits {
		m.Servers = append(m.Servers, fits[i].match())
	}
	return m
}

func (f *Fit) match() hub.Match {
	v := hub.Match{ServerID: hub.ServerID(f.Agent), ServerName: f.Agent, Status: hub.ServerOnline, Reasons: f.Lacks}
	if f.verdict != nil {
		v = *f.verdict
	} else if slices.Contains([]string{"offline", "crashed", "starting"}, f.Status) {
		v.Status = hub.ServerOffline
	}
	if !f.Good() && v.Score >= 0 { // the agent may lack the role
		v.Score, v.Reasons = -1, f.Lacks
	}
	return v
}

func fitRows(fits []Fit, scored bool, p term.Paint) [][]term.Cell {
	second := "FITS"
	if scored {
		second = "SCORE"
	}
	rows := [][]term.Cell{{term.Text("AGENT"), term.Figure(second), term.Text("WHY")}}
	for i := range fits {
		f := &fits[i]
		mark := term.Cell{Text: "-", Right: true, Ink: p.Dim}
		switch {
		case f.Good() && scored:
			mark = term.Cell{Text: fmt.Sprint(f.Score), Right: true, Ink: p.Good}
		case f.Good():
			mark = term.Cell{Text: "yes", Right: true, Ink: p.Good}
		}
		rows = append(rows, []term.Cell{term.Text(term.OneLine(f.Agent)), mark, term.Text(f.Words())})
	}
	return rows
}

// matchVerdict returns the conclusion from the fits, with the next command.
func matchVerdict(t *Seen, fits []Fit) string {
	label, id := term.TaskLabel(t.ID, t.Name), term.ID(t.ID)
	some := len(fits) > 0 && fits[0].Good()
	switch {
	case t.State != wire.TaskPending:
		return fmt.Sprintf("%s is %s.", label, HeldWords(&t.Task))
	case !some:
		return fmt.Sprintf("No agent fits %s.     Its requirements: orchestrator task show %s", label, id)
	case IsMatched(&t.Task):
		return fmt.Sprintf("%s would go to %s: orchestrator task assign --auto %s", label, term.OneLine(fits[0].Agent), id)
	case AsksByName(&t.Task):
		return label + " requires only a role or capabilities: it goes to the first idle agent that fits."
	}
	return fmt.Sprintf("%s requires no role or capability, so no agent is matched. Assign it: orchestrator task assign %s AGENT", label, id)
}

// A Fit is the result of matching one agent with a task.
type Fit struct {
	Agent  string
	Status string   // idle, busy and so on
	Score  int      // for the requirements of the task; 0 if it has none
	points []string // parts of the score
	Lacks  []string // empty if the agent fits
	Full   bool     // the agent fits, but is at its capacity

	verdict *hub.Match // answer of the match; nil if the task has no requirements
}

// Good reports whether the agent can take the task.
func (f *Fit) Good() bool { return len(f.Lacks) == 0 }

// Words returns why an agent fits, or why it does not.
func (f *Fit) Words() string {
	switch {
	case len(f.Lacks) > 0:
		return strings.Join(f.Lacks, ", ")
	case len(f.points) > 0:
		return strings.Join(f.points, ", ")
	}
	return f.Status
}

// AsksByName reports whether a task is assigned by its role and capabilities.
func AsksByName(t *wire.Task) bool { return t.RequiredRole != "" || len(t.RequiredCapabilities) > 0 }

// IsMatched reports whether a pending task has requirements, and no role or capabilities.
func IsMatched(t *wire.Task) bool {
	return Requires(t) && !AsksByName(t) && t.State == wire.TaskPending
}

// Requires reports whether a task has requirements.
func Requires(t *wire.Task) bool {
	return t.Details != nil && !hub.ReadRequirements(t.Details.Requirements).Empty()
}

// Fits returns the fit of each agent, the best first.
func Fits(ctx context.Context, a *cli.App, d *client.Client, t *Seen) ([]Fit, error) {
	text, err := a.Ask(ctx, d, "query-agents", wire.QueryAgents{})
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[wire.AgentList](text)
	if err != nil {
		return nil, err
	}
	verdicts := map[string]*hub.Match{}
	if Requires(&t.Task) {
		if verdicts, err = matches(ctx, a, d, t.ID); err != nil {
			return nil, err
		}
	}
	fits := make([]Fit, 0, len(list.Agents))
	for i := range list.Agents {
		f := byName(&t.Task, &list.Agents[i])
		if v := verdicts[f.Agent]; v != nil {
			f.weigh(v)
		}
		fits = append(fits, f)
	}
	slices.SortStableFunc(fits, func(x, y Fit) int { return cmp.Compare(y.rank(), x.rank()) })
	return fits, nil
}

func matches(ctx context.Context, a *cli.App, d *client.Client, id string) (map[string]*hub.Match, error) {
	text, err := a.Ask(ctx, d, "match-agents", wire.TaskID{TaskID: id})
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[hub.Matches](text)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*hub.Match, len(list.Servers))
	for i := range list.Servers {
		found[list.Servers[i].ServerName] = &list.Servers[i]
	}
	return found, nil
}

// rank returns the order of a fit, higher first. Agents without free capacity follow those
// that fit.
func (f *Fit) rank() int {
	switch {
	case f.Good():
		return f.Score + 2
	case f.Full:
		return 1
	}
	return 0
}

// byName returns the fit of an agent by role and capabilities.
func byName(t *wire.Task, agent *wire.Agent) Fit {
	f := Fit{Agent: agent.ID, Status: agent.Status}
	if agent.TakesNoTasks {
		f.Lacks = append(f.Lacks, "takes no tasks")
	}
	if t.RequiredRole != "" && agent.Role != t.RequiredRole {
		f.Lacks = append(f.Lacks, "is a "+term.OneLine(agent.Role)+", not a "+term.OneLine(t.RequiredRole))
	}
	var missing []string
	for _, c := range t.RequiredCapabilities {
		if !slices.Contains(agent.Capabilities, c) {
			missing = append(missing, term.OneLine(c))
		}
	}
	if len(missing) > 0 {
		f.Lacks = append(f.Lacks, "lacks capability "+strings.Join(missing, ", "))
	}
	if AsksByName(t) && len(f.Lacks) == 0 && t.SubmittedBy == "agent:"+agent.ID {
		f.Lacks = append(f.Lacks, "submitted it")
	}
	return f
}

// weigh adds the result for the requirements.
func (f *Fit) weigh(v *hub.Match) {
	f.verdict = v
	if v.Score >= 0 {
		f.Score = v.Score
		for _, reason := range v.Reasons {
			f.points = append(f.points, PointWords(reason))
		}
		return
	}
	before := len(f.Lacks)
	for _, reason := range v.Reasons {
		f.Lacks = append(f.Lacks, LackWords(reason))
	}
	f.Full = before == 0 && len(v.Reasons) == 1 && strings.HasPrefix(v.Reasons[0], fullReason)
}

const fullReason = "at capacity: "

// PointWords shortens a reason for a score: "language match: go (+50)" is "languages +50".
// It returns unknown reasons unchanged.
func PointWords(reason string) string {
	text, points, ok := strings.Cut(strings.TrimSuffix(reason, ")"), " (+")
	if !ok {
		return term.OneLine(reason)
	}
	what, _, _ := strings.Cut(text, ":")
	short := map[string]string{
		"repo match": "repo", "language match": "languages", "environment match": "environment", "tools match": "tools",
		"tags match": "tags", "preferred server": "preferred", "has capacity": "capacity",
	}
	if words := short[what]; words != "" {
		what = words
	}
	return term.OneLine(what) + " +" + points
}

// LackWords rephrases a reason against an agent for use in a sentence.
func LackWords(reason string) string {
	reason = strings.TrimSuffix(reason, " (disqualified)")
	for _, known := range []struct{ begin, words string }{
		{"missing repo: ", "lacks repo "},
		{"missing language: ", "lacks language "},
		{"no matching environment: ", "lacks environment "},
		{fullReason, "has no room: "},
	} {
		if rest, ok := strings.CutPrefix(reason, known.begin); ok {
			return known.words + term.OneLine(rest)
		}
	}
	if reason == "no capabilities defined" {
		return "reports no capabilities"
	}
	return term.OneLine(reason)
}
