package bus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// A Client sends and receives mail for one actor. Set its fields before the first call; its
// methods may be called concurrently.
type Client struct {
	// Actor is the client's actor, such as HO:h1.
	Actor string
	// URL is the address of the bus: https://host:port, or the path of a unix socket.
	URL string
	// Token authenticates the actor. The actor's own socket needs none.
	Token string
	// Incidents is the file for mail that was given up; "" means bus-incidents.jsonl in the
	// working directory.
	Incidents string

	// PollActive is the pause between polls after recent mail, 10 seconds by default. PollIdle
	// is the pause otherwise, by default a minute.
	PollActive, PollIdle time.Duration
	// PollOnly makes Receive poll without listening to the event stream.
	PollOnly bool
	// BeatEvery is the interval between heartbeats; 0 means the interval that the bus asks for.
	BeatEvery time.Duration
	// Trouble, if set, is called with errors that do not end Receive or Beat. It may be called
	// concurrently.
	Trouble func(error)

	// HTTP replaces the default HTTP client if it is not nil.
	HTTP *http.Client

	once    sync.Once
	base    string
	http    *http.Client
	wrong   error         // an error in the fields
	turn    chan struct{} // held by the goroutine that sends
	circuit circuit       // guarded by turn
}

// FromEnv returns a client configured from $ORC_ACTOR and $ORC_SOCKET, or from $ORC_ACTOR,
// $ORC_URL and $ORC_TOKEN.
func FromEnv() (*Client, error) {
	c := &Client{Actor: os.Getenv("ORC_ACTOR"), URL: os.Getenv("ORC_SOCKET")}
	if c.URL == "" {
		c.URL, c.Token = os.Getenv("ORC_URL"), strings.TrimSpace(os.Getenv("ORC_TOKEN"))
	}
	if _, _, err := c.address(); err != nil {
		return nil, fmt.Errorf("$ORC_ACTOR, $ORC_SOCKET, $ORC_URL: %w", err)
	}
	return c, nil
}

// ready checks the fields once.
func (c *Client) ready() error {
	c.once.Do(func() {
		c.turn = make(chan struct{}, 1)
		var socket string
		c.base, socket, c.wrong = c.address()
		c.http = cmp.Or(c.HTTP, newHTTP(socket))
	})
	return c.wrong
}

// address returns the prefix of URLs, and the path of the unix socket if there is one.
func (c *Client) address() (base, socket string, err error) {
	if why := mail.CheckActor(c.Actor); why != "" {
		return "", "", errors.New("the actor " + why)
	}
	if c.URL == "" {
		return "", "", errors.New("it is not said where the bus is")
	}
	if path, ok := strings.CutPrefix(c.URL, "unix://"); ok || !strings.Contains(c.URL, "://") {
		return "http://localhost", path, nil
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", "", fmt.Errorf("%q is neither the address of a bus, as in https://host:port, nor a socket", c.URL)
	case u.Scheme == "http" && !loopback(u.Hostname()) && c.Token != "":
		return "", "", fmt.Errorf("%q would send the token unencrypted: it must be https://", c.URL)
	}
	return strings.TrimRight(c.URL, "/"), "", nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// newHTTP returns a client that follows no redirects, so that mail is not sent to another
// server.
func newHTTP(socket string) *http.Client {
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS13},
		ForceAttemptHTTP2: true,
		IdleConnTimeout:   time.Minute,
	}
	if socket != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay}
}

// troubled passes an error to Trouble.
func (c *Client) troubled(err error) {
	if c.Trouble != nil {
		c.Trouble(err)
	}
}

// Poll lists mail, oldest first: the unacknowledged messages, or all after a given number. It
// acknowledges none of them.
func (c *Client) Poll(ctx context.Context, query wire.PollMessages) ([]mail.Message, error) {
	values := url.Values{"actor": {cmp.Or(query.Actor, c.Actor)}}
	if query.Cursor != nil {
		values.Set("cursor", strconv.FormatInt(*query.Cursor, 10))
	}
	if query.Limit != 0 {
		values.Set("limit", strconv.FormatInt(query.Limit, 10))
	}
	var mail []mail.Message
	err := c.get(ctx, "/api/bus/poll", values, &mail)
	return mail, err
}

// Ack acknowledges all mail up to a number.
func (c *Client) Ack(ctx context.Context, seq int64) (mail.Acked, error) {
	var answer mail.Acked
	err := c.post(ctx, "/api/bus/ack", wire.AckMessages{Actor: c.Actor, Seq: seq}, &answer)
	return answer, err
}

