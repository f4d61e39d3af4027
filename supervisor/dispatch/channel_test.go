package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestComplaints checks that different complaints are all reported, equal ones once with their
// count, and at most a few together.
func TestComplaints(t *testing.T) {
	type told struct {
		text  string
		count int64
	}
	say := func(texts ...string) (all []told) {
		var what complaints
		for _, text := range texts {
			what.add(text)
		}
		c := Channel{complain: func(_, text string, count int64) { all = append(all, told{text, count}) }}
		c.report("", &what, time.Unix(9, 0))
		return all
	}
	require.Empty(t, say())
	require.Equal(t, []told{{"b (2 times)", 2}, {"a", 1}}, say("b", "a", "b"))
	var many []string
	for n := range 8 {
		many = append(many, fmt.Sprint(n))
	}
	all := say(many...)
	require.Len(t, all, maxComplaints)
	require.Equal(t, told{"4 (and 3 more)", 4}, all[maxComplaints-1])
}
