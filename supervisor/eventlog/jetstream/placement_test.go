package jetstream

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog/logtest"
	"orchestrator/supervisor/eventlog/logtest/series"
)

// The leader of the stream leaves the machine of the hub at work whenever it comes there. No fact that is appended
// during the move is lost.
func TestLeaderElsewhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	hub := c.leader(0)
	_, err := c.hubs[hub].Serve([]byte("at work"))
	require.NoError(t, err)
	l, n := c.open(hub), 0
	put := func() {
		require.NoError(t, l.Append(t.Context(), l.Last(), series.Keyed("a", n, 1)))
		n++
	}
	for range 2 {
		for c.leader(hub) == hub {
			put()
		}
		require.NoError(t, c.hubs[0].stepDown(t.Context(), c.peers[hub]))
	}
	waitFor(t, func() bool { put(); return c.leader(hub) != hub })
	other := c.open(c.leader(hub))
	logtest.Follow(t, other)
	require.Len(t, series.All(t, other, 0), n)
	require.Equal(t, series.All(t, l, 0), series.All(t, other, 0))
}

// The leader moves to the server that is furthest, if three are up.
func TestBetterLeader(t *testing.T) {
	t.Parallel()
	e := &Engine{node: "h1"}
	at := func(name string) *jetstream.PeerInfo { return &jetstream.PeerInfo{Name: name, Current: true} }
	late, off := &jetstream.PeerInfo{Name: "h2", Current: true, Lag: 3}, &jetstream.PeerInfo{Name: "h2", Current: true, Offline: true}
	for _, c := range []struct {
		cluster *jetstream.ClusterInfo
		want    string
	}{
		{nil, ""},
		{&jetstream.ClusterInfo{Leader: "h2", Replicas: []*jetstream.PeerInfo{at("h1"), at("h3")}}, ""},
		{&jetstream.ClusterInfo{Leader: "h1", Replicas: []*jetstream.PeerInfo{at("h3"), at("h2")}}, "h2"},
		{&jetstream.ClusterInfo{Leader: "h1", Replicas: []*jetstream.PeerInfo{late, at("h3")}}, "h3"},
		{&jetstream.ClusterInfo{Leader: "h1", Replicas: []*jetstream.PeerInfo{off, at("h3")}}, ""},
		{&jetstream.ClusterInfo{Leader: "h1", Replicas: []*jetstream.PeerInfo{{Name: "h2"}, at("h3")}}, ""},
		{&jetstream.ClusterInfo{Leader: "h1", Replicas: []*jetstream.PeerInfo{at("h2")}}, ""},
	} {
		require.Equal(t, c.want, e.betterLeader(c.cluster))
	}
}
