package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/agents/bus"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
)

// An agent can be the actor GO. It receives GO's mail, may broadcast, and issues tokens.
//
// Rows: E-20, E-46, E-47, E-48, E-52, E-55, E-68, E-76, E-84.
func TestBusAgentThatIsGO(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("boss", "GO")+writing("one", "PO:one"), "boss", "one")
	boss, one := actors[0], actors[1]
	m := boss.Granted(nil, "send-message", `{"to_actor":"broadcast","topic":"broadcast.all","payload":{"n":1}}`)
	said := readSent(t, string(m.Payload))
	require.Equal(t, []stage.Mail{said}, one.Receives(1))
	again := readSent(t, calls(boss, `"all"`, "bus_send_message", `{"to_actor":"broadcast","topic":"broadcast.all","payload":{"n":2}}`))
	require.Equal(t, []stage.Mail{said, again}, one.Receives(2))
	var issued struct{ Actor, Token string }
	boss.Granted(&issued, "issue-token", `{"actor":"HO:far"}`)
	far := b.holding(issued.Actor, issued.Token)
	spurned(far.Caller, http.StatusForbidden, "denied", "POST /api/agents/tokens", `{"actor":"HO:x"}`)
	odd := far.send("PO:one", "foo.bar", `{}`)
	one.Exit(3)
	b.NextReady("one")
	mark := far.send("GO", stage.Direct, `{}`)
	boss.Wait("the last one", func(m *stage.Message) bool { return strings.Contains(m.Line, mark.Text) })
	b.hearsOf(1, "alert.resolved", "PO:one")
	found := boss.Receives(len(b.boss.polls("")))
	require.Equal(t, b.boss.polls(""), found, "who polls for GO finds the same")
	var topics []string
	for _, l := range found {
		topics = append(topics, l.Topic)
	}
	for _, topic := range []string{"agent.spawned", "topic.unknown", "alert.fired", "alert.resolved", stage.Direct} {
		require.Contains(t, topics, topic)
	}
	require.NotContains(t, topics, "broadcast.all", "its own words are no news to it")
	require.Equal(t, odd.Seq, *about(found, "topic.unknown")[0].ReplyTo)
	b.Stop()
}

// After a reload that changes the actors of agents, the agents are restarted and are the new
// actors. Mail and cursors stay with the actor.
//
// Rows: E-27, E-33, E-40, E-74.
func TestBusReloadOfActors(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:a")+writing("two", "PO:b"), "one", "two")
	far := b.clerk("HO:far")
	toA, toB := far.send("PO:a", stage.Direct, `{}`), far.send("PO:b", stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{toA}, actors[0].Receives(1))
	require.Equal(t, []stage.Mail{toB}, actors[1].Receives(1))
	acks(actors[0], toA.Seq)

	b.Write("orchestrator.hcl", stage.QuickStop+stage.HTTP+stage.Unlimited+writing("one", "PO:b")+writing("two", "PO:a"))
	b.Ask("reload")
	one, two := b.NextReady("one"), b.NextReady("two")
	require.Equal(t, "PO:b", environment(t, one)["ORC_ACTOR"])
	require.Equal(t, "one", b.known("PO:b").Agent, "who it is told that it is, and who it is")
	nextA, nextB := far.send("PO:a", stage.Direct, `{}`), far.send("PO:b", stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{toB, nextB}, one.Receives(2))
	require.Equal(t, []stage.Mail{nextA}, two.Receives(1), "what was acked as PO:a stays acked")
	one.Refused("UNAUTHORIZED", "send-message", stage.MailLine("PO:a", "GO", stage.Direct, `{}`))
	one.Granted(nil, "send-message", stage.MailLine("PO:b", "GO", stage.Direct, `{}`))

	far.send("PO:c", stage.Direct, `{}`) // no agent is PO:c yet
	b.Write("orchestrator.hcl", stage.QuickStop+stage.HTTP+stage.Unlimited+writing("one", "PO:c")+writing("two", "auto"))
	b.Ask("reload")
	one, two = b.NextReady("one"), b.NextReady("two")
	require.Len(t, one.Receives(1), 1)
	mark := far.send("W:"+two.Run, stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{mark}, two.Receives(1))
	require.Equal(t, []stage.Mail{toA, nextA}, b.clerk("PO:a").polls("&cursor=0"), "who is nobody's here may come from elsewhere")
	require.Empty(t, b.known("PO:a").Agent)
	b.Kill()
	b.Open("one", "two")
	require.Equal(t, toA.Seq, b.known("PO:a").Cursor)
	b.Stop()
}

