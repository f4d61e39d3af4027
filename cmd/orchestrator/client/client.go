// Package client is the HTTP client of a running orchestrator.
//
// A [Client] calls operations, reads lists and streams, and joins pipes. It does not know flags,
// files and exit codes: package cli selects the [Target] and turns errors into messages.
package client

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
	"orchestrator/wire/object"
)

// A Client sends requests to a running orchestrator.
type Client struct {
	Target Target
	// Stalled is called with the reason if an answer reports that the log accepts no records at the
	// moment. It may be nil.
	Stalled func(why string)
	http    *http.Client
	explain Explain
}

// Explain returns the error that a Client reports for an error: the error of its context or of the
// connection, an [UnansweredError], a [Refusal] or an [UnknownServerError].
type Explain func(ctx context.Context, t *Target, err error) error

// New returns a client of a target. It sends no request yet.
func New(t Target, explain Explain) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if t.Dial != nil {
			return t.Dial(ctx)
		}
		return api.Dial(ctx, t.Socket)
	}
	transport := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true}
	if t.URL != "" {
		transport.DialContext = nil
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13}
	}
	c := &Client{Target: t, http: &http.Client{Transport: transport}, explain: explain}
	if t.Through != nil {
		c.http.Transport = t.Through
	}
	return c
}

// Failed returns the error that the client reports for err.
func (c *Client) Failed(ctx context.Context, err error) error { return c.explain(ctx, &c.Target, err) }

// Ask calls an operation and returns its unchanged answer. With --json this text is
// printed, so that keys unknown to this version are kept.
func (c *Client) Ask(ctx context.Context, operation string, request any) ([]byte, error) {
	body, err := c.Call(ctx, operation, request)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, c.Failed(ctx, err)
	}
	return bytes.TrimSpace(text), nil
}

// Call calls an operation and returns the body of its answer.
func (c *Client) Call(ctx context.Context, operation string, request any) (io.ReadCloser, error) {
	text, err := object.Encode(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return c.do(ctx, http.MethodPost, "/api/v1/operations/"+operation, text)
}

// Get returns the body of a list or a stream.
func (c *Client) Get(ctx context.Context, what string, query url.Values) (io.ReadCloser, error) {
	return c.do(ctx, http.MethodGet, "/api/v1/"+what+"?"+query.Encode(), nil)
}

// do sends a request. If the target is one of several hubs, it asks the next one as long as a hub
// cannot be reached, or reports that no hub is at work.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error) {
	answer, err := c.send(ctx, c.Target.URL, method, path, body)
	for _, url := range c.Target.Others {
		if err == nil || !elsewhere(err) {
			break
		}
		answer, err = c.send(ctx, url, method, path, body)
	}
	if err != nil {
		return nil, c.Failed(ctx, err)
	}
	return answer, nil
}

// elsewhere reports whether another hub may answer: the request was not carried out yet.
func elsewhere(err error) bool {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Reason.Code == api.CodeNoQuorum
	}
	dialing, ok := errors.AsType[*net.OpError](err)
	return ok && dialing.Op == "dial"
}

// send sends a request to a URL, or to the socket of the target if that is "".
func (c *Client) send(ctx context.Context, base, method, path string, body []byte) (io.ReadCloser, error) {
	if base == "" {
		base = "http://localhost"
	}
	var from io.Reader
	if body != nil {
		from = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, from)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if c.Target.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Target.Token)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, unanswered(err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refused(response)
	}
	if why := response.Header.Get(api.NoQuorum); why != "" && c.Stalled != nil {
		c.Stalled(why)
	}
	return response.Body, nil
}

// Lines yields the lines of a JSON stream and closes the body. It sets no limit to a line:
// the orchestrator limits the lines of agents. A last line without a line end is incomplete
// and is dropped.
func (c *Client) Lines(ctx context.Context, body io.ReadCloser) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		defer body.Close()
		reader := bufio.NewReader(body)
		for {
			line, err := reader.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 && err == nil {
				if refusal := refusalOf(line); refusal != nil {
					yield(nil, c.Failed(ctx, refusal))
					return
				}
				if !yield(line, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, c.Failed(ctx, err))
				return
			}
		}
	}
}

// refusalOf returns the error in the last line of a stream that could not be read to its end, or nil.
func refusalOf(line []byte) error {
	var last wire.Refusal
	if !bytes.HasPrefix(line, []byte(`{"error":{`)) || object.Decode(line, &last) != nil {
		return nil
	}
	return &Refusal{Status: http.StatusOK, Reason: last.Error}
}

// Collect reads a list with a member in each line, and returns the wanted ones. If the stream fails, it returns
// the members before the error, too.
func Collect[T any](ctx context.Context, c *Client, what string, query url.Values, wanted func(*T) bool) ([]T, error) {
	body, err := c.Get(ctx, what, query)
	if err != nil {
		return nil, err
	}
	var found []T
	for line, err := range c.Lines(ctx, body) {
		if err != nil {
			return found, err
		}
		one, err := Decode[T](line)
		if err != nil {
			return nil, err
		}
		if wanted(&one) {
			found = append(found, one)
		}
	}
	return found, nil
}

