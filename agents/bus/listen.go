package bus

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"
)

// listen rings the bell at every event of the stream and when the stream opens, because mail
// may have arrived before. If the bus refuses the stream, listen stops.
func (r *receiver) listen(ctx context.Context) {
	for {
		err := r.hear(ctx)
		if final(err) {
			r.client.troubled(fmt.Errorf("mail is polled alone: %w", err))
			return
		}
		r.wait(ctx, r.active, nil)
		if ctx.Err() != nil {
			return
		}
	}
}

// hear opens the event stream and listens until it ends. A temporary failure is not reported,
// because the polls will report it.
func (r *receiver) hear(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := time.AfterFunc(patience, func() { stop(errSilent) })
	response, err := r.client.open(ctx, http.MethodGet, "/api/sse/events?"+url.Values{"actor": {r.client.Actor}}.Encode(), nil)
	late.Stop()
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/event-stream" {
		return &Refusal{Status: response.StatusCode, Message: fmt.Sprintf("%q is no stream of events", kind)}
	}
	r.ring()
	return r.follow(response.Body)
}

// follow rings for each line that begins with data. A long line is not kept in memory.
func (r *receiver) follow(stream io.Reader) error {
	lines := bufio.NewReader(stream)
	begins := true
	for {
		line, more, err := lines.ReadLine()
		if err != nil {
			return fmt.Errorf("reading the stream of events: %w", err)
		}
		if begins && bytes.HasPrefix(line, []byte("data")) {
			r.ring()
		}
		begins = !more
	}
}

// ring signals that there may be mail. A signal that is still pending is enough.
func (r *receiver) ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}
