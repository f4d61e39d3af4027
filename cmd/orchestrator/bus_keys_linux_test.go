package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key sends one message, however often and with whatever content it is repeated. Each sender
// has its own keys. Both still hold after a kill.
//
// Rows: E-16, E-17, E-18, E-60, T-37.
func TestBusKeys(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	far, other := b.clerk("HO:far"), b.clerk("HO:other")
	const key = `"idempotency_key":"5b1cf9ea-3a1c-4f7e-9a53-1f0a52f0c7d1"`
	first := far.send("HO:x", direct, `{"idempotency_key":"p"}`, key)
	require.False(t, first.Duplicate)
	require.NotContains(t, first.text, "5b1cf9ea", "the stored form has seven members")
	same := func(l letter) {
		t.Helper()
		require.True(t, l.Duplicate)
		require.Equal(t, strings.TrimSuffix(first.text, "}")+`,"duplicate":true}`, l.text)
	}
	same(far.send("HO:x", direct, `{"idempotency_key":"p"}`, key))
	same(far.send("PO:one", "other.words", `{"other":true}`, key))
	same(far.send("HO:x", direct, `{"idempotency_key":"p"}`, key))
	theirs := other.send("HO:x", direct, `{}`, key)
	require.False(t, theirs.Duplicate)
	require.Greater(t, theirs.Seq, first.Seq)
	actors[0].granted(nil, "send-message", `{"to_actor":"HO:x","topic":"message.direct","payload":{},`+key+`}`)
	require.Len(t, b.clerk("HO:x").polls(""), 3)
	require.Empty(t, about(b.boss.polls(""), "topic.unknown"), "what is not sent has no consequence")

	b.kill()
	b.open("one")
	same(far.send("HO:x", direct, `{}`, key))
	require.True(t, other.send("HO:x", direct, `{}`, key).Duplicate)
	require.Len(t, b.clerk("HO:x").polls("&cursor=0"), 3)
	b.stop()
}

// The bus recognizes old keys as well as new ones: keys that are no longer in memory are looked
// up in the record.
//
// Rows: E-16, E-60.
func TestBusManyKeys(t *testing.T) {
	t.Parallel()
	const many, again = 5000, 500
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	one := actors[0]
	keyed := func(from, to int) string {
		var lines strings.Builder
		for n := from; n < to; n++ {
			fmt.Fprintln(&lines, mailLine("PO:one", "HO:x", direct, fmt.Sprintf(`{"n":%d}`, n), fmt.Sprintf(`"idempotency_key":"key-%d"`, n)))
		}
		return lines.String()
	}
	one.say(keyed(0, many))
	one.say(keyed(0, again) + keyed(many-again, many))
	for _, soFar := range []int{many / 2, many, many + 2*again} {
		waitForThat(t, fmt.Sprint(soFar, " answers"), func() bool { return len(one.plain()) >= soFar })
	}
	bySeq := make(map[int64][]letter)
	for _, line := range one.plain() {
		l := readSent(t, line)
		bySeq[l.Seq] = append(bySeq[l.Seq], l)
	}
	require.Len(t, bySeq, many)
	twice := 0
	for _, found := range bySeq {
		require.False(t, found[0].Duplicate && len(found) == 1)
		if len(found) > 1 {
			require.NotEqual(t, found[0].Duplicate, found[1].Duplicate)
			require.Equal(t, string(found[0].Payload), string(found[1].Payload))
			twice++
		}
	}
	require.Equal(t, 2*again, twice)
	found := b.clerk("HO:x").everything(1999)
	require.Equal(t, counting(0, many), payloads(found), "each once, and in the order in which they were sent")
	b.stop()
}

// Fifty concurrent sends with the same key, in every way, store one row and get the same answer.
//
// Rows: E-10, E-16, E-24, E-60, E-84, T-37.
func TestBusOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	const ways, each = 5, 10
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	one := actors[0]
	program := b.program("one")
	own := b.visitor("X-API-Key", environment(t, one)["ORC_TOKEN"])
	const body = `"to_actor":"HO:x","topic":"message.direct","payload":{"n":1.50},"idempotency_key":"the one"`
	whole := `{"from_actor":"PO:one",` + body + `}`
	answers := make([]string, 2*each)
	var lines strings.Builder
	for n := range each {
		fmt.Fprintln(&lines, asking(fmt.Sprint("own-", n), "send-message", `{`+body+`}`))
		fmt.Fprintln(&lines, whole)
		fmt.Fprintln(&lines, calling(fmt.Sprintf(`"c%d"`, n), "tools/call", `{"name":"bus_send_message","arguments":{`+body+`}}`))
	}
	var group sync.WaitGroup
	begin := make(chan struct{})
	for n := range 2 * each {
		who := []*visitor{program, own}[n%2]
		group.Go(func() {
			<-begin
			if r, err := who.try("POST /api/bus/send", whole); err == nil {
				answers[n] = r.text
			}
		})
	}
	close(begin)
	one.say(lines.String())
	group.Wait()
	for n := range each {
		m := one.answer(fmt.Sprint("own-", n))
		require.Nil(t, m.Error, m.line)
		answers = append(answers, string(m.Payload), one.called(fmt.Sprintf(`"c%d"`, n)).text(t))
	}
	waitForThat(t, "answers to mail as it is", func() bool { return len(one.plain()) >= each })
	answers = append(answers, one.plain()...)
	require.Len(t, answers, ways*each)
	first, fresh := readSent(t, answers[0]), 0
	for _, text := range answers {
		l := readSent(t, text)
		if !l.Duplicate {
			fresh++
		}
		require.Equal(t, strings.TrimSuffix(strings.TrimSuffix(first.text, "}"), `,"duplicate":true`), strings.TrimSuffix(strings.TrimSuffix(l.text, "}"), `,"duplicate":true`))
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, []int64{first.Seq}, seqs(b.clerk("HO:x").polls("")))
	b.stop()
}
