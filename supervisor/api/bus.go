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
	"strconv"
	"strings"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// The bus carries mail between actors, with its own paths and documents. It refuses as the hub
// does, except that an invalid document has the same status as malformed JSON. Clients decide
// only by the status; they retry at 500 and above.

// busTrees are the path prefixes of the bus.
var busTrees = []string{"/api/bus", "/api/sse", "/api/agents", "/health"}

// ofBus reports whether a path belongs to the bus, even if it does not exist.
func ofBus(path string) bool { return below(path, busTrees) }

// busPause is the default Retry-After, in seconds.
const busPause = "5"

// busVersion is the version of the bus protocol. The major number changes with incompatible
// changes.
const busVersion = "1.0"

// busRoutes returns all routes of the bus.
var busRoutes = sync.OnceValue(func() []route {
	return append(declaredRoutes(ofBus, map[string]form{
		"send-message":  {body: "bus.new-message", need: true, read: readMessage, write: writeSent},
		"poll-messages": {read: readPoll, write: writeMail, answer: (*API).mailbox, query: []parameter{ofActor, byCursor, byLimit}},
		"ack-messages":  {body: "bus.ack", write: writeAcked},
		"heartbeat":     {body: "bus.sign-of-life", write: writeBeat},
		"issue-token": {body: "bus.new-token", need: true, read: readNewToken, write: writeToken,
			summary: "Create a token for an actor; its other tokens become invalid, at once or after the overlap"},
	}),
		route{pattern: "GET /api/sse/events", access: Actors, operation: "follow-messages", read: readFollower, write: writeEvents, answer: (*API).mail,
			query: []parameter{ofActor, byCursor, byLastEvent}, summary: "Stream the messages to an actor as they arrive",
			words: "The stream is only a hint. Poll for missed messages. Streaming a message does not acknowledge it."},
		route{pattern: "GET /health", access: Public, operation: "health", read: &reading{read: func(*params) any { return nil }}, write: writeHealth, answer: (*API).health,
			summary: "Show the version of the bus", words: "Needs no credential."},
	)
})

// maxSeq is the largest message number that every JSON parser reads exactly.
const maxSeq = 1<<53 - 1

// The parameters of queries.
var (
	ofActor     = parameter{name: "actor", words: "The owner of the mailbox; the caller when it is missing."}
	byCursor    = parameter{name: "cursor", most: maxSeq, words: "Only messages after this number; after the last acknowledged message when it is missing."}
	byLimit     = parameter{name: "limit", least: 1, most: mail.MaxPage, words: "The maximum number of results. Without it the list is complete."}
	byLastEvent = parameter{name: "Last-Event-ID", most: maxSeq, header: true, words: "The number of the last message that the client has received. It takes precedence over cursor."}
)

// actor returns the actor of the requested mail.
func (a *params) actor() string {
	id, there := a.given(ofActor)
	if why := mail.CheckAddressee(id); there && why != "" {
		a.refuse(ofActor, why)
	}
	return id
}

// Readers of bus requests that the operation does not declare.
func readMessage(a *params) any {
	a.body.NeedText("from_actor") // optional in a line of an agent, and required in protocol E
	return declared("send-message").Read(&a.body)
}

func readPoll(a *params) any {
	return &wire.PollMessages{Actor: a.actor(), Cursor: a.whole(byCursor), Limit: a.limit()}
}

func readNewToken(a *params) any {
	a.body.NeedText("actor") // tokens of people are made elsewhere
	return declared("issue-token").Read(&a.body)
}

var readFollower = &reading{read: func(a *params) any {
	f := &follower{actor: a.actor(), cursor: a.whole(byCursor)}
	if last := a.whole(byLastEvent); last != nil {
		f.cursor = last
	}
	return f
}}

// Writers of bus answers.
var (
	writeSent = answered(http.StatusOK, "bus.sent", as[mail.Sent])
	writeMail = &writing{status: http.StatusOK, schema: "bus.messages", headings: []heading{
		{name: mailMore, words: "true if more messages follow; otherwise missing."}, nextPage,
	}}
	writeAcked  = answered(http.StatusOK, "bus.acked", as[mail.Acked])
	writeBeat   = answered(http.StatusOK, "bus.beat", as[mail.Beat])
	writeToken  = answered(http.StatusCreated, "bus.token", tokenReply)
	writeEvents = &writing{status: http.StatusOK}
	writeHealth = answered(http.StatusOK, "bus.health", as[healthReply])
)

// mailMore is a header of a page of messages if more follow.
const mailMore = "Bus-More"

func tokenReply(t *wire.IssuedToken) any {
	return &tokenShown{ID: t.ID, Actor: t.Actor, Token: t.Token, ExpiresAt: t.ExpiresAt}
}

// tokenShown is a created token.
type tokenShown struct {
	// The id of the token, for listing and revoking it.
	ID string `json:"id" schema:"minlen=1"`
	// The actor that the token is for.
	Actor string `json:"actor" schema:"minlen=1"`
	// The token. It is not shown again.
	Token     string `json:"token" schema:"secret"`
	ExpiresAt string `json:"expires_at,omitzero" schema:"ref=hub.time"`
}

