package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

// acks acknowledges the mail of an agent up to a number.
func acks(a *stage.Agent, seq int64) {
	a.T.Helper()
	a.Granted(nil, "ack-messages", fmt.Sprintf(`{"seq":%d}`, seq))
}

// Unacked mail of a named agent is delivered again to its next run, whether the agent or the
// orchestrator ended. Acked mail is not.
//
// Rows: E-09, E-26, E-27, E-33, E-37, E-38, E-40, T-34.
func TestBusIsToldAgain(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	one, far := actors[0], b.clerk("HO:far")
	var sent []stage.Mail
	acked := 0 // number of acked messages
	send := func(many int) {
		for range many {
			sent = append(sent, far.send("PO:one", stage.Direct, fmt.Sprintf(`{"n":%d}`, len(sent))))
		}
	}
	hears := func() { // only unacked messages, all of them, in order
		t.Helper()
		send(1)
		require.Equal(t, sent[acked:], one.Receives(len(sent)-acked))
	}
	acks := func(many int) {
		acked = many
		acks(one, sent[acked-1].Seq)
	}
	killed := func() {
		b.Kill()
		one = b.Open("one")[0]
	}
	send(4)
	hears()
	acks(2)
	one.Kill()
	send(1) // while the agent is down, or just back
	one = b.NextReady("one")
	hears()
	killed()
	hears()
	send(2)
	acked = 7
	holding := b.holding("PO:one", environment(t, one)["ORC_TOKEN"])
	require.Equal(t, sent[2:], holding.polls(""), "it is a hint, and the poll says the same")
	require.Equal(t, sent[acked-1].Seq, holding.acks(sent[acked-1].Seq))
	killed()
	hears()
	acks(len(sent))
	killed()
	hears()
	acks(len(sent))
	b.Stop()
	one = b.Open("one")[0]
	hears()
	require.Equal(t, sent, b.agentsOwn("one", "PO:one").polls("&cursor=0"))
	b.Stop()
}

// agentsOwn returns a client with a key of an agent.
func (b *bureau) agentsOwn(agent, actor string) *clerk {
	b.T.Helper()
	return &clerk{Caller: b.AgentCaller(agent), actor: actor}
}

// After each kill, a run gets the unacked mail of its actor from the first message on, in order
// and once. This also holds for a small mailbox.
//
// Rows: E-24, E-26, E-27, E-28, E-33, E-37, E-40, T-34.
func TestBusIsToldThroughKills(t *testing.T) {
	t.Parallel()
	const small = "  limits {\n    mailbox = 8\n  }"
	b, actors := newBureau(t, writing("one", "PO:one", small)+writing("two", "PO:two"), "one", "two")
	granted, asked, n := int64(0), int64(0), 0
	for range stage.Rounds(t, 4) {
		one, two := actors[0], actors[1]
		var lines strings.Builder
		for range 300 {
			fmt.Fprintln(&lines, stage.MailLine("PO:two", "PO:one", stage.Direct, fmt.Sprintf(`{"n":%d}`, n)))
			n++
		}
		two.Say(lines.String())
		cursor := b.known("PO:one").Cursor
		found := one.Receives(20)
		asked = found[len(found)-1].Seq // the ack may be lost, or its answer
		one.Request("ack-messages", fmt.Sprintf(`{"seq":%d}`, found[9].Seq))
		last := one.Request("ack-messages", fmt.Sprintf(`{"seq":%d}`, asked))
		stage.WaitFor(t, "some more", func() bool { return len(one.Notices("message")) >= 50 })
		found = one.Receives(50)
		b.Kill()
		whole := []stage.Mail(nil)
		for _, line := range one.Lines() {
			if !json.Valid([]byte(line)) {
				continue // a line that was cut off
			}
			m := stage.Received(t, line)
			switch {
			case m.Type == "notify:message":
				whole = append(whole, stage.ReadMail(t, string(m.Payload)))
			case m.To(last):
				require.Nil(t, m.Error, line)
				granted = asked
			}
		}
		require.Equal(t, found, whole[:len(found)])
		actors = b.Open("one", "two")
		all := b.agentsOwn("one", "PO:one").polls(fmt.Sprintf("&limit=10000&cursor=%d", cursor))
		require.Equal(t, all[:len(whole)], whole, "all that was not acked, from the first on")
		require.GreaterOrEqual(t, b.known("PO:one").Cursor, granted)
		require.LessOrEqual(t, b.known("PO:one").Cursor, asked)
	}
	last := b.boss.send("PO:one", stage.Direct, `{"last":true}`)
	rest := b.agentsOwn("one", "PO:one").everything(10_000)
	cursor := b.known("PO:one").Cursor
	rest = slices.DeleteFunc(rest, func(l stage.Mail) bool { return l.Seq <= cursor })
	require.Equal(t, last, rest[len(rest)-1])
	require.Equal(t, rest, actors[0].Receives(len(rest)))
	b.Stop()
}