// refusing is how long a socket may refuse connections before its orchestrator counts as
// gone. Until then the orchestrator may still be shutting down.
const refusing = 10 * time.Second

// WaitGone waits until the orchestrator has removed its socket, the last step of its
// shutdown.
func (c *Client) WaitGone(ctx context.Context) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	heard := time.Now()
	for {
		conn, err := c.Dial()
		switch {
		case err == nil:
			_ = conn.Close()
			heard = time.Now()
		case !errors.Is(err, syscall.ECONNREFUSED), c.Target.URL != "", time.Since(heard) > refusing:
			return nil
		}
		select {
		case <-ctx.Done():
			return c.Failed(ctx, ctx.Err())
		case <-again.C:
		}
	}
}

// Dial opens a connection without sending a request.
func (c *Client) Dial() (net.Conn, error) {
	if c.Target.URL == "" {
		return net.Dial("unix", c.Target.Socket)
	}
	_, host, _ := strings.Cut(c.Target.URL, "://")
	if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
		host += ":443"
	}
	return net.DialTimeout("tcp", host, refusing)
}

// Decode decodes a document of the API. Text from agents in it is not escaped.
func Decode[T any](text []byte) (T, error) {
	var document T
	if err := object.DecodeOwn(text, &document); err != nil {
		return document, fmt.Errorf("reading the orchestrator's answer: %w", err)
	}
	return document, nil
}

// A Target is the orchestrator that a command uses.
type Target struct {
	Socket  string
	URL     string   // of a remote orchestrator, instead of Socket
	Others  []string // URLs of further hubs of the same team, which are asked in turn
	Token   string   // credential for URL
	Subject string   // name in messages: a file, a folder or a socket
	Named   string   // the flag that names it, as it was typed
	Inside  bool     // this process runs inside an agent and acts as that agent

	// Through makes the requests; nil: they go over a connection.
	Through http.RoundTripper

	// Dial connects to the orchestrator; nil connects to Socket or URL.
	Dial func(context.Context) (net.Conn, error)
}

// Where returns the URL or the path of the socket.
func (t *Target) Where() string {
	if t.URL != "" {
		return t.URL
	}
	return t.Socket
}

// An UnansweredError reports that the other side closed the connection before it answered. It
// may have carried out the request, so the request must not be repeated without asking.
type UnansweredError struct{ Err error }

// Error returns the message of the error of the connection.
func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the connection.
func (e *UnansweredError) Unwrap() error { return e.Err }

// unanswered returns an UnansweredError if err reports a closed connection, and otherwise err.
func unanswered(err error) error {
	for _, closed := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, closed) {
			return &UnansweredError{Err: err}
		}
	}
	return err
}

// A Refusal is an error response of the API.
type Refusal struct {
	Status int // of the response
	Reason *wire.Error
}

// Error returns the message of the refusal.
func (r *Refusal) Error() string { return r.Reason.Message }

// An UnknownServerError is the response of a server that is not an orchestrator.
type UnknownServerError struct {
	Status string // as in "404 Not Found"
	Code   int
	Text   string // the start of the body
}

// Error returns the status of the response.
func (e *UnknownServerError) Error() string {
	return fmt.Sprintf("not an orchestrator (HTTP %s)", e.Status)
}

// refused returns the error for a response without an answer.
func refused(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	var refusal wire.Refusal
	if err := object.Decode(text, &refusal); err != nil || refusal.Error == nil {
		return &UnknownServerError{Status: response.Status, Code: response.StatusCode, Text: string(text)}
	}
	return &Refusal{Status: response.StatusCode, Reason: refusal.Error}
}

// A Link is the client's end of a pipe.
type Link struct {
	net.Conn
	in *bufio.Reader // may hold bytes that follow the response
}

// Read reads the orchestrator's output from the pipe.
func (l *Link) Read(p []byte) (int, error) { return l.in.Read(p) }

// Leave closes the link for writing. It stays open for reading.
func (l *Link) Leave() {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// Join opens a pipe through the socket of the target. It returns errors as they are, for
// [Client.Failed].
func (c *Client) Join(ctx context.Context, query url.Values) (*Link, error) {
	conn, err := api.Dial(ctx, c.Target.Socket)
	if err != nil {
		return nil, err
	}
	unhand := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l, err := upgrade(conn, query)
	if !unhand() && err == nil { // closed by now
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// upgrade sends the request for the pipe and reads the response.
func upgrade(conn net.Conn, query url.Values) (*Link, error) {
	request, err := http.NewRequest(http.MethodPost, "http://localhost/api/v1/pipe?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", api.PipeProtocol)
	if err := request.Write(conn); err != nil {
		return nil, unanswered(err)
	}
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, unanswered(fmt.Errorf("reading the answer: %w", err))
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		return nil, refused(response)
	}
	return &Link{Conn: conn, in: in}, nil
}
