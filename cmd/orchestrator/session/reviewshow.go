package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

func reviewShowCommand(a *cli.App) *cobra.Command {
	var sessionID string
	verb := &cobra.Command{
		Use:   "show ID",
		Short: "Show a review in full",
		Long: `Shows a review: its task, reviewer, verdict and findings. For each finding it shows the
review that found it and the one that found it fixed. Any unique prefix of the id is
accepted.`,
		Example:           "  orchestrator review show review-001\n  orchestrator review show review-001 --session checkout --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.Completion(a, completeReviews),
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "session"); err != nil {
				return err
			}
			return showReview(a, args[0], sessionID)
		},
	}
	verb.Flags().StringVar(&sessionID, "session", "", "the session `NAME`, if several sessions have a review with this id")
	_ = verb.RegisterFlagCompletionFunc("session", cli.Completion(a, completeSessions))
	return verb
}

func showReview(a *cli.App, word, sessionID string) error {
	if word == "" {
		return cli.UsageError("the id of a review is missing: it is empty", noReviewHint)
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		all, err := ListReviews(ctx, a, d, wire.ListReviews{SessionID: sessionID})
		if err != nil {
			return err
		}
		r, err := reviewOf(all, word)
		switch {
		case err != nil:
			return err
		case a.Flags.Quiet && !a.Flags.JSON:
			return a.Print("%s\n", wire.Visible(r.ReviewID))
		}
		task, said, err := reviewed(ctx, a, d, r)
		if err != nil {
			return err
		}
		findings := findingsOf(r, task, said.Findings)
		if a.Flags.JSON {
			return a.Document(reviewDocument{FormatVersion: wire.FormatVersion, Review: r.raw, Findings: findings})
		}
		return a.Print("%s", reviewCard(r, task, said.Summary, findings, a.Paint(a.Stdout), time.Now()))
	})
}

const noReviewHint = "See which there are: orchestrator review ls"

// reviewOf returns the review whose id is word or begins with it.
func reviewOf(all []reviewSeen, word string) (*reviewSeen, error) {
	var exact, fits []*reviewSeen
	var ids []string
	for i := range all {
		r := &all[i]
		ids = append(ids, r.ReviewID)
		if r.ReviewID == word {
			exact = append(exact, r)
		}
		if strings.HasPrefix(r.ReviewID, word) {
			fits = append(fits, r)
		}
	}
	if len(exact) > 0 {
		fits = exact
	}
	switch len(fits) {
	case 1:
		return fits[0], nil
	case 0:
		f := &cli.Failure{
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("no review has an id that begins with %q", word),
			Hint: noReviewHint, Details: map[string]any{"review": word},
		}
		if likely := cli.Nearest(word, ids); likely != "" {
			f.Because = []string{fmt.Sprintf("Did you mean %q?", likely)}
		}
		return nil, f
	}
	const few = 5
	var shown []string
	for _, r := range fits[:min(few, len(fits))] {
		shown = append(shown, fmt.Sprintf("%s of %s", wire.Visible(r.ReviewID), term.OneLine(r.SessionID)))
	}
	if len(fits) > few {
		shown = append(shown, fmt.Sprintf("and %d more", len(fits)-few))
	}
	hint := "Write more of the id"
	if len(exact) > 1 {
		hint = "Say of which session: --session NAME"
	}
	return nil, &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("%q fits %d reviews: %s", word, len(fits), strings.Join(shown, ", ")),
		Hint: hint, Details: map[string]any{"review": word},
	}
}

// reviewed returns the task of a review and the content of its result.
func reviewed(ctx context.Context, a *cli.App, d *client.Client, r *reviewSeen) (*wire.SessionTask, resultSaid, error) {
	seen, err := getSession(ctx, a, d, &wire.GetSession{SessionID: r.SessionID, TaskID: r.TaskID}, 0)
	if err != nil {
		return nil, resultSaid{}, err
	}
	var result resultSaid
	for _, raw := range seen.Messages {
		s, err := readSaid(raw)
		if err != nil {
			return nil, resultSaid{}, err
		}
		if s.kind != session.TypeReviewResult || s.refused != "" {
			continue
		}
		if b := bodyOf[resultSaid](s.payload); b.ReviewID == r.ReviewID {
			result = b
		}
	}
	for i := range seen.Tasks {
		if seen.Tasks[i].TaskID == r.TaskID {
			return &seen.Tasks[i], result, nil
		}
	}
	return &wire.SessionTask{TaskID: r.TaskID}, result, nil
}

