package cli

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
	"orchestrator/wire/object"
)

// Client is the client side of a running orchestrator's socket.
type Client struct {
	Target Target
	HTTP   *http.Client
	ended  func(context.Context) error // why a context is over
}

// Connect opens the API of the orchestrator that is meant. Nothing is sent yet.
func (a *App) Connect() (*Client, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	if a.Reading {
		if a.recordDoor != nil {
			return a.recordDoor, nil
		}
		d, there, err := a.OpenRecord(a, t)
		if there || err != nil {
			a.recordDoor = d
			return d, err
		}
	}
	if a.Flags.Verbose {
		a.Note("Speaking to %s", t.where())
	}
	return a.NewClient(t), nil
}

// NewClient makes the client of a target.
func (a *App) NewClient(t Target) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return api.Dial(ctx, t.Socket)
	}
	transport := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true}
	if t.URL != "" {
		transport.DialContext = nil
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13}
	}
	return &Client{Target: t, HTTP: &http.Client{Transport: transport}, ended: a.Ended}
}

// Ask calls an operation and returns its answer as it came. What programs are
// shown is this text, so that keys we do not know yet reach them too.
func (d *Client) Ask(ctx context.Context, operation string, request any) ([]byte, error) {
	body, err := d.Call(ctx, operation, request)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, d.Failed(ctx, err)
	}
	return bytes.TrimSpace(text), nil
}

// Call starts an operation; its answer is read from the body.
func (d *Client) Call(ctx context.Context, operation string, request any) (io.ReadCloser, error) {
	text, err := object.Encode(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return d.do(ctx, http.MethodPost, "/api/v1/operations/"+operation, bytes.NewReader(text))
}

// Get reads a list or a stream.
func (d *Client) Get(ctx context.Context, what string, query url.Values) (io.ReadCloser, error) {
	return d.do(ctx, http.MethodGet, "/api/v1/"+what+"?"+query.Encode(), nil)
}

func (d *Client) do(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	base := d.Target.URL
	if base == "" {
		base = "http://localhost"
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if d.Target.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.Target.token)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := d.HTTP.Do(request)
	if err != nil {
		return nil, d.Failed(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, d.refused(response)
	}
	return response.Body, nil
}

// Lines reads a stream of JSON lines until it ends, and closes it. The lines
// are as long as the orchestrator lets an agent's line be, so no limit of ours.
// A last line without its end was torn and is no document.
func (d *Client) Lines(ctx context.Context, body io.ReadCloser) iter.Seq2[[]byte, error] {
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
				yield(nil, d.Failed(ctx, err))
				return
			}
		}
	}
}

// refusing is how long a socket without a listener may stay before its
// orchestrator counts as gone, and not as tidying up.
const refusing = 10 * time.Second

// WaitGone waits until the orchestrator has let go of everything, which it says by
// removing its socket.
func (d *Client) WaitGone(ctx context.Context) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	heard := time.Now()
	for {
		conn, err := d.Dial()
		switch {
		case err == nil:
			_ = conn.Close()
			heard = time.Now()
		case !errors.Is(err, syscall.ECONNREFUSED), d.Target.URL != "", time.Since(heard) > refusing:
			return nil
		}
		select {
		case <-ctx.Done():
			return d.ended(ctx)
		case <-again.C:
		}
	}
}

// Dial opens a connection and asks nothing.
func (d *Client) Dial() (net.Conn, error) {
	if d.Target.URL == "" {
		return net.Dial("unix", d.Target.Socket)
	}
	_, host, _ := strings.Cut(d.Target.URL, "://")
	if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
		host += ":443"
	}
	return net.DialTimeout("tcp", host, refusing)
}

// Decode reads a document of the API. What agents wrote may be in it, as they
// wrote it.
func Decode[T any](text []byte) (T, error) {
	var document T
	if err := object.DecodeOwn(text, &document); err != nil {
		return document, fmt.Errorf("reading the orchestrator's answer: %w", err)
	}
	return document, nil
}
