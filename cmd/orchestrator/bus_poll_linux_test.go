package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mail after a cursor can be read any number of times; only an ack moves the cursor. Acked mail
// stays acked and other mail stays unread, also after a kill.
//
// Rows: E-23, E-26, E-27, E-30, E-33, E-34, E-35, E-36, E-37, E-38, E-40, E-63, T-34, T-35.
func TestBusPollAndAck(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	one, two := b.clerk("HO:one"), b.clerk("HO:two")
	var sent []letter
	for n := range 10 {
		sent = append(sent, one.send("HO:two", direct, fmt.Sprintf(`{"n":%d}`, n)))
		one.send("HO:other", direct, `{}`) // numbers in one mailbox have gaps
	}
	first := two.ask(two.poll(""), "").text
	require.Equal(t, sent, two.polls(""))
	require.Equal(t, first, two.ask(two.poll(""), "").text)
	require.Equal(t, first, two.ask("GET /api/bus/poll", "").text, "without a name it is one's own")
	require.Equal(t, first, two.ask(two.poll("&cursor=0"), "").text)
	require.Equal(t, sent[5:], two.polls(fmt.Sprint("&cursor=", sent[4].Seq)))
	require.Equal(t, sent[5:], two.polls(fmt.Sprint("&cursor=", sent[4].Seq+1)), "a number between two is as good")
	require.Empty(t, two.polls(fmt.Sprint("&cursor=", sent[9].Seq)))
	require.Empty(t, two.polls("&cursor=9007199254740991"))
	page, more := two.pollsMore("&limit=3")
	require.Equal(t, sent[:3], page)
	require.True(t, more)
	page, more = two.pollsMore(fmt.Sprint("&limit=3&cursor=", sent[6].Seq))
	require.Equal(t, sent[7:], page)
	require.False(t, more)
	require.Zero(t, b.known("HO:two").Cursor)

	require.EqualValues(t, 0, two.acks(0))
	require.Equal(t, sent[3].Seq, two.acks(sent[3].Seq))
	require.Equal(t, sent[3].Seq, b.known("HO:two").Cursor)
	require.Equal(t, sent[4:], two.polls(""))
	require.Equal(t, sent[3].Seq, two.acks(sent[1].Seq), "who comes late takes nothing back")
	require.Equal(t, sent[3].Seq, two.acks(sent[3].Seq))
	require.Equal(t, sent[4:], two.polls(""))
	require.Equal(t, first, two.ask(two.poll("&cursor=0"), "").text, "what was acked is still there")
	require.Equal(t, sent[1:], two.polls(fmt.Sprint("&cursor=", sent[0].Seq)))
	last := int64(len(b.story()))
	for _, beyond := range []int64{last + 1, last + 2, 1 << 52} {
		refusal := two.spurned(http.StatusBadRequest, "invalid", "POST /api/bus/ack", fmt.Sprintf(`{"seq":%d}`, beyond))
		require.Equal(t, "/seq", refusal.Error.Details["pointer"])
	}
	for _, body := range []string{``, `{}`, `{"actor":"HO:two"}`, `{"seq":null}`, `{"seq":"1"}`, `{"seq":-1}`, `{"seq":1.5}`, `[1]`} {
		require.Equal(t, http.StatusBadRequest, two.ask("POST /api/bus/ack", body).status, body)
	}
	for _, query := range []string{"&cursor=", "&cursor=-1", "&cursor=x", "&cursor=1.0", "&limit=0", "&limit=10001", "&limit=x"} {
		two.spurned(http.StatusBadRequest, "invalid", two.poll(query), "")
	}
	require.Equal(t, last, int64(len(b.story())), "and nothing has happened")

	b.kill()
	b.open()
	require.Equal(t, sent[4:], two.polls(""))
	require.Equal(t, first, two.ask(two.poll("&cursor=0"), "").text)
	require.Equal(t, sent[8].Seq, two.acks(sent[8].Seq))
	b.stop()
	b.open()
	require.Equal(t, sent[9:], two.polls(""))
	require.Equal(t, first, two.ask(two.poll("&cursor=0"), "").text)
	require.Greater(t, one.send("HO:two", direct, `{}`).Seq, sent[9].Seq)
	b.stop()
}

// A thousand messages of one sender are delivered in order, each with its own number, while
// another actor sends too.
//
// Rows: E-10, E-24, E-28, E-86.
func TestBusInOrder(t *testing.T) {
	t.Parallel()
	const many = 1000
	b, actors := newBureau(t, writing("two", "PO:two"), "two")
	one := b.clerk("HO:one")
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, mailLine("PO:two", "HO:x", direct, fmt.Sprintf(`{"n":%d}`, n)))
	}
	actors[0].say(flood.String())
	last := int64(0)
	for n := range many {
		r, err := one.try("POST /api/bus/send", mailLine("HO:one", "HO:x", direct, fmt.Sprintf(`{"n":%d}`, n)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.status, r.text)
		seq := readSent(t, r.text).Seq
		require.Greater(t, seq, last)
		last = seq
	}
	waitForThat(t, "all answers", func() bool { return len(actors[0].plain()) == many })
	bySender := make(map[string][]letter)
	for _, l := range b.clerk("HO:x").polls("&limit=10000") {
		bySender[l.From] = append(bySender[l.From], l)
	}
	require.Equal(t, counting(0, many), payloads(bySender["HO:one"]))
	require.Equal(t, counting(0, many), payloads(bySender["PO:two"]))
	requireNoHoles(t, b.stage)
	b.stop()
}

