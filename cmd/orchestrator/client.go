package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"orchestrator/supervisor/api"
	"orchestrator/wire"
)

// client is the client side of a running orchestrator's socket.
type client struct {
	target target
	client *http.Client
	ended  func(context.Context) error // why a context is over
}

// door opens the API of the orchestrator that is meant. Nothing is sent yet.
func (a *app) door() (*client, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	if a.reading {
		if a.recordDoor != nil {
			return a.recordDoor, nil
		}
		d, there, err := a.openRecord(a, t)
		if there || err != nil {
			a.recordDoor = d
			return d, err
		}
	}
	if a.flags.verbose {
		a.note("Speaking to %s", t.where())
	}
	return a.doorOf(t), nil
}

func (a *app) doorOf(t target) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return api.Dial(ctx, t.socket)
	}
	transport := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true}
	if t.url != "" {
		transport.DialContext = nil
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13}
	}
	return &client{target: t, client: &http.Client{Transport: transport}, ended: a.ended}
}

// ask calls an operation and returns its answer as it came. What programs are
// shown is this text, so that keys we do not know yet reach them too.
func (d *client) ask(ctx context.Context, operation string, request any) ([]byte, error) {
	body, err := d.call(ctx, operation, request)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, d.failed(ctx, err)
	}
	return bytes.TrimSpace(text), nil
}

// call starts an operation; its answer is read from the body.
func (d *client) call(ctx context.Context, operation string, request any) (io.ReadCloser, error) {
	text, err := wire.Encode(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return d.do(ctx, http.MethodPost, "/api/v1/operations/"+operation, bytes.NewReader(text))
}

// get reads a list or a stream.
func (d *client) get(ctx context.Context, what string, query url.Values) (io.ReadCloser, error) {
	return d.do(ctx, http.MethodGet, "/api/v1/"+what+"?"+query.Encode(), nil)
}

func (d *client) do(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	base := d.target.url
	if base == "" {
		base = "http://localhost"
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if d.target.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.target.token)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := d.client.Do(request)
	if err != nil {
		return nil, d.failed(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, d.refused(response)
	}
	return response.Body, nil
}

// lines reads a stream of JSON lines until it ends, and closes it. The lines
// are as long as the orchestrator lets an agent's line be, so no limit of ours.
// A last line without its end was torn and is no document.
func (d *client) lines(ctx context.Context, body io.ReadCloser) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		defer body.Close()
		reader := bufio.NewReader(body)
		for {
			line, err := reader.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 && err == nil {
				if !yield(line, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, d.failed(ctx, err))
				return
			}
		}
	}
}

// refusing is how long a socket without a listener may stay before its
// orchestrator counts as gone, and not as tidying up.
const refusing = 10 * time.Second

// gone waits until the orchestrator has let go of everything, which it says by
// removing its socket.
func (d *client) gone(ctx context.Context) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	heard := time.Now()
	for {
		conn, err := d.knock()
		switch {
		case err == nil:
			_ = conn.Close()
			heard = time.Now()
		case !errors.Is(err, syscall.ECONNREFUSED), d.target.url != "", time.Since(heard) > refusing:
			return nil
		}
		select {
		case <-ctx.Done():
			return d.ended(ctx)
		case <-again.C:
		}
	}
}

// knock opens a connection and asks nothing.
func (d *client) knock() (net.Conn, error) {
	if d.target.url == "" {
		return net.Dial("unix", d.target.socket)
	}
	_, host, _ := strings.Cut(d.target.url, "://")
	if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
		host += ":443"
	}
	return net.DialTimeout("tcp", host, refusing)
}

// decode reads a document of the API. What agents wrote may be in it, as they
// wrote it.
func decode[T any](text []byte) (T, error) {
	var document T
	if err := wire.DecodeOwn(text, &document); err != nil {
		return document, fmt.Errorf("reading the orchestrator's answer: %w", err)
	}
	return document, nil
}
