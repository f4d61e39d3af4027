package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) reviewCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "review",
		Short: "List and show reviews",
		Long: `In a session an architect asks a reviewer to judge a task that is done, and the
reviewer answers with a verdict and with findings, which are followed from one review
of the task to the next. More about all of it: orchestrator help session.`,
		Example: "  orchestrator review ls --open\n  orchestrator review show review-001",
	},
		a.reviewListCommand(), a.reviewShowCommand(),
	)
}

// reviewFlags choose among reviews.
type reviewFlags struct {
	session string
	open    bool
}

// reviewDocument and reviewsDocument answer programs.
type reviewDocument struct {
	FormatVersion string             `json:"format_version"`
	Review        wire.Raw           `json:"review"`
	Findings      []wire.FindingView `json:"findings"` // those that it names
}

type reviewsDocument struct {
	FormatVersion string     `json:"format_version"`
	Reviews       []wire.Raw `json:"reviews"`
}

// reviewSeen is a review, and its document as it came.
type reviewSeen struct {
	wire.ReviewView
	raw wire.Raw
}

func (a *app) reviewListCommand() *cobra.Command {
	var f reviewFlags
	verb := &cobra.Command{
		Use:   "ls",
		Short: "List the reviews",
		Long: `Lists the reviews of all sessions, in the order in which they were asked for: of
which task, by which reviewer, the how many-th it is of its task, what it came to, and how many
findings its result has.`,
		Example: `  orchestrator review ls --open
  orchestrator review ls --session checkout
  orchestrator review ls -q --open      ids alone`,
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(verb *cobra.Command, _ []string) error {
			if err := notEmpty(verb, "session"); err != nil {
				return err
			}
			return a.reviews(&f)
		},
	}
	set := verb.Flags()
	set.StringVar(&f.session, "session", "", "only reviews of the session `NAME`")
	set.BoolVar(&f.open, "open", false, "only those that have no result yet")
	_ = verb.RegisterFlagCompletionFunc("session", a.completeSessions)
	return verb
}

// listReviews asks for reviews, oldest first.
func (a *app) listReviews(ctx context.Context, d *client, want wire.ListReviews) ([]reviewSeen, error) {
	text, err := a.ask(ctx, d, "list-reviews", want)
	if err != nil {
		return nil, a.noSession(ctx, d, want.SessionID, err)
	}
	return readReviews(text)
}

func readReviews(text []byte) ([]reviewSeen, error) {
	list, err := decode[reviewsDocument](text)
	if err != nil {
		return nil, err
	}
	found := make([]reviewSeen, len(list.Reviews))
	for i, raw := range list.Reviews {
		view, err := decode[wire.ReviewView](raw)
		if err != nil {
			return nil, err
		}
		found[i] = reviewSeen{ReviewView: view, raw: raw}
	}
	return found, nil
}

func (a *app) reviews(f *reviewFlags) error {
	return a.speak(func(ctx context.Context, d *client) error {
		all, err := a.listReviews(ctx, d, wire.ListReviews{SessionID: f.session})
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
		case a.flags.json:
			document := reviewsDocument{FormatVersion: wire.FormatVersion}
			for i := range chosen {
				document.Reviews = append(document.Reviews, chosen[i].raw)
			}
			return a.document(document)
		case a.flags.quiet:
			return printNames(a, chosen, func(r *reviewSeen) string { return r.ReviewID })
		case len(chosen) == 0 && len(all) > 0:
			return a.print("No review is open. All of them: orchestrator review ls\n")
		case len(chosen) == 0:
			return a.print("No reviews yet. How to ask for one: orchestrator help session\n")
		}
		return a.print("%s", table(reviewRows(chosen, a.paint(a.stdout), time.Now())))
	})
}

func reviewRows(reviews []reviewSeen, p paint, now time.Time) [][]cell {
	rows := [][]cell{{text("ID"), text("SESSION"), text("TASK"), text("REVIEWER"), figure("ITERATION"), text("VERDICT"), figure("FINDINGS"), text("ASKED")}}
	for i := range reviews {
		r := &reviews[i]
		findings := "-"
		if r.Verdict != "" {
			findings = strconv.Itoa(len(r.Findings))
		}
		rows = append(rows, []cell{
			text(sessionID(r.ReviewID)), text(plain.OneLine(r.SessionID)), text(sessionID(r.TaskID)), text(plain.OneLine(r.Reviewer)),
			figure(strconv.Itoa(r.Iteration)), {text: verdictWord(&r.ReviewView), ink: func(s string) string { return p.verdict(r.Verdict, s) }},
			figure(findings), text(ago(r.RequestedAt, now)),
		})
	}
	return rows
}

func verdictWord(r *wire.ReviewView) string { return cmp.Or(plain.OneLine(r.Verdict), "open") }
