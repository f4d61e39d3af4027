package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// acks acknowledges the mail of an agent up to a number.
func (a *actor) acks(seq int64) {
	a.t.Helper()
	a.granted(nil, "ack-messages", fmt.Sprintf(`{"seq":%d}`, seq))
}

// Unacked mail of a named agent is delivered again to its next run, whether the agent or the
// orchestrator ended. Acked mail is not.
//
// Rows: E-09, E-26, E-27, E-33, E-37, E-38, E-40, T-34.
func TestBusIsToldAgain(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	one, far := actors[0], b.clerk("HO:far")
	var sent []letter
	acked := 0 // number of acked messages
	send := func(many int) {
		for range many {
			sent = append(sent, far.send("PO:one", direct, fmt.Sprintf(`{"n":%d}`, len(sent))))
		}
	}
	hears := func() { // all unacked messages, in order, and nothing else
		t.Helper()
		send(1)
		require.Equal(t, sent[acked:], one.hears(len(sent)-acked))
	}
	acks := func(many int) {
		acked = many
		one.acks(sent[acked-1].Seq)
	}
	killed := func() {
		b.kill()
		one = b.open("one")[0]
	}
	send(4)
	hears()
	acks(2)
	one.die()
	send(1) // while the agent is down, or just back
	one = b.enters("one")
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
	b.stop()
	one = b.open("one")[0]
	hears()
	require.Equal(t, sent, b.agentsOwn("one", "PO:one").polls("&cursor=0"))
	b.stop()
}

// agentsOwn returns a client with a key of an agent.
func (b *bureau) agentsOwn(agent, actor string) *clerk {
	b.t.Helper()
	return &clerk{visitor: b.program(agent), actor: actor}
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
	for range rounds(t, 4) {
		one, two := actors[0], actors[1]
		var lines strings.Builder
		for range 300 {
			fmt.Fprintln(&lines, mailLine("PO:two", "PO:one", direct, fmt.Sprintf(`{"n":%d}`, n)))
			n++
		}
		two.say(lines.String())
		cursor := b.known("PO:one").Cursor
		found := one.hears(20)
		asked = found[len(found)-1].Seq // the ack may be lost, or its answer
		one.request("ack-messages", fmt.Sprintf(`{"seq":%d}`, found[9].Seq))
		last := one.request("ack-messages", fmt.Sprintf(`{"seq":%d}`, asked))
		waitForThat(t, "some more", func() bool { return len(one.notices("message")) >= 50 })
		found = one.hears(50)
		b.kill()
		whole := []letter(nil)
		for _, line := range one.heardSoFar() {
			if !json.Valid([]byte(line)) {
				continue // a line that was cut off
			}
			m := heardAs(t, line)
			switch {
			case m.Type == "notify:message":
				whole = append(whole, readLetter(t, string(m.Payload)))
			case m.to(last):
				require.Nil(t, m.Error, line)
				granted = asked
			}
		}
		require.Equal(t, found, whole[:len(found)])
		actors = b.open("one", "two")
		all := b.agentsOwn("one", "PO:one").polls(fmt.Sprintf("&limit=10000&cursor=%d", cursor))
		require.Equal(t, all[:len(whole)], whole, "all that was not acked, from the first on")
		require.GreaterOrEqual(t, b.known("PO:one").Cursor, granted)
		require.LessOrEqual(t, b.known("PO:one").Cursor, asked)
	}
	last := b.boss.send("PO:one", direct, `{"last":true}`)
	rest := b.agentsOwn("one", "PO:one").everything(10_000)
	cursor := b.known("PO:one").Cursor
	rest = slices.DeleteFunc(rest, func(l letter) bool { return l.Seq <= cursor })
	require.Equal(t, last, rest[len(rest)-1])
	require.Equal(t, rest, actors[0].hears(len(rest)))
	b.stop()
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
	own := b.boss.send("W:"+auto.run, direct, `{}`)
	require.Equal(t, []letter{first, own}, auto.hears(2))
	auto.die()
	next := b.enters("auto")
	require.NotEqual(t, auto.run, next.run)
	second := b.boss.send("broadcast", "broadcast.all", `{"n":2}`)
	mark := b.boss.send("W:"+next.run, direct, `{}`)
	require.Equal(t, []letter{second, mark}, next.hears(2), "nothing of what was before it")
	require.Equal(t, []letter{first, second}, actors[1].hears(2))
	way := b.holding("W:"+next.run, environment(t, next)["ORC_TOKEN"])
	require.Equal(t, []letter{first, second, mark}, way.polls("&cursor=0"))
	require.Equal(t, way.polls("&cursor=0"), way.polls(""))
	require.Equal(t, []letter{first, own}, b.clerk("W:"+auto.run).polls("&cursor=0&limit=2"), "its mail outlives a run")
	b.kill()
	last := b.open("auto", "one")[0]
	mark = b.boss.send("W:"+last.run, direct, `{}`)
	require.Equal(t, []letter{mark}, last.hears(1))
	b.stop()
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
		fmt.Fprintln(&flood, mailLine("PO:one", "PO:deaf", direct, fmt.Sprintf(`{"n":%d}`, n)))
	}
	one.say(flood.String())
	waitForThat(t, "all answers", func() bool { return len(one.plain()) == many })
	want := counting(0, many)
	view := b.agent("deaf")
	require.Positive(t, view.Mailbox.Messages)
	require.LessOrEqual(t, view.Mailbox.Messages, room)
	require.Zero(t, view.Mailbox.Refused, "it is not lost, it is not there yet")
	sent := b.boss.send("PO:two", direct, `{}`)
	require.Equal(t, []letter{sent}, two.hears(1), "others are served")
	require.Equal(t, want[:10], payloads(b.agentsOwn("deaf", "PO:deaf").polls("&limit=10")), "and so is it, when it asks")

	heard := func() (found []string) {
		run, _ := os.ReadFile(b.path("run"))
		for _, line := range b.textLines("heard-" + strings.TrimSpace(string(run))) {
			m := heardAs(t, line)
			require.Equal(t, "notify:message", m.Type)
			found = append(found, string(readLetter(t, string(m.Payload)).Payload))
		}
		return found
	}
	b.write("go", "")
	for _, next := range []func(){
		func() {},
		func() { b.ask("agent", "restart", "deaf") },
		func() { b.kill(); b.open("one", "two") },
	} {
		next()
		want = append(want, fmt.Sprintf(`{"n":%d}`, len(want)))
		b.boss.send("PO:deaf", direct, want[len(want)-1])
		waitForThat(t, "the last one", func() bool { found := heard(); return len(found) > 0 && found[len(found)-1] == want[len(want)-1] })
		require.Equal(t, want, heard(), "in order, and each once")
		require.Zero(t, b.agent("deaf").Mailbox.Refused)
	}
	runs, err := filepath.Glob(b.path("heard-*"))
	require.NoError(t, err)
	require.Len(t, runs, 3)
	b.stop()
}
