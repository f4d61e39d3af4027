package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"orchestrator/supervisor/eventlog"
)

// Engine is an engine of a shared log.
type Engine struct {
	log     string // the name of the team
	logger  hclog.Logger
	keeper  keeper
	node    string                 // the server in this process; "" without one
	copies  int                    // how many servers there are; the stream is on up to three of them
	waiting func(missing []string) // called while the stream is not there; may be nil
	again   time.Duration          // how long Ask asks again when no hub answers
	conn    *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	key     []byte
	known   atomic.Int64 // the highest entry that is known to be there

	silent atomic.Bool // the leader of the stream has not answered the last question
	once   sync.Once
	closed chan struct{}
	mover  sync.WaitGroup // the calls of stayAway
}

var _ eventlog.Engine = (*Engine)(nil)

// A keeper stands for the servers that keep the stream: servers of the hubs, or foreign ones.
type keeper interface {
	missing(silent bool) []string // unreachable servers; silent: the stream's leader has not answered
	held() error                  // why writing is not allowed now, or nil
	close()
}

// maxEntry is how many bytes an entry may have. Larger messages would hold up the server's routes. A message
// has headRoom more.
const (
	maxEntry = 4 << 20
	headRoom = 4 << 10
)

// Times of questions. A server that does not answer within patience may be in an election; the
// question is then asked again.
const (
	patience    = 500 * time.Millisecond
	putPatience = time.Second
	pause       = 50 * time.Millisecond
	longestWait = 250 * time.Millisecond
)

// tooLarge is the code of the refusal of a message larger than the stream allows. Other refusals may
// pass, such as that the message with the same id is still being stored.
const tooLarge = jetstream.ErrorCode(10054)

func (e *Engine) name() string    { return "orchestrator-" + e.log }
func (e *Engine) subject() string { return "orchestrator." + e.log + ".log" }
func (e *Engine) seat() string    { return "orchestrator." + e.log + ".hub" }
func (e *Engine) reports() string { return "orchestrator." + e.log + ".reports" }

// openStream opens the stream, and makes it if it does not exist. It waits for a leader that is in touch with most
// servers, or until ctx ends.
func (e *Engine) openStream(ctx context.Context) error {
	var err error
	if e.js, err = jetstream.New(e.conn); err != nil {
		return err
	}
	want := jetstream.StreamConfig{
		Name: e.name(), Subjects: []string{e.subject()}, Storage: jetstream.FileStorage, Replicas: min(e.copies, 3),
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, DenyDelete: true, DenyPurge: true, AllowDirect: true,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: maxEntry + headRoom, Duplicates: 2 * time.Minute,
		Metadata: map[string]string{keyName: newKey()}, // the key of the hub that makes the stream first counts
	}
	told := time.Now()
	for wait := pause; ; wait = min(2*wait, longestWait) {
		e.stream, err = within(ctx, 2*time.Second, func(ctx context.Context) (jetstream.Stream, error) {
			found, err := e.js.Stream(ctx, want.Name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				found, err = e.js.CreateStream(ctx, want)
			}
			return found, err
		})
		if err == nil && !isLed(e.stream.CachedInfo().Cluster) {
			err = errNotLed
		}
		if err == nil {
			if err := e.examine(e.stream.CachedInfo().Config, want); err != nil {
				return err
			}
			_ = e.makeObjects(ctx) // all hubs are likely to be there now; otherwise PutObject makes it
			return nil
		}
		if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
			return err
		}
		if e.waiting != nil {
			e.waiting(e.Missing())
		}
		missing := strings.Join(e.Missing(), ", ")
		if time.Since(told) > 2*time.Second && missing != "" {
			told = time.Now()
			e.logger.Info("waiting for other hubs", "missing", missing)
		} else if time.Since(told) > 2*time.Second && e.node == "" {
			told = time.Now()
			e.logger.Info("waiting for the stream of the shared log", "error", err)
		}
		if ended := e.rest(ctx, wait); ended != nil && missing != "" {
			return fmt.Errorf("%s cannot be reached: %w", missing, ended)
		} else if ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// keyName is where the metadata of the stream have the key of the hubs.
const keyName = "orchestrator.key"

// newKey returns a random key as text.
func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return hex.EncodeToString(key)
}

