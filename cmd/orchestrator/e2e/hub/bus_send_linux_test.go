package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/mail"
)

// A sent message is one row, and is stored before it is confirmed. The recipient reads it
// unchanged.
//
// Rows: E-01, E-03, E-06, E-10, E-17, E-18, E-22, E-25, E-30, E-51, E-82, E-86, T-37.
func TestBusSend(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	one, two := b.clerk("HO:one"), b.clerk("HO:two")
	payload := `{"n":12345678901234567890,"e":1E400,"z":1.50,"html":"<a&b>","u":"\u00e9\ud83d\ude00é😀\/\u2028","nul":"\u0000","nested":{"seq":7},"idempotency_key":"mine","":[]}`
	sent := one.send("HO:two", stage.Direct, payload)
	require.Equal(t, "HO:one", sent.From)
	require.Equal(t, "HO:two", sent.To)
	require.Equal(t, stage.Direct, sent.Topic)
	require.Equal(t, payload, string(sent.Payload), "letter for letter")
	require.Nil(t, sent.ReplyTo)
	require.False(t, sent.Duplicate)
	require.Empty(t, sent.Warnings)
	require.Equal(t, []stage.Mail{sent}, two.polls(""), "and letter for letter when it is read")
	require.Empty(t, one.polls(""))

	twin := one.send("HO:two", stage.Direct, payload)
	require.Greater(t, twin.Seq, sent.Seq, "without a key nothing is the same")
	null := one.send("HO:two", stage.Direct, payload, `"idempotency_key":null`, `"reply_to":null`)
	require.Greater(t, null.Seq, twin.Seq)
	require.Nil(t, null.ReplyTo)
	extra := one.send("HO:two", stage.Direct, `{}`, `"priority":9,"trace":{"id":"x"}`, `"seq":1,"created_at":"2001-01-01T00:00:00.000Z","duplicate":true`)
	require.False(t, extra.Duplicate)
	require.Greater(t, extra.Seq, null.Seq, "the number is the bus's to give")
	require.NotContains(t, extra.Text, "2001")
	require.Equal(t, []int64{sent.Seq, twin.Seq, null.Seq, extra.Seq}, seqs(two.polls("")))

	large := fmt.Sprintf(`{"x":%q}`, strings.Repeat("é", mail.MaxPayload/2-4))
	require.Len(t, large, mail.MaxPayload)
	sent = one.send("HO:two", stage.Direct, large)
	require.Equal(t, large, string(two.polls(fmt.Sprint("&cursor=", extra.Seq))[0].Payload))
	topic := "täsk." + strings.Repeat("x", 190)
	one.send("S:db:ünï", topic, `{}`)
	require.Len(t, about(b.boss.polls(""), "topic.unknown"), 1)
	require.Equal(t, topic, b.clerk("S:db:ünï").polls("")[0].Topic)
	b.Stop()
}

// reply_to may be a number or a string; both mean the same.
//
// Rows: E-15, T-36.
func TestBusReplyTo(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	one, two := b.clerk("HO:one"), b.clerk("HO:two")
	first := one.send("HO:two", stage.Direct, `{}`)
	for _, spelled := range []string{`%d`, `"%d"`} {
		answer := two.send("HO:one", stage.Direct, `{}`, `"reply_to":`+fmt.Sprintf(spelled, first.Seq))
		require.Equal(t, first.Seq, *answer.ReplyTo)
		require.Contains(t, answer.Text, fmt.Sprintf(`"reply_to":%d,`, first.Seq))
		require.Empty(t, answer.Warnings)
	}
	last := two.send("HO:one", stage.Direct, `{}`).Seq
	for _, wrong := range []string{`"abc"`, `1.5`, `"1.5"`, `""`, `"null"`, `0`, `-1`, `"0"`, `"-1"`, `true`, `[1]`, `"٣"`, `"+1"`, `" 1"`, `1e99`, `"99999999999999999999"`} {
		refusal := spurned(two.Caller, http.StatusBadRequest, "invalid", "POST /api/bus/send", stage.MailLine("HO:two", "HO:one", stage.Direct, `{}`, `"reply_to":`+wrong))
		require.Equal(t, "/reply_to", refusal.Error.Details["pointer"], wrong)
	}
	later := two.send("HO:one", stage.Direct, `{}`, `"reply_to":999999`)
	require.Equal(t, last+1, later.Seq, "what was refused has no number")
	require.EqualValues(t, 999999, *later.ReplyTo)
	require.Len(t, later.Warnings, 1)
	require.Len(t, one.polls(""), 4)
	b.Stop()
}

