package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// fit is how one agent fits a task.
type fit struct {
	agent  string
	status string   // idle, busy and so on
	score  int      // by its requirements; 0 when it has none
	points []string // what the score is made of
	lacks  []string // none: it fits
	full   bool     // that is all that it lacks: it has as many tasks as it may

	verdict *wire.Match // by its requirements, as it came; nil when it has none
}

func (f *fit) good() bool { return len(f.lacks) == 0 }

// words say why an agent fits, or does not.
func (f *fit) words() string {
	switch {
	case len(f.lacks) > 0:
		return strings.Join(f.lacks, ", ")
	case len(f.points) > 0:
		return strings.Join(f.points, ", ")
	}
	return f.status
}

// asksByName reports whether a task goes by its role and its capabilities, and
// isMatched reports whether it goes only by its requirements.
func asksByName(t *wire.Task) bool { return t.RequiredRole != "" || len(t.RequiredCapabilities) > 0 }

func isMatched(t *wire.Task) bool {
	return requires(t) && !asksByName(t) && t.State == wire.TaskPending
}

func requires(t *wire.Task) bool {
	return t.Details != nil && !wire.ReadRequirements(t.Details.Requirements).Empty()
}

// fits asks how each agent fits a task: the best first, and then those that do
// not.
func (a *app) fits(ctx context.Context, d *client, t *taskSeen) ([]fit, error) {
	text, err := a.ask(ctx, d, "query-agents", wire.QueryAgents{})
	if err != nil {
		return nil, err
	}
	list, err := decode[wire.AgentList](text)
	if err != nil {
		return nil, err
	}
	verdicts := map[string]*wire.Match{}
	if requires(&t.Task) {
		if verdicts, err = a.verdicts(ctx, d, t.ID); err != nil {
			return nil, err
		}
	}
	fits := make([]fit, 0, len(list.Agents))
	for i := range list.Agents {
		f := byName(&t.Task, &list.Agents[i])
		if v := verdicts[f.agent]; v != nil {
			f.weigh(v)
		}
		fits = append(fits, f)
	}
	slices.SortStableFunc(fits, func(x, y fit) int { return cmp.Compare(y.rank(), x.rank()) })
	return fits, nil
}

func (a *app) verdicts(ctx context.Context, d *client, id string) (map[string]*wire.Match, error) {
	text, err := a.ask(ctx, d, "match-agents", wire.TaskID{TaskID: id})
	if err != nil {
		return nil, err
	}
	list, err := decode[wire.Matches](text)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*wire.Match, len(list.Servers))
	for i := range list.Servers {
		found[list.Servers[i].ServerName] = &list.Servers[i]
	}
	return found, nil
}

// rank puts those that fit first, then those that only have no room.
func (f *fit) rank() int {
	switch {
	case f.good():
		return f.score + 2
	case f.full:
		return 1
	}
	return 0
}

// byName is how an agent fits by its role and its capabilities.
func byName(t *wire.Task, agent *wire.Agent) fit {
	f := fit{agent: agent.ID, status: agent.Status}
	if t.RequiredRole != "" && agent.Role != t.RequiredRole {
		f.lacks = append(f.lacks, "is a "+plain.OneLine(agent.Role)+" and no "+plain.OneLine(t.RequiredRole))
	}
	var missing []string
	for _, c := range t.RequiredCapabilities {
		if !slices.Contains(agent.Capabilities, c) {
			missing = append(missing, plain.OneLine(c))
		}
	}
	if len(missing) > 0 {
		f.lacks = append(f.lacks, "lacks capability "+strings.Join(missing, ", "))
	}
	if asksByName(t) && len(f.lacks) == 0 && t.SubmittedBy == "agent:"+agent.ID {
		f.lacks = append(f.lacks, "has submitted it itself")
	}
	return f
}

// weigh adds what the requirements say.
func (f *fit) weigh(v *wire.Match) {
	f.verdict = v
	if v.Score >= 0 {
		f.score = v.Score
		for _, reason := range v.Reasons {
			f.points = append(f.points, pointWords(reason))
		}
		return
	}
	before := len(f.lacks)
	for _, reason := range v.Reasons {
		f.lacks = append(f.lacks, lackWords(reason))
	}
	f.full = before == 0 && len(v.Reasons) == 1 && strings.HasPrefix(v.Reasons[0], fullReason)
}

const fullReason = "at capacity: "

// pointWords are a reason for a score in short: "language match: go (+50)" is
// "languages +50". One that is not known stays as it is.
func pointWords(reason string) string {
	text, points, ok := strings.Cut(strings.TrimSuffix(reason, ")"), " (+")
	if !ok {
		return plain.OneLine(reason)
	}
	what, _, _ := strings.Cut(text, ":")
	short := map[string]string{
		"repo match": "repo", "language match": "languages", "environment match": "environment", "tools match": "tools",
		"tags match": "tags", "preferred server": "preferred", "has capacity": "capacity",
	}
	if words := short[what]; words != "" {
		what = words
	}
	return plain.OneLine(what) + " +" + points
}

// lackWords are a reason against an agent as a sentence has it.
func lackWords(reason string) string {
	reason = strings.TrimSuffix(reason, " (disqualified)")
	for _, known := range []struct{ begin, words string }{
		{"missing repo: ", "lacks repo "},
		{"missing language: ", "lacks language "},
		{"no matching environment: ", "has no environment of "},
		{fullReason, "has no room: "},
	} {
		if rest, ok := strings.CutPrefix(reason, known.begin); ok {
			return known.words + plain.OneLine(rest)
		}
	}
	if reason == "no capabilities defined" {
		return "says nothing of what it can do"
	}
	return plain.OneLine(reason)
}
