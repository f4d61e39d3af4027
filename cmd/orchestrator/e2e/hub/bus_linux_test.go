package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/events"
)

// Tests of the bus as its actors see it. Some actors are agents on stdio, some use TCP with
// their own token, and GO uses the orchestrator's socket. Every answer is checked against the
// program's OpenAPI document.

// A bureau is a hub whose visitors are actors of the bus.
type bureau struct {
	*stage.Hub
	boss *clerk // GO, over the socket
}

// newBureau makes a bureau with scripted agents and opens it. The configuration follows the settings
// that lift the rate limits.
func newBureau(t *testing.T, hcl string, names ...string) (*bureau, []*stage.Agent) {
	t.Helper()
	b, actors := openBureau(t, stage.HTTP+stage.Unlimited+hcl, names...)
	b.ReadDocument()
	inside := b.boss.Hub
	inside.Document, inside.Schemas, inside.Routes = b.Document, b.Schemas, b.Routes
	return b, actors
}

// openBureau is newBureau with the complete configuration, and without reading the document. It
// does not wait for scripted agents with a dash before their name.
func openBureau(t *testing.T, hcl string, names ...string) (*bureau, []*stage.Agent) {
	t.Helper()
	var all []string
	for _, name := range names {
		all = append(all, strings.TrimPrefix(name, "-"))
	}
	b := &bureau{Hub: stage.NewHub(t, stage.QuickStop+hcl, all...)}
	b.Up()
	b.Url = b.Address()
	var actors []*stage.Agent
	for _, name := range names {
		if !strings.HasPrefix(name, "-") {
			actors = append(actors, b.NextReady(name))
		}
	}
	b.seat()
	return b, actors
}

// seat sets boss to a client of the socket for GO.
func (b *bureau) seat() {
	inside := *b.Hub
	inside.Url = "http://orchestrator" // the client dials the socket for any host
	b.boss = &clerk{Caller: &stage.Caller{Hub: &inside, Client: b.Door()}, actor: "GO"}
}

// writing returns the block of a scripted agent with an actor: a name, or a family for a new actor per
// run.
func writing(name, actor string, more ...string) string {
	return fmt.Sprintf("\nagent %q {\n  command = [\"scripted\", %[1]q]\n  actor = %q\n%s\n%s\n}\n", name, actor, again, strings.Join(more, "\n"))
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
	*stage.Caller
	actor string
}

// clerk issues a token for an actor and returns a client that uses it over TCP.
func (b *bureau) clerk(actor string) *clerk {
	b.T.Helper()
	return b.holding(actor, b.boss.token(actor))
}

// holding returns a client of an actor with a token.
func (b *bureau) holding(actor, token string) *clerk {
	v := b.Caller("Authorization", "Bearer "+token)
	v.Client.Transport = &http.Transport{} // it keeps its connection
	return &clerk{Caller: v, actor: actor}
}

// token issues a token for an actor.
func (c *clerk) token(actor string, more ...string) string {
	c.Hub.T.Helper()
	r := c.Ask("POST /api/agents/tokens", "{"+strings.Join(append(more, fmt.Sprintf(`"actor":%q`, actor)), ",")+"}")
	require.Equal(c.Hub.T, http.StatusCreated, r.Status, r.Text)
	var made struct{ Actor, Token string }
	require.NoError(c.Hub.T, json.Unmarshal([]byte(r.Text), &made))
	require.Equal(c.Hub.T, actor, made.Actor)
	require.Regexp(c.Hub.T, `^orc_\S{20,}$`, made.Token)
	return made.Token
}

func readSent(t *testing.T, text string) stage.Mail {
	t.Helper()
	return stage.ReadMail(t, text, "duplicate", "warnings")
}

// send sends a message, which must be accepted.
func (c *clerk) send(to, topic, payload string, more ...string) stage.Mail {
	c.Hub.T.Helper()
	return c.sends(stage.MailLine(c.actor, to, topic, payload, more...))
}

// sends sends a message with the given body.
func (c *clerk) sends(body string) stage.Mail {
	c.Hub.T.Helper()
	r := c.Ask("POST /api/bus/send", body)
	require.Equal(c.Hub.T, http.StatusOK, r.Status, "%s: %s", body, r.Text)
	return readSent(c.Hub.T, r.Text)
}

