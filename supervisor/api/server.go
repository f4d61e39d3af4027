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

// A Server serves many listeners, perhaps thousands; each costs one waiting goroutine.
type Server struct {
	http *http.Server
	log  hclog.Logger

	mu        sync.Mutex
	over      bool
	open      map[*lingering]bool
	answering sync.WaitGroup
}

// NewServer returns a Server for the handler of an API.
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

// closingKey is the context key of the closing context.
type closingKey struct{}

// closing returns a context that ends when the server begins to shut down. Requests that may
// last for ever end with it; others may go on until their own context ends.
func closing(ctx context.Context) context.Context {
	if open, ok := ctx.Value(closingKey{}).(context.Context); ok {
		return open
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
	s.answering.Go(func() { // Serve waits for it
		err := s.http.Serve(l)
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("a listener has failed", "address", l.Addr(), "error", err)
		}
	})
}

// Serve serves these listeners and those of Answer until ctx ends. Then it gives running
// requests a moment to finish.
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
