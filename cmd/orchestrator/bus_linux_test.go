package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// Tests of the bus as its actors see it. Some actors are agents on stdio, some use TCP with
// their own token, and GO uses the orchestrator's socket. Every answer is checked against the
// program's OpenAPI document.

// A bureau is a hub whose visitors are actors of the bus.
type bureau struct {
	*hubTeam
	boss *clerk // GO, over the socket
}

// newBureau makes a bureau with puppets and opens it. The configuration follows the settings
// that lift the rate limits.
func newBureau(t *testing.T, hcl string, names ...string) (*bureau, []*actor) {
	t.Helper()
	b, actors := openBureau(t, listeners+crowded+hcl, names...)
	b.readDocument()
	inside := b.boss.hub
	inside.document, inside.schemas, inside.routes = b.document, b.schemas, b.routes
	return b, actors
}

// openBureau is newBureau with the complete configuration, and without reading the document. It
// does not wait for puppets with a dash before their name.
func openBureau(t *testing.T, hcl string, names ...string) (*bureau, []*actor) {
	t.Helper()
	var all []string
	for _, name := range names {
		all = append(all, strings.TrimPrefix(name, "-"))
	}
	b := &bureau{hubTeam: newHub(t, quick+hcl, all...)}
	b.up()
	b.url = b.listening()
	var actors []*actor
	for _, name := range names {
		if !strings.HasPrefix(name, "-") {
			actors = append(actors, b.enters(name))
		}
	}
	b.seat()
	return b, actors
}

// seat sets boss to a client of the socket, which is GO.
func (b *bureau) seat() {
	inside := *b.hubTeam
	inside.url = "http://orchestrator" // the client dials the socket for any host
	b.boss = &clerk{visitor: &visitor{hub: &inside, client: b.door()}, actor: "GO"}
}

// writing returns the block of a puppet with an actor: a name, or a family for a new actor per
// run.
func writing(name, actor string, more ...string) string {
	return fmt.Sprintf("\nagent %q {\n  command = [\"puppet\", %[1]q]\n  actor = %q\n%s\n%s\n}\n", name, actor, again, strings.Join(more, "\n"))
}

// again restarts an agent whenever it ends.
const again = `  restart {
    policy = "always"
    delay  = "10ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }`

// A clerk is an actor that talks to the bus over HTTP.
type clerk struct {
	*visitor
	actor string
}

// clerk issues a token for an actor and returns a client that uses it over TCP.
func (b *bureau) clerk(actor string) *clerk {
	b.t.Helper()
	return b.holding(actor, b.boss.token(actor))
}

// holding returns a client of an actor with a token.
func (b *bureau) holding(actor, token string) *clerk {
	v := b.visitor("Authorization", "Bearer "+token)
	v.client.Transport = &http.Transport{} // it keeps its connection
	return &clerk{visitor: v, actor: actor}
}

// token issues a token for an actor.
func (c *clerk) token(actor string, more ...string) string {
	c.hub.t.Helper()
	r := c.ask("POST /api/agents/tokens", "{"+strings.Join(append(more, fmt.Sprintf(`"actor":%q`, actor)), ",")+"}")
	require.Equal(c.hub.t, http.StatusCreated, r.status, r.text)
	var made struct{ Actor, Token string }
	require.NoError(c.hub.t, json.Unmarshal([]byte(r.text), &made))
	require.Equal(c.hub.t, actor, made.Actor)
	require.Regexp(c.hub.t, `^orc_\S{20,}$`, made.Token)
	return made.Token
}

// A letter is a message as the bus returns it.
type letter struct {
	Seq       int64           `json:"seq"`
	From      string          `json:"from_actor"`
	To        string          `json:"to_actor"`
	Topic     string          `json:"topic"`
	Payload   json.RawMessage `json:"payload"`
	ReplyTo   *int64          `json:"reply_to"`
	CreatedAt string          `json:"created_at"`
	Duplicate bool            `json:"duplicate"`
	Warnings  []string        `json:"warnings"`

	text string // the unparsed text
}

