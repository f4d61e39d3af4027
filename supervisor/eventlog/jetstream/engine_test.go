package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/natsserver"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// patient is how long a test waits for an event that must happen.
const patient = 3 * time.Minute

// A cluster is three hubs in this process.
type cluster struct {
	t     testing.TB
	peers []string
	dirs  []string
	hubs  []*Engine
}

// newCluster starts three servers.
func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, hubs: make([]*Engine, 3)}
	for _, port := range natsserver.FreePorts(t, 3) {
		c.peers, c.dirs = append(c.peers, fmt.Sprintf("127.0.0.1:%d", port)), append(c.dirs, t.TempDir())
	}
	t.Cleanup(func() {
		for _, h := range c.hubs {
			if h != nil {
				require.NoError(t, h.Close())
			}
		}
	})
	c.start(0, 1, 2)
	return c
}

// start starts the servers of some hubs at the same time, and waits until they have the stream.
func (c *cluster) start(hubs ...int) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	var all sync.WaitGroup
	failed := make([]error, len(c.hubs))
	for _, i := range hubs {
		all.Go(func() {
			c.hubs[i], failed[i] = Start(ctx, Options{Node: c.peers[i], Peers: c.peers, Dir: c.dirs[i], Log: "team", Credentials: "s3cret"})
		})
	}
	all.Wait()
	require.NoError(c.t, errors.Join(failed...))
}

// open opens the log at a hub, with a copy in a new file.
func (c *cluster) open(hub int) *eventlog.Shared {
	s, err := eventlog.OpenShared(c.t.Context(), filepath.Join(c.t.TempDir(), "copy.db"), unclosed{c.hubs[hub]})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, s.Close()) })
	return s
}

// unclosed is an engine that outlives the close of a log.
type unclosed struct{ *Engine }

func (unclosed) Close() error { return nil }

// leader returns the hub that leads the stream.
func (c *cluster) leader(ask int) int {
	for end := time.Now().Add(patient); time.Now().Before(end); {
		info, err := within(c.t.Context(), patience, func(ctx context.Context) (string, error) {
			info, err := c.hubs[ask].stream.Info(ctx)
			if err != nil || info.Cluster == nil {
				return "", err
			}
			return info.Cluster.Leader, nil
		})
		for i, peer := range c.peers {
			if err == nil && peer == info {
				return i
			}
		}
	}
	require.Fail(c.t, "the stream has no leader")
	return 0
}

// One hub appends, the others follow. A hub that is behind cannot append.
func TestHubs(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	require.Empty(t, c.hubs[0].Missing())
	a, b := c.open(0), c.open(1)
	for n := range 20 {
		require.NoError(t, a.Append(t.Context(), a.Last(), series.Keyed("a", n, 1+n%3)))
	}
	require.ErrorIs(t, b.Append(t.Context(), b.Last(), series.Keyed("b", 0, 2)), eventlog.ErrMoved)
	require.Equal(t, series.All(t, a, 0), series.All(t, b, 0), "it has followed")
	require.NoError(t, b.Append(t.Context(), b.Last(), series.Keyed("b", 0, 2)))
	require.ErrorIs(t, a.Append(t.Context(), a.Last(), nil), eventlog.ErrMoved)
	require.Equal(t, series.All(t, b, 0), series.All(t, a, 0))

	huge := []wire.Record{{At: time.UnixMilli(0).UTC(), From: "a", Kind: "k", Payload: fmt.Appendf(nil, `"%0*d"`, 3*maxEntry, 0)}}
	require.NoError(t, a.Append(t.Context(), a.Last(), huge), "in parts")
	late := c.open(2)
	logtest.Follow(t, late)
	require.Equal(t, series.All(t, a, 0), series.All(t, late, 0))
}