// findingsOf returns the findings that a review names, in its order. Findings that the task
// no longer has are returned as the review stated them.
func findingsOf(r *reviewSeen, t *wire.SessionTask, said []findingSaid) []wire.FindingView {
	found := make([]wire.FindingView, 0, len(r.Findings))
	for _, id := range r.Findings {
		i := slices.IndexFunc(t.Findings, func(f wire.FindingView) bool { return f.ID == id })
		if i < 0 {
			found = append(found, findingOf(id, r.Iteration, said))
			continue
		}
		found = append(found, t.Findings[i])
	}
	return found
}

// findingOf returns a finding as a review stated it.
func findingOf(id string, iteration int, said []findingSaid) wire.FindingView {
	v := wire.FindingView{ID: id}
	if i := slices.IndexFunc(said, func(f findingSaid) bool { return f.ID == id }); i >= 0 {
		f := &said[i]
		v.Severity, v.Category, v.File, v.Text = f.Severity, f.Category, f.Location.File, f.Text
		v.Found, v.Fixed = iteration, int(f.Fixed)
	}
	return v
}

// reviewCard returns the description of a review in full.
func reviewCard(r *reviewSeen, t *wire.SessionTask, summary string, findings []wire.FindingView, p term.Paint, now time.Time) string {
	at := func(stamp string) string { return term.Clock(stamp, now, time.TimeOnly) }
	c := term.Card{}
	c.Row("session", term.OneLine(r.SessionID))
	c.Row("task", strings.TrimSpace(sessionID(t.TaskID)+"  "+term.Clip(term.OneLine(t.Name), 60)+"  "+term.OneLine(t.Phase)))
	c.Row("reviewer", term.OneLine(r.Reviewer))
	iteration := fmt.Sprint(r.Iteration)
	if t.MaxIterations > 0 {
		iteration += fmt.Sprintf(" of %d", t.MaxIterations)
	}
	c.Row("iteration", iteration)
	c.Row("asked", at(r.RequestedAt))
	if r.DecidedAt != "" {
		decided := at(r.DecidedAt)
		if took, ok := term.Between(r.RequestedAt, r.DecidedAt); ok {
			decided += " after " + term.Duration(took)
		}
		c.Row("decided", decided)
	}
	c.Text("summary", summary)
	shown := fmt.Sprintf("%s  %s\n", p.Strong(term.OneLine(r.ReviewID)), verdict(p, r.Verdict, term.VerdictWord(&r.ReviewView))) + term.Table(c.Lines)
	if len(findings) == 0 {
		return shown
	}
	return shown + "\n" + term.Table(findingRows(findings, p))
}

func findingRows(findings []wire.FindingView, p term.Paint) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("FINDING"), term.Text("SEVERITY"), term.Text("CATEGORY"), term.Text("FILE"), term.Text("STATE"), term.Text("WHAT")}}
	for i := range findings {
		f := &findings[i]
		state := term.Cell{Text: "open"}
		switch {
		case f.Fixed > 0:
			state = term.Cell{Text: fmt.Sprintf("fixed in iteration %d", f.Fixed), Ink: p.Good}
		case f.Found > 0:
			state = term.Text(fmt.Sprintf("open since iteration %d", f.Found))
		}
		rows = append(rows, []term.Cell{
			term.Text(sessionID(f.ID)), {Text: cmp.Or(term.OneLine(f.Severity), "-"), Ink: func(s string) string { return severity(p, f.Severity, s) }},
			term.Text(cmp.Or(term.OneLine(f.Category), "-")), term.Text(cmp.Or(term.OneLine(f.File), "-")), state, term.Text(term.Clip(term.OneLine(f.Text), 80)),
		})
	}
	return rows
}

// completeReviews completes the ids of reviews.
func completeReviews(a *cli.App, _ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(already) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offered []cobra.Completion
	for _, r := range cli.CompletionList[wire.ReviewList](a, "list-reviews", wire.ListReviews{}).Reviews {
		offered = append(offered, cobra.CompletionWithDesc(r.ReviewID, sessionID(r.TaskID)+", "+term.VerdictWord(&r)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
