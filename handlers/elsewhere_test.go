package handlers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// TestElsewhere checks that the State knows which runs are on other machines, and which of these an operator has
// drained, also after a restart.
func TestElsewhere(t *testing.T) {
	w := newWorld(t, 1)
	w.do(Actor{}, &wire.Event{Kind: events.HostDrained, Text: "a is being drained", Figures: wire.Figures{Host: "a", Ordered: true}})
	w.do(Actor{}, &wire.Event{Kind: events.HostDrained, Text: "b is being drained", Figures: wire.Figures{Host: "b", Ordered: true}})
	w.do(Actor{}, &wire.Event{Kind: events.HostDrained, Text: "b is being drained", Figures: wire.Figures{Host: "b", Ordered: true}})
	w.do(Actor{}, &wire.Event{Kind: events.HostDrained, Text: "c wants to leave"})
	w.do(Actor{}, &wire.Event{Kind: events.HostDrained, Text: "a takes agents again", Figures: wire.Figures{Host: "a"}})
	require.Equal(t, []wire.Event{{Kind: events.HostDrained, Figures: wire.Figures{Host: "b", Ordered: true}}}, restored(t, w.rules, spelled(t, w.state)).Elsewhere())
}
