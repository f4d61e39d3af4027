package api

import (
	"net/http"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// The bus carries mail between actors, with its own paths and documents. It refuses as the hub
// does, except that an invalid document has the same status as malformed JSON. Clients decide
// only by the status; they retry at 500 and above.

// busTrees are the path prefixes of the bus.
var busTrees = []string{"/api/bus", "/api/sse", "/api/agents", "/health"}

// ofBus reports whether a path belongs to the bus, even if it does not exist.
func ofBus(path string) bool { return below(path, busTrees) }

func busStatus(code wire.Code) int {
	if code == wire.CodeInvalid {
		return http.StatusBadRequest
	}
	return hubStatus(code)
}

// busPause is the default Retry-After, in seconds.
const busPause = "5"

// busVersion is the version of the bus protocol. The major number changes with incompatible
// changes.
const busVersion = "1.0"

// busRoutes lists all routes of the bus.
var busRoutes = []route{
	{pattern: "POST /api/bus/send", access: Actors, operation: "send-message", read: readMessage, write: writeSent},
	{pattern: "GET /api/bus/poll", access: Actors, operation: "poll-messages", read: readPoll, write: writeMail, answer: (*API).mailbox,
		query: []parameter{ofActor, byCursor, byLimit}},
	{pattern: "POST /api/bus/ack", access: Actors, operation: "ack-messages", read: readAck, write: writeAcked},
	{pattern: "POST /api/bus/heartbeat", access: Actors, operation: "heartbeat", read: readBeat, write: writeBeat},
	{pattern: "POST /api/agents/tokens", access: Actors, operation: "issue-token", read: readNewToken, write: writeToken,
		summary: "Create a token for an actor; its other tokens become invalid, at once or after the overlap"},
	{pattern: "GET /api/sse/events", access: Actors, operation: "follow-messages", read: readFollower, write: writeEvents, answer: (*API).mail,
		query: []parameter{ofActor, byCursor, byLastEvent}, summary: "Stream the messages to an actor as they arrive",
		words: "It is a hint: what is missed here is in the poll. Nothing counts as dealt with because it was told here."},
	{pattern: "GET /health", access: Public, operation: "health", read: readNothing, write: writeHealth, answer: (*API).health,
		summary: "Show the version of the bus", words: "It needs no credential."},
}

// maxSeq is the largest message number that every JSON parser reads exactly.
const maxSeq = 1<<53 - 1

// The parameters of queries.
var (
	ofActor     = parameter{name: "actor", words: "Whose mail; the caller's own when it is missing."}
	byCursor    = parameter{name: "cursor", most: maxSeq, words: "Only messages behind this number; behind the last that was acked when it is missing."}
	byLimit     = parameter{name: "limit", least: 1, most: mail.MaxPage, words: "At most so many. Without it the list is complete."}
	byLastEvent = parameter{name: "Last-Event-ID", most: maxSeq, header: true, words: "The number of the last message that was read. It counts for more than a cursor."}
)

// actor returns the actor whose mail is requested.
func (a *params) actor() string {
	id, there := a.given(ofActor)
	if why := mail.CheckAddressee(id); there && why != "" {
		a.refuse(ofActor, why)
	}
	return id
}

// Readers of bus requests.
var (
	readMessage = bodyOf("bus.new-message", true, func(o *object.Reader, _ string) *wire.SendMessage {
		o.NeedText("from_actor") // a line of an agent may leave it out, and these are the words of others
		return wire.ReadPayload[wire.SendMessage](o)
	})
	readPoll = &reading{read: func(a *params) any {
		p := &wire.PollMessages{Actor: a.actor(), Cursor: a.whole(byCursor)}
		p.Limit = a.limit()
		return p
	}}
	readAck      = bodyOf("bus.ack", true, func(o *object.Reader, _ string) *wire.AckMessages { return wire.ReadPayload[wire.AckMessages](o) })
	readBeat     = bodyOf("bus.sign-of-life", false, func(o *object.Reader, _ string) *wire.Heartbeat { return wire.ReadPayload[wire.Heartbeat](o) })
	readNewToken = bodyOf("bus.new-token", true, func(o *object.Reader, _ string) *wire.IssueToken {
		o.NeedText("actor") // tokens of people are made elsewhere
		return wire.ReadPayload[wire.IssueToken](o)
	})
	readFollower = &reading{read: func(a *params) any {
		f := &follower{actor: a.actor(), cursor: a.whole(byCursor)}
		if last := a.whole(byLastEvent); last != nil {
			f.cursor = last
		}
		return f
	}}
)

// Writers of bus answers.
var (
	writeSent = answered(http.StatusOK, "bus.sent", as[wire.Sent])
	writeMail = &writing{status: http.StatusOK, schema: "bus.messages", headings: []heading{
		{name: mailMore, words: "true when there are more messages than were asked for."}, nextPage,
	}}
	writeAcked  = answered(http.StatusOK, "bus.acked", as[wire.Acked])
	writeBeat   = answered(http.StatusOK, "bus.beat", as[wire.Beat])
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
