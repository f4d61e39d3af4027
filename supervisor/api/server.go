package api

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A Server serves many listeners, perhaps thousands. Each costs one waiting goroutine, from its first connection on if
// Await is used.
type Server struct {
	http *http.Server
	log  hclog.Logger

	mu        sync.Mutex
	over      bool
	open      map[*lingering]bool
	listeners map[*pausable]bool
	paused    chan struct{} // closed by the end of a pause; nil without a pause
	answering sync.WaitGroup
	streams   atomic.Pointer[streams]
	quiet     *quietWatch // nil unless Await was called, or if the system has none
	await     sync.Once   // makes quiet
}

// streams is the context of requests that may last for ever.
type streams struct {
	ctx context.Context
	end context.CancelFunc
}

func newStreams() *streams {
	s := new(streams)
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// NewServer returns a Server for the handler of an API.
func NewServer(handler http.Handler, logger hclog.Logger) *Server {
	s := &Server{log: logger, open: make(map[*lingering]bool), listeners: make(map[*pausable]bool)}
	s.streams.Store(newStreams())
	s.http = &http.Server{
		Handler: handler,
		BaseContext: func(l net.Listener) context.Context {
			if p, ok := l.(*pausable); ok {
				l = p.Listener
			}
			return context.WithValue(enterBy(l), closingKey{}, s)
		},
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       bodyTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(logger.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}), "", 0),
	}
	s.http.ConnState, s.http.ConnContext = s.follow, withPeer
	s.http.RegisterOnShutdown(func() { s.streams.Load().end() })
	return s
}

// closingKey is the context key of the closing context.
type closingKey struct{}

// closing returns a context that ends when the server begins to shut down or pauses. Requests that may last for ever
// end with it; other requests may go on until their own context ends.
func closing(ctx context.Context) context.Context {
	if s, ok := ctx.Value(closingKey{}).(*Server); ok {
		return s.streams.Load().ctx
	}
	return context.Background()
}

// Answer starts serving a listener, until the listener is closed or Serve returns.
func (s *Server) Answer(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		_ = l.Close()
		return
	}
	if c, ok := l.(interface{ logTo(hclog.Logger) }); ok {
		c.logTo(s.log)
	}
	p := &pausable{Listener: l, server: s}
	s.listeners[p] = true
	if s.paused != nil {
		p.pause()
	}
	s.answering.Go(func() { // Serve waits for it
		err := s.http.Serve(p)
		s.mu.Lock()
		delete(s.listeners, p)
		s.mu.Unlock()
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("a listener has failed", "address", l.Addr(), "error", err)
		}
	})
}

// Await is Answer for a listener that may never get a connection. It starts to serve the listener when the first
// connection comes, which waits in the listener until then. forget must be called when the listener is closed.
func (s *Server) Await(l net.Listener) (forget func()) {
	s.await.Do(s.beginQuiet)
	if forget = s.quiet.add(l); forget != nil {
		return forget
	}
	s.Answer(l)
	return func() {}
}

func (s *Server) beginQuiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.quiet = newQuietWatch(); s.quiet != nil {
		s.answering.Go(func() { s.quiet.run(s.Answer) }) // Serve waits for it
	}
}

// Serve serves these listeners and the listeners of Answer until ctx ends. Then it gives running requests a moment to
// finish.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) {
	for _, l := range listeners {
		s.Answer(l)
	}
	<-ctx.Done()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if s.quiet != nil {
		s.quiet.close()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.http.Shutdown(last); err != nil {
		s.hurry()
		_ = s.http.Close()
	}
	s.answering.Wait()
}

// The kernel resets a connection that is closed with unread data, and the reset can
// overtake the answer. The rest of a request is therefore read, within bounds, after the
// answer: by whole if the request reaches a handler, by lingering if net/http refuses it.

// Bounds of reading the rest of a body after an answer.
const (
	restBytes = 64 << 20
	restTime  = 5 * time.Second
)

// rest is the body of a request. It knows whether it was read to its end.
type rest struct {
	io.ReadCloser
	over atomic.Bool
}

func (r *rest) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == io.EOF {
		r.over.Store(true)
	}
	return n, err
}

// unread reports whether there is more of a request than was read.
func unread(r *http.Request) bool {
	b, ok := r.Body.(*rest)
	return ok && !b.over.Load()
}

// whole answers at once, also when the body has not come yet, and then reads the rest of the body.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		body := &rest{ReadCloser: r.Body}
		own := r.WithContext(r.Context()) // net/http looks at the body in its Request
		own.Body = body
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex() // or net/http reads the body before it sends the head
		answer := &answer{ResponseWriter: w, body: body}
		next.ServeHTTP(answer, own)
		if body.over.Load() || answer.FlushError() != nil {
			return
		}
		_ = control.SetReadDeadline(time.Now().Add(restTime))
		_, _ = io.CopyN(io.Discard, r.Body, restBytes)
	})
}

// answer is the answer to a request with a body. It is the last of its connection if it
// begins before the body was read. The rest of the body would be read as a request.
type answer struct {
	http.ResponseWriter
	body  *rest
	begun bool
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) begin() {
	if !a.begun && !a.body.over.Load() {
		a.Header().Set("Connection", "close")
	}
	a.begun = true
}

func (a *answer) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

func (a *answer) FlushError() error {
	a.begin()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// stream has the methods of a connection that lingering needs.
type stream interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// lingering is a connection that is closed in order: it sends the end of its output, and reads the rest of its input,
// before the connection goes.
type lingering struct {
	stream
	peer  *peer // nil: not known, or not needed
	phase atomic.Int32
	// leave is called when it is closed; nil if it is not counted.
	leave   func()
	visitor *visitor // at a TCP listener
}

// Phases of a lingering connection.
const (
	busy   int32 = iota // with a request
	calm                // without a request, so no request can be lost
	turned              // turned away before its request: it is answered and closed by farewell
)

// linger makes a connection one that is closed in order, if it can be.
func linger(conn net.Conn) net.Conn {
	if s, ok := conn.(stream); ok {
		return &lingering{stream: s}
	}
	return conn
}

func (l *lingering) Close() error {
	if l.leave != nil {
		defer l.leave()
	}
	switch was := l.phase.Load(); {
	case was == turned:
		return nil
	case was == busy && l.phase.CompareAndSwap(busy, calm) && l.CloseWrite() == nil:
		_ = l.SetReadDeadline(time.Now().Add(restTime))
		_, _ = io.CopyN(io.Discard, l.stream, restBytes)
	}
	return l.stream.Close()
}

// follow follows the state of a connection: one that is idle or new is closed at once.
func (s *Server) follow(conn net.Conn, state http.ConnState) {
	c := lingeringOf(conn)
	if c == nil {
		return
	}
	switch {
	case state == http.StateNew, state == http.StateIdle, state == http.StateHijacked:
		c.phase.CompareAndSwap(busy, calm)
	case state == http.StateActive && !c.phase.CompareAndSwap(calm, busy) && c.phase.Load() == turned:
		panic(http.ErrAbortHandler) // the request must have no effect; net/http ends the connection
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open[c] = true
	case http.StateHijacked, http.StateClosed:
		delete(s.open, c)
	}
}

// lingeringOf returns the lingering connection below a connection, or nil.
func lingeringOf(conn net.Conn) *lingering {
	for {
		outer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = outer.NetConn()
	}
	c, _ := conn.(*lingering)
	return c
}

// hurry makes all connections close at once from now on.
func (s *Server) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.phase.CompareAndSwap(busy, calm)
	}
}
