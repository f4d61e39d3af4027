package handlers

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	simSteps = flag.Int("steps", 60_000, "how long TestSimulation goes on; millions are fine")
	simSeed  = flag.Uint64("seed", 1, "what happens in TestSimulation")
)

// TestSimulation lets a world of agents, people, accidents and restarts live for
// a long time, twice. The second life is the same but for the State, which is
// taken from a snapshot now and then. Both must say the same, word for word; a
// State that follows the records alone must always be equal; and what must hold
// at any time (requireSound, and all that world looks at) must hold.
//
//	go test ./handlers -run TestSimulation -steps 5000000 -seed 7
//
// Rows: B-21, B-29, B-30, B-42, B-49, B-50, B-56, K-01, K-04, T-07, T-21, T-23, T-44, T-57, T-59.
func TestSimulation(t *testing.T) {
	said := make([]string, 2)
	t.Run("lives", func(t *testing.T) {
		for life := range said {
			t.Run(fmt.Sprint(life), func(t *testing.T) {
				t.Parallel()
				said[life] = live(t, life > 0)
			})
		}
	})
	require.Equal(t, said[0], said[1], "the same inputs give the same records and letters, byte for byte")
}

// live lives one life and returns all that was said, in short.
func live(t *testing.T, restores bool) string {
	steps := *simSteps
	w := newWorld(t, *simSeed)
	when := rand.New(rand.NewPCG(*simSeed, 2))
	for range steps {
		w.step()
		if restores && when.IntN(steps/5) == 0 {
			w.state = restored(t, w.rules, spelled(t, w.state))
			requireSound(t, w.state)
		}
		if !restores && w.steps%(steps/20) == 0 {
			requireSound(t, w.state)
		}
	}
	w.end()
	t.Log(w.summary())
	return w.said()
}

// requireSound looks at everything in a State.
func requireSound(t testing.TB, s *State) {
	requireSoundTasks(t, s)
	requireSoundAgents(t, s)
	requireSoundMarket(t, s)
	requireSoundQuestions(t, s)
}
