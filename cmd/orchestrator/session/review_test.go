package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

func kettleReviews(t *testing.T) []reviewSeen {
	t.Helper()
	found, err := readReviews([]byte(strings.NewReplacer("ASKED", minutes(6), "DECIDED", minutes(7), "LATER", minutes(8*60)).Replace(`{"reviews":[
{"review_id":"r-1","session_id":"kettle","task_id":"kettle-1","reviewer":"rex","iteration":1,"verdict":"changes_requested","requested_at":"ASKED","decided_at":"DECIDED","findings":["k-1","k-0","k-7"]},
{"review_id":"r-2","session_id":"kettle","task_id":"kettle-1","reviewer":"rex","iteration":2,"requested_at":"LATER","findings":[]},
{"review_id":"r-1","session_id":"other","task_id":"\u001bx","reviewer":"ann","iteration":1,"verdict":"approved","requested_at":"LATER","findings":[]}]}`)))
	require.NoError(t, err)
	return found
}

func TestReviewRows(t *testing.T) {
	require.Equal(t, `ID   SESSION  TASK      REVIEWER  ITERATION  VERDICT            FINDINGS  ASKED
r-1  kettle   kettle-1  rex               1  changes_requested         3  8h54m ago
r-2  kettle   kettle-1  rex               2  open                      -  1h00m ago
r-1  other    \x1bx     ann               1  approved                  0  1h00m ago
`, term.Table(reviewRows(kettleReviews(t), false, evening)))
}

func TestReviewCard(t *testing.T) {
	all := kettleReviews(t)
	task := &kettle().Tasks[0]
	require.Equal(t, `r-1  changes_requested
  session    kettle
  task       kettle-1  Stop when it is empty  revise
  reviewer   rex
  iteration  1 of 3
  asked      09:06:00
  decided    09:07:00 after 1m
  summary    Nearly there
             and more

FINDING  SEVERITY  CATEGORY  FILE            STATE                   WHAT
k-1      major     logic     kettle/heat.go  open since iteration 1  0 is not below 0
k-0      minor     style     kettle/lid.go   fixed in iteration 2
k-7      -         -         -               open
`, reviewCard(&all[0], task, "Nearly there\nand more", findingsOf(&all[0], task, nil), false, evening))
	require.Equal(t, `r-2  open
  session    kettle
  task       kettle-1
  reviewer   rex
  iteration  2
  asked      17:00:00
`, reviewCard(&all[1], &wire.SessionTask{TaskID: "kettle-1"}, "", nil, false, evening))
}

func TestReviewOf(t *testing.T) {
	all := kettleReviews(t)
	r, err := reviewOf(all, "r-2")
	require.NoError(t, err)
	require.Equal(t, 2, r.Iteration)
	for word, want := range map[string]string{
		"r-1": `"r-1" fits 2 reviews: r-1 of kettle, r-1 of other`,
		"r-":  `"r-" fits 3 reviews: r-1 of kettle, r-2 of kettle, r-1 of other`,
		"x":   `no review has an id that begins with "x"`,
	} {
		_, err = reviewOf(all, word)
		require.EqualError(t, err, want)
		require.Equal(t, cli.ExitNotFound, cli.FailureOf(err).Exit)
	}
	r, err = reviewOf(all[1:], "r-1")
	require.NoError(t, err)
	require.Equal(t, "other", r.SessionID)
	_, err = reviewOf(all, "s-2")
	require.Equal(t, []string{`Did you mean "r-2"?`}, cli.FailureOf(err).Because)
}