// An invalid message is refused. It has no row and no number, and no actor receives it.
//
// Rows: E-06, E-11, E-12, E-13, E-14, E-21, E-69, E-70, E-71, E-73, E-75, T-41.
func TestBusSendRefused(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	one := b.clerk("HO:one")
	before := one.send("GO", stage.Direct, `{}`).Seq
	for _, row := range [][2]string{
		{``, ``}, {`{`, ``}, {`[]`, ``}, {`"x"`, ``}, {`null`, ``}, {"{\"from_actor\":\"HO:one\xff\"}", ``}, {stage.MailLine("HO:one", "GO", stage.Direct, `{}`) + `{}`, ``},
		{`{"to_actor":"GO","topic":"a.b","payload":{}}`, "/from_actor"},
		{`{"from_actor":null,"to_actor":"GO","topic":"a.b","payload":{}}`, "/from_actor"},
		{`{"from_actor":"HO:one","topic":"a.b","payload":{}}`, "/to_actor"},
		{stage.MailLine("HO:one", "", stage.Direct, `{}`), "/to_actor"}, {stage.MailLine("HO:one", "??", stage.Direct, `{}`), "/to_actor"},
		{stage.MailLine("HO:one", "HO:", stage.Direct, `{}`), "/to_actor"}, {stage.MailLine("HO:one", "PO:", stage.Direct, `{}`), "/to_actor"},
		{stage.MailLine("HO:one", "IO:", stage.Direct, `{}`), "/to_actor"}, {stage.MailLine("HO:one", "W:", stage.Direct, `{}`), "/to_actor"},
		{stage.MailLine("HO:one", "S:db", stage.Direct, `{}`), "/to_actor"}, {stage.MailLine("HO:one", "S:db:", stage.Direct, `{}`), "/to_actor"},
		{stage.MailLine("HO:one", "GO:x", stage.Direct, `{}`), "/to_actor"}, {stage.MailLine("HO:one", "go", stage.Direct, `{}`), "/to_actor"},
		{stage.MailLine("HO:one", "HO:a b", stage.Direct, `{}`), "/to_actor"}, {stage.MailLine("HO:one", "HO:"+strings.Repeat("a", 200), stage.Direct, `{}`), "/to_actor"},
		{`{"from_actor":"HO:one","to_actor":"HO:a\u0000b","topic":"a.b","payload":{}}`, "/to_actor"},
		{stage.MailLine("HO:one", "Broadcast", stage.Direct, `{}`), "/to_actor"}, {stage.MailLine("HO:one", "BROADCAST", stage.Direct, `{}`), "/to_actor"},
		{`{"from_actor":"HO:one","to_actor":"GO","payload":{}}`, "/topic"},
		{stage.MailLine("HO:one", "GO", "", `{}`), "/topic"}, {stage.MailLine("HO:one", "GO", "a..b", `{}`), "/topic"}, {stage.MailLine("HO:one", "GO", ".a", `{}`), "/topic"},
		{stage.MailLine("HO:one", "GO", "a.", `{}`), "/topic"}, {stage.MailLine("HO:one", "GO", "a b", `{}`), "/topic"},
		{`{"from_actor":"HO:one","to_actor":"GO","topic":"a\nb","payload":{}}`, "/topic"},
		{`{"from_actor":"HO:one","to_actor":"GO","topic":7,"payload":{}}`, "/topic"},
		{`{"from_actor":"HO:one","to_actor":"GO","topic":"a.b"}`, "/payload"},
		{stage.MailLine("HO:one", "GO", stage.Direct, `[]`), "/payload"}, {stage.MailLine("HO:one", "GO", stage.Direct, `"x"`), "/payload"}, {stage.MailLine("HO:one", "GO", stage.Direct, `null`), "/payload"},
		{stage.MailLine("HO:one", "GO", stage.Direct, `7`), "/payload"},
		{stage.MailLine("HO:one", "GO", stage.Direct, `{}`, `"idempotency_key":""`), "/idempotency_key"},
		{stage.MailLine("HO:one", "GO", stage.Direct, `{}`, `"idempotency_key":7`), "/idempotency_key"},
		{stage.MailLine("HO:one", "GO", stage.Direct, `{}`, `"idempotency_key":"`+strings.Repeat("k", 201)+`"`), "/idempotency_key"},
	} {
		r := one.Ask("POST /api/bus/send", row[0])
		require.Equal(t, http.StatusBadRequest, r.Status, "%.200s: %s", row[0], r.Text)
		if row[1] != "" {
			require.Contains(t, r.Text, `"pointer":"`+row[1]+`"`, row[0])
		}
	}
	large := stage.MailLine("HO:one", "GO", stage.Direct, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", mail.MaxPayload)))
	spurned(one.Caller, http.StatusRequestEntityTooLarge, "too_large", "POST /api/bus/send", large)
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	require.Equal(t, http.StatusBadRequest, one.Ask("POST /api/bus/send", stage.MailLine("HO:one", "GO", stage.Direct, deep)).Status)
	twice := strings.Replace(stage.MailLine("HO:one", "GO", stage.Direct, `{}`), `"topic"`, `"to_actor":"HO:x","topic"`, 1)
	require.Equal(t, http.StatusBadRequest, one.Ask("POST /api/bus/send", twice).Status)

	require.Equal(t, before+1, one.send("GO", stage.Direct, `{}`).Seq, "nothing has had a number")
	require.Equal(t, []int64{before, before + 1}, seqs(b.boss.polls("")))
	require.Empty(t, b.clerk("HO:x").polls("&cursor=0"))
	b.Stop()
}

// halves are invalid texts with an unpaired surrogate.
var halves = []string{`a\ud800b`, `\udc00`}

// Text that cannot be stored is refused without damage to the record. A NUL is allowed in payloads
// but not in a key.
//
// Rows: E-06, E-16, E-21.
func TestBusKeyThatCannotBeKept(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	far, one := b.clerk("HO:far"), actors[0]
	for i, key := range append([]string{`a\u0000b`, `\u0000`}, halves...) {
		id := fmt.Sprint("odd-", i)
		one.Say(stage.Request(id, "send-message", `{"to_actor":"GO","topic":"a.b","payload":{},"idempotency_key":"`+key+`"}`) + "\n")
		require.NotNil(t, one.Answer(id).Error)
		r, err := far.Try("POST /api/bus/send", stage.MailLine("HO:far", "GO", stage.Direct, `{}`, `"idempotency_key":"`+key+`"`))
		require.NoError(t, err, key)
		require.Equal(t, http.StatusBadRequest, r.Status, "%s: %s", key, r.Text)
		far.send("GO", stage.Direct, `{"still":"there"}`)
	}
	require.Len(t, about(b.boss.polls(""), stage.Direct), 4)
	b.Stop()
}

// A person with a name that cannot be stored cannot send mail.
//
// Rows: E-21.
func TestBusPersonWhoCannotBeKept(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, writing("one", "PO:one"), "one")
	if status, body := b.Operate("issue-token", `{"sub":"a\u0000b"}`); status == http.StatusOK {
		var issued struct{ Token string }
		require.NoError(t, json.Unmarshal(body, &issued))
		ann := b.Caller("Authorization", "Bearer "+issued.Token)
		spurned(ann, http.StatusForbidden, "denied", "POST /api/bus/send", stage.MailLine("GO", "PO:one", stage.Direct, `{}`))
		_, err := ann.Try("POST /api/v1/tasks", `{"title":"x","spec":"s"}`)
		require.NoError(t, err)
	}
	require.Equal(t, `{"protocol_version":"1.0"}`, b.Anonymous().Ask("GET /health", "").Text)
	b.clerk("HO:far").send("PO:one", stage.Direct, `{}`)
	b.Stop()
}