// An agent with a new actor in each run gets mail that comes during the run. It can poll earlier
// broadcasts.
//
// Rows: E-31, E-34, E-40, E-72, T-41.
func TestBusIsToldARun(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("auto", "auto")+writing("one", "PO:one"), "auto", "one")
	auto := actors[0]
	first := b.boss.send("broadcast", "broadcast.all", `{"n":1}`)
	own := b.boss.send("W:"+auto.Run, stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{first, own}, auto.Receives(2))
	auto.Kill()
	next := b.NextReady("auto")
	require.NotEqual(t, auto.Run, next.Run)
	second := b.boss.send("broadcast", "broadcast.all", `{"n":2}`)
	mark := b.boss.send("W:"+next.Run, stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{second, mark}, next.Receives(2), "nothing of what was before it")
	require.Equal(t, []stage.Mail{first, second}, actors[1].Receives(2))
	way := b.holding("W:"+next.Run, environment(t, next)["ORC_TOKEN"])
	require.Equal(t, []stage.Mail{first, second, mark}, way.polls("&cursor=0"))
	require.Equal(t, way.polls("&cursor=0"), way.polls(""))
	require.Equal(t, []stage.Mail{first, own}, b.clerk("W:"+auto.Run).polls("&cursor=0&limit=2"), "its mail outlives a run")
	b.Kill()
	last := b.Open("auto", "one")[0]
	mark = b.boss.send("W:"+last.Run, stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{mark}, last.Receives(1))
	b.Stop()
}

// An agent that never reads delays no other agent. When it reads, it gets all its mail, in order
// and once, and so does its next run.
//
// Rows: E-09, E-27, E-28, E-38, E-40, T-04.
func TestBusDeafAgent(t *testing.T) {
	t.Parallel()
	const many, room = 5000, 200
	b, actors := newBureau(t, writing("one", "PO:one")+writing("two", "PO:two")+`
agent "deaf" {
  command = ["sh", "-c", "echo $ORC_RUN_ID >run; until [ -e go ]; do sleep 0.02; done; exec cat >heard-$ORC_RUN_ID"]
  actor   = "PO:deaf"
`+again+fmt.Sprintf("\n  limits {\n    mailbox = %d\n  }\n}\n", room), "one", "two")
	one, two := actors[0], actors[1]
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, stage.MailLine("PO:one", "PO:deaf", stage.Direct, fmt.Sprintf(`{"n":%d}`, n)))
	}
	one.Say(flood.String())
	stage.WaitFor(t, "all answers", func() bool { return len(plain(one)) == many })
	want := counting(many)
	view := b.Agent("deaf")
	require.Positive(t, view.Mailbox.Messages)
	require.LessOrEqual(t, view.Mailbox.Messages, room)
	require.Zero(t, view.Mailbox.Refused, "it is not lost, it is not there yet")
	sent := b.boss.send("PO:two", stage.Direct, `{}`)
	require.Equal(t, []stage.Mail{sent}, two.Receives(1), "others are served")
	require.Equal(t, want[:10], payloads(b.agentsOwn("deaf", "PO:deaf").polls("&limit=10")), "and so is it, when it asks")

	heard := func() (found []string) {
		run, _ := os.ReadFile(b.Path("run"))
		for _, line := range b.TextLines("heard-" + strings.TrimSpace(string(run))) {
			m := stage.Received(t, line)
			require.Equal(t, "notify:message", m.Type)
			found = append(found, string(stage.ReadMail(t, string(m.Payload)).Payload))
		}
		return found
	}
	b.Write("go", "")
	for _, next := range []func(){
		func() {},
		func() { b.Ask("agent", "restart", "deaf") },
		func() { b.Kill(); b.Open("one", "two") },
	} {
		next()
		want = append(want, fmt.Sprintf(`{"n":%d}`, len(want)))
		b.boss.send("PO:deaf", stage.Direct, want[len(want)-1])
		stage.WaitFor(t, "the last one", func() bool { found := heard(); return len(found) > 0 && found[len(found)-1] == want[len(want)-1] })
		require.Equal(t, want, heard(), "in order, and each once")
		require.Zero(t, b.Agent("deaf").Mailbox.Refused)
	}
	runs, err := filepath.Glob(b.Path("heard-*"))
	require.NoError(t, err)
	require.Len(t, runs, 3)
	b.Stop()
}

