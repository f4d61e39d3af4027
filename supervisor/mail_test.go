package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// mailTo returns the request that sends a message.
func mailTo(id, to string, n int) string {
	return request(id, "send-message", fmt.Sprintf(`{"to_actor":%q,"topic":"message.direct","payload":{"n":%d}}`, to, n))
}

// brought returns the mail that a run got, as the n of each payload.
func (t *talker) brought() (list []int) {
	t.t.Helper()
	for _, line := range t.told() {
		if line.Type != "notify:message" {
			continue
		}
		var m struct {
			Payload struct{ N int }
			Seq     int64
		}
		require.NoError(t.t, json.Unmarshal(line.Payload, &m))
		require.Positive(t.t, m.Seq)
		list = append(list, m.Payload.N)
	}
	return list
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// named returns an agent with an actor of its name.
func named(name string) settings.Agent {
	a := settings.Agent{Name: name, Actor: "PO:" + name}
	a.Restart.Policy = settings.Always
	return a
}

// TestMailIsBrought checks that an agent gets its mail as it is sent, and that its next run gets
// the unacknowledged mail again.
//
// Rows: E-26, E-27, E-35, E-36, E-40, T-34, T-35.
func TestMailIsBrought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, named("one"), named("two"))
		one, two := all[0], all[1]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		one.says(mailTo("1", "PO:two", 0), mailTo("2", "PO:one", 7), mailTo("3", "PO:two", 1))
		require.Equal(t, []int{0, 1}, two.brought())
		require.Equal(t, []int{7}, one.brought())
		var list mail.List
		two.says(request("p", "poll-messages", `{}`))
		two.answer("p", &list)
		require.Len(t, list.Messages, 2)
		two.says(request("a", "ack-messages", fmt.Sprintf(`{"seq":%d}`, list.Messages[0].Seq)))
		synctest.Wait()
		two.exit <- 0
		<-time.After(time.Minute)
		require.Equal(t, []int{1}, two.brought(), "what it has acked is not brought again")
		require.NoError(t, p.stop())
	})
}

// answer decodes the reply to a request.
func (t *talker) answer(id string, v any) {
	t.t.Helper()
	for _, line := range t.told() {
		if line.CorrelationID == id {
			require.Nil(t.t, line.Error)
			require.NoError(t.t, json.Unmarshal(line.Payload, v))
			return
		}
	}
	require.Fail(t.t, "there is no answer to "+id)
}

// TestMailWaitsForSlowAgents checks that the mail of an agent that does not read waits in the log,
// not in its mailbox. No other agent waits, and no mail is lost or reported as lost.
//
// Rows: E-09, E-27, E-28, B-08, T-04.
func TestMailWaitsForSlowAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := named("slow")
		slow.Mailbox = stdin.Limits{Messages: 20, Bytes: 1 << 20}
		agents, parts, all := talkers(t, named("one"), slow, named("fine"))
		one, deaf, fine := all[0], all[1], all[2]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		again := p.deafen(deaf)
		const many = 1000
		for n := range many {
			one.says(mailTo(fmt.Sprint(n), "PO:slow", n))
		}
		one.says(mailTo("x", "PO:fine", 3))
		require.Equal(t, []int{3}, fine.brought())
		require.LessOrEqual(t, p.view("slow").Mailbox.Messages, 20)
		again()
		require.Equal(t, upTo(many), deaf.brought())
		require.Zero(t, p.view("slow").Mailbox.Refused)
		require.Zero(t, p.count(events.AgentUndelivered))
		require.NoError(t, p.stop())
	})
}

// TestPagesWaitForSlowAgents checks that a reply that must be read from the log waits for a slow
// agent without using memory.
//
// Rows: E-30, T-04.
func TestPagesWaitForSlowAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := named("slow")
		slow.Mailbox = stdin.Limits{Messages: 1000, Bytes: 40_000}
		agents, parts, all := talkers(t, named("one"), slow)
		one, deaf := all[0], all[1]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		for n := range 100 {
			one.says(mailTo(fmt.Sprint(n), "PO:slow", n))
		}
		require.Equal(t, upTo(100), deaf.brought())
		again := p.deafen(deaf)
		asked := make(chan struct{})
		go func() { // it blocks too, after a while
			defer close(asked)
			for n := range 50 {
				deaf.says(request(fmt.Sprint("p", n), "poll-messages", `{}`)) // each page is some 17 KiB
			}
		}()
		synctest.Wait()
		require.Less(t, p.view("slow").Mailbox.Bytes, int64(80_000))
		again()
		<-asked
		for n := range 50 {
			var list mail.List
			deaf.answer(fmt.Sprint("p", n), &list)
			require.Len(t, list.Messages, 100)
		}
		require.NoError(t, p.stop())
	})
}

