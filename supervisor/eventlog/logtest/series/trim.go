package series

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// A Log has the methods for tests of removing facts.
type Log interface {
	Reader
	Append(ctx context.Context, last int64, batch []wire.Record) error
	Keep(ctx context.Context, seq int64, state io.Reader) error
	Base(ctx context.Context) (wire.Base, error)
	Trim(ctx context.Context, upTo int64, at time.Time) (wire.Base, error)
}

// Later is the time when the tests remove facts.
var Later = Noon.Add(time.Hour)

// trimRows is the largest number of facts that one call of Trim may remove.
const trimRows = 256

// Trimmed removes facts up to a number, as far as the log allows it, and returns the base.
func Trimmed(t testing.TB, l Log, upTo int64) wire.Base {
	t.Helper()
	base, err := l.Base(t.Context())
	require.NoError(t, err)
	for {
		next, err := l.Trim(t.Context(), upTo, Later)
		require.NoError(t, err)
		require.LessOrEqual(t, next.Seq, max(base.Seq, upTo))
		require.LessOrEqual(t, next.Seq-base.Seq, int64(trimRows))
		if next.Seq == base.Seq {
			return next
		}
		base = next
	}
}

// Trimmable appends n facts, every third a letter, with two states that include all but the last.
func Trimmable(t testing.TB, l Log, n int) []wire.Record {
	t.Helper()
	var batch []wire.Record
	for i := range n {
		r := Fact(i + 1)
		if i%3 == 0 {
			r = Letter(i+1, fmt.Sprint("agent-", i%2))
		}
		r.Key = fmt.Sprint("key-", i+1)
		batch = append(batch, r)
	}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	for seq := int64(n - 2); seq < int64(n); seq++ {
		require.NoError(t, l.Keep(t.Context(), seq, bytes.NewReader(fmt.Append(nil, "state of ", seq))))
	}
	return Numbered(0, batch)
}

// RequireRemoved requires that facts behind a number were removed, and that the error has the base.
func RequireRemoved(t testing.TB, l Reader, after int64, base wire.Base) {
	t.Helper()
	for _, err := range l.Records(t.Context(), after) {
		var removed *wire.RemovedError
		require.ErrorAs(t, err, &removed)
		require.Equal(t, base, removed.Base)
	}
}
