package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page is bounded, also in bytes, and the next page continues after it.
//
// Rows: E-27, E-30, E-38.
func TestBusLargePages(t *testing.T) {
	t.Parallel()
	const many = 11
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	large := fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 1<<20-10))
	var sent []letter
	for range many {
		sent = append(sent, b.boss.send("PO:one", direct, large))
	}
	one := b.agentsOwn("one", "PO:one")
	var found []letter
	pages := 0
	for after, more := int64(0), true; more; pages++ {
		var page []letter
		page, more = one.pollsMore(fmt.Sprint("&limit=10000&cursor=", after))
		require.NotEmpty(t, page)
		require.LessOrEqual(t, len(page), 4)
		found = append(found, page...)
		after = page[len(page)-1].Seq
	}
	require.Equal(t, 3, pages)
	require.Equal(t, sent, one.polls("&cursor=0"), "without a limit the list is complete")
	require.Equal(t, sent, found)
	require.Equal(t, sent, actors[0].hears(many))
	b.stop()
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
		fmt.Fprintln(&lines, mailLine("PO:two", "PO:one", direct, want[n]))
	}
	actors[1].say(lines.String())
	found := actors[0].hears(len(want))
	require.Equal(t, want, payloads(found))
	actors[0].quiet()
	require.Zero(t, b.agent("one").Mailbox.Refused)
	actors[0].die()
	require.Equal(t, found, b.enters("one").hears(len(want)))
	b.stop()
}

// Lines over the rate limit are refused in the protocol in which they were sent, and are not
// stored.
//
// Rows: E-21, E-57, E-84, B-79, T-24.
func TestBusTooManyLines(t *testing.T) {
	t.Parallel()
	const each = 100
	b, actors := openBureau(t, listeners+writing("one", "PO:one"), "one")
	one := actors[0]
	var lines strings.Builder
	for n := range each {
		body := mailLine("PO:one", "HO:x", direct, fmt.Sprintf(`{"n":%d}`, n), fmt.Sprintf(`"idempotency_key":"plain-%d"`, n))
		fmt.Fprintln(&lines, body)
		fmt.Fprintln(&lines, asking(fmt.Sprint("own-", n), "send-message", `{"to_actor":"HO:x","topic":"message.direct","payload":{}}`))
		fmt.Fprintln(&lines, calling(fmt.Sprintf(`"tool-%d"`, n), "tools/call", `{"name":"bus_send_message","arguments":{"to_actor":"HO:x","topic":"message.direct","payload":{}}}`))
	}
	one.say(lines.String())
	kept := make(map[int64]bool)
	refused := 0
	for n := range each {
		if m := one.answer(fmt.Sprint("own-", n)); m.Error == nil {
			kept[readSent(t, string(m.Payload)).Seq] = true
		} else {
			require.Equal(t, "rate_limited", m.Error.Details["reason"])
			refused++
		}
		if document, failed := one.called(fmt.Sprintf(`"tool-%d"`, n)).result(t); failed {
			require.Contains(t, document, "rate_limited")
			refused++
		} else {
			kept[readSent(t, document).Seq] = true
		}
	}
	for _, line := range one.plain() {
		kept[readSent(t, line).Seq] = true
	}
	for n := range each {
		for _, m := range one.answers(fmt.Sprint("plain-", n)) {
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
	b.stop()
}

// idle waits until the orchestrator uses no CPU time for a while.
func (s *stage) idle() {
	s.t.Helper()
	spent, calm := "", 0
	waitForThat(s.t, "orchestrator that is idle", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
		require.NoError(s.t, err)
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
		b.boss.send("PO:deaf", direct, want[n])
	}
	require.Positive(t, b.agent("deaf").Mailbox.Messages, "it has not read all of it")
	b.idle()
	for n := range 3 {
		want = append(want, fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("x", 1_000_000)))
		b.boss.send("PO:deaf", direct, want[len(want)-1])
	}
	b.idle()
	b.write("go", "")
	waitForThat(t, "all of it", func() bool { return len(b.textLines("heard")) == len(want) })
	for n, line := range b.textLines("heard") {
		m := heardAs(t, line)
		require.Equal(t, want[n], string(readLetter(t, string(m.Payload)).Payload))
	}
	b.idle()
	b.stop()
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
			_, err := io.WriteString(one.conn, question(n))
			asked <- err
		}()
		payload := fmt.Sprintf(`{"n":%d}`, n)
		two.say(mailLine("PO:two", "PO:one", direct, payload) + "\n")
		one.wait("message "+payload, func(m *message) bool { return strings.Contains(m.line, payload) })
		require.NoError(t, <-asked)
	}
	b.stop()
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
	b.write("deaf.sh", fmt.Sprintf(`
i=0
while [ $i -lt %d ]; do i=$((i+1)); echo '{"type":"request:query-agents","id":"'$i'","timestamp":"%s","payload":{}}'; done
>asked
until [ -e go ]; do sleep 0.02; done
exec cat >heard
`, many, noon))
	b.ask("agent", "start", "deaf")
	waitForThat(t, "all that it asks", func() bool { _, err := os.Stat(b.path("asked")); return err == nil })
	b.idle()
	require.Positive(t, b.agent("deaf").Mailbox.Messages)
	sent := b.boss.send("PO:deaf", direct, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 1_000_000)))
	b.idle()
	b.write("go", "")
	waitForThat(t, "all of it", func() bool { return len(b.textLines("heard")) == many+1 })
	require.Zero(t, b.agent("deaf").Mailbox.Refused)
	require.Contains(t, strings.Join(b.textLines("heard"), "\n"), sent.text)
	b.stop()
}