// An agent that is renamed but keeps its actor continues with that actor's mail. New topics and
// the limits for heartbeats apply from the reload on.
//
// Rows: E-33, E-40, E-54, E-55, E-67.
func TestBusReload(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:a"), "one", "-uno")
	far := b.clerk("HO:far")
	first, second := far.send("PO:a", stage.Direct, `{}`), far.send("PO:a", stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{first, second}, actors[0].Receives(2))
	acks(actors[0], first.Seq)
	require.Len(t, far.send("PO:x", "build.finished", `{}`).Warnings, 1)
	b.Write("orchestrator.hcl", stage.QuickStop+stage.HTTP+stage.Unlimited+writing("uno", "PO:a")+"bus {\n  topics = [\"build.finished\"]\n  heartbeat = \"1s\"\n  stale = \"2s\"\n}\n")
	b.Ask("reload")
	uno := b.NextReady("uno")
	third := far.send("PO:a", "build.finished", `{}`)
	require.Empty(t, third.Warnings)
	require.Equal(t, []stage.Mail{second, third}, uno.Receives(2))
	require.Len(t, about(b.boss.polls(""), "topic.unknown"), 1)
	require.Equal(t, "uno", b.known("PO:a").Agent)
	uno.Granted(nil, "send-message", stage.MailLine("PO:a", "GO", stage.Direct, `{}`))
	require.Equal(t, "agent.stale", b.hearsOf(1, "alert.fired", "PO:a")[0].Alert)
	b.Stop()
}

// When the file makes an actor an agent, tokens issued for that actor before are no longer
// valid.
//
// Rows: E-19, E-74, E-76.
func TestBusTokenOfWhoIsAnAgentNow(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, writing("one", "PO:one"), "one", "-two")
	far := b.clerk("HO:two")
	far.send("GO", stage.Direct, `{}`)
	b.Write("orchestrator.hcl", stage.QuickStop+stage.HTTP+stage.Unlimited+writing("one", "PO:one")+writing("two", "HO:two"))
	b.Ask("reload")
	two := b.NextReady("two")
	two.Granted(nil, "send-message", stage.MailLine("HO:two", "GO", stage.Direct, `{}`))
	for _, request := range busRequests[:5] {
		r := far.Ask(request[0], strings.Replace(request[1], "HO:one", "HO:two", 1))
		require.GreaterOrEqual(t, r.Status, 400, "%s: there are two of them: %s", request[0], r.Text)
	}
	require.True(t, b.holding("HO:two", environment(t, two)["ORC_TOKEN"]).holds())
	require.Len(t, about(b.boss.polls(""), stage.Direct), 2)
	b.Stop()
}

// A registered server on another machine has mail too, with its API key.
//
// Rows: E-05, E-19, E-72, K-18.
func TestBusServerFromElsewhere(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	far := &clerk{Caller: b.Register("far", ""), actor: "W:" + hub.ServerID("far")}
	sent := b.boss.send(far.actor, "task.assigned", `{}`)
	require.Equal(t, []stage.Mail{sent}, far.polls(""))
	require.Equal(t, []stage.Mail{sent}, far.listens("", "").hears(1))
	far.send("GO", "task.completed", `{}`, fmt.Sprintf(`"reply_to":%d`, sent.Seq))
	spurned(far.Caller, http.StatusForbidden, "denied", "POST /api/bus/send", stage.MailLine("GO", "HO:x", stage.Direct, `{}`))
	require.Equal(t, sent.Seq, far.acks(sent.Seq))
	b.Kill()
	b.Open()
	require.Empty(t, far.polls(""))
	require.Equal(t, []stage.Mail{sent}, far.polls("&cursor=0"))
	spurned(b.boss.Caller, http.StatusConflict, "conflict", "POST /api/agents/tokens", fmt.Sprintf(`{"actor":%q}`, far.actor))
	b.Stop()
}