// A page is bounded, also in bytes, and the next page continues after it.
//
// Rows: E-27, E-30, E-38.
func TestBusLargePages(t *testing.T) {
	t.Parallel()
	const many = 11
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	large := fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 1<<20-10))
	var sent []stage.Mail
	for range many {
		sent = append(sent, b.boss.send("PO:one", stage.Direct, large))
	}
	one := b.agentsOwn("one", "PO:one")
	var found []stage.Mail
	pages := 0
	for after, more := int64(0), true; more; pages++ {
		var page []stage.Mail
		page, more = one.pollsMore(fmt.Sprint("&limit=10000&cursor=", after))
		require.NotEmpty(t, page)
		require.LessOrEqual(t, len(page), 4)
		found = append(found, page...)
		after = page[len(page)-1].Seq
	}
	require.Equal(t, 3, pages)
	require.Equal(t, sent, one.polls("&cursor=0"), "without a limit the list is complete")
	require.Equal(t, sent, found)
	require.Equal(t, sent, actors[0].Receives(many))
	b.Stop()
}

// An agent with the smallest mailbox gets all messages, however large they are.
//
// Rows: E-27, E-28, T-04.
func TestBusSmallestMailbox(t *testing.T) {
	t.Parallel()
	const small = "  limits {\n    mailbox       = 1\n    mailbox_bytes = \"1KiB\"\n  }"
	b, actors := newBureau(t, writing("one", "PO:one", small)+writing("two", "PO:two"), "one", "two")
	var want []string
	var lines strings.Builder
	for n := range 500 {
		size := 1
		if n%50 == 0 {
			size = 100_000
		}
		want = append(want, fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("x", size)))
		fmt.Fprintln(&lines, stage.MailLine("PO:two", "PO:one", stage.Direct, want[n]))
	}
	actors[1].Say(lines.String())
	found := actors[0].Receives(len(want))
	require.Equal(t, want, payloads(found))
	actors[0].Settle()
	require.Zero(t, b.Agent("one").Mailbox.Refused)
	actors[0].Kill()
	require.Equal(t, found, b.NextReady("one").Receives(len(want)))
	b.Stop()
}

// Lines over the rate limit are refused in their own protocol and are not stored.
//
// Rows: E-21, E-57, E-84, B-79, T-24.
func TestBusTooManyLines(t *testing.T) {
	t.Parallel()
	const each = 100
	b, actors := openBureau(t, stage.HTTP+writing("one", "PO:one"), "one")
	one := actors[0]
	var lines strings.Builder
	for n := range each {
		body := stage.MailLine("PO:one", "HO:x", stage.Direct, fmt.Sprintf(`{"n":%d}`, n), fmt.Sprintf(`"idempotency_key":"plain-%d"`, n))
		fmt.Fprintln(&lines, body)
		fmt.Fprintln(&lines, stage.Request(fmt.Sprint("own-", n), "send-message", `{"to_actor":"HO:x","topic":"message.direct","payload":{}}`))
		fmt.Fprintln(&lines, calling(fmt.Sprintf(`"tool-%d"`, n), "tools/call", `{"name":"bus_send_message","arguments":{"to_actor":"HO:x","topic":"message.direct","payload":{}}}`))
	}
	one.Say(lines.String())
	kept := make(map[int64]bool)
	refused := 0
	for n := range each {
		if m := one.Answer(fmt.Sprint("own-", n)); m.Error == nil {
			kept[readSent(t, string(m.Payload)).Seq] = true
		} else {
			require.Equal(t, "rate_limited", m.Error.Details["reason"])
			refused++
		}
		if document, failed := called(one, fmt.Sprintf(`"tool-%d"`, n)).result(t); failed {
			require.Contains(t, document, "rate_limited")
			refused++
		} else {
			kept[readSent(t, document).Seq] = true
		}
	}
	for _, line := range plain(one) {
		kept[readSent(t, line).Seq] = true
	}
	for n := range each {
		for _, m := range one.Answers(fmt.Sprint("plain-", n)) {
			require.Equal(t, "rate_limited", m.Error.Details["reason"])
			refused++
		}
	}
	require.Equal(t, 3*each, len(kept)+refused, "everything is answered, once")
	require.NotZero(t, refused)
	require.GreaterOrEqual(t, len(kept), each-1, "but for what was asked before")
	found := b.clerk("HO:x").polls("&limit=10000")
	require.Len(t, found, len(kept))
	for _, l := range found {
		require.True(t, kept[l.Seq])
	}
	b.Stop()
}