// Of hubs that append at once, one wins each number.
func TestRace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const each = 10
	logs := []*eventlog.Shared{c.open(0), c.open(1), c.open(2)}
	var all sync.WaitGroup
	for i, l := range logs {
		all.Go(func() {
			for n := 0; n < each; {
				err := l.Append(t.Context(), l.Last(), series.Keyed(fmt.Sprint("hub", i), n, 2))
				if err == nil {
					n++
				} else if !errors.Is(err, eventlog.ErrMoved) {
					t.Errorf("hub %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, l := range logs {
		logtest.Follow(t, l)
		require.Len(t, series.All(t, l, 0), 3*each*2)
		require.Equal(t, series.All(t, logs[0], 0), series.All(t, l, 0))
	}
}

// The leader of the stream is lost repeatedly while another hub appends.
func TestLeaderLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var silences []time.Duration
	facts := 0
	put := func(l *eventlog.Shared) {
		require.NoError(t, l.Append(t.Context(), l.Last(), series.Keyed("a", facts, 1)))
		facts++
	}
	for range 3 {
		leader := c.leader(facts % 3)
		l := c.open((leader + 1) % 3)
		logtest.Follow(t, l)
		for range 10 {
			put(l)
		}
		require.NoError(t, c.hubs[leader].Close())
		began := time.Now()
		put(l)
		silences = append(silences, time.Since(began))
		put(l)
		c.start(leader)
	}
	t.Log("silences after the loss of the leader:", silences)
	b := c.open(1)
	logtest.Follow(t, b)
	all := series.All(t, b, 0)
	require.Len(t, all, facts)
	for i, r := range all {
		require.Equal(t, fmt.Sprintf("%d-0", i), r.Key)
	}
}

// A hub that is left alone knows no more than its copy about the end of the log. Its server
// continues to answer, first as the leader that it was, and then as one that knows no leader.
func TestEndWithoutOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	left := c.leader(0)
	require.NoError(t, c.open(left).Append(t.Context(), 0, series.Keyed("a", 0, 1)))
	for i, h := range c.hubs {
		if i != left {
			require.NoError(t, h.Close())
		}
	}
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		info, err := within(context.Background(), patience, func(ctx context.Context) (*jetstream.StreamInfo, error) { return c.hubs[left].stream.Info(ctx) })
		require.NoError(t, err)
		require.Empty(t, info.Cluster.Leader)
	}, patient, 20*time.Millisecond)
	_, err := c.hubs[left].End(t.Context())
	require.ErrorIs(t, err, eventlog.ErrUnanswered)
}

// An answer that is older than the hub's knowledge proves no end: a leader that hung and wakes may give it.
func TestEndBehind(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.open(0), c.open(1)
	require.NoError(t, a.Append(t.Context(), 0, series.Keyed("a", 0, 1)))
	logtest.Follow(t, b)
	for _, h := range c.hubs[:2] {
		require.EqualValues(t, 1, h.known.Load())
		h.learn(3)
		h.learn(2)
		waitFor(t, func() bool {
			_, err := h.End(t.Context())
			require.ErrorIs(t, err, eventlog.ErrUnanswered)
			return strings.Contains(err.Error(), "there is an entry 3")
		})
	}
}

// Only a leader that hears from most servers counts.
func TestIsLed(t *testing.T) {
	t.Parallel()
	shortenElections()
	near, far := &jetstream.PeerInfo{Active: hbInterval}, &jetstream.PeerInfo{Active: 4 * hbInterval}
	gone, silent := &jetstream.PeerInfo{Active: hbInterval, Offline: true}, &jetstream.PeerInfo{}
	require.True(t, isLed(nil), "there is only one")
	leader := &jetstream.PeerInfo{Name: "a", Active: hbInterval}
	for want, all := range map[bool][]*jetstream.ClusterInfo{
		true: {{Leader: "a"}, {Leader: "a", Replicas: []*jetstream.PeerInfo{near, near}}, {Leader: "a", Replicas: []*jetstream.PeerInfo{far, near}}},
		false: {
			{Leader: "a", Replicas: []*jetstream.PeerInfo{far, far}}, {Leader: "a", Replicas: []*jetstream.PeerInfo{far, gone}},
			{Leader: "a", Replicas: []*jetstream.PeerInfo{silent, silent}}, {Leader: "a", Replicas: []*jetstream.PeerInfo{far}}, {Replicas: []*jetstream.PeerInfo{near, near}},
			{Leader: "a", Replicas: []*jetstream.PeerInfo{leader, near}},
		},
	} {
		for i, c := range all {
			require.Equal(t, want, isLed(c), i)
		}
	}
}