// poll returns the request that polls an actor's mail.
func (c *clerk) poll(query string) string {
	return "GET /api/bus/poll?actor=" + url.QueryEscape(c.actor) + query
}

// polls reads mail. The query follows the actor, such as "&cursor=0".
func (c *clerk) polls(query string) []stage.Mail {
	c.Hub.T.Helper()
	found, _ := c.pollsMore(query)
	return found
}

// pollsMore is like polls and also reports whether there is more.
func (c *clerk) pollsMore(query string) (found []stage.Mail, more bool) {
	c.Hub.T.Helper()
	r := c.Ask(c.poll(query), "")
	require.Equal(c.Hub.T, http.StatusOK, r.Status, r.Text)
	var texts []json.RawMessage
	require.NoError(c.Hub.T, json.Unmarshal([]byte(r.Text), &texts))
	require.NotNil(c.Hub.T, texts)
	for _, text := range texts {
		found = append(found, stage.ReadMail(c.Hub.T, string(text)))
	}
	for i := 1; i < len(found); i++ {
		require.Greater(c.Hub.T, found[i].Seq, found[i-1].Seq, "not in order")
	}
	return found, r.Header.Get("Bus-More") == "true"
}

// everything returns all mail of an actor, page by page.
func (c *clerk) everything(limit int) (found []stage.Mail) {
	c.Hub.T.Helper()
	for after, more := int64(0), true; more; {
		var page []stage.Mail
		if page, more = c.pollsMore(fmt.Sprintf("&cursor=%d&limit=%d", after, limit)); len(page) > 0 {
			after = page[len(page)-1].Seq
		}
		found = append(found, page...)
	}
	return found
}

// about returns the messages on a topic.
func about(letters []stage.Mail, topic string) (found []stage.Mail) {
	for _, l := range letters {
		if l.Topic == topic {
			found = append(found, l)
		}
	}
	return found
}

// acks acknowledges mail up to a number and returns the cursor.
func (c *clerk) acks(seq int64) int64 {
	c.Hub.T.Helper()
	r := c.Ask("POST /api/bus/ack", fmt.Sprintf(`{"actor":%q,"seq":%d}`, c.actor, seq))
	require.Equal(c.Hub.T, http.StatusOK, r.Status, r.Text)
	var acked struct {
		Actor  string
		Cursor int64
	}
	require.NoError(c.Hub.T, json.Unmarshal([]byte(r.Text), &acked))
	require.Equal(c.Hub.T, c.actor, acked.Actor)
	return acked.Cursor
}

// spurned expects a refusal in the format of the bus.
func spurned(v *stage.Caller, status int, code, request, body string) *stage.HTTPRefusal {
	v.Hub.T.Helper()
	r := v.Ask(request, body)
	require.Equal(v.Hub.T, status, r.Status, "%s %.200s: %s", request, body, r.Text)
	var refusal stage.HTTPRefusal
	require.NoError(v.Hub.T, json.Unmarshal([]byte(r.Text), &refusal), r.Text)
	require.Equal(v.Hub.T, code, refusal.Error.Code, r.Text)
	require.Equal(v.Hub.T, refusal.Error.Message, refusal.Detail)
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
	b.T.Helper()
	var list struct{ Actors []anActor }
	b.Operated(&list, "list-actors", `{}`)
	i := slices.IndexFunc(list.Actors, func(a anActor) bool { return a.Actor == id })
	require.GreaterOrEqual(b.T, i, 0, "nobody knows %s: %+v", id, list.Actors)
	return list.Actors[i]
}

// sent returns the number of stored messages, of all actors.
func (b *bureau) sent() (count int) {
	b.T.Helper()
	for _, kind := range kinds(storyOf(b.Hub), "") {
		if kind == events.MessageSent {
			count++
		}
	}
	return count
}

// seqs returns the numbers of messages, in order.
func seqs(letters []stage.Mail) []int64 {
	found := make([]int64, 0, len(letters))
	for _, l := range letters {
		found = append(found, l.Seq)
	}
	return found
}

// payloads returns the payloads of messages, in order.
func payloads(letters []stage.Mail) []string {
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
