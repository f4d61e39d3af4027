package eventlog

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"orchestrator/wire"
)

// An Engine keeps the entries of a log that several hubs share. They are numbered from 1 without a
// hole, and never change. Its methods may be called concurrently.
type Engine interface {
	// Put adds an entry after entry at, and returns its number when it is durable. It asks until the outcome is known,
	// however long that takes. It fails with ErrBehind if another entry has that place, and with fs.ErrClosed after Close;
	// then the entry may or may not be stored.
	Put(at int64, e Entry) (int64, error)

	// Get calls see for the entries after entry at, in order, up to one that was the last when Get
	// began or a later one. It ends with the first error of see. An entry is valid until see returns.
	Get(ctx context.Context, at int64, see func(n int64, e Entry) error) error

	// End returns the number of the last entry, or 0. It is never less than one that Put returned to
	// any hub before.
	End(ctx context.Context) (int64, error)

	// First returns the First of an entry.
	First(ctx context.Context, n int64) (int64, error)

	// Most returns how many bytes an entry may have in the form of Entry.Append, at least 100.
	Most() int

	// Ask returns the description of the hub at work, as given to Serve. It fails with ErrVacant if no hub is at work, and
	// with ErrSilent if a hub should be at work and does not answer. Any of these may be wrong.
	Ask(ctx context.Context) (who []byte, err error)

	// Serve announces that this hub is at work, until Close or until the returned function is called.
	Serve(who []byte) (end func(), err error)

	// Key returns 32 random bytes that only the hubs of the log know.
	Key() []byte

	// Missing returns the hubs that this one cannot reach.
	Missing() []string

	// Close ends all calls.
	Close() error
}

// Objects keep content that is too large for facts, beside the entries of an engine. An object has the SHA-256 of its
// content as its name, in hexadecimal digits. It is never changed or removed. The caller compares the content with the
// name.
type Objects interface {
	// PutObject stores an object, and returns when it is as durable as an entry. It tries until then, or until
	// ctx ends or the engine is closed.
	PutObject(ctx context.Context, hash string, content []byte) error

	// GetObject returns the content of an object. It fails with fs.ErrNotExist if the object does not exist. It asks until
	// it is answered, or until ctx ends or the engine is closed.
	GetObject(ctx context.Context, hash string) ([]byte, error)
}

var (
	// ErrBehind reports that another entry is where Put should add one.
	ErrBehind = errors.New("another hub has written to the log")

	// ErrUnanswered reports that a question was not answered, for instance during an election. It may
	// be asked again.
	ErrUnanswered = errors.New("the shared log does not answer")

	// ErrVacant reports that no hub claims to be at work.
	ErrVacant = errors.New("no hub is at work")

	// ErrSilent reports that a hub should be at work and does not say so.
	ErrSilent = errors.New("the hub at work does not answer")
)

// An Entry is a batch of facts in a shared log, or a part of one. The batch counts with its last part.
type Entry struct {
	First    int64  // the number of the batch's first fact
	Count    int    // how many facts the batch has; 0: it only names the owner
	Part, Of int    // this is part Part of Of, from 1
	Before   uint32 // the sum of the chain before the batch
	Owner    string // the hub that has the facts which follow, while the record is moved; "": it is all here
	Body     []byte // a part of the text of the batch
}

// The stored form of an entry. It begins with a byte for the format and a checksum of the rest.
const (
	entryFormat = 1
	ownedFormat = 2 // the same, with an owner
	entryHead   = 1 + 4
	entryRoom   = entryHead + 6*binary.MaxVarintLen64 // for all except the body and the owner
)

// Append appends the entry in the form that engines store.
func (e *Entry) Append(b []byte) []byte {
	begin := len(b)
	b = append(b, entryFormat, 0, 0, 0, 0)
	for _, n := range []uint64{uint64(e.First), uint64(e.Count), uint64(e.Part), uint64(e.Of), uint64(e.Before)} {
		b = binary.AppendUvarint(b, n)
	}
	if e.Owner != "" {
		b[begin] = ownedFormat
		b = append(binary.AppendUvarint(b, uint64(len(e.Owner))), e.Owner...)
	}
	b = append(b, e.Body...)
	binary.LittleEndian.PutUint32(b[begin+1:], crc32.Checksum(b[begin+entryHead:], castagnoli()))
	return b
}

// ReadEntry is the inverse of Append. The body of the entry is a part of the text.
func ReadEntry(text []byte) (Entry, error) {
	switch {
	case len(text) < entryHead:
		return Entry{}, errors.New("an entry is cut off")
	case text[0] != entryFormat && text[0] != ownedFormat:
		return Entry{}, fmt.Errorf("an entry has the format %d, and this program reads %d and %d: was it written by a newer version?", text[0], entryFormat, ownedFormat)
	case crc32.Checksum(text[entryHead:], castagnoli()) != binary.LittleEndian.Uint32(text[1:]):
		return Entry{}, errors.New("the checksum of an entry is wrong")
	}
	r := reader{text: text[entryHead:]}
	e := Entry{First: r.number(), Count: int(r.number()), Part: int(r.number()), Of: int(r.number()), Before: uint32(r.number())}
	if text[0] == ownedFormat {
		e.Owner = string(r.bytes())
		r.short = r.short || e.Owner == ""
	}
	e.Body = r.text
	bare := e.Of == 1 && len(e.Body) == 0
	if r.short || e.First < 1 || e.Count < 0 || e.Count == 0 && !bare || e.Part < 1 || e.Part > e.Of {
		return Entry{}, errors.New("an entry makes no sense")
	}
	return e, nil
}