// A hub at work answers, and one that has ended does not.
func TestSeat(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, err := c.hubs[1].Ask(t.Context())
	require.ErrorIs(t, err, eventlog.ErrVacant)
	end, err := c.hubs[0].Serve([]byte("h1"))
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		who, err := c.hubs[1].Ask(context.Background())
		require.NoError(t, err)
		require.Equal(t, "h1", string(who))
	}, patient, 20*time.Millisecond)
	end()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := c.hubs[1].Ask(context.Background())
		require.ErrorIs(t, err, eventlog.ErrVacant)
	}, patient, 20*time.Millisecond)
	require.NoError(t, c.hubs[2].Close())
	_, err = c.hubs[2].End(t.Context())
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = c.hubs[2].Put(0, eventlog.Entry{First: 1, Count: 1, Part: 1, Of: 1})
	require.ErrorIs(t, err, fs.ErrClosed)
}

// A server that does not know the credentials of the team gets no connection.
func TestStranger(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	own := fmt.Sprintf("127.0.0.1:%d", natsserver.FreePorts(t, 1)[0])
	waitFor(t, func() bool { // a hub that has not yet refused the credentials counts as reached
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := Start(ctx, Options{Node: own, Peers: []string{own, c.peers[0], c.peers[1]}, Dir: t.TempDir(), Log: "team", Credentials: "guessed"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return strings.Contains(err.Error(), c.peers[0]) && strings.Contains(err.Error(), "cannot be reached")
	})
}

// A shared log in a stream on three hubs keeps the rules of all logs.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	conforms(t, c.hubs)
}

// conforms checks that further logs at the servers of the team keep the rules of all logs.
func conforms(t *testing.T, hubs []*Engine) {
	logtest.RunShared(t, "jetstream", func(log string, hub int) eventlog.Engine {
		like := hubs[hub%len(hubs)]
		e := &Engine{log: log, logger: like.logger, keeper: like.keeper, copies: like.copies, conn: like.conn, closed: make(chan struct{})}
		require.NoError(t, e.openStream(t.Context()))
		return unclosed{e}
	})
}

// Objects on three hubs keep the rules, and the stored ones exist without one hub.
func TestObjects(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	logtest.RunObjects(t, c.hubs[0], c.hubs[1])
	require.NoError(t, c.hubs[0].PutObject(t.Context(), "ab", []byte("kept")))
	leader := c.leader(0)
	require.NoError(t, c.hubs[leader].Close())
	content, err := c.hubs[(leader+1)%3].GetObject(t.Context(), "ab")
	require.NoError(t, err)
	require.Equal(t, "kept", string(content))
	_, err = c.hubs[leader].GetObject(t.Context(), "ab")
	require.ErrorIs(t, err, fs.ErrClosed)
}

// Elections are as short as in the comment of this package.
func TestElections(t *testing.T) {
	t.Parallel()
	shortenElections()
	require.Equal(t, 1500*time.Millisecond, minElectionTimeout)
	require.Equal(t, 3*time.Second, maxElectionTimeout)
	require.Equal(t, 400*time.Millisecond, hbInterval)
}

// Options that would be unsafe are refused.
func TestRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"not one of the hubs":   {Node: "127.0.0.1:1", Peers: []string{"127.0.0.1:2"}, Credentials: "x"},
		"no credentials":        {Node: "127.0.0.1:1", Peers: []string{"127.0.0.1:1"}},
		"need certificates":     {Node: "h1:1", Peers: []string{"h1:1", "h2:1"}, Credentials: "x"},
		"the port of localhost": {Node: "localhost:x", Peers: []string{"localhost:x"}, Credentials: "x"},
	} {
		_, err := Start(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}