// Such text is also refused in other members.
//
// Rows: E-06, E-13, E-21.
func TestBusHalfCharacters(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	far := b.clerk("HO:far")
	before := far.send("GO", stage.Direct, `{}`).Seq
	for _, half := range halves {
		for _, body := range []string{
			`{"from_actor":"HO:far","to_actor":"GO","topic":"a.b","payload":{"x":"` + half + `"}}`,
			`{"from_actor":"HO:far","to_actor":"GO","topic":"a.` + half + `","payload":{}}`,
			`{"from_actor":"HO:far","to_actor":"HO:` + half + `","topic":"a.b","payload":{}}`,
			`{"from_actor":"HO:far` + half + `","to_actor":"GO","topic":"a.b","payload":{}}`,
		} {
			spurned(far.Caller, http.StatusBadRequest, "invalid", "POST /api/bus/send", body)
		}
	}
	require.Equal(t, before+1, far.send("GO", stage.Direct, `{}`).Seq)
	b.Stop()
}

// A message is sent again with the same key while no orchestrator answers. --no-retry makes one
// attempt.
func TestBusSendTriesAgain(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+stage.Readers("one"))
	_, said, code := s.Call("bus", "send", "--to", "PO:shop", "--topic", stage.Direct, "--no-retry")
	require.Equal(t, cli.ExitNotRunning, code, said)
	require.NotContains(t, said, "retrying")
	_, said, code = s.Call("bus", "ack", "1", "--no-retry")
	require.Equal(t, cli.ExitNotRunning, code, said)

	sent, cried := &stage.Output{}, &stage.Output{}
	cmd := exec.Command(s.Program, "bus", "send", "--to", "PO:shop", "--topic", stage.Direct, "--state-dir", s.State())
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, s.Environ(), sent, cried
	require.NoError(t, cmd.Start())
	stage.WaitFor(t, "first attempt", func() bool { return strings.Contains(cried.All(), "retrying in 2s") })
	s.Up("--json")
	require.NoError(t, cmd.Wait())
	require.Contains(t, sent.All(), "Sent ")
	s.Stop()
}

