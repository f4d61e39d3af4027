package review

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said returns findings as results report them: ID or ID:iteration in which it was fixed.
func said(texts string) (found []Finding) {
	for _, text := range strings.Fields(texts) {
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