type healthReply struct {
	// The first number changes with incompatible changes.
	Version string `json:"protocol_version" schema:"const=1.0"`
}

// health answers with the version of the bus.
func (api *API) health(w http.ResponseWriter, _ *http.Request, _ any) error {
	api.write(w, http.StatusOK, healthReply{Version: busVersion})
	return nil
}

// Mail is streamed as server-sent events (text/event-stream), one for each message:
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
	from := callerOf(r.Context())
	leave, refusal := api.readers.enter(from.who, maxReaders)
	if refusal != nil {
		return refusal
	}
	defer leave()
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(closing(ctx), end)()
	next, err := api.Callers.OpenMail(ctx, from.who, asked.actor, asked.cursor)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", inEvents)
	w.Header().Set("X-Accel-Buffering", "no") // otherwise a proxy may buffer the stream
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	from.account.begin()
	s := &mailStream{door: api, w: w, control: http.NewResponseController(w), caller: from, actor: asked.actor, next: next}
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
	caller  caller
	actor   string
	next    func(context.Context) ([]mail.Message, error)
	last    int64     // the number of the last message sent
	due     time.Time // when a comment is due
	limit   time.Time // the deadline of writes
}

// follow sends mail until an error ends the stream, and returns the error.
func (s *mailStream) follow(ctx context.Context) error {
	for text := streamBegins; ; text = streamIdles {
		if err := s.say([]byte(text)); err != nil {
			return err
		}
		if err := s.untilSilent(ctx); err != nil {
			return err
		}
	}
}

// untilSilent sends mail until a comment is due.
func (s *mailStream) untilSilent(ctx context.Context) error {
	for time.Now().Before(s.due) {
		if err := s.until(ctx, s.due); err != nil {
			return err
		}
	}
	return nil
}

// until sends mail until a time. One timer serves many messages, because making one costs as
// much as sending a message.
func (s *mailStream) until(ctx context.Context, end time.Time) error {
	wait, stop := context.WithDeadline(ctx, end)
	defer stop()
	for {
		mail, err := s.next(wait)
		if err == nil {
			err = s.send(mail)
		} else if wait.Err() != nil && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// send sends mail in one write, up to a message that cannot be sent.
func (s *mailStream) send(mail []mail.Message) error {
	var text []byte
	var wrong error
	last := s.last
	for i := range mail {
		if text, wrong = appendEvent(text, &mail[i]); wrong != nil {
			break
		}
		last = mail[i].Seq
	}
	if last != s.last {
		if err := s.say(text); err != nil {
			return err
		}
		s.last = last
	}
	return wrong
}

// appendEvent appends a message as an event. It refuses line breaks, which would end the event.
// The bus accepts no such message, but the check is made here as well.
func appendEvent(b []byte, m *mail.Message) ([]byte, error) {
	data, err := m.JSON()
	if err != nil {
		return b, fmt.Errorf("spelling message %d: %w", m.Seq, err)
	}
	if bytes.ContainsAny(data, "\r\n") || strings.ContainsAny(m.Topic, "\r\n") {
		return b, fmt.Errorf("message %d is more than a line", m.Seq)
	}
	b = slices.Grow(b, len(data)+len(m.Topic)+64)
	b = strconv.AppendInt(append(b, "id: "...), m.Seq, 10)
	b = append(append(b, "\nevent: "...), m.Topic...)
	b = append(append(b, "\ndata: "...), data...)
	return append(b, "\n\n"...), nil
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
		if err := s.hurry(); err != nil {
			return err
		}
		if _, err := s.w.Write(part); err != nil {
			return err
		}
		if err := s.control.Flush(); err != nil {
			return err
		}
	}
	s.due = time.Now().Add(cmp.Or(s.door.KeepAlive, keepAlive))
	return nil
}

// hurry sets the deadline of the next write. It stays after the write and also serves the writes
// that follow at once.
func (s *mailStream) hurry() error {
	now := time.Now()
	if s.limit.Sub(now) >= patience {
		return nil
	}
	s.limit = now.Add(patience + time.Second/2)
	return s.control.SetWriteDeadline(s.limit)
}

// finish ends a stream. A client sees the same end for every reason; it reconnects and is
// refused then if it must be.
func (s *mailStream) finish(ctx context.Context, err error) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.door.Log.Warn("a reader of mail was too slow and was disconnected", "reader", displayName(s.caller.who),
			"actor", wire.Visible(s.actor), "patience", patience, "hint", fmt.Sprintf("it can resume after %d, if it has read that far", s.last))
		panic(http.ErrAbortHandler)
	case ctx.Err() == nil && !errors.Is(err, errLapsed):
		s.door.Log.Warn("a stream of mail ended early", "reader", displayName(s.caller.who), "actor", wire.Visible(s.actor), "error", err)
		panic(http.ErrAbortHandler)
	}
	_ = hurry(s.control) // the end of the stream is written when its handler returns
}