// examine reads the key of the hubs from the settings of a stream. It returns an error if the stream could lose
// entries.
func (e *Engine) examine(is, want jetstream.StreamConfig) error {
	key, err := hex.DecodeString(is.Metadata[keyName])
	e.key = key
	switch {
	case err != nil || len(key) != 32:
		return errors.New("the stream of the shared log lacks the hubs' key: was it created by another program?")
	case is.Storage != want.Storage:
		return errors.New("the stream of the shared log is not in files")
	case is.Replicas < want.Replicas:
		return fmt.Errorf("the stream %s of the shared log has %d copies, not %d; add them: nats stream edit %[1]s --replicas %[3]d", is.Name, is.Replicas, want.Replicas)
	case is.PersistMode != want.PersistMode:
		return fmt.Errorf("the stream %s of the shared log confirms messages before they are on disk: its persist_mode is %s", is.Name, is.PersistMode)
	case !is.DenyDelete || !is.DenyPurge || is.Retention != want.Retention || is.Discard != want.Discard,
		is.MaxMsgs > 0, is.MaxBytes > 0, is.MaxAge > 0, is.MaxMsgsPerSubject > 0:
		return fmt.Errorf("messages may be removed from the stream %s of the shared log", is.Name)
	case !is.AllowDirect || !slices.Equal(is.Subjects, want.Subjects):
		return fmt.Errorf("the stream %s of the shared log was changed: it needs allow_direct and the subject %s", is.Name, want.Subjects[0])
	}
	return nil
}

// within calls do with a time limit.
func within[T any](ctx context.Context, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// rest waits for d. It returns an error if ctx ends before, or the engine is closed.
func (e *Engine) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closed:
		return fs.ErrClosed
	}
}

// Put implements eventlog.Engine.
func (e *Engine) Put(at int64, entry eventlog.Entry) (int64, error) {
	ctx := context.Background()
	m := &nats.Msg{Subject: e.subject(), Header: nats.Header{}, Data: entry.Append(nil)}
	id := nuid.Next()
	m.Header.Set(jetstream.MsgIDHeader, id)
	m.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatInt(at, 10))
	for wait := pause; ; wait = min(2*wait, longestWait) {
		ack, err := e.publish(ctx, m)
		if err == nil {
			if ack.Sequence != uint64(at)+1 {
				return 0, fmt.Errorf("the shared log has put entry %d at %d", at+1, ack.Sequence)
			}
			e.learn(at + 1)
			return at + 1, nil
		}
		refused, isRefused := errors.AsType[*jetstream.APIError](err)
		switch {
		case isRefused && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
			if holder, err := e.idAt(ctx, at+1); err == nil && holder == id {
				e.learn(at + 1)
				return at + 1, nil
			} else if err == nil && holder != "" {
				return 0, eventlog.ErrBehind
			}
		case errors.Is(err, nats.ErrMaxPayload), isRefused && refused.ErrorCode == tooLarge:
			return 0, fmt.Errorf("the shared log does not take an entry of %d bytes: %w", len(m.Data), err)
		}
		if err := e.rest(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// publish sends a message once. It fails if writing is not allowed now.
func (e *Engine) publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	if err := e.keeper.held(); err != nil {
		return nil, err
	}
	return within(ctx, putPatience, func(ctx context.Context) (*jetstream.PubAck, error) {
		return e.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	})
}

// idAt asks the leader of the stream for the id of an entry. It returns "" if the entry is not stored yet.
func (e *Engine) idAt(ctx context.Context, n int64) (string, error) {
	m, err := e.stored(ctx, e.name(), fmt.Sprintf(`{"seq":%d}`, n))
	if err != nil || m == nil {
		return "", err
	}
	if id := m.Header.Get(jetstream.MsgIDHeader); id != "" {
		return id, nil
	}
	return "?", nil // a program that is not a hub has written it
}

// stored asks the leader of a stream for a message. It returns nil if the message is not stored yet.
func (e *Engine) stored(ctx context.Context, stream, which string) (*nats.Msg, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Header []byte `json:"hdrs"`
			Data   []byte `json:"data"`
		} `json:"message"`
	}
	reply, err := within(ctx, patience, func(ctx context.Context) (*nats.Msg, error) {
		return e.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, []byte(which))
	})
	if err == nil {
		err = json.Unmarshal(reply.Data, &answer)
	}
	switch {
	case err != nil:
		return nil, err
	case answer.Error != nil && answer.Error.Code == 404:
		return nil, nil
	case answer.Error != nil:
		return nil, answer.Error
	case answer.Message == nil:
		return nil, errors.New("an empty answer")
	}
	m := &nats.Msg{Data: answer.Message.Data}
	if len(answer.Message.Header) > 0 {
		m.Header, err = nats.DecodeHeadersMsg(answer.Message.Header)
	}
	return m, err
}

// End implements eventlog.Engine. Only a leader that is in touch with most servers knows the end.
func (e *Engine) End(ctx context.Context) (int64, error) {
	info, err := e.info(ctx)
	if err == nil && !isLed(info.Cluster) {
		err = errNotLed
	}
	if err == nil {
		err = e.keeper.held()
	}
	if err != nil {
		return 0, e.unknown("where the shared log ends", err)
	}
	end := int64(info.State.LastSeq)
	if known := e.known.Load(); end < known {
		return 0, e.unknown("where the shared log ends", fmt.Errorf("the answer is %d, and there is an entry %d", end, known))
	}
	e.learn(end)
	return end, nil
}

