package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"orchestrator/wire/mail"
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
