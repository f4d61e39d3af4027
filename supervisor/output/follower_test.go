package output

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestFollowerThatMovesAtTheLastMoment checks that a blocking follower is given up only if it has
// taken nothing for as long as an agent waits.
func TestFollowerThatMovesAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Follower{moved: make(chan struct{})}
		earlier := make(chan struct{}) // replaced when the follower took a page, as time ran out
		f.await(earlier)
		require.False(t, f.stuck)
		f.await(f.moved)
		require.True(t, f.stuck)
	})
}
