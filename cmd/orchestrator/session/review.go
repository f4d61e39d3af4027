package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// ReviewCommand returns the review command.
func ReviewCommand(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "review",
		Short: "List and show reviews",
		Long: `In a session an architect requests the review of a completed task. The reviewer answers
with a verdict and findings. Findings are tracked from one review of the task to the
next. See orchestrator help session.`,
		Example: "  orchestrator review ls --open\n  orchestrator review show review-001",
	},
		cli.OnRecord(reviewListCommand(a)), cli.OnRecord(reviewShowCommand(a)),
	)
}

// reviewFlags are the flags of review ls.
type reviewFlags struct {
	session string
	open    bool
}

// reviewDocument and reviewsDocument are the JSON answers with one review and with several.
type reviewDocument struct {
	FormatVersion string                `json:"format_version"`
	Review        wire.Raw              `json:"review"`
	Findings      []session.FindingView `json:"findings"` // findings that the review names
}

type reviewsDocument struct {
	FormatVersion string     `json:"format_version"`
	Reviews       []wire.Raw `json:"reviews"`
}

// reviewSeen is a review with its unchanged JSON.
type reviewSeen struct {
	session.ReviewView
	raw wire.Raw
}

func reviewListCommand(a *cli.App) *cobra.Command {
	var f reviewFlags
	verb := &cobra.Command{
		Use:   "ls",
		Short: "List the reviews",
		Long: `Lists the reviews of all sessions in the order of their requests: task, reviewer,
iteration, verdict and number of findings.`,
		Example: `  orchestrator review ls --open
  orchestrator review ls --session checkout
  orchestrator review ls -q --open      only the ids`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := cli.NotEmpty(verb, "session"); err != nil {
				return err
			}
			return reviews(a, &f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.session, "session", "", "only reviews of the session `NAME`")
	set.BoolVar(&f.open, "open", false, "only reviews without a result")
	_ = verb.RegisterFlagCompletionFunc("session", a.Completion(completeSessions))
	return verb
}

// ListReviews returns reviews, oldest first.
func ListReviews(ctx context.Context, a *cli.App, d *client.Client, want wire.ListReviews) ([]reviewSeen, error) {
	text, err := a.Ask(ctx, d, "list-reviews", want)
	if err != nil {
		return nil, noSession(ctx, d, want.SessionID, err)
	}
	return readReviews(text)
}

func readReviews(text []byte) ([]reviewSeen, error) {
	list, err := client.Decode[reviewsDocument](text)
	if err != nil {
		return nil, err
	}
	found := make([]reviewSeen, len(list.Reviews))
	for i, raw := range list.Reviews {
		view, err := client.Decode[session.ReviewView](raw)
		if err != nil {
			return nil, err
		}
		found[i] = reviewSeen{ReviewView: view, raw: raw}
	}
	return found, nil
}

func reviews(a *cli.App, f *reviewFlags) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		all, err := ListReviews(ctx, a, d, wire.ListReviews{SessionID: f.session})
		if err != nil {
			return err
		}
		var chosen []reviewSeen
		for i := range all {
			if !f.open || all[i].Verdict == "" {
				chosen = append(chosen, all[i])
			}
		}
		switch {
		case a.Flags.JSON:
			document := reviewsDocument{FormatVersion: wire.FormatVersion}
			for i := range chosen {
				document.Reviews = append(document.Reviews, chosen[i].raw)
			}
			return a.Document(document)
		case a.Flags.Quiet:
			return cli.PrintNames(a, chosen, func(r *reviewSeen) string { return r.ReviewID })
		case len(chosen) == 0 && len(all) > 0:
			return a.Print("No open reviews. All reviews: orchestrator review ls\n")
		case len(chosen) == 0:
			return a.Print("No reviews yet. To request one: orchestrator help session\n")
		}
		return a.Print("%s", term.Table(reviewRows(chosen, a.Paint(a.Stdout), time.Now())))
	})
}

