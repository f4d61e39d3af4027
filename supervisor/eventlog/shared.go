package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"orchestrator/wire"
)

// Shared is a log that several hubs share. An engine keeps its entries. Each hub has its own copy of the facts in a
// file. Reads and searches use the copy, which may be behind.
type Shared struct {
	*SQLite // the copy, which is not synced: the engine has everything
	engine  Engine

	mu       sync.Mutex // held while the copy grows
	at       int64      // the last entry that is in the copy or in assembly
	assembly assembly
}

var _ Log = (*Shared)(nil)

// A ShorterError reports that the engine has lost facts that it had confirmed.
type ShorterError struct {
	Copy int64 // the last fact of the copy
	Log  int64 // the last fact of the shared log
}

func (e *ShorterError) Error() string {
	return fmt.Sprintf("the shared log ends at fact %d, and the copy of it here has facts up to %d: the log has lost facts %d to %d", e.Log, e.Copy, e.Log+1, e.Copy)
}

// OpenShared opens a shared log with a copy in a file. It does not read entries that other hubs wrote since the copy
// was last used; Follow does. It waits for an engine that does not answer. Close closes the engine too.
func OpenShared(ctx context.Context, path string, engine Engine) (*Shared, error) {
	local, err := Open(ctx, Options{Path: path})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	s := &Shared{SQLite: local, engine: engine}
	if err := answered(ctx, func() error { return s.orElsewhere(ctx, s.locate(ctx)) }); err != nil {
		return nil, errors.Join(fmt.Errorf("comparing %s with the shared log: %w", path, err), s.Close())
	}
	return s, nil
}

// locate finds the entry where the copy ends.
func (s *Shared) locate(ctx context.Context) error {
	last := s.Last()
	end, err := s.engine.End(ctx)
	if err != nil || last == 0 {
		return err
	}
	low, high := int64(0), end // entry low is in the copy, and those after high are not
	for low < high {
		middle := low + (high-low+1)/2
		first, err := s.engine.First(ctx, middle)
		if err != nil {
			return err
		}
		if first <= last {
			low = middle
		} else {
			high = middle - 1
		}
	}
	if low == 0 {
		return &ShorterError{Copy: last}
	}
	s.at = low
	return s.compare(ctx, last)
}

// compare compares the last batch of the copy with that in the log. The chain covers all facts before it. The sum
// before the batch would not be enough: an engine that has lost the batch may have another one with the same numbers by
// now.
func (s *Shared) compare(ctx context.Context, last int64) error {
	end, err := s.entries(ctx, s.at-1, 1)
	if err != nil {
		return err
	}
	e := end[0]
	until := e.First + int64(e.Count) - 1
	if e.Part < e.Of {
		until = e.First - 1
	}
	switch {
	case until < last:
		return &ShorterError{Copy: last, Log: until}
	case until > last:
		return differs(last, errors.New("it ends within a batch"))
	}
	parts, err := s.entries(ctx, max(s.at-int64(e.Of), 0), e.Of)
	if err != nil {
		return err
	}
	var text []byte
	for _, part := range parts {
		text = append(text, part.Body...)
	}
	batch, err := readBatch(text, e.First-1, e.Count)
	if err != nil {
		return fmt.Errorf("entry %d of the shared log: %w", s.at, err)
	}
	if sumOf(e.Before, batch) != s.lastSum() {
		return differs(e.First, errors.New("the checksums differ"))
	}
	s.assembly.owner = e.Owner
	return nil
}

// entries returns n entries after entry at.
func (s *Shared) entries(ctx context.Context, at int64, n int) (found []Entry, err error) {
	enough := errors.New("enough")
	err = s.engine.Get(ctx, at, func(_ int64, e Entry) error {
		e.Body = bytes.Clone(e.Body)
		if found = append(found, e); len(found) == n {
			return enough
		}
		return nil
	})
	switch {
	case err == nil:
		return nil, fmt.Errorf("the shared log has %d of the %d entries after entry %d", len(found), n, at)
	case errors.Is(err, enough):
		return found, nil
	}
	return nil, err
}

// differs returns the error for a copy that is of another log, from a fact on.
func differs(seq int64, why error) error {
	return fmt.Errorf("the copy is not one of this log: at fact %d: %w", seq, why)
}

// Append implements Log. It waits as long as the engine cannot confirm the facts. It also returns
// ErrMoved if another hub has written a part of a batch, and an *ElsewhereError while the record is moved.
func (s *Shared) Append(ctx context.Context, last int64, batch []wire.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	if end := s.Last(); end != last {
		return moved(end, last)
	}
	if err := examine(last, batch); err != nil {
		return err
	}
	if err := s.elsewhere(); err != nil {
		return err
	}
	if len(batch) == 0 {
		return s.stillLast(ctx)
	}
	if err := s.checkKeys(batch); err != nil {
		return err
	}
	err := s.put(last, batch)
	if errors.Is(err, ErrBehind) {
		return s.behind(ctx, last)
	}
	if err != nil {
		return s.fail("appending to the shared log", uncertain(err))
	}
	if err := s.SQLite.Append(context.WithoutCancel(ctx), last, batch); err != nil {
		return s.fail("copying from the shared log", uncertain(err))
	}
	return nil
}

