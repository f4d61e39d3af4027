package bus_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"orchestrator/agents/bus"

	"github.com/stretchr/testify/require"
)

// without returns the logged events except those of some kinds.
func (v *visit) without(kinds ...string) []string {
	return slices.DeleteFunc(v.told(""), func(line string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(line, " "+kind) })
	})
}

func TestTheStreamWakes(t *testing.T) {
	visiting(t, func(t *visit) {
		t.client.PollOnly = false
		time.AfterFunc(65*time.Second, func() { t.streams(": still here\n\n") })
		time.AfterFunc(70*time.Second, func() { t.has("task.assigned", `{}`) })
		t.receiving(75*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		story := t.without("heartbeat")
		require.Contains(t, story[:3], "0s events")
		require.Equal(t, []string{"1m0s poll", "1m10s poll", "1m10s handled 10", "1m10s ack 10", "1m10s poll"}, story[len(story)-5:])
	})
}

// TestAStreamThatEnds checks that a client polls after it has reopened the stream, because it
// may have missed events.
func TestAStreamThatEnds(t *testing.T) {
	visiting(t, func(t *visit) {
		t.client.PollOnly = false
		time.AfterFunc(61*time.Second, func() { t.streams("") })
		time.AfterFunc(62*time.Second, func() { t.has("task.assigned", `{}`) })
		t.receiving(75*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
		story := t.without("heartbeat")
		require.Equal(t, []string{"1m11s events", "1m11s poll", "1m11s handled 10", "1m11s ack 10", "1m11s poll"}, story[len(story)-5:])
	})
}

// Rows: E-09, E-39.
func TestPollingGoesOnWithoutTheStream(t *testing.T) {
	for name, other := range map[string]otherwise{
		"trouble": refusing("events", http.StatusInternalServerError),
		"none":    refusing("events", http.StatusNotFound),
		"stranger": only("events", func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			fmt.Fprint(w, "<h1>welcome</h1>")
			return true
		}),
		"silence": only("events", silent),
		"breaks":  only("events", breaking),
	} {
		t.Run(name, func(t *testing.T) {
			visiting(t, func(t *visit) {
				t.client.PollOnly = false
				t.instead(other)
				time.AfterFunc(25*time.Second, func() { t.has("task.assigned", `{}`) })
				t.receiving(45*time.Second, bus.Handlers{"task.assigned": t.noting(nil)})
				story := t.told("")
				rest := slices.DeleteFunc(slices.Clone(story), func(line string) bool {
					return strings.Contains(line, " events") || strings.Contains(line, " heartbeat") || strings.Contains(line, " trouble")
				})
				require.Equal(t, []string{"0s poll", "10s poll", "20s poll", "30s poll", "30s handled 10", "30s ack 10", "30s poll", "40s poll"}, rest)
				asked := slices.DeleteFunc(story, func(line string) bool {
					return !strings.Contains(line, " events") && !strings.Contains(line, " trouble")
				})
				switch name {
				case "none":
					require.Equal(t, []string{"0s events", "0s trouble: mail is polled alone: not now (A_CODE, HTTP 404)"}, asked)
				case "stranger":
					require.Equal(t, []string{"0s events", `0s trouble: mail is polled alone: "text/html" is no stream of events (HTTP 200)`}, asked)
				case "silence":
					require.Equal(t, []string{"0s events", "40s events"}, asked)
				default: // net/http itself retries when a reused connection breaks
					require.Equal(t, []string{"0s events", "10s events", "20s events", "30s events", "40s events"}, slices.Compact(asked))
				}
			})
		})
	}
}

// TestALongEvent checks that an event may be as long as mail and span several lines.
func TestALongEvent(t *testing.T) {
	visiting(t, func(t *visit) {
		t.client.PollOnly = false
		time.AfterFunc(65*time.Second, func() {
			t.streams("id: 1\nevent: x\ndata: " + strings.Repeat("x data: ", 1<<17) + "\ndata: y\n\n")
		})
		t.receiving(70*time.Second, nil)
		polls := t.told("poll")
		require.Equal(t, "1m5s poll", polls[len(polls)-1])
	})
}
