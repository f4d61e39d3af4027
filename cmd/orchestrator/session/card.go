package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// sessionCard returns the description of a session and its rules.
func sessionCard(v *wire.SessionView, p term.Paint) string {
	c := term.Card{}
	from := "the file"
	if v.Source == session.ByHand {
		from = "a person: orchestrator session new"
	}
	c.Row("from", from)
	c.Row("reason", v.Reason)
	c.Row("messages", validationWords(v.Validation))
	needs := "a task is done when its developer reports it"
	if v.RequireReview {
		needs = "a task is done when it is approved"
	}
	c.Row("reviews", fmt.Sprintf("%s; %d at most, then %s", needs, v.MaxIterations, v.OnMax))
	if v.TaskTimeout > 0 {
		c.Row("time", "a task may take "+term.MS(v.TaskTimeout))
	}
	if v.ProgressAfter > 0 {
		c.Row("progress", fmt.Sprintf("of a task that takes longer than %s, every %s", plainDuration(v.ProgressAfter), plainDuration(v.ProgressEvery)))
	}
	return fmt.Sprintf("%s  %s\n", p.Strong(term.OneLine(v.ID)), stateText(p, v.State, term.OneLine(v.State))) + term.Table(c.Lines)
}

// plainDuration formats milliseconds as in the configuration file.
func plainDuration(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func validationWords(validation string) string {
	switch validation {
	case session.ValidationStrict:
		return "strict: every deviation is refused"
	case session.ValidationStandard:
		return "standard: common omissions are accepted"
	}
	return validation
}

// membersTable returns the table of members with their current work.
func membersTable(v *wire.SessionView, p term.Paint) string {
	rows := [][]term.Cell{{term.Text("MEMBER"), term.Text("TYPE"), term.Text("STATUS"), term.Figure("WAITING"), term.Text("AT")}}
	for i := range v.Standing {
		m := &v.Standing[i]
		waiting := term.Figure(strconv.Itoa(m.Waiting))
		if m.Waiting > 0 {
			waiting.Ink = p.Warn
		}
		rows = append(rows, []term.Cell{
			term.Text(term.OneLine(m.AgentID)), term.Text(term.OneLine(m.AgentType)), term.Text(cmp.Or(term.OneLine(m.Status), "-")), waiting, term.Text(atWords(v, m)),
		})
	}
	return term.Table(rows)
}

// atWords returns the work of a member, a few items and the number of further ones.
func atWords(v *wire.SessionView, m *session.MemberView) string {
	const few = 3
	var at []string
	switch m.AgentType {
	case session.AgentReviewer:
		for i := range v.Reviews {
			if r := &v.Reviews[i]; r.Reviewer == m.AgentID && r.Verdict == "" {
				at = append(at, fmt.Sprintf("%s of %s", sessionID(r.ReviewID), sessionID(r.TaskID)))
			}
		}
	default:
		for i := range v.Tasks {
			if t := &v.Tasks[i]; concerns(t, m) {
				at = append(at, strings.TrimSpace(fmt.Sprintf("%s %s %s", sessionID(t.TaskID), term.OneLine(t.Phase), term.Percent(t.Progress))))
			}
		}
	}
	if more := len(at) - few; more > 0 {
		at = append(at[:few], fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(at, ", "), "-")
}

// The phases that wait for the developer, or for the architect.
var (
	phasesOfDeveloper = []string{session.PhaseAssigned, session.PhaseWorking}
	phasesOfArchitect = []string{session.PhaseCompleted, session.PhaseRevise, session.PhaseRedesign}
)

func concerns(t *wire.SessionTask, m *session.MemberView) bool {
	switch m.AgentID {
	case t.Developer:
		return slices.Contains(phasesOfDeveloper, t.Phase)
	case t.Architect:
		return slices.Contains(phasesOfArchitect, t.Phase) && !(t.Phase == session.PhaseCompleted && t.State.Final())
	}
	return false
}

// sessionID returns an id for people: the beginning of a UUID, or else the id.
func sessionID(id string) string {
	if term.WholeID(id) {
		return term.ID(id)
	}
	return term.Clip(term.OneLine(id), 40)
}

// taskHead returns the line above the messages of a task.
func taskHead(t *wire.SessionTask, p term.Paint) string {
	said := []string{
		p.Strong(sessionID(t.TaskID)), term.Clip(term.OneLine(t.Name), 60), phaseWords(t, p),
		fmt.Sprintf("iteration %d of %d", t.Iteration, t.MaxIterations), "by " + term.OneLine(t.Developer),
	}
	if t.Phase == session.PhaseWorking || t.Phase == session.PhaseAssigned {
		said = append(said, strings.TrimSpace(term.Percent(t.Progress)+" "+term.Clip(term.OneLine(t.Step), 40)))
	}
	if t.Tries > 1 {
		said = append(said, fmt.Sprintf("try %d", t.Tries))
	}
	if t.Overdue {
		said = append(said, p.Warn("overdue: no progress was reported"))
	}
	if t.Escalated != "" {
		said = append(said, p.Warn("escalated: "+term.OneLine(t.Escalated)))
	}
	if t.Revises != "" {
		said = append(said, "revises "+sessionID(t.Revises))
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), "  ") + "\n"
}

// phaseWords returns the phase of a task, and its state if that is final.
func phaseWords(t *wire.SessionTask, p term.Paint) string {
	state := p.Task(t.State, term.OneLine(string(t.State)))
	switch {
	case t.Phase == session.PhaseOver:
		return state
	case t.State.Final(): // done, but still under review
		return phase(p, t.Phase, term.OneLine(t.Phase)) + ", " + state
	}
	return phase(p, t.Phase, term.OneLine(t.Phase))
}

// taskFoot returns the lines below the messages of a task: its error and open findings.
func taskFoot(t *wire.SessionTask, p term.Paint) string {
	foot := ""
	if e := t.Error; e != nil {
		foot = fmt.Sprintf("  %s %s: %s (%s)\n", p.Bad("error"), term.OneLine(e.ErrorType), term.OneLine(e.ErrorMessage), term.OneLine(e.SuggestedAction))
	}
	var rows [][]term.Cell
	fixed := 0
	for i := range t.Findings {
		f := &t.Findings[i]
		if f.Fixed > 0 {
			fixed++
			continue
		}
		rows = append(rows, []term.Cell{
			{Text: "    " + term.OneLine(f.Severity), Ink: func(s string) string { return severity(p, f.Severity, s) }},
			term.Text(sessionID(f.ID)), term.Text(cmp.Or(term.OneLine(f.File), "-")), term.Text(fmt.Sprintf("since iteration %d", f.Found)), term.Text(term.Clip(term.OneLine(f.Text), 60)),
		})
	}
	if len(rows) > 0 {
		foot += "  open findings\n" + term.Table(rows)
	}
	if fixed > 0 {
		foot += fmt.Sprintf("  %s fixed\n", isOrAre(fixed, "finding"))
	}
	return foot
}

func isOrAre(n int, noun string) string {
	if n == 1 {
		return term.Count(n, noun) + " is"
	}
	return term.Count(n, noun) + " are"
}

// phase paints a text in the color of a phase.
func phase(p term.Paint, phase, text string) string {
	switch phase {
	case session.PhaseWorking:
		return p.Good(text)
	case session.PhaseRevise, session.PhaseRedesign, session.PhaseHuman:
		return p.Warn(text)
	}
	return text
}

// severity paints a text in the color of a severity.
func severity(p term.Paint, severity, text string) string {
	switch severity {
	case session.SeverityCritical, session.SeverityMajor:
		return p.Bad(text)
	case session.SeverityMinor:
		return p.Warn(text)
	}
	return text
}

// verdict paints a text in the color of a verdict.
func verdict(p term.Paint, verdict, text string) string {
	switch verdict {
	case session.VerdictApproved:
		return p.Good(text)
	case session.VerdictChangesRequested:
		return p.Warn(text)
	case session.VerdictRejected:
		return p.Bad(text)
	}
	return text
}
