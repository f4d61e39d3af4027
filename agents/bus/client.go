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

	"orchestrator/wire"
)

// Client speaks for one actor. What can be set in it is set before it is used;
// its methods may all be called at the same time.
type Client struct {
	// Actor is who speaks, such as HO:h1.
	Actor string
	// URL is where the bus is: https://host:port, or the path of a unix socket.
	URL string
	// Token shows who speaks. A socket that is the actor's own needs none.
	Token string
	// Incidents is the file for mail that was given up, bus-incidents.jsonl in the
	// working directory when it is "".
	Incidents string

	// How long Receive waits between polls when there was mail lately, 10 seconds
	// by default, and when there was none, a minute.
	PollActive, PollIdle time.Duration
	// PollOnly lets Receive do without the stream of events.
	PollOnly bool
	// BeatEvery is how long it is from one heartbeat to the next; when it is 0, as
	// long as the bus says.
	BeatEvery time.Duration
	// Trouble is told what goes wrong in Receive and Beat and does not end them. It
	// may be called from several goroutines at a time.
	Trouble func(error)

	// HTTP is what requests are made with, if that is to be something of the
	// caller's own.
	HTTP *http.Client

	once    sync.Once
	base    string
	http    *http.Client
	wrong   error         // with what was set
	turn    chan struct{} // has room for the one who sends
	circuit circuit       // of the one who sends
}

// FromEnv makes a client of $ORC_ACTOR and $ORC_SOCKET, or of $ORC_ACTOR,
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

// ready looks at what was set, once.
func (c *Client) ready() error {
	c.once.Do(func() {
		c.turn = make(chan struct{}, 1)
		var socket string
		c.base, socket, c.wrong = c.address()
		c.http = cmp.Or(c.HTTP, newHTTP(socket))
	})
	return c.wrong
}

// address is what URLs begin with, and the socket that they are spoken through,
// if any.
func (c *Client) address() (base, socket string, err error) {
	if why := wire.CheckActor(c.Actor); why != "" {
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

// newHTTP follows no redirect: who is sent on to another place would show
// its mail there.
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

// troubled tells of what goes wrong.
func (c *Client) troubled(err error) {
	if c.Trouble != nil {
		c.Trouble(err)
	}
}
