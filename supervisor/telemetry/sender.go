package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A sender sends spans to a collector. The official client would link all of gRPC for the name
// of one message. That message has the same encoding as TracesData, which the sender uses
// instead.
type sender struct {
	to      *destination
	client  *http.Client
	soon    chan struct{} // closed when failed requests are no longer retried
	closing sync.Once
	// within limits a context to the life of the sender, which giveUp ends.
	within func(context.Context) (context.Context, func())
	giveUp context.CancelFunc
}

func newSender(to *destination) *sender {
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.TLSClientConfig = to.tls
	life, giveUp := context.WithCancel(context.Background())
	within := func(ctx context.Context) (context.Context, func()) {
		ctx, enough := context.WithCancel(ctx)
		stop := context.AfterFunc(life, enough)
		return ctx, func() { stop(); enough() }
	}
	return &sender{
		to: to, soon: make(chan struct{}), within: within, giveUp: giveUp,
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers are only for this collector
		},
	}
}

// hurry makes the sender try everything only once.
func (s *sender) hurry() { s.closing.Do(func() { close(s.soon) }) }

// Start implements otlptrace.Client.
func (s *sender) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (s *sender) Stop(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

const (
	firstPause = time.Second
	lastPause  = 16 * time.Second
)

// UploadTraces implements otlptrace.Client. It retries until ctx is done if the collector is
// unreachable or busy.
func (s *sender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, enough := s.within(ctx)
	defer enough()
	body, err := s.body(spans)
	if err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		after, again, err := s.post(ctx, body)
		if err == nil || !again {
			return err
		}
		rest := time.NewTimer(max(pause, after))
		select {
		case <-rest.C:
		case <-s.soon:
			rest.Stop()
			return err
		case <-ctx.Done():
			rest.Stop()
			return err
		}
	}
}

func (s *sender) body(spans []*tracepb.ResourceSpans) ([]byte, error) {
	text, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil || !s.to.gzip {
		return text, err
	}
	var small bytes.Buffer
	pack := gzip.NewWriter(&small)
	_, _ = pack.Write(text) // never fails: writes to memory
	_ = pack.Close()
	return small.Bytes(), nil
}

// post sends a request once. It reports whether to retry, and after what time.
func (s *sender) post(ctx context.Context, body []byte) (after time.Duration, again bool, err error) {
	ctx, enough := context.WithTimeout(ctx, s.to.timeout)
	defer enough()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.to.url, bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	for name, value := range s.to.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "orchestrator")
	if s.to.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, true, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be reused
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // a date counts as 0: the default pause is used
	return min(time.Duration(seconds)*time.Second, lastPause), again, fmt.Errorf("the collector answered %s", answer.Status)
}