// idle waits until the orchestrator uses no CPU time for a while.
func idle(s *stage.Orchestrator) {
	s.T.Helper()
	spent, calm := "", 0
	stage.WaitFor(s.T, "orchestrator that is idle", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.Process.Pid))
		require.NoError(s.T, err)
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
		now := fields[11] + " " + fields[12] // user and system time
		if calm++; now != spent {
			spent, calm = now, 0
		}
		return calm == 15
	})
}

// A message larger than the mailbox of an agent waits until the agent reads. The orchestrator
// waits too, without polling.
//
// Rows: E-09, E-27, E-28, T-04.
func TestBusMailThatIsLargerThanTheRoom(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, `
agent "deaf" {
  command = ["sh", "-c", "until [ -e go ]; do sleep 0.02; done; exec cat >heard"]
  actor   = "PO:deaf"
  limits {
    mailbox_bytes = "1MiB"
  }
}
`)
	var want []string
	for n := range 100 {
		want = append(want, fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("x", 1000)))
		b.boss.send("PO:deaf", stage.Direct, want[n])
	}
	require.Positive(t, b.Agent("deaf").Mailbox.Messages, "it has not read all of it")
	idle(b.Hub.Team.Orchestrator)
	for n := range 3 {
		want = append(want, fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("x", 1_000_000)))
		b.boss.send("PO:deaf", stage.Direct, want[len(want)-1])
	}
	idle(b.Hub.Team.Orchestrator)
	b.Write("go", "")
	stage.WaitFor(t, "all of it", func() bool { return len(b.TextLines("heard")) == len(want) })
	for n, line := range b.TextLines("heard") {
		m := stage.Received(t, line)
		require.Equal(t, want[n], string(stage.ReadMail(t, string(m.Payload)).Payload))
	}
	idle(b.Hub.Team.Orchestrator)
	b.Stop()
}

// An agent with a mailbox of one message gets mail while its questions are open. The test waits
// for each message, because the next one would deliver a stuck one.
//
// Rows: E-09, E-27, T-04.
func TestBusIsToldWhileItAsks(t *testing.T) {
	t.Parallel()
	const small = "  limits {\n    mailbox = 1\n  }"
	b, actors := newBureau(t, writing("one", "PO:one", small)+writing("two", "PO:two"), "one", "two")
	one, two := actors[0], actors[1]
	for n := range 1500 {
		asked := make(chan error, 1)
		go func() { // ends after the write
			_, err := io.WriteString(one.Conn, stage.Question(n))
			asked <- err
		}()
		payload := fmt.Sprintf(`{"n":%d}`, n)
		two.Say(stage.MailLine("PO:two", "PO:one", stage.Direct, payload) + "\n")
		one.Wait("message "+payload, func(m *stage.Message) bool { return strings.Contains(m.Line, payload) })
		require.NoError(t, <-asked)
	}
	b.Stop()
}

// The orchestrator does not poll either if the unread lines are answers.
//
// Rows: E-09, E-27, T-04.
func TestBusMailBesideAnswers(t *testing.T) {
	t.Parallel()
	const many = 500
	b, _ := newBureau(t, `
agent "deaf" {
  command = ["sh", "deaf.sh"]
  actor   = "PO:deaf"
  limits {
    mailbox_bytes = "1MiB"
  }
  autostart = false
}
`)
	b.Write("deaf.sh", fmt.Sprintf(`
i=0
while [ $i -lt %d ]; do i=$((i+1)); echo '{"type":"request:query-agents","id":"'$i'","timestamp":"%s","payload":{}}'; done
>asked
until [ -e go ]; do sleep 0.02; done
exec cat >heard
`, many, stage.Noon))
	b.Ask("agent", "start", "deaf")
	stage.WaitFor(t, "all that it asks", func() bool { _, err := os.Stat(b.Path("asked")); return err == nil })
	idle(b.Hub.Team.Orchestrator)
	require.Positive(t, b.Agent("deaf").Mailbox.Messages)
	sent := b.boss.send("PO:deaf", stage.Direct, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 1_000_000)))
	idle(b.Hub.Team.Orchestrator)
	b.Write("go", "")
	stage.WaitFor(t, "all of it", func() bool { return len(b.TextLines("heard")) == many+1 })
	require.Zero(t, b.Agent("deaf").Mailbox.Refused)
	require.Contains(t, strings.Join(b.TextLines("heard"), "\n"), sent.Text)
	b.Stop()
}
