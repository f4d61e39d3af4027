package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// TestWhoAsksWithoutReadingStandsStill checks that an agent that does not read its replies is
// blocked, and no other agent is. When it reads, it gets all replies.
//
// Rows: B-21, T-04.
func TestWhoAsksWithoutReadingStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 100
		agents, parts, all := talkers(t, settings.Agent{Name: "a", Mailbox: stdin.Limits{Messages: 10, Bytes: 1 << 20}}, settings.Agent{Name: "b"})
		a, b := all[0], all[1]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		again := p.deafen(a)
		said := 0
		go func() {
			for ; said < many; said++ {
				a.says(request(fmt.Sprint(said), "query-agents", `{}`))
			}
		}()
		synctest.Wait()
		require.Less(t, said, many, "it is heard, whoever has to keep the answers")
		require.LessOrEqual(t, p.view("a").Mailbox.Messages, 10)
		b.says(request("1", "query-agents", `{}`))
		require.Equal(t, []string{"1 granted"}, b.gist())
		again()
		synctest.Wait()
		require.Equal(t, many, said)
		require.Len(t, a.gist(), many)
		require.NoError(t, p.stop())
	})
}

// TestEveryRequestIsAnswered checks that no reply is dropped, however small the mailbox and
// however slow the disk. An agent that is faster than the log is blocked.
//
// Rows: B-21.
func TestEveryRequestIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		small := stdin.Limits{Messages: 8, Bytes: 1 << 20}
		agents, parts, all := talkers(t, settings.Agent{Name: "a", Mailbox: small}, settings.Agent{Name: "b", Mailbox: small})
		record := newLedger()
		p := perform(t, Options{Record: record, Protocol: freely}, agents, parts)
		synctest.Wait()
		release := record.hold()
		for _, one := range all {
			go func() {
				for n := range many {
					one.says(submit(fmt.Sprint(n), ""), request(fmt.Sprint("q", n), "query-agents", `{}`))
				}
			}()
		}
		synctest.Wait()
		release()
		synctest.Wait()
		for _, one := range all {
			seen := make(map[string]int)
			for _, words := range one.gist() {
				seen[words]++
			}
			require.Len(t, seen, 2*many)
			require.Zero(t, p.view(one.name).Mailbox.Refused)
		}
		require.NoError(t, p.stop())
	})
}

// TestLargeAnswers checks that large replies are written too, one after the other.
//
// Rows: B-21.
func TestLargeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a", Mailbox: stdin.Limits{Messages: 1024, Bytes: 10_000}})
		a := all[0]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		a.says(request("0", "submit-task", fmt.Sprintf(`{"type":"t","name":"n","description":%q}`, strings.Repeat("x", 6000))))
		id := a.task("0").ID
		again := p.deafen(a)
		go func() {
			for n := range 10 {
				a.says(request(fmt.Sprint("q", n), "query-agents", `{}`), request(fmt.Sprint("t", n), "get-task", fmt.Sprintf(`{"taskId":%q}`, id)))
			}
		}()
		synctest.Wait()
		again()
		require.Len(t, a.gist(), 21)
		require.NoError(t, p.stop())
	})
}

// TestWhoTellsTooMuchWaits checks that only an agent that sends more than the disk takes is
// blocked. No message is lost, and a read of another agent is answered when the disk continues.
//
// Rows: B-63.
func TestWhoTellsTooMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 4096 // facts that may wait for a commit
		const many = 4 * crowd
		agents, parts, all := talkers(t, settings.Agent{Name: "a"}, settings.Agent{Name: "b"})
		a, b := all[0], all[1]
		record := newLedger()
		p := perform(t, Options{Record: record, Protocol: freely}, agents, parts)
		synctest.Wait()
		release := record.hold()
		said := 0
		go func() {
			for ; said < many; said += crowd / 4 {
				lines := make([]string, crowd/4)
				for n := range lines {
					lines[n] = event(fmt.Sprint(said+n), "error", `{"error":"trouble"}`)
				}
				a.says(lines...)
			}
		}()
		synctest.Wait()
		require.LessOrEqual(t, said, 2*crowd)
		go b.says(request("1", "query-agents", `{}`))
		require.Empty(t, b.told())
		release()
		synctest.Wait()
		require.Equal(t, many, said)
		require.Len(t, kinds(record.facts(t), events.TaskTrouble), many)
		require.Equal(t, []string{"1 granted"}, b.gist())
		require.NoError(t, p.stop())
	})
}

// TestQuestionsTakeNoRoom checks that questions to people block no request, however many are open.
//
// Rows: B-26.
func TestQuestionsTakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a", Mailbox: stdin.Limits{Messages: 4, Bytes: 1 << 20}})
		a := all[0]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		for n := range 20 {
			a.says(request(fmt.Sprint("u", n), "ask-user", fmt.Sprintf(`{"question":"%d?","timeout":60000}`, n)))
		}
		a.says(request("q", "query-agents", `{}`))
		require.Equal(t, []string{"q granted"}, a.gist())
		<-time.After(time.Minute)
		require.Len(t, a.gist(), 21)
		require.NoError(t, p.stop())
	})
}

// TestLimit checks that the limit counts messages, not lines. A refused request is answered
// once, a refused event never. The first message of a chunk waits for its turn.
//
// Rows: B-63, B-79, T-24.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a"}, settings.Agent{Name: "b"})
		a, b := all[0], all[1]
		p := perform(t, Options{Record: newLedger(), Protocol: dispatch.Protocol{Rate: 100, Burst: 100}}, agents, parts)
		synctest.Wait()
		lines := strings.Split(strings.Repeat("just a line\n", 1000), "\n")
		for n := range 300 {
			lines = append(lines, request(fmt.Sprint(n), "query-agents", `{}`))
		}
		a.says(lines...)
		b.says(request("1", "query-agents", `{}`))
		require.Equal(t, []string{"1 granted"}, b.gist())
		served := 0
		for _, line := range a.told() {
			if line.Error == nil {
				served++
				continue
			}
			require.Equal(t, "rate_limited", line.Error.Details["reason"])
		}
		require.Equal(t, 100, served)
		require.Len(t, a.told(), 300)
		a.says(event("e", "question", `{"question":"late?"}`), event("f", "question", `{"question":"dropped?"}`))
		require.Len(t, a.told(), 300)
		<-time.After(500 * time.Millisecond)
		a.says(lines[len(lines)-100:]...)
		granted := 0
		for _, words := range a.gist()[300:] {
			if strings.HasSuffix(words, "granted") {
				granted++
			}
		}
		require.Equal(t, 50, granted, "half a second is worth half of the rate")
		require.Equal(t, 1, p.count(events.QuestionAsked))
		require.NoError(t, p.stop())
	})
}

// TestProgressIsALifeSign checks that a progress event counts as output.
//
// Rows: B-31.
func TestProgressIsALifeSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worker("w", 1)
		w.Health.Silence = 10 * time.Second
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, w)
		boss, held := all[0], all[1]
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		boss.says(submit("1", "w"))
		id := boss.task("1").ID
		for n := range 10 {
			<-time.After(8 * time.Second)
			held.says(event(fmt.Sprint(n), "progress", fmt.Sprintf(`{"taskId":%q,"progress":0.%d}`, id, n)))
			require.Equal(t, control.StateRunning, p.view("w").State)
		}
		require.Zero(t, p.count(events.AgentStalled))
		<-time.After(11 * time.Second)
		require.Equal(t, 1, p.count(events.AgentStalled))
		require.NoError(t, p.stop())
	})
}
