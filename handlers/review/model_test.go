package review

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is a Loop that keeps all results, and computes every answer from them.
type model struct {
	results [][]Finding
	numbers []int // the iteration of each
	done    int
	allowed int
}

// ledger returns the ledger of all results.
func (m *model) ledger() (all []Finding) {
	for n, result := range m.results {
		for i := range all {
			if all[i].Fixed == 0 && !slices.ContainsFunc(result, func(f Finding) bool { return f.ID == all[i].ID }) {
				all[i].Fixed = m.numbers[n]
			}
		}
		for _, f := range result {
			i := slices.IndexFunc(all, func(known Finding) bool { return known.ID == f.ID })
			if i < 0 {
				i, all = len(all), append(all, Finding{Found: m.numbers[n]})
			}
			f.Found = all[i].Found
			all[i] = f
		}
	}
	return all
}

func (m *model) step(v Verdict, p Policy) Step {
	last := m.done >= m.allowed
	switch {
	case v == Approved:
		return Approve
	case v == Rejected:
		return Redesign
	case !last:
		return Revise
	case p == ThenAbort:
		return Abort
	case p == ThenForceApprove:
		return ForceApprove
	}
	return AskHuman
}

func someFindings(chance *rand.Rand, iteration int) (found []Finding) {
	for _, n := range chance.Perm(6)[:chance.IntN(7)] {
		f := Finding{ID: fmt.Sprint("f", n), Severity: []string{"critical", "minor"}[chance.IntN(2)], Text: fmt.Sprint(chance.IntN(100))}
		if chance.IntN(3) == 0 {
			f.Fixed = 1 + chance.IntN(iteration+1)
		}
		found = append(found, f)
	}
	return found
}

// TestModel compares a Loop with the model over random results and extensions.
//
// Rows: C-65, C-87, C-88, T-29.
func TestModel(t *testing.T) {
	seen := make(map[Step]int)
	for seed := range uint64(500) {
		chance := rand.New(rand.NewPCG(87, seed))
		l := Loop{Max: 1 + chance.IntN(5), Policy: []Policy{ThenAbort, ThenForceApprove, ThenHumanReview, ""}[chance.IntN(4)]}
		m, same := model{allowed: l.Max}, l
		for range 20 {
			if chance.IntN(6) == 0 {
				l.Extend()
				same.Extend()
				m.allowed++
			}
			require.Equal(t, m.done < m.allowed, l.MayRequest())
			v := []Verdict{Approved, ChangesRequested, ChangesRequested, Rejected}[chance.IntN(4)]
			found := someFindings(chance, l.Iteration)
			before := slices.Clone(l.Findings)
			m.done = min(m.done+1, m.allowed)
			m.results, m.numbers = append(m.results, found), append(m.numbers, m.done)

			step := l.Decide(v, found)
			require.Equal(t, m.step(v, l.Policy), step)
			require.Equal(t, m.done, l.Iteration)
			require.Equal(t, m.ledger(), l.Findings)
			require.Equal(t, step, same.Decide(v, found), "the same twice")
			require.Equal(t, l, same)
			requireSound(t, &l, before, found)
			seen[step]++
		}
	}
	for _, step := range []Step{Approve, Revise, Redesign, Abort, ForceApprove, AskHuman} {
		require.Greater(t, seen[step], 50, "%s is hardly seen", step)
	}
}

// requireSound checks the state after every result.
func requireSound(t *testing.T, l *Loop, before, told []Finding) {
	t.Helper()
	require.LessOrEqual(t, l.Iteration, l.Max+l.Extra)
	open := l.Open()
	ids := make(map[string]bool)
	for i, f := range l.Findings {
		require.False(t, ids[f.ID], "%s stands twice", f.ID)
		ids[f.ID] = true
		require.Equal(t, f.Fixed == 0, slices.Contains(open, f), "either open or fixed")
		require.Positive(t, f.Found)
		require.LessOrEqual(t, f.Found, l.Iteration)
		if i < len(before) {
			require.Equal(t, before[i].ID, f.ID, "the order is that of finding")
			require.Equal(t, before[i].Found, f.Found)
		}
	}
	for _, f := range open {
		require.True(t, slices.ContainsFunc(told, func(now Finding) bool { return now.ID == f.ID }), "what is open is in the latest result")
	}
	require.GreaterOrEqual(t, len(l.Findings), len(before))
}
