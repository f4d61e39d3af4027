package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// SignatureHeader has the HMAC-SHA256 of the body in hexadecimal digits, behind "sha256=".
const SignatureHeader = "Orchestrator-Signature"

// pauses are the pauses between attempts to deliver a message.
var pauses = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// attempt is how long an attempt may take.
const attempt = 10 * time.Second

// hook delivers messages to the webhook, one after another.
func (n *Notifier) hook(ctx context.Context) func(wire.Event) error {
	sender := NewSender(n.options.URL, n.options.Key)
	return func(e wire.Event) error {
		m := n.message(&e)
		if m == nil {
			return nil
		}
		if err := n.await(ctx); err != nil {
			return err
		}
		if err := n.deliver(ctx, sender, m); err != nil {
			return err
		}
		n.keepPlace(m.Seq)
		return nil
	}
}

// keepPlace notes the last event that the webhook has got.
func (n *Notifier) keepPlace(seq int64) {
	next := n.file(".notify-place")
	err := os.WriteFile(next, strconv.AppendInt(nil, seq, 10), 0o600)
	if err == nil {
		err = os.Rename(next, n.file("notify-place"))
	}
	if err != nil {
		n.options.Log.Warn("the position of the webhook cannot be saved", "error", err)
	}
}

func (n *Notifier) file(name string) string { return filepath.Join(n.options.Dir, name) }

// place returns the number of the last event that the webhook has got. A record that was made anew may have none of
// that number.
func (n *Notifier) place() int64 {
	text, err := os.ReadFile(n.file("notify-place"))
	if errors.Is(err, fs.ErrNotExist) {
		n.keepPlace(n.options.Latest) // also if the next Notifier comes before the first delivery
		return n.options.Latest
	}
	seq, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err = errors.Join(err, bad); err != nil || seq < 0 || seq > n.options.Latest {
		n.options.Log.Warn("the position of the webhook is unknown, and earlier events are not sent", "error", err)
		return n.options.Latest
	}
	return seq
}

// deliver delivers a message. If that is not possible, it is added to the dead letters.
func (n *Notifier) deliver(ctx context.Context, s *Sender, m *Message) error {
	body, err := object.Encode(m)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		err := s.Send(ctx, m.ID, body)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errEnded
		case i == len(pauses) || errors.Is(err, ErrRefused):
			n.options.Log.Error("a notification cannot be delivered: see orchestrator notify dead", "to", s.Where(), "error", err)
			if err := AddDead(n.options.Dir, Dead{At: object.Timestamp(time.Now()), Attempts: i + 1, Error: err.Error(), Message: body}); err != nil {
				n.options.Log.Error("a notification is lost", "text", m.Text, "error", err)
			}
			return nil
		}
		if i == 0 {
			n.options.Log.Warn("a notification is not delivered yet; trying again", "to", s.Where(), "error", err)
		}
		if err := pause(ctx, pauses[i]); err != nil {
			return err
		}
	}
}

// A Sender sends messages to a webhook.
type Sender struct {
	url, key string
	http     *http.Client
}

// NewSender returns a Sender. It follows no redirects, which could lead to another host.
func NewSender(url, key string) *Sender {
	return &Sender{url: url, key: key, http: &http.Client{
		Timeout: attempt, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Where returns the host of the URL. The rest of it may be secret.
func (s *Sender) Where() string {
	if u, err := url.Parse(s.url); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return "the webhook"
}

// ErrRefused is the error of a message that the receiver will never take.
var ErrRefused = errors.New("it is refused")

// Send sends a message once.
func (s *Sender) Send(ctx context.Context, id string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("its URL is not valid") // the error has the URL
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "orchestrator")
	request.Header.Set("Orchestrator-Delivery", id)
	if s.key != "" {
		request.Header.Set(SignatureHeader, "sha256="+Sign(s.key, body))
	}
	response, err := s.http.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // without the URL
			err = wrapped.Err
		}
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16)
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests:
		return fmt.Errorf("%w: HTTP %d", ErrRefused, code)
	default:
		return fmt.Errorf("HTTP %d", code)
	}
}

// Sign returns the HMAC-SHA256 of a body in hexadecimal digits.
func Sign(key string, body []byte) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
