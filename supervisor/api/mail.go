package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A MailReader reads the mail of an actor.
type MailReader interface {
	// Next returns the next messages, in order. It waits until there are some, or returns the
	// error of ctx. No message is lost if it is called again after that.
	Next(ctx context.Context) ([]wire.Mail, error)
}

// Mail is streamed as server-sent events (text/event-stream), one for each message:
// one a message:
//
//	id: 42
//	event: task.assigned
//	data: {"seq":42,…}
//
// A comment follows after a silence, so that proxies keep the connection open. A client that
// reconnects sends Last-Event-ID with the last message that it has read.
const (
	inEvents     = "text/event-stream"
	streamBegins = "retry: 2000\n\n" // milliseconds before a client reconnects
	streamIdles  = ": keep-alive\n\n"
)

// keepAlive is the default of API.KeepAlive.
const keepAlive = 15 * time.Second

// follower is a request for a stream of mail.
type follower struct {
	actor  string // "": the caller
	cursor *int64 // nil: after the last acknowledged message
}

// mail streams mail to an actor until the client leaves, its credential is revoked, or the
// server shuts down.
func (api *API) mail(w http.ResponseWriter, r *http.Request, body any) error {
	asked, ok := body.(*follower)
	if !ok {
		return fmt.Errorf("a reader of mail asked with a %T", body)
	}
	from := CallerOf(r.Context())
	leave, refusal := api.readers.enter(from)
	if refusal != nil {
		api.noteRefused(from, "follow-messages", refusal)
		return refusal
	}
	defer leave()
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(closing(ctx), end)()
	reader, err := api.OpenMail(ctx, from, asked.actor, asked.cursor)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", inEvents)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise a proxy may buffer the stream
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s := &mailStream{door: api, w: w, control: http.NewResponseController(w), caller: from, actor: asked.actor, reader: reader}
	if asked.cursor != nil {
		s.last = *asked.cursor
	}
	s.finish(ctx, s.follow(ctx))
	return nil
}

// mailStream is one stream of mail.
type mailStream struct {
	door    *API
	w       http.ResponseWriter
	control *http.ResponseController
	caller  Caller
	actor   string
	reader  MailReader
	last    int64 // the number of the last message sent
}

// follow sends mail until an error ends the stream, and returns the error.
func (s *mailStream) follow(ctx context.Context) error {
	if err := s.say([]byte(streamBegins)); err != nil {
		return err
	}
	for {
		mail, err := s.next(ctx)
		if err != nil {
			return err
		}
		if len(mail) == 0 {
			if err := s.say([]byte(streamIdles)); err != nil {
				return err
			}
		}
		for i := range mail {
			text, err := frame(&mail[i])
			if err != nil {
				return err
			}
			if err := s.say(text); err != nil {
				return err
			}
			s.last = mail[i].Seq
		}
	}
}

// next waits for mail. It returns none when it is time for a comment.
func (s *mailStream) next(ctx context.Context) ([]wire.Mail, error) {
	wait, stop := context.WithTimeout(ctx, cmp.Or(s.door.KeepAlive, keepAlive))
	defer stop()
	mail, err := s.reader.Next(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return mail, err
}

// frame returns a message as an event. It refuses line breaks, which would end the event. The
// bus accepts no such message, but the check is made here as well.
func frame(m *wire.Mail) ([]byte, error) {
	data, err := object.Encode(m)
	if err != nil {
		return nil, fmt.Errorf("spelling message %d: %w", m.Seq, err)
	}
	if bytes.ContainsAny(data, "\r\n") || strings.ContainsAny(m.Topic, "\r\n") {
		return nil, fmt.Errorf("message %d is more than a line", m.Seq)
	}
	head := fmt.Appendf(nil, "id: %d\nevent: %s\ndata: ", m.Seq, m.Topic)
	return slices.Insert(append(data, "\n\n"...), 0, head...), nil
}

// maxAtOnce is the size of a write, in bytes. A slow client is cut off only if it does not
// accept that much in time.
const maxAtOnce = 64 << 10

// say writes text unless the caller's credential was revoked.
func (s *mailStream) say(text []byte) error {
	if s.door.lapsed(s.caller) {
		return errLapsed
	}
	for part := range slices.Chunk(text, maxAtOnce) {
		if err := hurry(s.control); err != nil {
			return err
		}
		if _, err := s.w.Write(part); err != nil {
			return err
		}
		if err := sent(s.control); err != nil {
			return err
		}
	}
	return nil
}

// finish ends a stream. A client sees the same end for every reason; it reconnects and is
// refused then if it must be.
func (s *mailStream) finish(ctx context.Context, err error) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.door.Log.Warn("a reader of mail took nothing for too long, and was left", "reader", s.caller.String(),
			"actor", wire.Visible(s.actor), "patience", patience, "hint", fmt.Sprintf("it can resume behind %d, if it has read that far", s.last))
		panic(http.ErrAbortHandler)
	case ctx.Err() == nil && !errors.Is(err, errLapsed):
		s.door.Log.Warn("a stream of mail ended early", "reader", s.caller.String(), "actor", wire.Visible(s.actor), "error", err)
		panic(http.ErrAbortHandler)
	}
	_ = hurry(s.control) // the end of the stream is written when its handler returns
}