// A key sends one message, however often and with whatever content it is repeated. Each sender
// has its own keys. Both still hold after a kill.
//
// Rows: E-16, E-17, E-18, E-60, T-37.
func TestBusKeys(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	far, other := b.clerk("HO:far"), b.clerk("HO:other")
	const key = `"idempotency_key":"5b1cf9ea-3a1c-4f7e-9a53-1f0a52f0c7d1"`
	first := far.send("HO:x", stage.Direct, `{"idempotency_key":"p"}`, key)
	require.False(t, first.Duplicate)
	require.NotContains(t, first.Text, "5b1cf9ea", "the stored form has seven members")
	same := func(l stage.Mail) {
		t.Helper()
		require.True(t, l.Duplicate)
		require.Equal(t, strings.TrimSuffix(first.Text, "}")+`,"duplicate":true}`, l.Text)
	}
	same(far.send("HO:x", stage.Direct, `{"idempotency_key":"p"}`, key))
	same(far.send("PO:one", "other.words", `{"other":true}`, key))
	same(far.send("HO:x", stage.Direct, `{"idempotency_key":"p"}`, key))
	theirs := other.send("HO:x", stage.Direct, `{}`, key)
	require.False(t, theirs.Duplicate)
	require.Greater(t, theirs.Seq, first.Seq)
	actors[0].Granted(nil, "send-message", `{"to_actor":"HO:x","topic":"message.direct","payload":{},`+key+`}`)
	require.Len(t, b.clerk("HO:x").polls(""), 3)
	require.Empty(t, about(b.boss.polls(""), "topic.unknown"), "what is not sent has no consequence")

	b.Kill()
	b.Open("one")
	same(far.send("HO:x", stage.Direct, `{}`, key))
	require.True(t, other.send("HO:x", stage.Direct, `{}`, key).Duplicate)
	require.Len(t, b.clerk("HO:x").polls("&cursor=0"), 3)
	b.Stop()
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
			fmt.Fprintln(&lines, stage.MailLine("PO:one", "HO:x", stage.Direct, fmt.Sprintf(`{"n":%d}`, n), fmt.Sprintf(`"idempotency_key":"key-%d"`, n)))
		}
		return lines.String()
	}
	one.Say(keyed(0, many))
	one.Say(keyed(0, again) + keyed(many-again, many))
	for _, soFar := range []int{many / 2, many, many + 2*again} {
		stage.WaitFor(t, fmt.Sprint(soFar, " answers"), func() bool { return len(plain(one)) >= soFar })
	}
	bySeq := make(map[int64][]stage.Mail)
	for _, line := range plain(one) {
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
	require.Equal(t, counting(many), payloads(found), "each once, and in the order in which they were sent")
	b.Stop()
}

