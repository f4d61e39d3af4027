package jetstream

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The hub at work looks where the leader of the stream is every lookForLeader, and asks it to move at most
// every moveLeader.
const (
	lookForLeader = time.Second
	moveLeader    = 5 * time.Second
)

// stayAway keeps the leader of the stream on another machine than the hub at work, until ctx ends or the engine is
// closed. If the machine of the hub is lost, the stream then still has its leader. Put repeats a running write when the
// leader moves, as after an election.
func (e *Engine) stayAway(ctx context.Context) {
	for {
		wait := lookForLeader
		if info, err := e.info(ctx); err == nil {
			if to := e.betterLeader(info.Cluster); to != "" {
				e.logger.Debug("the stream's leader moves to another machine than the hub's", "to", to, "error", e.stepDown(ctx, to))
				wait = moveLeader
			}
		}
		if e.rest(ctx, wait) != nil {
			return
		}
	}
}

// betterLeader returns the server that should lead the stream instead of the one in this process, or "".
// The leader only moves while three servers are up, and only to one that has everything.
func (e *Engine) betterLeader(c *jetstream.ClusterInfo) string {
	if c == nil || c.Leader != e.node {
		return ""
	}
	up := slices.DeleteFunc(slices.Clone(c.Replicas), func(r *jetstream.PeerInfo) bool { return r.Offline || !r.Current })
	if len(up) < 2 {
		return ""
	}
	return slices.MinFunc(up, func(a, b *jetstream.PeerInfo) int {
		return cmp.Or(cmp.Compare(a.Lag, b.Lag), cmp.Compare(a.Name, b.Name))
	}).Name
}

// stepDown asks the leader of the stream to let another server lead.
func (e *Engine) stepDown(ctx context.Context, to string) error {
	_, err := within(ctx, patience, func(ctx context.Context) (*nats.Msg, error) {
		return e.conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+e.name(), fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, to))
	})
	return err
}
