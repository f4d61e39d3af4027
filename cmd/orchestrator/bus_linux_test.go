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

	"orchestrator/wire"
)

// Bus: the program as those see it who write to each other. Some are agents that
// read and print, some come over TCP with a token of their own; at the
// orchestrator's socket somebody speaks for GO. Whatever the bus answers is held
// against the document that the program gives of itself.

// bureau is a hub whose visitors write to each other.
type bureau struct {
	*hub
	boss *clerk // GO, by the socket
}

// newBureau makes one with puppets, and opens it. The configuration comes behind
// what lets everybody speak as often as they like.
func newBureau(t *testing.T, hcl string, names ...string) (*bureau, []*actor) {
	t.Helper()
	b, actors := openBureau(t, listeners+crowded+hcl, names...)
	b.readDocument()
	inside := b.boss.hub
	inside.document, inside.schemas, inside.routes = b.document, b.schemas, b.routes
	return b, actors
}

// openBureau is newBureau with all of the configuration, and without the document.
// A puppet with a dash before its name comes later.
func openBureau(t *testing.T, hcl string, names ...string) (*bureau, []*actor) {
	t.Helper()
	var all []string
	for _, name := range names {
		all = append(all, strings.TrimPrefix(name, "-"))
	}
	b := &bureau{hub: newHub(t, quick+hcl, all...)}
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

// seat finds out who speaks for GO.
func (b *bureau) seat() {
	inside := *b.hub
	inside.url = "http://orchestrator" // the socket is found whatever it is called
	b.boss = &clerk{visitor: &visitor{hub: &inside, client: b.door()}, actor: "GO"}
}

// writing is a puppet that is an actor by a name, or another one with each run.
func writing(name, actor string, more ...string) string {
	return fmt.Sprintf("\nagent %q {\n  command = [\"puppet\", %[1]q]\n  actor = %q\n%s\n%s\n}\n", name, actor, again, strings.Join(more, "\n"))
}

// again has an agent started anew as often as it ends.
const again = `  restart {
    policy = "always"
    delay  = "10ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }`

// clerk is an actor who comes to the bus.
type clerk struct {
	*visitor
	actor string
}

// clerk makes a token for an actor from elsewhere, who comes over TCP with it.
func (b *bureau) clerk(actor string) *clerk {
	b.t.Helper()
	return b.holding(actor, b.boss.token(actor))
}

// holding is an actor with a token.
func (b *bureau) holding(actor, token string) *clerk {
	v := b.visitor("Authorization", "Bearer "+token)
	v.client.Transport = &http.Transport{} // it keeps its connection
	return &clerk{visitor: v, actor: actor}
}

// token has a token made for an actor.
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

// letter is a message as the bus tells it.
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

	text string // letter for letter
}

// seven are the members of a letter, in the order of the alphabet.
var (
	seven  = []string{"created_at", "from_actor", "payload", "reply_to", "seq", "to_actor", "topic"}
	moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// readLetter reads a letter, which has its seven members and no other, but for
// what the bus says beside it to who has sent it.
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

// mail spells a message as it is sent.
func mail(from, to, topic, payload string, more ...string) string {
	members := append([]string{fmt.Sprintf(`"from_actor":%q,"to_actor":%q,"topic":%q,"payload":%s`, from, to, topic, payload)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

const direct = "message.direct"

// send sends a message, which is taken.
func (c *clerk) send(to, topic, payload string, more ...string) letter {
	c.hub.t.Helper()
	return c.sends(mail(c.actor, to, topic, payload, more...))
}

// sends sends a message that is spelled already.
func (c *clerk) sends(body string) letter {
	c.hub.t.Helper()
	r := c.ask("POST /api/bus/send", body)
	require.Equal(c.hub.t, http.StatusOK, r.status, "%s: %s", body, r.text)
	return readSent(c.hub.t, r.text)
}

// poll is the path by which an actor's mail is read.
func (c *clerk) poll(query string) string {
	return "GET /api/bus/poll?actor=" + url.QueryEscape(c.actor) + query
}

// polls reads mail: query is what stands behind the actor, such as "&cursor=0".
func (c *clerk) polls(query string) []letter {
	c.hub.t.Helper()
	found, _ := c.pollsMore(query)
	return found
}

// pollsMore is polls, and reports whether there is more.
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

// everything is all of an actor's mail, page by page.
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

// about are the messages on a topic.
func about(letters []letter, topic string) (found []letter) {
	for _, l := range letters {
		if l.Topic == topic {
			found = append(found, l)
		}
	}
	return found
}

// acks says up to where the mail is dealt with, and returns the cursor.
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

// spurned must be answered with no, in the words of the bus.
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

// anActor is somebody as the bus knows them.
type anActor struct {
	Actor, Agent, Status string
	LastSeen             string `json:"last_seen"`
	LastBeat             string `json:"last_heartbeat"`
	Cursor, Latest       int64
}

// known is an actor as the bus knows it.
func (b *bureau) known(id string) anActor {
	b.t.Helper()
	var list struct{ Actors []anActor }
	b.operated(&list, "list-actors", `{}`)
	i := slices.IndexFunc(list.Actors, func(a anActor) bool { return a.Actor == id })
	require.GreaterOrEqual(b.t, i, 0, "nobody knows %s: %+v", id, list.Actors)
	return list.Actors[i]
}

// sent is how many messages there are, of everybody.
func (b *bureau) sent() (count int) {
	b.t.Helper()
	for _, kind := range kinds(b.story(), "") {
		if kind == wire.EventMail {
			count++
		}
	}
	return count
}

// hears waits until an agent has been told of so many messages, and returns them.
func (a *actor) hears(n int) []letter {
	a.t.Helper()
	waitForThat(a.t, fmt.Sprintf("%d messages for %s", n, a.name), func() bool { return len(a.notices("message")) >= n })
	var found []letter
	for _, m := range a.notices("message") {
		found = append(found, readLetter(a.t, string(m.Payload)))
	}
	return found
}

// numbers of letters, in their order.
func seqs(letters []letter) []int64 {
	found := make([]int64, 0, len(letters))
	for _, l := range letters {
		found = append(found, l.Seq)
	}
	return found
}

// payloads of letters, in their order.
func payloads(letters []letter) []string {
	found := make([]string, 0, len(letters))
	for _, l := range letters {
		found = append(found, string(l.Payload))
	}
	return found
}

// counting are the payloads {"n":from}, {"n":from+1}, … of so many messages.
func counting(from, many int) []string {
	found := make([]string, 0, many)
	for n := range many {
		found = append(found, fmt.Sprintf(`{"n":%d}`, from+n))
	}
	return found
}

// overSocket speaks to whoever listens at a socket.
func overSocket(path string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}
}
