package jetstream

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"orchestrator/supervisor/eventlog"
)

// batchEntries and batchBytes are how much is asked for at once.
const (
	batchEntries = 256
	batchBytes   = 8 << 20
)

// Get implements eventlog.Engine. Any server with a copy of the stream may answer, also one that is behind. So Get asks
// again until it has all entries of the leader.
func (e *Engine) Get(ctx context.Context, at int64, see func(int64, eventlog.Entry) error) error {
	end, err := e.End(ctx)
	if err != nil {
		return err
	}
	wait := pause
	for at < end {
		last, err := e.batch(ctx, at, see)
		if err != nil {
			return err
		}
		if last > at {
			at, wait = last, pause
			continue
		}
		if err := e.rest(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, longestWait)
	}
	return nil
}

// batch calls see for some entries after entry at, and returns the last of them. It returns at if no entry follows yet,
// or if no server answers.
func (e *Engine) batch(ctx context.Context, at int64, see func(int64, eventlog.Entry) error) (int64, error) {
	inbox := e.conn.NewRespInbox()
	answers, err := e.conn.SubscribeSync(inbox)
	if err != nil {
		return at, e.unknown("for entries", err)
	}
	defer answers.Unsubscribe()
	ask := fmt.Appendf(nil, `{"seq":%d,"batch":%d,"max_bytes":%d}`, at+1, batchEntries, batchBytes)
	if err := e.conn.PublishRequest("$JS.API.DIRECT.GET."+e.name(), inbox, ask); err != nil {
		return at, e.unknown("for entries", err)
	}
	for {
		m, err := within(ctx, patience, answers.NextMsgWithContext)
		if err != nil {
			if ctx.Err() != nil {
				return at, ctx.Err()
			}
			return at, nil // it is asked again
		}
		if m.Header.Get("Status") != "" { // the end of the batch, or no server has such an entry yet
			return at, nil
		}
		n, err := strconv.ParseInt(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return at, fmt.Errorf("an entry without a number: %w", err)
		}
		if n != at+1 {
			return at, fmt.Errorf("the shared log has lost entry %d: entry %d follows entry %d", at+1, n, at)
		}
		entry, err := eventlog.ReadEntry(m.Data)
		if err != nil {
			return at, fmt.Errorf("entry %d of the shared log: %w", n, err)
		}
		if err := see(n, entry); err != nil {
			return at, err
		}
		e.learn(n)
		at = n
	}
}
