package review

import (
	"encoding/json"
	"fmt"
	"strings"
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

// said returns findings as results report them: ID or ID:iteration of the fix.
func said(texts string) (found []Finding) {
	for text := range strings.FieldsSeq(texts) {
		id, fixed, _ := strings.Cut(text, ":")
		f := Finding{ID: id}
		if fixed != "" {
			if _, err := fmt.Sscan(fixed, &f.Fixed); err != nil {
				panic(err)
			}
		}
		found = append(found, f)
	}
	return found
}

// shown returns a ledger as ID:found-fixed; an open finding has no end.
func shown(findings []Finding) string {
	var texts []string
	for _, f := range findings {
		text := fmt.Sprintf("%s:%d-", f.ID, f.Found)
		if !f.IsOpen() {
			text += fmt.Sprint(f.Fixed)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// TestLedger checks the findings over several results.
//
// Rows: C-65, C-87.
func TestLedger(t *testing.T) {
	for name, test := range map[string]struct {
		results []string
		ledgers []string
	}{
		"found":                      {[]string{"a b"}, []string{"a:1- b:1-"}},
		"still there":                {[]string{"a b", "b a"}, []string{"a:1- b:1-", "a:1- b:1-"}},
		"fixed as is said":           {[]string{"a b", "a b:2"}, []string{"a:1- b:1-", "a:1- b:1-2"}},
		"fixed earlier":              {[]string{"a", "a", "a:2"}, []string{"a:1-", "a:1-", "a:1-2"}},
		"not mentioned any more":     {[]string{"a b", "b", ""}, []string{"a:1- b:1-", "a:1-2 b:1-", "a:1-2 b:1-3"}},
		"once fixed stays so":        {[]string{"a", "", "", "b"}, []string{"a:1-", "a:1-2", "a:1-2", "a:1-2 b:4-"}},
		"comes again":                {[]string{"a b", "b", "b a"}, []string{"a:1- b:1-", "a:1-2 b:1-", "a:1- b:1-"}},
		"comes again and is fixed":   {[]string{"a", "", "a", ""}, []string{"a:1-", "a:1-2", "a:1-", "a:1-4"}},
		"fixed, and told otherwise":  {[]string{"a", "a:2", "a:3"}, []string{"a:1-", "a:1-2", "a:1-3"}},
		"new ones":                   {[]string{"b", "c b", "a"}, []string{"b:1-", "b:1- c:2-", "b:1-3 c:2-3 a:3-"}},
		"first heard of when fixed":  {[]string{"", "a:1"}, []string{"", "a:2-1"}},
		"fixed before the beginning": {[]string{"a:-1 b:0"}, []string{"a:1- b:1-"}},
		"twice":                      {[]string{"a a:1", "a:2 b a"}, []string{"a:1-1", "a:1- b:2-"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Loop{Max: 9}
			for n, result := range test.results {
				l.Decide(ChangesRequested, said(result))
				require.Equal(t, test.ledgers[n], shown(l.Findings), "%d", n+1)
				for _, f := range l.Findings {
					require.GreaterOrEqual(t, f.Fixed, 0)
				}
			}
		})
	}
}

// TestLatestWords checks that a finding has the content of the latest result.
//
// Rows: C-65.
func TestLatestWords(t *testing.T) {
	var l Loop
	told := []Finding{{ID: "a", Severity: "critical", Category: "security", File: "a.go", Text: "it leaks", Found: 7}}
	l.Decide(ChangesRequested, told)
	require.Equal(t, 7, told[0].Found, "what is handed in is only read")
	require.Equal(t, []Finding{{ID: "a", Severity: "critical", Category: "security", File: "a.go", Text: "it leaks", Found: 1}}, l.Open())
	l.Decide(ChangesRequested, []Finding{{ID: "a", Severity: "minor", Category: "style", File: "b.go", Text: "it drips"}})
	require.Equal(t, []Finding{{ID: "a", Severity: "minor", Category: "style", File: "b.go", Text: "it drips", Found: 1}}, l.Open())
	l.Decide(Approved, nil)
	require.Empty(t, l.Open())
	require.Equal(t, []Finding{{ID: "a", Severity: "minor", Category: "style", File: "b.go", Text: "it drips", Found: 1, Fixed: 3}}, l.Findings)
}

// TestEveryVerdictTells checks that the ledger does not depend on the verdict, and that open
// findings stay open in forced work.
//
// Rows: C-65, C-88, T-29.
func TestEveryVerdictTells(t *testing.T) {
	for _, v := range []Verdict{Approved, ChangesRequested, Rejected} {
		l := Loop{Max: 2, Policy: ThenForceApprove}
		l.Decide(ChangesRequested, said("a b"))
		l.Decide(v, said("b c"))
		require.Equal(t, "a:1-2 b:1- c:2-", shown(l.Findings))
		require.Equal(t, "b:1- c:2-", shown(l.Open()))
	}
}

// TestLedgerIsBounded checks that closed findings are dropped first, oldest first, and open ones
// only if that is not enough.
//
// Rows: C-65.
func TestLedgerIsBounded(t *testing.T) {
	many := func(prefix string, n int) (found []Finding) {
		for i := range n {
			found = append(found, Finding{ID: fmt.Sprint(prefix, i)})
		}
		return found
	}
	l := Loop{Max: 99}
	l.Decide(ChangesRequested, many("a", maxFindings))
	require.Len(t, l.Open(), maxFindings)
	l.Decide(ChangesRequested, append(many("b", 10), Finding{ID: "a0"}))
	require.Len(t, l.Findings, maxFindings)
	require.Equal(t, "a0:1- a11:1-2", shown(l.Findings[:2]), "the ten after the first, which is open")
	require.Equal(t, "b9:2-", shown(l.Findings[maxFindings-1:]))
	require.Len(t, l.Open(), 11)

	l.Decide(ChangesRequested, many("c", maxFindings+5))
	require.Len(t, l.Findings, maxFindings)
	require.Equal(t, l.Findings, l.Open())
	require.Equal(t, fmt.Sprintf("c%d:3-", maxFindings-1), shown(l.Findings[maxFindings-1:]))

	large := Loop{Max: 99}
	text := strings.Repeat("x", maxBytes/4)
	for i := range 9 {
		large.Decide(ChangesRequested, []Finding{{ID: fmt.Sprint(i), Text: text}})
	}
	require.Equal(t, "6:7-8 7:8-9 8:9-", shown(large.Findings), "four are with their IDs a little too large")
	large.Decide(ChangesRequested, []Finding{{ID: "p", Text: strings.Repeat("x", 2*maxBytes)}, {ID: "q", Text: text}, {ID: "r", Fixed: 1}})
	require.Equal(t, "p:10- q:10-", shown(large.Findings), "what is open stays whatever its size")
}
