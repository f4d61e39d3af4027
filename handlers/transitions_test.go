package handlers

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A move is the effect of a fact on a task.
type move struct {
	fact     string
	from, to wire.TaskState
}

// The moves of tasks in all stories equal the table of transitions, and each row of the table is needed.
func TestTransitions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/story/*.txt")
	require.NoError(t, err)
	seen := make(map[move]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		p := newPlayer(t)
		for _, line := range scriptOf(string(text)) {
			p.play(line)
		}
		p.addMoves(seen)
	}
	// A workspace reports these, and stories have none: see TestVerified among the end-to-end tests.
	reported := []string{events.TaskVerifying, events.TaskVerified, events.TaskUnverified}
	for _, row := range state.Transitions {
		if slices.Contains(reported, row.Fact) {
			continue
		}
		left, entered := make(map[wire.TaskState]bool), make(map[wire.TaskState]bool)
		for m := range seen {
			if m.fact == row.Fact {
				left[m.from], entered[m.to] = true, true
				assert.Contains(t, row.From, m.from, row.Fact)
				assert.Contains(t, row.To, m.to, row.Fact)
			}
		}
		for _, to := range row.To {
			assert.Contains(t, entered, to, "%s moves no task there in any story", row.Fact)
		}
		assert.NotEmpty(t, left, row.Fact)
	}
	for m := range seen {
		assert.True(t, knownFact(m.fact), "%s moves a task from %s to %s", m.fact, m.from, m.to)
	}
}

func knownFact(kind string) bool {
	for _, row := range state.Transitions {
		if row.Fact == kind {
			return true
		}
	}
	return false
}

// addMoves replays the records of a story and adds the moves of tasks without a work item.
func (p *player) addMoves(seen map[move]bool) {
	s := New(p.rules)
	was := make(map[string]wire.TaskState)
	for i := range p.records {
		require.NoError(p.t, s.Apply(nil, p.records[i]))
		for id, k := range s.Tasks.ByID {
			before, known := was[id]
			was[id] = k.View.State
			if now := k.View.State; known && now != before && k.Work() == nil && k.Delegation() == nil {
				seen[move{p.records[i].Kind, before, now}] = true
			}
		}
	}
}
