package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) reviewShowCommand() *cobra.Command {
	var session string
	verb := &cobra.Command{
		Use:   "show ID",
		Short: "Show a review in full",
		Long: `Shows a review: of which task it is, who reviews it, what it came to, and each of
its findings, with the review since which it is open, or that found it fixed. Any
unique prefix of its id will do.`,
		Example:           "  orchestrator review show review-001\n  orchestrator review show review-001 --session checkout --json",
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeReviews,
		RunE: func(verb *cobra.Command, args []string) error {
			if err := notEmpty(verb, "session"); err != nil {
				return err
			}
			return a.showReview(args[0], session)
		},
	}
	verb.Flags().StringVar(&session, "session", "", "the session `NAME` that it belongs to, where several have one of this id")
	_ = verb.RegisterFlagCompletionFunc("session", a.completeSessions)
	return verb
}

func (a *app) showReview(word, session string) error {
	if word == "" {
		return usageError("the id of a review is missing: it is empty", noReviewHint)
	}
	return a.speak(func(ctx context.Context, d *client) error {
		all, err := a.listReviews(ctx, d, wire.ListReviews{SessionID: session})
		if err != nil {
			return err
		}
		r, err := reviewOf(all, word)
		switch {
		case err != nil:
			return err
		case a.flags.quiet && !a.flags.json:
			return a.print("%s\n", wire.Visible(r.ReviewID))
		}
		task, said, err := a.reviewed(ctx, d, r)
		if err != nil {
			return err
		}
		findings := findingsOf(r, task, said.Findings)
		if a.flags.json {
			return a.document(reviewDocument{FormatVersion: wire.FormatVersion, Review: r.raw, Findings: findings})
		}
		return a.print("%s", reviewCard(r, task, said.Summary, findings, a.paint(a.stdout), time.Now()))
	})
}

const noReviewHint = "See which there are: orchestrator review ls"

// reviewOf finds the review that a word stands for.
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
		f := &failure{
			exit: exitNotFound, code: wire.CodeNotFound, message: fmt.Sprintf("no review has an id that begins with %q", word),
			hint: noReviewHint, details: map[string]any{"review": word},
		}
		if likely := nearest(word, ids); likely != "" {
			f.because = []string{fmt.Sprintf("Did you mean %q?", likely)}
		}
		return nil, f
	}
	const few = 5
	var shown []string
	for _, r := range fits[:min(few, len(fits))] {
		shown = append(shown, fmt.Sprintf("%s of %s", wire.Visible(r.ReviewID), plain.OneLine(r.SessionID)))
	}
	if len(fits) > few {
		shown = append(shown, fmt.Sprintf("and %d more", len(fits)-few))
	}
	hint := "Write more of the id"
	if len(exact) > 1 {
		hint = "Say of which session: --session NAME"
	}
	return nil, &failure{
		exit: exitNotFound, code: wire.CodeNotFound, message: fmt.Sprintf("%q fits %d reviews: %s", word, len(fits), strings.Join(shown, ", ")),
		hint: hint, details: map[string]any{"review": word},
	}
}

// reviewed asks for the task of a review, and for what its result said.
func (a *app) reviewed(ctx context.Context, d *client, r *reviewSeen) (*wire.SessionTask, resultSaid, error) {
	seen, err := a.getSession(ctx, d, &wire.GetSession{SessionID: r.SessionID, TaskID: r.TaskID}, 0)
	if err != nil {
		return nil, resultSaid{}, err
	}
	var result resultSaid
	for _, raw := range seen.Messages {
		s, err := readSaid(raw)
		if err != nil {
			return nil, resultSaid{}, err
		}
		if s.kind != wire.TypeReviewResult || s.refused != "" {
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

// findingsOf are the findings that a review names, in its order. When the task was planned
// anew since, they are as the review said them.
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

// findingOf is a finding as a review said it.
func findingOf(id string, iteration int, said []findingSaid) wire.FindingView {
	v := wire.FindingView{ID: id}
	if i := slices.IndexFunc(said, func(f findingSaid) bool { return f.ID == id }); i >= 0 {
		f := &said[i]
		v.Severity, v.Category, v.File, v.Text = f.Severity, f.Category, f.Location.File, f.Text
		v.Found, v.Fixed = iteration, int(f.Fixed)
	}
	return v
}

// reviewCard is a review in full.
func reviewCard(r *reviewSeen, t *wire.SessionTask, summary string, findings []wire.FindingView, p paint, now time.Time) string {
	at := func(stamp string) string { return plain.Clock(stamp, now, time.TimeOnly) }
	c := card{}
	c.row("session", plain.OneLine(r.SessionID))
	c.row("task", strings.TrimSpace(sessionID(t.TaskID)+"  "+plain.Clip(plain.OneLine(t.Name), 60)+"  "+plain.OneLine(t.Phase)))
	c.row("reviewer", plain.OneLine(r.Reviewer))
	iteration := fmt.Sprint(r.Iteration)
	if t.MaxIterations > 0 {
		iteration += fmt.Sprintf(" of %d", t.MaxIterations)
	}
	c.row("iteration", iteration)
	c.row("asked", at(r.RequestedAt))
	if r.DecidedAt != "" {
		decided := at(r.DecidedAt)
		if took, ok := between(r.RequestedAt, r.DecidedAt); ok {
			decided += " after " + plain.Duration(took)
		}
		c.row("decided", decided)
	}
	c.text("summary", summary)
	shown := fmt.Sprintf("%s  %s\n", p.strong(plain.OneLine(r.ReviewID)), p.verdict(r.Verdict, verdictWord(&r.ReviewView))) + table(c.lines)
	if len(findings) == 0 {
		return shown
	}
	return shown + "\n" + table(findingRows(findings, p))
}

func findingRows(findings []wire.FindingView, p paint) [][]cell {
	rows := [][]cell{{text("FINDING"), text("SEVERITY"), text("CATEGORY"), text("FILE"), text("STATE"), text("WHAT")}}
	for i := range findings {
		f := &findings[i]
		state := cell{text: "open"}
		switch {
		case f.Fixed > 0:
			state = cell{text: fmt.Sprintf("fixed in iteration %d", f.Fixed), ink: p.good}
		case f.Found > 0:
			state = text(fmt.Sprintf("open since iteration %d", f.Found))
		}
		rows = append(rows, []cell{
			text(sessionID(f.ID)), {text: cmp.Or(plain.OneLine(f.Severity), "-"), ink: func(s string) string { return p.severity(f.Severity, s) }},
			text(cmp.Or(plain.OneLine(f.Category), "-")), text(cmp.Or(plain.OneLine(f.File), "-")), state, text(plain.Clip(plain.OneLine(f.Text), 80)),
		})
	}
	return rows
}

// completeReviews offers the ids of reviews.
func (a *app) completeReviews(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(already) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offered []cobra.Completion
	for _, r := range forShell[wire.ReviewList](a, "list-reviews", wire.ListReviews{}).Reviews {
		offered = append(offered, cobra.CompletionWithDesc(r.ReviewID, sessionID(r.TaskID)+", "+verdictWord(&r)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