// Heartbeat reports that the actor is present.
func (c *Client) Heartbeat(ctx context.Context) (mail.Beat, error) {
	var answer mail.Beat
	err := c.post(ctx, "/api/bus/heartbeat", wire.Heartbeat{Actor: c.Actor}, &answer)
	return answer, err
}

// Beat sends a heartbeat at once and then every BeatEvery, or at the interval that the bus asks
// for. It returns when ctx ends, or when the bus refuses heartbeats of this actor.
func (c *Client) Beat(ctx context.Context) error {
	if err := c.ready(); err != nil {
		return err
	}
	again := time.NewTicker(cmp.Or(c.BeatEvery, time.Minute))
	defer again.Stop()
	for {
		beat, err := c.Heartbeat(ctx)
		if c.BeatEvery == 0 && beat.Every > 0 {
			again.Reset(time.Duration(beat.Every) * time.Millisecond)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err):
			return err
		case err != nil:
			c.troubled(err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	err := c.ready()
	if err == nil {
		err = c.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, answer)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c *Client) post(ctx context.Context, path string, request, answer any) error {
	err := c.ready()
	var body []byte
	if err == nil {
		body, err = object.Encode(request)
	}
	if err == nil {
		err = c.call(ctx, http.MethodPost, path, body, answer)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

const (
	// patience bounds the wait for an answer. A bus that does not answer counts as unreachable.
	patience = 30 * time.Second
	// longest bounds an answer, so that a faulty server cannot use up the memory.
	longest = 1 << 30
)

var (
	errLost   = errors.New("the bus cannot be reached")
	errSilent = fmt.Errorf("there was no answer for %v", patience)
	errHuge   = fmt.Errorf("it has more than %d MiB", longest>>20)
)

// call sends one request and decodes the answer.
func (c *Client) call(ctx context.Context, method, path string, body []byte, answer any) error {
	limited, stop := context.WithTimeoutCause(ctx, patience, errSilent)
	defer stop()
	text, err := c.exchange(limited, method, path, body)
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	if err := object.DecodeOwn(text, answer); err != nil {
		return fmt.Errorf("understanding the answer of the bus: %w", err)
	}
	return nil
}

// exchange sends one request and returns the body of the answer.
func (c *Client) exchange(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	response, err := c.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, longest+1))
	switch {
	case err != nil:
		return nil, c.lost(ctx, err)
	case len(text) > longest:
		return nil, fmt.Errorf("understanding the answer of the bus: %w", errHuge)
	}
	return text, nil
}

// open sends one request and returns the response if its status is 2xx. The caller closes its
// body.
func (c *Client) open(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response, nil
}

// lost returns the error of a call that failed without an answer. It drops the *url.Error,
// which would repeat the address.
func (c *Client) lost(ctx context.Context, err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w at %s: %w", errLost, c.URL, err)
}

// Refusal is the error of a request that the bus refuses.
type Refusal struct {
	Status      int      `json:"-"`       // of HTTP
	Code        string   `json:"code"`    // for programs; "" if the answer is not from the bus
	Message     string   `json:"message"` // for people
	Details     wire.Raw `json:"details"`
	Recoverable bool     `json:"recoverable"` // a retry may succeed
}

// Error returns the message, the code and the HTTP status.
func (r *Refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("%s (HTTP %d)", r.Message, r.Status)
	}
	return fmt.Sprintf("%s (%s, HTTP %d)", r.Message, r.Code, r.Status)
}

// refusal decodes a refusal. Any other body also yields a Refusal, because a proxy answers in
// its own format.
func refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // as much of it as arrived
	said := struct {
		Error Refusal `json:"error"`
	}{}
	if object.DecodeOwn(text, &said) != nil || said.Error.Message == "" {
		said.Error = Refusal{Message: "refused, without a word that could be understood: " + http.StatusText(response.StatusCode)}
	}
	said.Error.Status = response.StatusCode
	return &said.Error
}

// passing reports whether a retry may succeed: there was no answer, or the server failed.
func passing(err error) bool {
	refused, ok := errors.AsType[*Refusal](err)
	return ok && refused.Status >= 500 || errors.Is(err, errLost)
}

// final reports whether a retry cannot succeed because the bus has refused the request.
// Timeouts and rate limits are not final.
func final(err error) bool {
	refused, ok := errors.AsType[*Refusal](err)
	if !ok || refused.Recoverable {
		return false
	}
	switch refused.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return refused.Status < 500
}
