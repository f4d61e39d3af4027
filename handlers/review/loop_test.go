package review

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSteps checks the step after each sequence of results.
//
// Rows: C-85, C-86, C-87, C-88, T-29.
func TestSteps(t *testing.T) {
	const a, c, r = Approved, ChangesRequested, Rejected
	for name, test := range map[string]struct {
		loop    Loop
		results []Verdict
		steps   []Step
		more    bool // another review may be requested
	}{
		"approved at once":        {Loop{Max: 3}, []Verdict{a}, []Step{Approve}, true},
		"approved at the last":    {Loop{Max: 3, Policy: ThenAbort}, []Verdict{c, c, a}, []Step{Revise, Revise, Approve}, false},
		"rejected at once":        {Loop{Max: 3}, []Verdict{r}, []Step{Redesign}, true},
		"rejected at the last":    {Loop{Max: 3, Policy: ThenAbort}, []Verdict{c, c, r}, []Step{Revise, Revise, Redesign}, false},
		"before the last":         {Loop{Max: 3}, []Verdict{c, c}, []Step{Revise, Revise}, true},
		"given up":                {Loop{Max: 3, Policy: ThenAbort}, []Verdict{c, c, c}, []Step{Revise, Revise, Abort}, false},
		"forced":                  {Loop{Max: 3, Policy: ThenForceApprove}, []Verdict{c, c, c}, []Step{Revise, Revise, ForceApprove}, false},
		"a person":                {Loop{Max: 3, Policy: ThenHumanReview}, []Verdict{c, c, c}, []Step{Revise, Revise, AskHuman}, false},
		"no policy":               {Loop{Max: 3}, []Verdict{c, c, c}, []Step{Revise, Revise, AskHuman}, false},
		"an unknown policy":       {Loop{Max: 3, Policy: "Abort"}, []Verdict{c, c, c}, []Step{Revise, Revise, AskHuman}, false},
		"nothing said":            {Loop{}, []Verdict{c, c, c}, []Step{Revise, Revise, AskHuman}, false},
		"less than none":          {Loop{Max: -1}, []Verdict{c, c, c}, []Step{Revise, Revise, AskHuman}, false},
		"one":                     {Loop{Max: 1, Policy: ThenAbort}, []Verdict{c}, []Step{Abort}, false},
		"five":                    {Loop{Max: 5, Policy: ThenAbort}, []Verdict{c, c, c, c}, []Step{Revise, Revise, Revise, Revise}, true},
		"an unknown verdict":      {Loop{Max: 2, Policy: ThenAbort}, []Verdict{"Approved", ""}, []Step{Revise, Abort}, false},
		"more than were asked":    {Loop{Max: 1, Policy: ThenAbort}, []Verdict{c, c, a, r}, []Step{Abort, Abort, Approve, Redesign}, false},
		"after an approval":       {Loop{Max: 2, Policy: ThenAbort}, []Verdict{a, c}, []Step{Approve, Abort}, false},
		"less than there were":    {Loop{Iteration: 3, Max: 2, Policy: ThenAbort}, []Verdict{c}, []Step{Abort}, false},
		"a person has allowed it": {Loop{Max: 1, Extra: 1, Policy: ThenAbort}, []Verdict{c, c}, []Step{Revise, Abort}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := test.loop
			var steps []Step
			for _, v := range test.results {
				steps = append(steps, l.Decide(v, nil))
			}
			require.Equal(t, test.steps, steps)
			require.Equal(t, test.more, l.MayRequest())
		})
	}
}

// TestNoFourth checks that after three reviews a fourth is refused until a person allows it.
// Rows: C-87, C-88, T-29.
func TestNoFourth(t *testing.T) {
	l := Loop{Max: 3, Policy: ThenHumanReview}
	for n, step := range []Step{Revise, Revise, AskHuman} {
		require.True(t, l.MayRequest(), "%d", n+1)
		require.Equal(t, step, l.Decide(ChangesRequested, nil))
		require.Equal(t, n+1, l.Iteration)
	}
	require.False(t, l.MayRequest())
	l.Extend()
	require.True(t, l.MayRequest())
	require.Equal(t, AskHuman, l.Decide(ChangesRequested, nil))
	require.Equal(t, 4, l.Iteration)
	require.False(t, l.MayRequest())
	l.Extend()
	l.Extend()
	require.Equal(t, Revise, l.Decide(ChangesRequested, nil))
	require.Equal(t, AskHuman, l.Decide(ChangesRequested, nil))
	require.Equal(t, 6, l.Limit())
	require.Equal(t, 3, l.Max, "what was assigned stays as it was")

	l.Max = 1 // reassigned with less
	require.False(t, l.MayRequest())
	l.Extend()
	require.True(t, l.MayRequest())
	require.Equal(t, AskHuman, l.Decide(ChangesRequested, nil))
	require.Equal(t, 7, l.Iteration)
}

// TestWords checks the texts of verdicts and policies.
//
// Rows: C-88.
func TestWords(t *testing.T) {
	require.Equal(t, []Verdict{"approved", "changes_requested", "rejected"}, []Verdict{Approved, ChangesRequested, Rejected})
	require.Equal(t, []Policy{"abort", "force_approve", "human_review"}, []Policy{ThenAbort, ThenForceApprove, ThenHumanReview})
}

// TestKept checks that a Loop survives encoding, and that a copy does not change with the
// original.
//
// Rows: C-87, T-29.
func TestKept(t *testing.T) {
	l := Loop{Max: 4, Policy: ThenForceApprove}
	l.Decide(ChangesRequested, []Finding{{ID: "a", Severity: "major", Category: "bug", File: "a.go", Text: "it leaks"}, {ID: "b"}})
	l.Decide(ChangesRequested, []Finding{{ID: "b", Severity: "minor"}})
	l.Extend()
	text, err := json.Marshal(l)
	require.NoError(t, err)
	require.JSONEq(t, `{"iteration":2,"max":4,"extra":1,"policy":"force_approve","findings":[
		{"id":"a","severity":"major","category":"bug","file":"a.go","text":"it leaks","found":1,"fixed":2},{"id":"b","severity":"minor","found":1}]}`, string(text))
	var again Loop
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, l, again)

	twin := l
	l.Decide(ChangesRequested, []Finding{{ID: "a"}, {ID: "c"}})
	require.Equal(t, again, twin)
	twin.Decide(Approved, nil)
	require.Equal(t, []Finding{{ID: "a", Found: 1}, {ID: "c", Found: 3}}, l.Open())

	text, err = json.Marshal(Loop{})
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))
}