// behind reads the entries of another hub, and returns ErrMoved. If reading fails, the copy is behind but not broken. A
// part of a batch is enough for ErrMoved, even if the batch is never completed: another hub has written it.
func (s *Shared) behind(ctx context.Context, last int64) error {
	if err := s.follow(ctx, nil); err != nil {
		return fmt.Errorf("%w: reading what another hub has written: %w", ErrMoved, err)
	}
	if end := s.Last(); end != last {
		return moved(end, last)
	}
	if err := s.elsewhere(); err != nil {
		return err
	}
	return fmt.Errorf("%w: another hub has begun a batch after fact %d", ErrMoved, last)
}

// uncertain returns an error without its causes if one of them promises that a batch is not in the log. The batch of a
// failed Put may be in the log, and the batch of a failed copy is.
func uncertain(err error) error {
	for _, promise := range []error{ErrInvalid, ErrMoved, ErrTaken, ErrBusy, ErrReadOnly, fs.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, promise) {
			return errors.New(err.Error())
		}
	}
	return err
}

// stillLast returns ErrMoved if the log has entries that are not in the copy.
func (s *Shared) stillLast(ctx context.Context) error {
	end, err := s.engine.End(ctx)
	if err != nil || end == s.at {
		return errors.Join(err, s.elsewhere())
	}
	if end < s.at {
		return fmt.Errorf("the shared log ends at entry %d, and entry %d was read from it", end, s.at)
	}
	last := s.Last()
	if err := s.follow(ctx, nil); err != nil {
		return err
	}
	if end := s.Last(); end != last {
		return moved(end, last)
	}
	return s.elsewhere() // otherwise there are only parts of a batch that was never completed
}

// put writes a batch to the engine, in as many parts as it needs.
func (s *Shared) put(last int64, batch []wire.Record) error {
	e := Entry{First: last + 1, Count: len(batch), Before: s.lastSum()}
	at, err := put(s.engine, s.at, e, appendBatch(nil, batch))
	if at != s.at {
		s.at, s.assembly = at, assembly{} // a batch that another hub has begun can no longer be completed
	}
	return err
}

// Follow reads the appends of other hubs, and calls see, if it is not nil, for each of their batches once it is in the
// copy. It ends with the first error of see; the next Follow begins with the batch after that. See must not append,
// follow or close.
func (s *Shared) Follow(ctx context.Context, see func([]wire.Record) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.follow(ctx, see)
}

// follow is Follow for a caller that holds s.mu.
func (s *Shared) follow(ctx context.Context, see func([]wire.Record) error) error {
	return s.engine.Get(ctx, s.at, func(n int64, e Entry) error {
		if n != s.at+1 {
			return fmt.Errorf("the shared log has no entry %d", s.at+1)
		}
		batch, err := s.add(e)
		if err != nil {
			return fmt.Errorf("entry %d of the shared log: %w", n, err)
		}
		s.at = n
		if batch == nil || see == nil {
			return nil
		}
		return see(batch)
	})
}

// add adds an entry to the copy, and returns the batch if it is complete. After an error the same
// entry can be added again.
func (s *Shared) add(e Entry) ([]wire.Record, error) {
	next, batch, err := s.assembly.next(e, s.Last(), s.lastSum())
	if err != nil {
		return nil, err
	}
	if batch != nil {
		if err := s.SQLite.Append(context.Background(), s.Last(), batch); err != nil {
			return nil, fmt.Errorf("copying it: %w", err)
		}
	}
	s.assembly = next
	return batch, nil
}

// Close closes the engine and the copy. An append that the engine has confirmed is copied before that.
func (s *Shared) Close() error {
	err := s.engine.Close() // ends an append that waits
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.SQLite.Close())
}

// checkKeys returns a TakenError if a fact of the batch has a key that was used before.
func (s *Shared) checkKeys(batch []wire.Record) error {
	s.appending.Lock()
	defer s.appending.Unlock()
	taken := make(map[sender]bool)
	for i := range batch {
		r := &batch[i]
		if r.Key == "" {
			continue
		}
		who := sender{r.From, r.Key}
		if taken[who] {
			return &TakenError{Index: i, From: r.From, Key: r.Key}
		}
		taken[who] = true
		seq, found, err := firstInt(s.taker, ofText(r.From), ofText(r.Key))
		if err != nil {
			return s.fail("looking for a key", err)
		}
		if found {
			return &TakenError{Index: i, From: r.From, Key: r.Key, Seq: seq}
		}
	}
	return nil
}

// lastSum returns the sum of the last fact of the copy.
func (s *Shared) lastSum() uint32 {
	s.appending.Lock()
	defer s.appending.Unlock()
	return s.sum
}

// sumOf returns the sum of the last fact of a batch, given the sum before the batch.
func sumOf(sum uint32, batch []wire.Record) uint32 {
	var c chain
	var at []byte
	for i := range batch {
		at = appendAt(at[:0], batch[i].At)
		sum = c.next(sum, at, &batch[i])
	}
	return sum
}

// Current returns ErrMoved if another hub has appended facts.
func (s *Shared) Current(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.stillLast(ctx)
}

// Trim implements Log. It removes no facts: the engine keeps all of them for later hubs, which must find the taken
// keys.
func (s *Shared) Trim(ctx context.Context, _ int64, _ time.Time) (wire.Base, error) {
	return s.Base(ctx)
}
