package dispatch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
)

// An altered is a record with a snapshot that its facts do not lead to.
type altered struct{ *ledger }

func (a altered) Snapshot(ctx context.Context) (int64, []byte, error) {
	seq, text, err := a.ledger.Snapshot(ctx)
	return seq, []byte(strings.Replace(string(text), "task 1", "task I", 1)), err
}

// Replay finds that a snapshot and the facts after it lead to the State of all facts, or that they do not. It stops at
// a fact, and does not compare with a snapshot that was made after it.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		d.keepEvery(10)
		for n := range 30 {
			_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", fmt.Appendf(nil, `{"type":"t","name":"task %d"}`, n))
			require.NoError(t, err)
		}
		synctest.Wait()
		options := Options{Record: record, Log: hclog.NewNullLogger()}
		r, err := Replay(t.Context(), options, 0)
		require.NoError(t, err)
		require.Equal(t, record.Last(), r.Seq)
		require.Equal(t, record.keeps[len(record.keeps)-1], r.Kept)
		require.Equal(t, 30, r.Tasks.Pending)
		early, err := Replay(t.Context(), options, 1)
		require.NoError(t, err)
		require.Equal(t, Replayed{Seq: 1, Sum: early.Sum, Tasks: early.Tasks}, early)
		require.NotEqual(t, r.Sum, early.Sum)
		seq, _, err := upTo{record, 1}.Snapshot(t.Context())
		require.NoError(t, err)
		require.Zero(t, seq)

		options.Record = altered{record}
		_, err = Replay(t.Context(), options, 0)
		require.ErrorIs(t, err, ErrDiffers)
		d.Close()
	})
}