// learn notes that an entry is stored.
func (e *Engine) learn(n int64) {
	for known := e.known.Load(); n > known && !e.known.CompareAndSwap(known, n); known = e.known.Load() {
	}
}

var errNotLed = errors.New("the server that answers cannot reach most hubs")

// isLed reports whether an answer about the stream comes from a leader that has heard from most servers lately. A
// server that knows no leader answers as well, and may learn of one while it does. So does a leader that is cut off,
// for some seconds. The leader is not among the replicas in its answer. A stream with one copy has no replicas.
func isLed(c *jetstream.ClusterInfo) bool {
	if c == nil {
		return true
	}
	near := 1 // the leader itself
	for _, r := range c.Replicas {
		if r.Name == c.Leader {
			return false
		}
		if !r.Offline && r.Active > 0 && r.Active < 3*hbInterval { // 0: it has heard no message yet
			near++
		}
	}
	return c.Leader != "" && 2*near > len(c.Replicas)+1
}

// info asks the leader of the stream about it.
func (e *Engine) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := within(ctx, patience, func(ctx context.Context) (*jetstream.StreamInfo, error) { return e.stream.Info(ctx) })
	e.silent.Store(err != nil)
	return info, err
}

// unknown returns the error for a question that was not answered.
func (e *Engine) unknown(what string, err error) error {
	select {
	case <-e.closed:
		return fs.ErrClosed
	default:
		return fmt.Errorf("%w: asking %s: %w", eventlog.ErrUnanswered, what, err)
	}
}

// First implements eventlog.Engine.
func (e *Engine) First(ctx context.Context, n int64) (int64, error) {
	var first int64
	err := e.Get(ctx, n-1, func(_ int64, entry eventlog.Entry) error {
		first = entry.First
		return errEnough
	})
	if errors.Is(err, errEnough) {
		return first, nil
	}
	if err == nil {
		err = fmt.Errorf("the shared log has no entry %d", n)
	}
	return 0, err
}

var errEnough = errors.New("enough")

// Key implements eventlog.Engine.
func (e *Engine) Key() []byte { return e.key }

// Most implements eventlog.Engine. Each server may have another maximum.
func (e *Engine) Most() int { return min(maxEntry, int(e.conn.MaxPayload())-headRoom) }

// Ask implements eventlog.Engine.
func (e *Engine) Ask(ctx context.Context) ([]byte, error) {
	ask := func(ctx context.Context) (*nats.Msg, error) { return e.conn.RequestWithContext(ctx, e.seat(), nil) }
	reply, err := within(ctx, patience, ask)
	for began := time.Now(); errors.Is(err, nats.ErrNoResponders) && time.Since(began) < e.again; {
		if err := e.rest(ctx, pause); err != nil {
			return nil, err
		}
		reply, err = within(ctx, patience, ask)
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, eventlog.ErrVacant
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, eventlog.ErrSilent
	case err != nil:
		return nil, e.unknown("which hub is at work", err)
	}
	return reply.Data, nil
}

// Serve implements eventlog.Engine.
func (e *Engine) Serve(who []byte) (end func(), err error) {
	s, err := e.conn.Subscribe(e.seat(), func(m *nats.Msg) { _ = m.Respond(who) })
	if err != nil {
		return nil, e.unknown("to answer as the hub at work", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if e.node != "" {
		e.mover.Go(func() { e.stayAway(ctx) })
	}
	return func() {
		cancel()
		_ = s.Unsubscribe()
	}, e.conn.FlushTimeout(putPatience)
}

// Report sends a text to the hubs of the log. It is lost if the server is not connected.
func (e *Engine) Report(text []byte) error {
	if !e.conn.IsConnected() {
		return eventlog.ErrUnanswered
	}
	return e.conn.Publish(e.reports(), text)
}

// Reports calls heard with each text that a hub sends, until Close.
func (e *Engine) Reports(heard func(text []byte)) error {
	_, err := e.conn.Subscribe(e.reports(), func(m *nats.Msg) { heard(m.Data) })
	return err
}

// Missing implements eventlog.Engine.
func (e *Engine) Missing() []string { return e.keeper.missing(e.silent.Load()) }

// Close implements eventlog.Engine.
func (e *Engine) Close() error {
	e.once.Do(func() {
		close(e.closed)
		if e.conn != nil {
			e.conn.Close()
		}
		e.mover.Wait()
		e.keeper.close()
	})
	return nil
}