// TestBroadcastsAreBrought checks that a broadcast reaches every agent but its sender. An agent
// with another actor in each run gets no earlier mail.
//
// Rows: E-31, E-52, E-72, T-41.
func TestBroadcastsAreBrought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boss := named("boss")
		boss.Actor = "GO"
		plain := settings.Agent{Name: "plain", Restart: named("").Restart}
		agents, parts, all := talkers(t, boss, named("one"), plain)
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		say := func(id string, n int) {
			all[0].says(request(id, "send-message", fmt.Sprintf(`{"to_actor":"broadcast","topic":"broadcast.all","payload":{"n":%d}}`, n)))
		}
		say("1", 1)
		require.Equal(t, []int{1}, all[1].brought())
		require.Equal(t, []int{1}, all[2].brought())
		require.NotContains(t, all[0].brought(), 1)
		all[1].exit <- 0
		all[2].exit <- 0
		<-time.After(time.Minute)
		require.Equal(t, []int{1}, all[1].brought())
		require.Empty(t, all[2].brought())
		say("2", 2)
		require.Equal(t, []int{1, 2}, all[1].brought())
		require.Equal(t, []int{2}, all[2].brought())
		require.NoError(t, p.stop())
	})
}

// TestOneKeyIsOneMessage checks that concurrent sends with one key make one message, and that
// all of them get it as reply.
//
// Rows: E-16, E-60, T-23.
func TestOneKeyIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, _ := talkers(t, named("one"))
		record := newLedger()
		p := perform(t, Options{Record: record, Protocol: freely}, agents, parts)
		synctest.Wait()
		let := record.hold()
		var all sync.WaitGroup
		seqs := make([]int64, 50)
		for i := range seqs {
			all.Go(func() {
				answer, err := p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "send-message",
					[]byte(`{"to_actor":"PO:one","topic":"message.direct","payload":{"n":1},"idempotency_key":"k"}`))
				if err == nil {
					seqs[i] = answer.(*mail.Sent).Seq
				}
			})
		}
		synctest.Wait()
		let()
		all.Wait()
		for _, seq := range seqs {
			require.Positive(t, seq)
			require.Equal(t, seqs[0], seq)
		}
		n := 0
		for _, r := range record.facts(t) {
			if r.Key == "k" {
				n++
			}
		}
		require.Equal(t, 1, n)
		require.NoError(t, p.stop())
	})
}

// blind is a log with searches that fail.
type blind struct{ *ledger }

func (blind) Find(context.Context, wire.Search) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) { yield(wire.Record{}, errors.New("no such sector")) }
}

// TestNoKeyWithoutTheRecord checks that a message with a key is not sent if the log cannot be
// searched for the key.
//
// Rows: E-16, E-57.
func TestNoKeyWithoutTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, named("one"))
		record := newLedger()
		p := perform(t, Options{Record: blind{record}, Protocol: freely}, agents, parts)
		synctest.Wait()
		all[0].says(
			request("1", "send-message", `{"to_actor":"GO","topic":"message.direct","payload":{},"idempotency_key":"k"}`),
			request("2", "send-message", `{"to_actor":"GO","topic":"message.direct","payload":{}}`),
			request("3", "poll-messages", `{}`),
		)
		require.ElementsMatch(t, []string{"1 INTERNAL_ERROR", "2 granted", "3 INTERNAL_ERROR"}, all[0].gist())
		for _, r := range record.facts(t) {
			require.Empty(t, r.Key)
		}
		require.NoError(t, p.stop())
	})
}

