package api

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Server answers at listeners, of which there may be thousands: each costs one
// goroutine that waits.
type Server struct {
	http *http.Server
	log  hclog.Logger

	mu        sync.Mutex
	over      bool
	open      map[*lingering]bool
	answering sync.WaitGroup
}

// NewServer makes a server of a door's handler.
func NewServer(handler http.Handler, logger hclog.Logger) *Server {
	open, shut := context.WithCancel(context.Background())
	s := &Server{log: logger, open: make(map[*lingering]bool), http: &http.Server{
		Handler:           handler,
		BaseContext:       func(l net.Listener) context.Context { return context.WithValue(enterBy(l), closingKey{}, open) },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(logger.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}), "", 0),
	}}
	s.http.ConnState = s.follow
	s.http.RegisterOnShutdown(shut)
	return s
}

// closingKey is under what a context has when its server begins to end.
type closingKey struct{}

// closing is over when the server of a context begins to end. A request that
// is done with some time may use what is left until its own context is; one that
// would never be is to end by this.
func closing(ctx context.Context) context.Context {
	if open, ok := ctx.Value(closingKey{}).(context.Context); ok {
		return open
	}
	return context.Background()
}

// Answer begins to answer at a listener. It is answered there until the listener
// is closed, or Serve is over.
func (s *Server) Answer(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		_ = l.Close()
		return
	}
	s.answering.Go(func() { // Serve waits for it
		err := s.http.Serve(l)
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("a listener has failed", "address", l.Addr(), "error", err)
		}
	})
}

// Serve answers, at these listeners and those of Answer, until ctx is over, and
// then lets those finish who are being answered, for a moment.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) {
	for _, l := range listeners {
		s.Answer(l)
	}
	<-ctx.Done()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.http.Shutdown(last); err != nil {
		s.hurry()
		_ = s.http.Close()
	}
	s.answering.Wait()
}