// An agent that takes no messages on its stdin gets no notices of mail, but can poll it.
//
// Rows: E-09, E-27.
func TestBusAgentsWithoutEars(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, `
agent "raw" {
  command  = ["cat"]
  actor    = "PO:raw"
  protocol = "raw"
}

agent "null" {
  command = ["sh", "-c", "cat; exec sleep 1000"]
  actor   = "PO:null"
  stdin   = "null"
}
`)
	b.hearsOf(1, "agent.spawned", "PO:raw")
	b.hearsOf(1, "agent.spawned", "PO:null")
	for _, name := range []string{"raw", "null"} {
		sent := b.boss.send("PO:"+name, stage.Direct, `{}`)
		require.Equal(t, []stage.Mail{sent}, b.agentsOwn(name, "PO:"+name).polls(""))
	}
	b.Stop()
	require.Empty(t, b.Logged("raw", ".out"))
	require.Empty(t, b.Logged("null", ".out"))
}

// A newcomer is a program that has joined by a pipe.
type newcomer struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	wait func() error
}

func (b *bureau) joins(name string) *newcomer {
	b.T.Helper()
	cmd := exec.Command(b.Orchestrator.Program, "pipe", "--as", name, "--state-dir", b.State())
	cmd.Dir, cmd.Env = b.Dir, b.Environ()
	in, err := cmd.StdinPipe()
	require.NoError(b.T, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b.T, err)
	require.NoError(b.T, cmd.Start())
	return &newcomer{t: b.T, in: in, out: bufio.NewReaderSize(out, 1<<20), wait: cmd.Wait}
}

// hears reads a notice of mail from the next line.
func (n *newcomer) hears() stage.Mail {
	n.t.Helper()
	line, err := n.out.ReadString('\n')
	require.NoError(n.t, err)
	m := stage.Received(n.t, line)
	require.Equal(n.t, "notify:message", m.Type, line)
	return stage.ReadMail(n.t, string(m.Payload))
}

// leaves closes the pipe and waits until the program has noticed.
func (n *newcomer) leaves() {
	n.t.Helper()
	require.NoError(n.t, n.in.Close())
	_, _ = io.Copy(io.Discard, n.out)
	require.NoError(n.t, n.wait())
}

// A program that joins by a pipe is the actor of its agent. A guest is a worker while it is
// connected.
//
// Rows: E-09, E-19, E-26, E-40, E-72.
func TestBusByPipe(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, writing("one", "PO:one", "autostart = false"))
	first, second := b.boss.send("PO:one", stage.Direct, `{"n":1}`), b.boss.send("PO:one", stage.Direct, `{"n":2}`)
	j := b.joins("one")
	require.Equal(t, []stage.Mail{first, second}, []stage.Mail{j.hears(), j.hears()})
	third := b.boss.send("PO:one", stage.Direct, `{"n":3}`)
	require.Equal(t, third, j.hears())
	_, err := io.WriteString(j.in, stage.MailLine("PO:one", "PO:one", stage.Direct, `{"n":4}`)+"\n"+stage.Request("ack", "ack-messages", fmt.Sprintf(`{"seq":%d}`, second.Seq))+"\n")
	require.NoError(t, err)
	var fourth stage.Mail
	for acked := false; fourth.Seq == 0 || !acked; {
		line, err := j.out.ReadString('\n')
		require.NoError(t, err)
		if m := stage.Received(t, line); m.Type == "notify:message" {
			fourth = stage.ReadMail(t, string(m.Payload))
		} else {
			acked = acked || m.To("ack")
		}
	}
	require.Equal(t, "PO:one", fourth.From)
	j.leaves()
	j = b.joins("one")
	require.Equal(t, []stage.Mail{third, fourth}, []stage.Mail{j.hears(), j.hears()})
	j.leaves()

	guest := b.joins("guest")
	spawned := func() (actor string) {
		for _, l := range about(b.boss.polls(""), "agent.spawned") {
			if strings.Contains(string(l.Payload), `"agent":"guest"`) {
				var told news
				require.NoError(t, json.Unmarshal(l.Payload, &told))
				actor = told.Actor
			}
		}
		return actor
	}
	stage.WaitFor(t, "the guest", func() bool { return spawned() != "" })
	require.Regexp(t, "^W:", spawned())
	sent := b.boss.send(spawned(), stage.Direct, `{}`)
	require.Equal(t, sent, guest.hears())
	guest.leaves()
	require.Len(t, b.hearsOf(1, "agent.terminated", spawned()), 1)
	b.Stop()
}

