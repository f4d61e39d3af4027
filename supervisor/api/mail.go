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

// MailReader reads the mail of an actor.
type MailReader interface {
	// Next returns the next messages, in order. It waits until there are some, or
	// until ctx is over, and returns the error of ctx then; a caller that calls it again
	// has missed nothing.
	Next(ctx context.Context) ([]wire.Mail, error)
}

// Mail is told as the events of a stream that browsers read too (text/event-stream),
// one a message:
//
//	id: 42
//	event: task.assigned
//	data: {"seq":42,…}
//
// and a comment when there has been none for a while, so that whatever lies
// between the two sees that they still speak. A reader that comes again says with
// Last-Event-ID how far it has read.
const (
	inEvents     = "text/event-stream"
	streamBegins = "retry: 2000\n\n" // milliseconds after which a reader that was cut off comes again
	streamIdles  = ": keep-alive\n\n"
)

// keepAlive is how long a stream is silent at most, unless the door says so.
const keepAlive = 15 * time.Second

// follower is what a reader of mail asks for.
type follower struct {
	actor  string // "": the caller
	cursor *int64 // nil: behind the last that was acked
}

// mail streams mail to an actor until it leaves, or its credential does not
// hold any more, or the server ends.
func (d *API) mail(w http.ResponseWriter, r *http.Request, body any) error {
	asked, ok := body.(*follower)
	if !ok {
		return fmt.Errorf("a reader of mail asked with a %T", body)
	}
	from := CallerOf(r.Context())
	leave, refusal := d.readers.enter(from)
	if refusal != nil {
		d.noteRefused(from, "follow-messages", refusal)
		return refusal
	}
	defer leave()
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(closing(ctx), end)()
	reader, err := d.OpenMail(ctx, from, asked.actor, asked.cursor)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", inEvents)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // else a proxy may keep what was told until it is much
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s := &mailStream{door: d, w: w, control: http.NewResponseController(w), caller: from, actor: asked.actor, reader: reader}
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
	last    int64 // the last message that was told
}

// follow tells of mail until it cannot, and says why.
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

// next waits for mail. There is none when the stream has been silent for long
// enough.
func (s *mailStream) next(ctx context.Context) ([]wire.Mail, error) {
	wait, stop := context.WithTimeout(ctx, cmp.Or(s.door.KeepAlive, keepAlive))
	defer stop()
	mail, err := s.reader.Next(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return mail, err
}

// frame is a message as an event. What is not a line would be another event, or
// the end of this one: nothing that was taken as mail is, and no caller may have to
// trust in that.
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

// mostAtOnce is how much a reader must take before it is left, in bytes. One that
// is slow is no reader that takes nothing.
const mostAtOnce = 64 << 10

// say writes something, if its reader may still hear it.
func (s *mailStream) say(text []byte) error {
	if s.door.lapsed(s.caller) {
		return errLapsed
	}
	for part := range slices.Chunk(text, mostAtOnce) {
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

// finish ends a stream. No stream ends by itself, and so its end looks the same to
// a reader whatever the reason: it comes again, and hears then if it may not.
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