// TestFollowedMail checks that a follower of mail gets the existing mail first, and then the new
// mail.
//
// Rows: E-08, E-09, E-32.
func TestFollowedMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, named("one"))
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		operator := handlers.Actor{Kind: handlers.Operator}
		_, err := p.Requests.OpenMail(t.Context(), handlers.Actor{Kind: handlers.External, Name: "HO:x"}, "PO:one", nil)
		require.Error(t, err)
		all[0].says(mailTo("1", "HO:x", 1))
		synctest.Wait()
		reader, err := p.Requests.OpenMail(t.Context(), handlers.Actor{Kind: handlers.External, Name: "HO:x"}, "", nil)
		require.NoError(t, err)
		got := make(chan []mail.Message, 10)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			for {
				messages, err := reader.Next(ctx)
				if err != nil {
					left <- err
					return
				}
				got <- messages
			}
		}()
		require.Len(t, <-got, 1)
		synctest.Wait()
		all[0].says(mailTo("2", "HO:x", 2), mailTo("3", "PO:one", 3))
		require.Equal(t, `{"n":2}`, string((<-got)[0].Payload))
		var seen []string
		require.NoError(t, p.Requests.Messages(t.Context(), dispatch.MailQuery{Actor: "HO:x", Last: 1}, func(m mail.Message) error {
			seen = append(seen, string(m.Payload))
			return nil
		}))
		require.Equal(t, []string{`{"n":2}`}, seen)
		leave()
		require.ErrorIs(t, <-left, context.Canceled)
		_, err = p.Requests.Ask(t.Context(), operator, "poll-messages", []byte(`{"actor":"HO:x","limit":1}`))
		require.NoError(t, err)
		require.NoError(t, p.stop())
	})
}

// TestActorsThatMove checks that an actor that moves to another agent never belongs to two runs at
// once. The new run waits for the end of the old one.
//
// Rows: E-74.
func TestActorsThatMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		was, is := named("was"), settings.Agent{Name: "is", Actor: "PO:was"}
		defaults(t, &is)
		p := perform(t, Options{Record: newLedger()}, []settings.Agent{was}, map[string]part{"was": untilSignal, "is": untilEOF})
		synctest.Wait()
		next := *p.life.agents["was"].Agent
		next.Actor = "PO:new"
		applied := p.apply(Change{Action: settings.ActionRestart, Name: "was", Agent: next}, Change{Action: settings.ActionStart, Name: "is", Agent: is})
		synctest.Wait()
		require.Equal(t, control.StateWaiting, p.view("is").State)
		require.Contains(t, p.view("is").Reason, "which still is PO:was")
		<-time.After(time.Minute)
		applied.outcomes()
		require.Equal(t, control.StateRunning, p.view("is").State)
		require.Equal(t, control.StateRunning, p.view("was").State)
		answer, err := p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "list-actors", nil)
		require.NoError(t, err)
		who := make(map[string]string)
		for _, v := range answer.(*mail.ActorList).Actors {
			who[v.Agent] = v.Actor
		}
		require.Equal(t, "PO:was", who["is"])
		require.Equal(t, "PO:new", who["was"])
		require.NoError(t, p.stop())
	})
}

// TestUnreadMailStalls checks that an agent that does not read its mail is stalled, as one that
// does not read replies. No mail is lost.
//
// Rows: B-08, E-27.
func TestUnreadMailStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, named("one"), named("slow"))
		one, deaf := all[0], all[1]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		again := p.deafen(deaf)
		one.says(mailTo("1", "PO:slow", 1), mailTo("2", "PO:slow", 2))
		<-time.After(9 * time.Second)
		require.Equal(t, control.StateRunning, p.view("slow").State)
		<-time.After(2 * time.Second)
		require.Equal(t, control.StateStalled, p.view("slow").State)
		require.Contains(t, p.view("slow").Reason, "2 of them mail")
		again()
		require.Equal(t, control.StateRunning, p.view("slow").State)
		require.Equal(t, []int{1, 2}, deaf.brought())
		again = p.deafen(deaf)
		one.says(mailTo("3", "PO:slow", 3))
		synctest.Wait()
		deaf.exit <- 0
		again()
		<-time.After(time.Minute)
		require.Equal(t, []int{1, 2, 3}, deaf.brought(), "its next run has all that it has not acked")
		require.Zero(t, p.view("slow").Mailbox.Refused, "nothing is lost")
		require.NoError(t, p.stop())
	})
}