// put adds a batch with its text to an engine, after entry at, in as many parts as it needs. It returns the
// last entry that it has added, or at.
func put(engine Engine, at int64, e Entry, text []byte) (int64, error) {
	size := engine.Most() - entryRoom - len(e.Owner)
	e.Of = max(1, (len(text)+size-1)/size)
	for e.Part = 1; e.Part <= e.Of; e.Part++ {
		e.Body = text[:min(size, len(text))]
		text = text[len(e.Body):]
		n, err := engine.Put(at, e)
		if err != nil {
			return at, err
		}
		at = n
	}
	return at, nil
}

// An assembly joins batches from entries that have their parts.
type assembly struct {
	begun Entry  // the last entry, if it is not the last part of its batch
	body  []byte // its text, after the text of the parts before it
	owner string // of the facts that follow; see Entry
	out   bool   // the record was moved out, with an entry without facts
}

// next returns the assembly after an entry, and the batch if the entry completes one. The last fact before
// the batch has the number last and the sum sum.
func (a assembly) next(e Entry, last int64, sum uint32) (assembly, []wire.Record, error) {
	if b := a.begun; e.Part > 1 && (b.First != e.First || b.Count != e.Count || b.Of != e.Of || b.Part != e.Part-1) {
		return a, nil, fmt.Errorf("it is part %d of %d, and the part before it is missing", e.Part, e.Of)
	}
	if e.First != last+1 || e.Before != sum {
		return a, nil, differs(e.First, fmt.Errorf("the copy ends at fact %d with the checksum %d, and this entry follows %d", last, sum, e.Before))
	}
	if e.Count == 0 {
		return assembly{owner: e.Owner, out: e.Owner != ""}, nil, nil
	}
	var text []byte
	if e.Part > 1 { // otherwise the parts before it belong to a batch that was not completed
		text = a.body
	}
	text = append(text, e.Body...)
	if e.Part < e.Of {
		e.Body = nil
		return assembly{begun: e, body: text, owner: cmp.Or(e.Owner, a.owner), out: a.out && e.Owner == ""}, nil, nil
	}
	batch, err := readBatch(text, last, e.Count)
	if err != nil {
		return a, nil, err
	}
	return assembly{owner: e.Owner}, batch, nil
}

// appendBatch appends the text of a batch.
func appendBatch(b []byte, batch []wire.Record) []byte {
	for i := range batch {
		r := &batch[i]
		b = binary.AppendVarint(b, r.At.UnixMilli())
		for _, s := range []string{r.From, r.To, r.Topic, r.Kind, r.Key, r.Correlation} {
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
		b = binary.AppendVarint(b, r.ReplyTo)
		b = append(binary.AppendUvarint(b, uint64(len(r.Payload))), r.Payload...)
	}
	return b
}

// readBatch is the inverse of appendBatch, for n facts after number last.
func readBatch(text []byte, last int64, n int) ([]wire.Record, error) {
	const least = 9 // bytes of a fact
	r := reader{text: text}
	if n > len(text)/least {
		return nil, errors.New("a batch is shorter than its entry says")
	}
	batch := make([]wire.Record, n)
	for i := range batch {
		b := &batch[i]
		b.Seq, b.At = last+int64(i)+1, time.UnixMilli(r.signed()).UTC()
		for _, s := range []*string{&b.From, &b.To, &b.Topic, &b.Kind, &b.Key, &b.Correlation} {
			*s = string(r.bytes())
		}
		b.ReplyTo = r.signed()
		if payload := r.bytes(); len(payload) > 0 {
			b.Payload = payload
		}
	}
	if r.short || len(r.text) > 0 {
		return nil, errors.New("a batch does not have the facts that its entry says")
	}
	return batch, nil
}

// A reader reads values from the front of a text.
type reader struct {
	text  []byte
	short bool // the text ended too early
}

func (r *reader) number() int64 {
	n, size := binary.Uvarint(r.text)
	return r.took(int64(n), size)
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.text)
	return r.took(n, size)
}

func (r *reader) took(n int64, size int) int64 {
	if size <= 0 {
		r.short, r.text = true, nil
		return 0
	}
	r.text = r.text[size:]
	return n
}

func (r *reader) bytes() []byte {
	n := r.number()
	if n < 0 || n > int64(len(r.text)) {
		r.short, r.text = true, nil
		return nil
	}
	b := r.text[:n:n]
	r.text = r.text[n:]
	return b
}
