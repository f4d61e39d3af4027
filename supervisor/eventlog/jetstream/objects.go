package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"orchestrator/supervisor/eventlog"
)

// Objects are in a second stream, which is as durable as the first. Each part of an object is a message with a separate
// subject, so a part that is stored again replaces an equal one.

var _ eventlog.Objects = (*Engine)(nil)

// objectPart is how many bytes of an object a message has at most. objectPatience is how long the answer to one
// such message may take.
const (
	objectPart     = 512 << 10
	objectPatience = 2 * time.Second
)

// partsKey is the header with the number of parts of an object.
const partsKey = "Orchestrator-Parts"

// objects returns the name of the stream of objects.
func (e *Engine) objects() string { return e.name() + "-objects" }

// part returns the subject of a part of an object, or of any number of parts with "*". Hubs may divide an object into
// parts of different sizes, if their servers take messages of different sizes.
func (e *Engine) part(hash, parts, n string) string {
	return fmt.Sprintf("orchestrator.%s.objects.%s.%s.%s", e.log, hash, parts, n)
}

// makeObjects makes the stream of objects, unless it exists.
func (e *Engine) makeObjects(ctx context.Context) error {
	_, err := within(ctx, objectPatience, func(ctx context.Context) (jetstream.Stream, error) {
		return e.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: e.objects(), Subjects: []string{e.part("*", "*", "*")}, Storage: jetstream.FileStorage,
			Replicas: min(e.copies, 3), Retention: jetstream.LimitsPolicy, MaxMsgsPerSubject: 1,
			DenyDelete: true, DenyPurge: true, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: objectPart + 4<<10,
		})
	})
	return err
}

// PutObject implements eventlog.Objects.
func (e *Engine) PutObject(ctx context.Context, hash string, content []byte) error {
	size := min(objectPart, e.Most())
	parts := max(1, (len(content)+size-1)/size)
	for n := range parts {
		name := strconv.Itoa(n)
		if n == parts-1 {
			name = "last"
		}
		m := &nats.Msg{Subject: e.part(hash, strconv.Itoa(parts), name), Header: nats.Header{}, Data: content[n*size : min((n+1)*size, len(content))]}
		m.Header.Set(partsKey, strconv.Itoa(parts))
		if err := e.putPart(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// putPart sends a part until it is confirmed.
func (e *Engine) putPart(ctx context.Context, m *nats.Msg) error {
	for wait := pause; ; wait = min(2*wait, longestWait) {
		_, err := within(ctx, objectPatience, func(ctx context.Context) (*jetstream.PubAck, error) {
			return e.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(e.objects()))
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, nats.ErrMaxPayload):
			return err
		case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
			_ = e.makeObjects(ctx) // it is tried again
		}
		if err := e.rest(ctx, wait); err != nil {
			return err
		}
	}
}

// GetObject implements eventlog.Objects.
func (e *Engine) GetObject(ctx context.Context, hash string) (content []byte, err error) {
	// The last part is stored last: if it exists, all do.
	last, err := e.getPart(ctx, e.part(hash, "*", "last"))
	if err != nil {
		return nil, err
	}
	parts, err := strconv.Atoi(last.Header.Get(partsKey))
	if err != nil {
		return nil, fmt.Errorf("the last part of object %s: %w", hash, err)
	}
	for n := range parts - 1 {
		m, err := e.getPart(ctx, e.part(hash, strconv.Itoa(parts), strconv.Itoa(n)))
		if err != nil {
			return nil, err
		}
		content = append(content, m.Data...)
	}
	return append(content, last.Data...), nil
}

// getPart asks for a part until it is answered.
func (e *Engine) getPart(ctx context.Context, subject string) (*nats.Msg, error) {
	for wait := pause; ; wait = min(2*wait, longestWait) {
		m, err := e.stored(ctx, e.objects(), fmt.Sprintf(`{"last_by_subj":%q}`, subject))
		switch {
		case err == nil && m == nil:
			return nil, fmt.Errorf("the shared log has no object at %s: %w", subject, fs.ErrNotExist)
		case err == nil:
			return m, nil
		}
		if err := e.rest(ctx, wait); err != nil {
			return nil, err
		}
	}
}