// With a store in memory, the bus works in the same way until the orchestrator ends.
//
// Rows: E-07, E-16, E-24, E-33.
func TestBusInMemory(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, stage.InMemory+writing("one", "PO:one"), "one")
	far := b.clerk("HO:far")
	var sent []stage.Mail
	for n := range 300 {
		sent = append(sent, far.send("PO:one", stage.Direct, fmt.Sprintf(`{"n":%d}`, n), fmt.Sprintf(`"idempotency_key":"%d"`, n)))
	}
	require.True(t, far.send("PO:one", stage.Direct, `{}`, `"idempotency_key":"0"`).Duplicate)
	require.Equal(t, sent, actors[0].Receives(len(sent)))
	one := b.holding("PO:one", environment(t, actors[0])["ORC_TOKEN"])
	require.Equal(t, sent, one.polls(""))
	one.acks(sent[9].Seq)
	actors[0].Kill()
	next := b.NextReady("one")
	require.Equal(t, sent[10:], next.Receives(len(sent)-10))
	b.Stop()
	require.NoFileExists(t, b.Path("state/events.db"))
}

// The client library works with the real program. Mail without a handler is acked, failures are
// reported to GO, and mail sent while the bus is down is sent again, once.
//
// Rows: E-56, E-57, E-60, E-61.
func TestBusClient(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	token := b.boss.token("HO:far")
	client := &bus.Client{Actor: "HO:far", URL: filepath.Join(b.State(), "api.sock"), Token: token, Incidents: b.Path("incidents"), Trouble: func(error) {}}
	var handled []int64
	ctx, stop := context.WithCancel(t.Context())
	unknown := b.boss.send("HO:far", "nobody.knows.it", `{}`)
	hopeless := b.boss.send("HO:far", "task.assigned", `{}`)
	last := b.boss.send("HO:far", stage.Direct, `{}`)
	err := client.Receive(ctx, bus.Handlers{
		"task.assigned": func(_ context.Context, m mail.Message) error {
			handled = append(handled, m.Seq)
			return bus.Fatal("NO_REPO", errors.New("there is nowhere to work"))
		},
		stage.Direct: func(_ context.Context, m mail.Message) error {
			handled = append(handled, m.Seq)
			stop()
			return nil
		},
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []int64{hopeless.Seq, last.Seq}, handled)
	require.GreaterOrEqual(t, b.known("HO:far").Cursor, hopeless.Seq)
	require.Greater(t, hopeless.Seq, unknown.Seq)
	require.NotEmpty(t, b.known("HO:far").LastBeat)
	failed := about(b.boss.polls(""), "task.failed")
	require.Len(t, failed, 1)
	require.Equal(t, hopeless.Seq, *failed[0].ReplyTo)
	require.Contains(t, string(failed[0].Payload), `"error_code":"NO_REPO"`)
	require.Equal(t, "NO_REPO", b.hearsOf(1, "alert.fired", "HO:far")[0].Code)

	_, err = client.Send(t.Context(), wire.SendMessage{From: "GO", To: "GO", Topic: stage.Direct})
	var refusal *bus.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, http.StatusForbidden, refusal.Status)
	b.Kill()
	sent := make(chan error, 1)
	go func() { // ends with the message
		_, err := client.Send(context.Background(), wire.SendMessage{To: "GO", Topic: stage.Direct, Payload: wire.Raw(`{"late":true}`)})
		sent <- err
	}()
	b.Open()
	require.NoError(t, <-sent)
	found := about(b.boss.polls("&cursor=0"), stage.Direct)
	require.Equal(t, []string{`{"late":true}`}, payloads(found))
	require.NoFileExists(t, b.Path("incidents"))
	require.True(t, slices.IsSorted(handled))
	b.Stop()
}
