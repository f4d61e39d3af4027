package session

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// ReviewCommand returns the review command.
func ReviewCommand(a *cli.App) *cobra.Command {
	return cli.Group(a, &cobra.Command{
		Use:   "review",
		Short: "List and show reviews",
		Long: `In a session an architect requests the review of a completed task. The reviewer answers
with a verdict and findings. Findings are tracked from one review of the task to the
next. See orchestrator help session.`,
		Example: "  orchestrator review ls --open\n  orchestrator review show review-001",
	},
		reviewListCommand(a), reviewShowCommand(a),
	)
}

// reviewFlags are the flags of review ls.
type reviewFlags struct {
	session string
	open    bool
}

// reviewDocument and reviewsDocument are the JSON answers with one review and with several.
type reviewDocument struct {
	FormatVersion string             `json:"format_version"`
	Review        wire.Raw           `json:"review"`
	Findings      []wire.FindingView `json:"findings"` // findings that the review names
}

type reviewsDocument struct {
	FormatVersion string     `json:"format_version"`
	Reviews       []wire.Raw `json:"reviews"`
}

// reviewSeen is a review with its unchanged JSON.
type reviewSeen struct {
	wire.ReviewView
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
  orchestrator review ls -q --open      ids alone`,
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
	_ = verb.RegisterFlagCompletionFunc("session", cli.Completion(a, completeSessions))
	return verb
}

// ListReviews returns reviews, oldest first.
func ListReviews(ctx context.Context, a *cli.App, d *client.Client, want wire.ListReviews) ([]reviewSeen, error) {
	text, err := a.Ask(ctx, d, "list-reviews", want)
	if err != nil {
		return nil, noSession(ctx, a, d, want.SessionID, err)
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
		view, err := client.Decode[wire.ReviewView](raw)
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
			return a.Print("No review is open. All of them: orchestrator review ls\n")
		case len(chosen) == 0:
			return a.Print("No reviews yet. How to ask for one: orchestrator help session\n")
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