func reviewRows(reviews []reviewSeen, p term.Paint, now time.Time) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("ID"), term.Text("SESSION"), term.Text("TASK"), term.Text("REVIEWER"), term.Figure("ITERATION"), term.Text("VERDICT"), term.Figure("FINDINGS"), term.Text("ASKED")}}
	for i := range reviews {
		r := &reviews[i]
		findings := "-"
		if r.Verdict != "" {
			findings = strconv.Itoa(len(r.Findings))
		}
		rows = append(rows, []term.Cell{
			term.Text(sessionID(r.ReviewID)), term.Text(term.OneLine(r.SessionID)), term.Text(sessionID(r.TaskID)), term.Text(term.OneLine(r.Reviewer)),
			term.Figure(strconv.Itoa(r.Iteration)), {Text: term.VerdictWord(&r.ReviewView), Ink: func(s string) string { return verdict(p, r.Verdict, s) }},
			term.Figure(findings), term.Text(term.Ago(r.RequestedAt, now)),
		})
	}
	return rows
}

func reviewShowCommand(a *cli.App) *cobra.Command {
	var sessionID string
	verb := &cobra.Command{
		Use:   "show ID",
		Short: "Show a review in full",
		Long: `Shows a review: its task, reviewer, verdict and findings. For each finding it shows the
review that found it and the review that found it fixed. Any unique prefix of the id is
accepted.`,
		Example:           "  orchestrator review show review-001\n  orchestrator review show review-001 --session checkout --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.OneArg(a.Completion(completeReviews)),
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "session"); err != nil {
				return err
			}
			return showReview(a, args[0], sessionID)
		},
	}
	verb.Flags().StringVar(&sessionID, "session", "", "the session `NAME`, if several sessions have a review with this id")
	_ = verb.RegisterFlagCompletionFunc("session", a.Completion(completeSessions))
	return verb
}

func showReview(a *cli.App, word, sessionID string) error {
	if word == "" {
		return cli.UsageError("the id of the review is empty", noReviewHint)
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

const noReviewHint = "List them: orchestrator review ls"

// reviewOf returns the review with the id word, or with an id that begins with it.
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
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("no review id begins with %q", word),
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
	hint := "Write more characters of the id"
	if len(exact) > 1 {
		hint = "Name the session: --session NAME"
	}
	return nil, &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("%q matches %d reviews: %s", word, len(fits), strings.Join(shown, ", ")),
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
func findingsOf(r *reviewSeen, t *wire.SessionTask, said []findingSaid) []session.FindingView {
	found := make([]session.FindingView, 0, len(r.Findings))
	for _, id := range r.Findings {
		i := slices.IndexFunc(t.Findings, func(f session.FindingView) bool { return f.ID == id })
		if i < 0 {
			found = append(found, findingOf(id, r.Iteration, said))
			continue
		}
		found = append(found, t.Findings[i])
	}
	return found
}

// findingOf returns a finding as a review stated it.
func findingOf(id string, iteration int, said []findingSaid) session.FindingView {
	v := session.FindingView{ID: id}
	if i := slices.IndexFunc(said, func(f findingSaid) bool { return f.ID == id }); i >= 0 {
		f := &said[i]
		v.Severity, v.Category, v.File, v.Text = f.Severity, f.Category, f.Location.File, f.Text
		v.Found, v.Fixed = iteration, int(f.Fixed)
	}
	return v
}

// reviewCard returns the description of a review in full.
func reviewCard(r *reviewSeen, t *wire.SessionTask, summary string, findings []session.FindingView, p term.Paint, now time.Time) string {
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

func findingRows(findings []session.FindingView, p term.Paint) [][]term.Cell {
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
func completeReviews(a *cli.App, _ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, r := range cli.CompletionList[session.ReviewList](a, "list-reviews", wire.ListReviews{}).Reviews {
		offered = append(offered, cobra.CompletionWithDesc(r.ReviewID, sessionID(r.TaskID)+", "+term.VerdictWord(&r)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