// Fifty concurrent sends with the same key, in every way, store one row and get the same answer.
//
// Rows: E-10, E-16, E-24, E-60, E-84, T-37.
func TestBusOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	const ways, each = 5, 10
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	one := actors[0]
	program := b.AgentCaller("one")
	own := b.Caller("X-API-Key", environment(t, one)["ORC_TOKEN"])
	const body = `"to_actor":"HO:x","topic":"message.direct","payload":{"n":1.50},"idempotency_key":"the one"`
	whole := `{"from_actor":"PO:one",` + body + `}`
	answers := make([]string, 2*each)
	var lines strings.Builder
	for n := range each {
		fmt.Fprintln(&lines, stage.Request(fmt.Sprint("own-", n), "send-message", `{`+body+`}`))
		fmt.Fprintln(&lines, whole)
		fmt.Fprintln(&lines, calling(fmt.Sprintf(`"c%d"`, n), "tools/call", `{"name":"bus_send_message","arguments":{`+body+`}}`))
	}
	var group sync.WaitGroup
	begin := make(chan struct{})
	for n := range 2 * each {
		who := []*stage.Caller{program, own}[n%2]
		group.Go(func() {
			<-begin
			if r, err := who.Try("POST /api/bus/send", whole); err == nil {
				answers[n] = r.Text
			}
		})
	}
	close(begin)
	one.Say(lines.String())
	group.Wait()
	for n := range each {
		m := one.Answer(fmt.Sprint("own-", n))
		require.Nil(t, m.Error, m.Line)
		answers = append(answers, string(m.Payload), called(one, fmt.Sprintf(`"c%d"`, n)).text(t))
	}
	stage.WaitFor(t, "answers to mail as it is", func() bool { return len(plain(one)) >= each })
	answers = append(answers, plain(one)...)
	require.Len(t, answers, ways*each)
	first, fresh := readSent(t, answers[0]), 0
	for _, text := range answers {
		l := readSent(t, text)
		if !l.Duplicate {
			fresh++
		}
		require.Equal(t, strings.TrimSuffix(strings.TrimSuffix(first.Text, "}"), `,"duplicate":true`), strings.TrimSuffix(strings.TrimSuffix(l.Text, "}"), `,"duplicate":true`))
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, []int64{first.Seq}, seqs(b.clerk("HO:x").polls("")))
	b.Stop()
}
