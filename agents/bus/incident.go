package bus

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

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

// incidents returns the name of the incident file.
func (c *Client) incidents() string { return cmp.Or(c.Incidents, "bus-incidents.jsonl") }

// note appends a line with one write, so that programs can share the file without tearing
// lines. The file is private to its user, because it contains payloads.
func note(name string, i incident) error {
	line, err := object.Encode(i)
	if err != nil {
		return fmt.Errorf("spelling an incident: %w", err)
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

// refuses returns an error if nothing may be sent now.
func (c *circuit) refuses(incidents string) error {
	if !c.open() || time.Since(c.since) >= cooldown {
		return nil
	}
	return fmt.Errorf("%w until %s: mail was given up at %s, see %s",
		ErrOpen, object.Timestamp(c.since.Add(cooldown)), object.Timestamp(c.since), incidents)
}
