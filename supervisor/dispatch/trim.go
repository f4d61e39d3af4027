package dispatch

import (
	"context"
	"fmt"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// trimPause is the pause between two transactions that remove facts. Appends run in this pause.
const trimPause = 20 * time.Millisecond

// trimSnapshot is the least number of facts between two snapshots, when facts wait for one to be
// removed.
const trimSnapshot = 1000

// A Retention bounds the record. The zero Retention keeps everything.
type Retention struct {
	For   time.Duration // older facts are removed; 0: none
	Bytes int64         // facts are removed while the record is larger; 0: none
}

// Trim removes old facts from the front of the record, as far as no open work needs them and two snapshots include
// them. If a snapshot is missing, it is taken after some more facts, and a later Trim goes on.
func (d *Dispatcher) Trim(ctx context.Context, keep Retention) (wire.Base, error) {
	base, err := d.record.Base(ctx)
	if err != nil {
		return base, err
	}
	upTo, err := d.excess(ctx, keep, base)
	if err == nil && upTo > base.Seq {
		upTo, err = d.needless(ctx, upTo)
	}
	if err != nil {
		return base, err
	}
	for upTo > base.Seq {
		next, err := d.record.Trim(ctx, upTo, time.Now())
		if err != nil {
			return base, err
		}
		if next.Seq == base.Seq {
			d.snapshots.wanted.Store(true)
			return base, nil
		}
		base = next
		select {
		case <-ctx.Done():
			return base, nil
		case <-time.After(trimPause):
		}
	}
	return base, nil
}

// excess returns the last fact that a Retention does not keep. For a size it assumes that all facts
// have the same, so that several calls may be needed.
func (d *Dispatcher) excess(ctx context.Context, keep Retention, base wire.Base) (upTo int64, err error) {
	if keep.For > 0 {
		upTo = d.behind(object.Timestamp(time.Now().Add(-keep.For)))
	}
	if keep.Bytes == 0 {
		return upTo, nil
	}
	size, err := d.record.Size(ctx)
	if facts := d.last.Load() - base.Seq; err == nil && size > keep.Bytes && facts > 0 {
		upTo = max(upTo, base.Seq+int64(float64(size-keep.Bytes)/float64(size)*float64(facts))+1)
	}
	return upTo, err
}

// needless returns the last fact up to a number that no open work needs.
func (d *Dispatcher) needless(ctx context.Context, upTo int64) (int64, error) {
	var from int64
	var searches []wire.Search
	d.Look(func(s *handlers.State) { from, searches = s.Needs() })
	d.Settle() // an ended task must not begin again
	upTo = min(upTo, from-1)
	for _, s := range searches {
		for r, err := range d.record.Find(ctx, s) {
			if err != nil {
				return 0, fmt.Errorf("looking for mail that is needed: %w", err)
			}
			upTo = min(upTo, r.Seq-1)
			break
		}
	}
	return upTo, nil
}

// Base implements history.Archive.
func (d *Dispatcher) Base() (wire.Base, error) {
	if d.record == nil {
		return wire.Base{}, nil
	}
	return d.record.Base(context.Background())
}

// behindBase returns a *wire.RemovedError if a request for mail starts at a removed record. An actor without a cursor
// gets the remaining mail.
func (d *Dispatcher) behindBase(l *handlers.Letter) error {
	list, ok := l.Payload.(*mail.List)
	if !ok || l.Pages[0].Mail == nil || l.Pages[0].Mail.After == list.Cursor {
		return nil
	}
	return d.since(l.Pages[0].Mail.After)
}

// since returns a *wire.RemovedError if records after a number were removed.
func (d *Dispatcher) since(after int64) error {
	base, err := d.Base()
	if err == nil && after < base.Seq {
		return &wire.RemovedError{Base: base}
	}
	return err
}

// explainRemoved adds to the refusal for an unknown task that its record may have been removed.
func (d *Dispatcher) explainRemoved(in *handlers.Input, refusal *wire.Error) {
	if len(in.Absent) == 0 || refusal == nil || refusal.Code != wire.CodeNotFound {
		return
	}
	if base, err := d.Base(); err == nil && base.Seq > 0 {
		refusal.Message += "; it may have been removed: " + (&wire.RemovedError{Base: base}).Error()
	}
}
