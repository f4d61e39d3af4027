package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// pauses lists the pauses between attempts to send a message.
var pauses = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// Send sends mail and returns the stored message. The sender defaults to the client's actor,
// the key to a new UUID, and a nil payload to an empty object.
//
// Send retries while the bus cannot be reached; see the package documentation. The error is a
// *Refusal if the bus refuses the mail. If ctx ends first, the mail may or may not be stored.
// To send it again safely, set the key.
func (c *Client) Send(ctx context.Context, message wire.SendMessage) (mail.Sent, error) {
	message.From = cmp.Or(message.From, c.Actor)
	message.Key = cmp.Or(message.Key, uuid.NewString())
	if message.Payload == nil {
		message.Payload = wire.Raw("{}")
	}
	sent, err := c.send(ctx, &message)
	if err != nil {
		return mail.Sent{}, fmt.Errorf("sending %s to %s: %w", message.Topic, message.To, err)
	}
	return sent, nil
}

func (c *Client) send(ctx context.Context, message *wire.SendMessage) (sent mail.Sent, err error) {
	if err := c.ready(); err != nil {
		return sent, err
	}
	body, err := object.Encode(message)
	if err != nil {
		return sent, err
	}
	if err := c.takeTurn(ctx); err != nil {
		return sent, err
	}
	defer func() { <-c.turn }()
	err = c.deliver(ctx, message, body, &sent)
	return sent, err
}

// takeTurn waits until no other goroutine sends.
func (c *Client) takeTurn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// deliver sends a message through the circuit. The caller holds c.turn.
func (c *Client) deliver(ctx context.Context, mail *wire.SendMessage, body []byte, sent *mail.Sent) error {
	if err := c.circuit.refuses(c.incidents()); err != nil {
		return err
	}
	between := pauses
	if c.circuit.open() {
		between = nil
	}
	err := c.insist(ctx, body, between, sent)
	switch {
	case err != nil && ctx.Err() != nil: // the end of ctx does not prove a failure of the bus
		return err
	case passing(err):
		return c.giveUp(mail, len(between)+1, err)
	}
	c.circuit.since = time.Time{}
	return err
}

// insist makes an attempt, and another one after each pause.
func (c *Client) insist(ctx context.Context, body []byte, between []time.Duration, sent *mail.Sent) error {
	for _, pause := range between {
		err := c.call(ctx, http.MethodPost, "/api/bus/send", body, sent)
		if ctx.Err() != nil || !passing(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w, and before that: %w", context.Cause(ctx), err)
		}
	}
	return c.call(ctx, http.MethodPost, "/api/bus/send", body, sent)
}

// giveUp records a message that could not be sent and opens the circuit. Repeated failures of
// the same message are recorded once.
func (c *Client) giveUp(mail *wire.SendMessage, attempts int, err error) error {
	now := time.Now()
	c.circuit.since = now
	file := c.incidents()
	if mail.Key != c.circuit.noted {
		if trouble := note(file, incidentOf(mail, now, attempts, err)); trouble != nil {
			return fmt.Errorf("given up after attempt %d: %w; and that cannot be noted: %w", attempts, err, trouble)
		}
		c.circuit.noted = mail.Key
	}
	return fmt.Errorf("given up after attempt %d, see %s: %w", attempts, file, err)
}

// incident is a line of the incident file. It holds a complete message, so that a person can
// send it again. The key ensures that the message is stored once, even if an earlier attempt
// did succeed.
type incident struct {
	Time     string   `json:"time"`
	Actor    string   `json:"actor"`
	To       string   `json:"to"`
	Topic    string   `json:"topic"`
	Payload  wire.Raw `json:"payload"`
	ReplyTo  int64    `json:"reply_to,omitzero"`
	Key      string   `json:"key"`
	Attempts int      `json:"attempts"`
	Error    string   `json:"error"`
}

func incidentOf(mail *wire.SendMessage, at time.Time, attempts int, err error) incident {
	return incident{
		Time: object.Timestamp(at), Actor: mail.From, To: mail.To, Topic: mail.Topic, Payload: mail.Payload,
		ReplyTo: mail.ReplyTo, Key: mail.Key, Attempts: attempts, Error: err.Error(),
	}
}

// NoteIncident appends a message that could not be sent to an incident file, as a Client does.
func NoteIncident(file string, mail *wire.SendMessage, attempts int, err error) error {
	return note(file, incidentOf(mail, time.Now(), attempts, err))
}

// incidents returns the name of the incident file.
func (c *Client) incidents() string { return cmp.Or(c.Incidents, "bus-incidents.jsonl") }

// maxIncidents is the maximum size of an incident file. Then it is renamed and a new one begins.
const maxIncidents = 8 << 20

// note appends a line with one write, so that programs can share the file without tearing
// lines. The file is private to its user, because it contains payloads.
func note(name string, i incident) error {
	line, err := object.Encode(i)
	if err != nil {
		return fmt.Errorf("spelling an incident: %w", err)
	}
	if info, err := os.Stat(name); err == nil && info.Size() >= maxIncidents {
		if err := os.Rename(name, name+".1"); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// ErrOpen is the error of a send while the circuit is open.
var ErrOpen = errors.New("the circuit is open, and nothing is sent")

// cooldown is how long the circuit stays open before a message is let through.
const cooldown = time.Minute

// circuit stops sending for a while after mail was given up. It is guarded by Client.turn.
type circuit struct {
	since time.Time // when mail was last given up; zero: closed
	noted string    // the key of the last mail in the incident file
}

// open reports whether the circuit is open. After the cooldown it is still open, but the next
// message may try.
func (c *circuit) open() bool { return !c.since.IsZero() }

// refuses returns an error while the circuit is open.
func (c *circuit) refuses(incidents string) error {
	if !c.open() || time.Since(c.since) >= cooldown {
		return nil
	}
	return fmt.Errorf("%w until %s: mail was given up at %s, see %s",
		ErrOpen, object.Timestamp(c.since.Add(cooldown)), object.Timestamp(c.since), incidents)
}
