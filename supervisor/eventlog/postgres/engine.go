package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"orchestrator/supervisor/eventlog"
)

// Options describe the server and this hub.
type Options struct {
	URL         string // postgres://user@host/database; its sslmode decides about TLS
	Credentials string // the password; "": the password of the URL, or none
	Log         string // the name of the team
	Node        string // the name of this hub, which the server shows to its administrator
	Logger      hclog.Logger
}

// Engine is an engine of a shared log.
type Engine struct {
	options Options
	pool    *pgxpool.Pool
	address string // of the server
	lock    int64  // the key of the session lock of the log
	key     []byte // of the hubs
	id      []byte // of this engine, in the row of the log

	put    atomic.Int64 // the last entry that this engine has added
	silent atomic.Bool  // the last question was not answered
	seen   seatView

	mu     sync.Mutex // held by Close while it ends closed, and by Serve
	seats  sync.WaitGroup
	closed context.Context // ends with Close
	end    func()          // ends closed
	sever  func()          // closes all connections, without waiting for the server
}

var _ eventlog.Engine = (*Engine)(nil)

// Times of questions. A question that is not answered within patience is asked again. Statements that
// write may need longer, because of a slow disk or network. Each attempt has twice the time of the one
// before, up to longestPut.
const (
	patience     = 500 * time.Millisecond
	putPatience  = 2 * time.Second
	longestPut   = 30 * time.Second
	openPatience = 10 * time.Second
	pause        = 50 * time.Millisecond
	longestWait  = 250 * time.Millisecond
)

// maxEntry is how many bytes an entry may have.
const maxEntry = 4 << 20

// Open connects to the server and makes the tables of the log there. It waits for a server that does not answer, until
// ctx ends.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	e := &Engine{options: o, lock: lockKey(o.Log), id: make([]byte, 16)}
	_, _ = rand.Read(e.id) // it never fails
	e.closed, e.end = context.WithCancel(context.Background())
	if err := e.connect(); err != nil {
		return nil, err
	}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the shared log at %s: %w", e.address, err), e.Close())
	}
	return e, nil
}

// open prepares the tables as soon as the server answers.
func (e *Engine) open(ctx context.Context) error {
	told := time.Now()
	for wait := pause; ; wait = min(2*wait, longestWait) {
		err := e.within(ctx, openPatience, e.prepare)
		if err == nil || permanent(err) || forbidden(err) {
			return err
		}
		if time.Since(told) > 2*time.Second {
			told = time.Now()
			e.options.Logger.Info("waiting for PostgreSQL", "server", e.address, "error", err)
		}
		if ended := e.rest(ctx, wait); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// lockKey returns the key of the session lock of a log.
func lockKey(log string) int64 {
	sum := sha256.Sum256([]byte("orchestrator hub " + log))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// within calls do with a context that ends after a while and with Close.
func (e *Engine) within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(e.closed, cancel)()
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
	case <-e.closed.Done():
		return fs.ErrClosed
	}
}

// ask calls do with a connection and a time limit.
func (e *Engine) ask(ctx context.Context, what string, limit time.Duration, do func(context.Context, *pgxpool.Conn) error) error {
	err := e.within(ctx, limit, func(ctx context.Context) error {
		return e.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return do(ctx, c) })
	})
	return e.judge(ctx, what, err)
}

// judge returns the error for a question that failed. It notes whether the server answers.
func (e *Engine) judge(ctx context.Context, what string, err error) error {
	switch {
	case err != nil && e.closed.Err() != nil:
		return fs.ErrClosed
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !permanent(err):
		if !e.silent.Swap(true) {
			e.options.Logger.Warn("PostgreSQL does not answer", "server", e.address, "error", err)
		}
		return fmt.Errorf("%w: asking %s: %w", eventlog.ErrUnanswered, what, err)
	}
	if e.silent.Swap(false) {
		e.options.Logger.Info("PostgreSQL answers again", "server", e.address)
	}
	if err != nil {
		return fmt.Errorf("asking %s: %w", what, err)
	}
	return nil
}

// codeOf returns the SQLSTATE of the server's refusal of a statement, or "".
func codeOf(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Code
	}
	return ""
}

// permanent reports whether the server would refuse a statement each time: the statement is wrong, or may not be run.
// Other errors pass, such as the errors of a server that is restarted, that has no room for a connection, or that only
// reads because another one has taken over.
func permanent(err error) bool {
	code := codeOf(err)
	return len(code) == 5 && slices.Contains([]string{"22", "23", "42", "54"}, code[:2]) && !raced(code)
}

// forbidden reports whether the server would refuse this hub each time it starts. Later, such a refusal is
// only a reason to ask again.
func forbidden(err error) bool {
	return errors.Is(err, errUnsafe) || errors.Is(err, errRole) || slices.Contains([]string{"28000", "28P01", "3D000"}, codeOf(err))
}

// Most implements eventlog.Engine.
func (e *Engine) Most() int { return maxEntry }

// Key implements eventlog.Engine.
func (e *Engine) Key() []byte { return e.key }

// Missing implements eventlog.Engine. Hubs connect to the server and not to each other, so only the server can be
// missing.
func (e *Engine) Missing() []string {
	if e.silent.Load() {
		return []string{e.address}
	}
	return nil
}

// Close implements eventlog.Engine. Connections without a reaction of the server are cut after a second.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.end()
	e.mu.Unlock()
	e.seats.Wait()
	timer := time.AfterFunc(time.Second, e.sever)
	defer timer.Stop()
	e.pool.Close()
	e.sever()
	return nil
}

// addressOf returns the address of the server, or of several servers, for people.
func addressOf(c *pgconn.Config) string {
	all := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		if at := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return strings.Join(all, ",")
}
