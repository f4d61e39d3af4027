package bus

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Poll lists mail, oldest first: the unacknowledged messages, or all after a given number. It
// changes nothing.
func (c *Client) Poll(ctx context.Context, query wire.PollMessages) ([]wire.Mail, error) {
	values := url.Values{"actor": {cmp.Or(query.Actor, c.Actor)}}
	if query.Cursor != nil {
		values.Set("cursor", strconv.FormatInt(*query.Cursor, 10))
	}
	if query.Limit != 0 {
		values.Set("limit", strconv.FormatInt(query.Limit, 10))
	}
	var mail []wire.Mail
	err := c.get(ctx, "/api/bus/poll", values, &mail)
	return mail, err
}

// Ack acknowledges all mail up to a number.
func (c *Client) Ack(ctx context.Context, seq int64) (wire.Acked, error) {
	var answer wire.Acked
	err := c.post(ctx, "/api/bus/ack", wire.AckMessages{Actor: c.Actor, Seq: seq}, &answer)
	return answer, err
}

// Heartbeat reports that the actor is present.
func (c *Client) Heartbeat(ctx context.Context) (wire.Beat, error) {
	var answer wire.Beat
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
