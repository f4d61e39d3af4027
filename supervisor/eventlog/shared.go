package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"orchestrator/wire"
)

// Shared is a log that several hubs share. An engine keeps its entries. Each hub has a copy of the
// facts in a file of its own, which answers all questions and may be behind.
type Shared struct {
	*SQLite // the copy, which is not synced: the engine has everything
	engine  Engine

	mu    sync.Mutex // held while the copy grows
	at    int64      // the last entry of which the copy has the facts, or that is in body
	begun Entry      // the last entry, if it is not the last part of its batch
	body  []byte     // its text and that of the parts before it
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

// OpenShared opens a shared log with a copy in a file. It reads nothing that others wrote since the
// copy was last used; Follow does. Close closes the engine too.
func OpenShared(ctx context.Context, path string, engine Engine) (*Shared, error) {
	local, err := Open(ctx, Options{Path: path})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	s := &Shared{SQLite: local, engine: engine}
	if err := s.locate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("comparing %s with the shared log: %w", path, err), s.Close())
	}
	return s, nil
}

// locate finds the entry at which the copy ends.
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
	found := errors.New("found")
	err = s.engine.Get(ctx, low-1, func(_ int64, e Entry) error {
		if err := s.continues(ctx, e); err != nil {
			return err
		}
		return found
	})
	if errors.Is(err, found) {
		return nil
	}
	return err
}

// continues compares the entry at which the copy ends with the copy.
func (s *Shared) continues(ctx context.Context, e Entry) error {
	last, until := s.Last(), e.First+int64(e.Count)-1
	if e.Part < e.Of {
		until = e.First - 1
	}
	switch {
	case until < last:
		return &ShorterError{Copy: last, Log: until}
	case until > last:
		return differs(last, errors.New("it ends within a batch"))
	}
	s.reading.Lock()
	sum, found, base, err := s.sumAt(e.First - 1)
	s.reading.Unlock()
	switch {
	case err != nil:
		return err
	case !found && e.First-1 < base.Seq: // removed here, so it was compared when it was read
		return ctx.Err()
	case !found || sum != e.Before:
		return differs(e.First, errors.New("the checksums differ"))
	}
	return nil
}

func differs(seq int64, why error) error {
	return fmt.Errorf("the copy is not one of this log: at fact %d: %w", seq, why)
}

// Append implements Log. It waits as long as the engine cannot confirm the facts.
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
	if len(batch) == 0 {
		return s.stillLast(ctx)
	}
	if err := s.untaken(last, batch); err != nil {
		return err
	}
	err := s.put(last, batch)
	if errors.Is(err, ErrBehind) {
		if err := s.follow(ctx, nil); err != nil {
			return s.fail("reading what another hub has appended", err)
		}
		return moved(s.Last(), last)
	}
	if err != nil {
		return s.fail("appending to the shared log", err)
	}
	if err := s.SQLite.Append(context.WithoutCancel(ctx), last, batch); err != nil {
		return s.fail("copying from the shared log", err)
	}
	return nil
}

// stillLast returns ErrMoved if the log has entries that are not in the copy.
func (s *Shared) stillLast(ctx context.Context) error {
	end, err := s.engine.End(ctx)
	if err != nil || end == s.at {
		return err
	}
	last := s.Last()
	if err := s.follow(ctx, nil); err != nil {
		return err
	}
	if end := s.Last(); end != last {
		return moved(end, last)
	}
	return nil // only parts of a batch that was never completed
}

// put writes a batch to the engine, in as many parts as it needs.
func (s *Shared) put(last int64, batch []wire.Record) error {
	s.begun, s.body = Entry{}, nil // another hub did not complete it, and this one begins anew
	text := appendBatch(nil, batch)
	size := s.engine.Most() - entryRoom
	e := Entry{First: last + 1, Count: len(batch), Of: max(1, (len(text)+size-1)/size), Before: s.lastSum()}
	for e.Part = 1; e.Part <= e.Of; e.Part++ {
		e.Body = text[:min(size, len(text))]
		text = text[len(e.Body):]
		at, err := s.engine.Put(s.at, e)
		if err != nil {
			return err
		}
		s.at = at
	}
	return nil
}

// Follow reads what other hubs have appended, and calls see, if it is not nil, for each of their
// batches once it is in the copy.
func (s *Shared) Follow(ctx context.Context, see func([]wire.Record) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.follow(ctx, see)
}

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

// add adds an entry to the copy, and returns the batch if it is complete.
func (s *Shared) add(e Entry) ([]wire.Record, error) {
	last := s.Last()
	if e.Part > 1 && (s.begun.First != e.First || s.begun.Of != e.Of || s.begun.Part != e.Part-1) {
		return nil, fmt.Errorf("it is part %d of %d, and the part before it is missing", e.Part, e.Of)
	}
	if e.Part == 1 {
		s.body = nil // the parts before it belong to a batch that was not completed
	}
	if sum := s.lastSum(); e.First != last+1 || e.Before != sum {
		return nil, differs(e.First, fmt.Errorf("the copy ends at fact %d with the checksum %d, and this entry follows %d", last, sum, e.Before))
	}
	s.begun = e
	if s.begun.Body = nil; e.Of > 1 {
		s.body = append(s.body, e.Body...)
		if e.Part < e.Of {
			return nil, nil
		}
		e.Body, s.body = s.body, nil
	}
	batch, err := readBatch(bytes.Clone(e.Body), last, e.Count)
	if err != nil {
		return nil, err
	}
	if err := s.SQLite.Append(context.Background(), last, batch); err != nil {
		return nil, fmt.Errorf("copying it: %w", err)
	}
	return batch, nil
}

// Close closes the engine and the copy.
func (s *Shared) Close() error { return errors.Join(s.engine.Close(), s.SQLite.Close()) }

// untaken returns a TakenError if a fact of the batch has a key that was used before.
func (s *Shared) untaken(last int64, batch []wire.Record) error {
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