// Only GO may broadcast. A broadcast is one row, which all actors find, also later ones.
//
// Rows: E-12, E-20, E-27, E-31, E-38, E-52, E-68, T-41.
func TestBusBroadcast(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+writing("late", "PO:late", "autostart = false"), "one", "-late")
	early := b.clerk("HO:early")
	own := early.send("HO:own", direct, `{}`)
	said := b.boss.send("broadcast", "broadcast.all", `{"stop":true}`)
	require.Equal(t, "broadcast", said.To)
	require.Empty(t, said.Warnings)
	b.boss.send("HO:later", direct, `{"for":"later"}`)
	for _, w := range []*clerk{early, b.clerk("HO:later"), b.clerk("W:far"), b.clerk("S:db:1")} {
		found := w.polls("&cursor=0")
		require.Equal(t, said, found[0], w.actor)
		require.Equal(t, found, w.polls(""), "who has acked nothing begins with the first")
		if w.actor == "HO:later" {
			require.Equal(t, `{"for":"later"}`, string(found[1].Payload), "it was there before its reader had a token")
			continue
		}
		require.Len(t, found, 1)
	}
	require.Equal(t, said, actors[0].hears(1)[0])
	require.NotContains(t, seqs(b.boss.polls("&cursor=0")), said.Seq, "one's own words are no news")
	require.Equal(t, []int64{own.Seq, said.Seq}, seqs(b.clerk("HO:own").polls("")))
	elsewhere := b.clerk("GO")
	again := elsewhere.send("broadcast", "any.topic", `{}`)
	require.Equal(t, []int64{said.Seq, again.Seq}, seqs(early.polls("&cursor=0")))
	require.Len(t, about(b.boss.polls("&cursor=0"), "topic.unknown"), 1)

	b.boss.send("PO:late", direct, `{"for":"late"}`)
	b.ask("agent", "start", "late")
	found := b.enters("late").hears(3)
	require.Equal(t, []int64{said.Seq, again.Seq}, seqs(found[:2]), "a name outlives all runs, and so it has missed nothing")
	require.Equal(t, `{"for":"late"}`, string(found[2].Payload))
	rows := 0
	for _, e := range b.story() {
		if e.Kind == "message.sent" && strings.Contains(e.Text, "broadcast.all") {
			rows++
		}
	}
	require.Equal(t, 1, rows)
	b.stop()
}

// Actors of all families send mail to each other.
//
// Rows: E-11, E-12, E-51, E-68, E-69, E-70, E-71, E-72, E-73.
func TestBusFamilies(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	var all []*clerk
	for _, id := range []string{
		"GO", "HO:hetzner-1", "PO:paperclip", "IO:shai", "W:a3f9", "W:0b7e4c1e-56a7-4b51-9f0e-0a5b8c6f2d11", "S:db:b2c1", "S:dé-x:0b7e4c1e-56a7-4b51-9f0e-0a5b8c6f2d11",
		"HO:" + strings.Repeat("a", 197),
	} {
		all = append(all, b.clerk(id))
	}
	for _, from := range all {
		for _, to := range all {
			require.Empty(t, from.send(to.actor, direct, fmt.Sprintf(`{"from":%q}`, from.actor)).Warnings)
		}
	}
	for _, c := range all {
		found := c.polls("")
		require.Len(t, found, len(all))
		for i, l := range found {
			require.Equal(t, []string{all[i].actor, c.actor}, []string{l.From, l.To})
		}
	}
	b.stop()
}

// An actor that may exist only once cannot be given to a second agent in the file, nor to a
// token.
//
// Rows: E-68, E-74, E-75, E-76.
func TestBusActorsThatAreThereOnce(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"GO", "HO:h1", "PO:p", "IO:shai"} {
		s := newStage(t, writing("a", id)+writing("b", id))
		_, stderr, code := s.call("validate")
		require.NotZero(t, code)
		require.Contains(t, stderr, strconv.Quote("a")+" is "+strconv.Quote(id)+" already")
	}
	for _, id := range []string{"Bus", "Governor", "broadcast", "HO:", "GO:x", "x"} {
		s := newStage(t, writing("a", id))
		_, stderr, code := s.call("validate")
		require.NotZero(t, code, id)
		require.Contains(t, stderr, "is no actor", id)
	}
	b, _ := newBureau(t, writing("boss", "GO")+writing("host", "HO:h1")+writing("db", "S:db")+writing("more", "S:db"), "boss", "host", "db", "more")
	for _, id := range []string{"GO", "HO:h1"} {
		b.boss.spurned(http.StatusConflict, "conflict", "POST /api/agents/tokens", fmt.Sprintf(`{"actor":%q}`, id))
	}
	for _, id := range []string{"Bus", "Governor", "broadcast", "HO:", "S:db", ""} {
		b.boss.spurned(http.StatusBadRequest, "invalid", "POST /api/agents/tokens", fmt.Sprintf(`{"actor":%q}`, id))
	}
	b.stop()
}
