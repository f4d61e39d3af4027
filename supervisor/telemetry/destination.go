package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// A destination determines where and how spans are sent, as the environment specifies.
type destination struct {
	url     string
	headers map[string]string
	timeout time.Duration // limit of one attempt
	gzip    bool
	tls     *tls.Config // nil: the default
	queue   int         // number of spans that may wait
}

// tracesPath is the path at which a collector accepts spans.
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

// readBatches checks the variables for batches and reads the first. The span processor reads
// the others itself, without checking them.
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
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: there is no certificate in %s", authority)
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
