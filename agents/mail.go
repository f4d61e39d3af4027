package agents

import (
	"context"

	"orchestrator/wire"
)

// SendMessage sends mail and returns it as it is kept; who it is from is the
// agent's own actor. Mail with a key is kept once, however often it is sent.
func (c *Conn) SendMessage(ctx context.Context, mail wire.SendMessage) (wire.Sent, error) {
	var answer wire.Sent
	err := c.Ask(ctx, "send-message", mail, &answer)
	return answer, err
}

// PollMessages lists the agent's mail, oldest first: what it has not
// acknowledged, or all behind a number. It changes nothing, so the same mail is
// there again until AckMessages.
func (c *Conn) PollMessages(ctx context.Context, query wire.PollMessages) (wire.MailList, error) {
	var answer wire.MailList
	err := c.Ask(ctx, "poll-messages", query, &answer)
	return answer, err
}

// AckMessages says that the agent has dealt with all its mail up to a number.
func (c *Conn) AckMessages(ctx context.Context, seq int64) (wire.Acked, error) {
	var answer wire.Acked
	err := c.Ask(ctx, "ack-messages", wire.AckMessages{Seq: seq}, &answer)
	return answer, err
}

// Heartbeat says that the agent's actor is there.
func (c *Conn) Heartbeat(ctx context.Context) (wire.Beat, error) {
	var answer wire.Beat
	err := c.Ask(ctx, "heartbeat", nil, &answer)
	return answer, err
}
