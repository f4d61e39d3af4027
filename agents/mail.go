package agents

import (
	"context"

	"orchestrator/wire"
)

// SendMessage sends mail from the agent's actor and returns the stored message. Mail with a key
// is stored once, however often it is sent.
func (c *Conn) SendMessage(ctx context.Context, mail wire.SendMessage) (wire.Sent, error) {
	var answer wire.Sent
	err := c.Ask(ctx, "send-message", mail, &answer)
	return answer, err
}

// PollMessages lists the agent's mail, oldest first: the unacknowledged messages, or all after
// a given number. It changes nothing; only AckMessages does.
func (c *Conn) PollMessages(ctx context.Context, query wire.PollMessages) (wire.MailList, error) {
	var answer wire.MailList
	err := c.Ask(ctx, "poll-messages", query, &answer)
	return answer, err
}

// AckMessages acknowledges all mail up to a number.
func (c *Conn) AckMessages(ctx context.Context, seq int64) (wire.Acked, error) {
	var answer wire.Acked
	err := c.Ask(ctx, "ack-messages", wire.AckMessages{Seq: seq}, &answer)
	return answer, err
}

// Heartbeat reports that the agent's actor is present.
func (c *Conn) Heartbeat(ctx context.Context) (wire.Beat, error) {
	var answer wire.Beat
	err := c.Ask(ctx, "heartbeat", nil, &answer)
	return answer, err
}
