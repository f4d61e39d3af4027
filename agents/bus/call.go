package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"orchestrator/wire/object"
)

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
