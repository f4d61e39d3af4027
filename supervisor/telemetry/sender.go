package telemetry

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
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

// post sends a request once. It reports whether to retry, and after how long.
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

// A destination determines where and how spans are sent, as the environment specifies.
type destination struct {
	url     string
	headers map[string]string
	timeout time.Duration // limit of one attempt
	gzip    bool
	tls     *tls.Config // nil: the default
	queue   int         // number of spans that may wait
}

// tracesPath is the path of a collector for spans.
const tracesPath = "/v1/traces"

// readDestination returns the destination that the environment specifies, or nil if it has no
// endpoint.
func readDestination(env func(string) string) (*destination, error) {
	of := func(name string) string { // variables for traces take precedence
		return cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_"+name), env("OTEL_EXPORTER_OTLP_"+name))
	}
	place, own := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), true
	if place == "" {
		place, own = env("OTEL_EXPORTER_OTLP_ENDPOINT"), false
	}
	if place == "" || strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	if wanted := cmp.Or(of("PROTOCOL"), "http/protobuf"); wanted != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, and only http/protobuf is spoken", wanted)
	}
	d := new(destination)
	for _, read := range []func() error{
		func() error { return d.readURL(place, own) },
		func() error { return d.readHeaders(of("HEADERS")) },
		func() error { return d.readTimeout(of("TIMEOUT")) },
		func() error { return d.readCompression(of("COMPRESSION")) },
		func() error { return d.readTLS(of("CERTIFICATE"), of("CLIENT_CERTIFICATE"), of("CLIENT_KEY")) },
		func() error { return d.readBatches(env) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// readURL parses the endpoint. An endpoint for traces is used unchanged. To a general one, the
// path for traces is added.
func (d *destination) readURL(text string, own bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("the endpoint is %q, and should be like http://localhost:4318", text)
	}
	if !own {
		u = u.JoinPath(tracesPath)
	} else if u.Path == "" {
		u.Path = "/"
	}
	d.url = u.String()
	return nil
}

func (d *destination) readHeaders(text string) error {
	d.headers = make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS should be like name=value,other=value")
		}
		d.headers[name] = value
	}
	return nil
}

func (d *destination) readTimeout(text string) error {
	n, err := positive("OTEL_EXPORTER_OTLP_TIMEOUT", text, 10_000)
	d.timeout = time.Duration(n) * time.Millisecond
	return err
}

// readBatches checks the variables for batches and reads the first. The span processor reads the rest itself, without
// checking them.
func (d *destination) readBatches(env func(string) string) (err error) {
	const size = "OTEL_BSP_MAX_QUEUE_SIZE"
	d.queue, err = positive(size, env(size), 2048)
	for _, name := range []string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT"} {
		if _, wrong := positive(name, env(name), 1); err == nil {
			err = wrong
		}
	}
	return err
}

func positive(name, text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%s is %q, and should be a whole number from 1", name, text)
	}
	return int(n), nil
}

func (d *destination) readCompression(text string) error {
	if text != "" && text != "none" && text != "gzip" {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION is %q, and should be gzip or none", text)
	}
	d.gzip = text == "gzip"
	return nil
}

// readTLS reads the trusted roots and the client certificate.
func (d *destination) readTLS(authority, certificate, key string) error {
	if authority == "" && certificate == "" && key == "" {
		return nil
	}
	d.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		text, err := os.ReadFile(authority)
		if err != nil {
			return fmt.Errorf("reading OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		d.tls.RootCAs = x509.NewCertPool()
		if !d.tls.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s contains no certificate", authority)
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("reading OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _KEY: %w", err)
		}
		d.tls.Certificates = []tls.Certificate{pair}
	}
	return nil
}