// seven lists the members of a message in alphabetical order.
var (
	seven  = []string{"created_at", "from_actor", "payload", "reply_to", "seq", "to_actor", "topic"}
	moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// readLetter decodes a message. It must have exactly its seven members and those in beside,
// which only the sender gets.
func readLetter(t *testing.T, text string, beside ...string) letter {
	t.Helper()
	l := letter{text: text}
	require.NoError(t, json.Unmarshal([]byte(text), &l), text)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &members))
	var keys []string
	for key := range members {
		if !slices.Contains(beside, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	require.Equal(t, seven, keys, text)
	require.Regexp(t, moment, l.CreatedAt)
	require.Positive(t, l.Seq)
	return l
}

func readSent(t *testing.T, text string) letter {
	t.Helper()
	return readLetter(t, text, "duplicate", "warnings")
}

// mailLine returns the body that sends a message.
func mailLine(from, to, topic, payload string, more ...string) string {
	members := append([]string{fmt.Sprintf(`"from_actor":%q,"to_actor":%q,"topic":%q,"payload":%s`, from, to, topic, payload)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

const direct = "message.direct"

// send sends a message, which must be accepted.
func (c *clerk) send(to, topic, payload string, more ...string) letter {
	c.hub.t.Helper()
	return c.sends(mailLine(c.actor, to, topic, payload, more...))
}

// sends sends a message with the given body.
func (c *clerk) sends(body string) letter {
	c.hub.t.Helper()
	r := c.ask("POST /api/bus/send", body)
	require.Equal(c.hub.t, http.StatusOK, r.status, "%s: %s", body, r.text)
	return readSent(c.hub.t, r.text)
}

// poll returns the request that polls an actor's mail.
func (c *clerk) poll(query string) string {
	return "GET /api/bus/poll?actor=" + url.QueryEscape(c.actor) + query
}

// polls reads mail. The query follows the actor, such as "&cursor=0".
func (c *clerk) polls(query string) []letter {
	c.hub.t.Helper()
	found, _ := c.pollsMore(query)
	return found
}

// pollsMore is like polls and also reports whether there is more.
func (c *clerk) pollsMore(query string) (found []letter, more bool) {
	c.hub.t.Helper()
	r := c.ask(c.poll(query), "")
	require.Equal(c.hub.t, http.StatusOK, r.status, r.text)
	var texts []json.RawMessage
	require.NoError(c.hub.t, json.Unmarshal([]byte(r.text), &texts))
	require.NotNil(c.hub.t, texts)
	for _, text := range texts {
		found = append(found, readLetter(c.hub.t, string(text)))
	}
	for i := 1; i < len(found); i++ {
		require.Greater(c.hub.t, found[i].Seq, found[i-1].Seq, "not in order")
	}
	return found, r.header.Get("Bus-More") == "true"
}

// everything returns all mail of an actor, page by page.
func (c *clerk) everything(limit int) (found []letter) {
	c.hub.t.Helper()
	for after, more := int64(0), true; more; {
		var page []letter
		if page, more = c.pollsMore(fmt.Sprintf("&cursor=%d&limit=%d", after, limit)); len(page) > 0 {
			after = page[len(page)-1].Seq
		}
		found = append(found, page...)
	}
	return found
}

// about returns the messages on a topic.
func about(letters []letter, topic string) (found []letter) {
	for _, l := range letters {
		if l.Topic == topic {
			found = append(found, l)
		}
	}
	return found
}

// acks acknowledges mail up to a number and returns the cursor.
func (c *clerk) acks(seq int64) int64 {
	c.hub.t.Helper()
	r := c.ask("POST /api/bus/ack", fmt.Sprintf(`{"actor":%q,"seq":%d}`, c.actor, seq))
	require.Equal(c.hub.t, http.StatusOK, r.status, r.text)
	var acked struct {
		Actor  string
		Cursor int64
	}
	require.NoError(c.hub.t, json.Unmarshal([]byte(r.text), &acked))
	require.Equal(c.hub.t, c.actor, acked.Actor)
	return acked.Cursor
}

// spurned expects a refusal in the format of the bus.
func (v *visitor) spurned(status int, code, request, body string) *refusalOfHub {
	v.hub.t.Helper()
	r := v.ask(request, body)
	require.Equal(v.hub.t, status, r.status, "%s %.200s: %s", request, body, r.text)
	var refusal refusalOfHub
	require.NoError(v.hub.t, json.Unmarshal([]byte(r.text), &refusal), r.text)
	require.Equal(v.hub.t, code, refusal.Error.Code, r.text)
	require.Equal(v.hub.t, refusal.Error.Message, refusal.Detail)
	return &refusal
}

// anActor is an actor as the bus shows it.
type anActor struct {
	Actor, Agent, Status string
	LastSeen             string `json:"last_seen"`
	LastBeat             string `json:"last_heartbeat"`
	Cursor, Latest       int64
}

// known returns an actor as the bus shows it.
func (b *bureau) known(id string) anActor {
	b.t.Helper()
	var list struct{ Actors []anActor }
	b.operated(&list, "list-actors", `{}`)
	i := slices.IndexFunc(list.Actors, func(a anActor) bool { return a.Actor == id })
	require.GreaterOrEqual(b.t, i, 0, "nobody knows %s: %+v", id, list.Actors)
	return list.Actors[i]
}

// sent returns the number of stored messages, of all actors.
func (b *bureau) sent() (count int) {
	b.t.Helper()
	for _, kind := range kinds(b.story(), "") {
		if kind == events.MessageSent {
			count++
		}
	}
	return count
}

// hears waits until an agent has got n messages, and returns them.
func (a *actor) hears(n int) []letter {
	a.t.Helper()
	waitForThat(a.t, fmt.Sprintf("%d messages for %s", n, a.name), func() bool { return len(a.notices("message")) >= n })
	var found []letter
	for _, m := range a.notices("message") {
		found = append(found, readLetter(a.t, string(m.Payload)))
	}
	return found
}

// seqs returns the numbers of messages, in order.
func seqs(letters []letter) []int64 {
	found := make([]int64, 0, len(letters))
	for _, l := range letters {
		found = append(found, l.Seq)
	}
	return found
}

// payloads returns the payloads of messages, in order.
func payloads(letters []letter) []string {
	found := make([]string, 0, len(letters))
	for _, l := range letters {
		found = append(found, string(l.Payload))
	}
	return found
}

// counting returns the payloads {"n":0}, {"n":1}, … of many messages.
func counting(many int) []string {
	found := make([]string, 0, many)
	for n := range many {
		found = append(found, fmt.Sprintf(`{"n":%d}`, n))
	}
	return found
}

// overSocket returns a client that talks to a unix socket.
func overSocket(path string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}
}
