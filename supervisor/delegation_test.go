package supervisor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// handOn returns a request for work, with a space that no encoder puts there.
func handOn(id, kind string) string {
	return fmt.Sprintf(`{"id":%q,"type":%q, "payload":{"n":1.50}}`, id, kind)
}

// response returns the response of an agent to such work.
func response(id, status, more string) string {
	if status == "completed" && !strings.Contains(more, `"result"`) {
		more += `,"result":{"success":true}`
	}
	return fmt.Sprintf(`{"id":%q,"status":%q%s}`, id, status, more)
}

// act returns an act on such work by its source.
func act(id, kind, payload string) string {
	return fmt.Sprintf(`{"id":%q,"type":"task.%s","payload":%s}`, id, kind, payload)
}

// handsOn returns a boss that delegates work and a worker that can do "parse".
func handsOn(t *testing.T, capacity int) (agents []settings.Agent, parts map[string]part, boss, w *talker) {
	hand := worker("w", capacity)
	hand.Offers = []string{"parse"}
	agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, hand)
	return agents, parts, all[0], all[1]
}

// owed returns how many lines wait in the mailbox of an agent, or are reserved there. It finds
// the number by changing the limits.
func (p *play) owed(a *talker) (lines int) {
	synctest.Wait()
	box, spec := p.life.agents[a.name].mail, p.life.agents[a.name].Agent
	defer box.Adopt(spec.Mailbox, spec.Health.WriteTimeout)
	for ; ; lines++ {
		box.Adopt(stdin.Limits{Messages: 2*lines + 1, Bytes: 1 << 40}, spec.Health.WriteTimeout)
		if _, room := box.PageRoom(); room { // less than half full
			return lines
		}
	}
}

// TestWorkIsHandedOn checks that a printed request is written to the capable agent, and its
// responses to the source, unchanged. It gets no replies, and only repeated text is log output.
//
// Rows: D-01, D-17, D-36, K-22.
func TestWorkIsHandedOn(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		agents, parts, boss, w := handsOn(t, 1)
		dir := t.TempDir()
		p := perform(t, Options{Record: record, StateDir: dir}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"))
		require.Len(t, w.lines(), 1)
		require.Contains(t, w.lines()[0], `"id":"a","type":"parse", "payload":{"n":1.50}`)
		require.Contains(t, w.lines()[0], `"target":"w"`)
		w.says(w.lines()[0])
		require.Len(t, w.lines(), 1, "an echo asks for nothing")
		done := response("a", "completed", `,"result":{"title":"soup","price":4.50}`)
		w.says(response("a", "in_progress", ""), done)
		require.Equal(t, []string{response("a", "in_progress", ""), done}, boss.lines())
		boss.says(done)
		boss.says(handOn("a", "parse"))
		if record != nil {
			again := boss.lines()[2:]
			require.Len(t, again, 1, "asked again, it is answered again")
			requireFilledIn(t, done, again[0])
		}
		require.Len(t, w.lines(), 1)
		require.Len(t, p.life.agents["w"].lastWords(), 1, "the echo")
		require.Len(t, p.life.agents["boss"].lastWords(), 1, "the echo")
		require.Zero(t, p.owed(boss)+p.owed(w))
		require.NoError(t, p.stop())
		var trailed []string
		for _, line := range trail(t, dir) {
			trailed = append(trailed, fmt.Sprint(line["actor"], " ", line["type"], " ", line["id"], " ", line["outcome"]))
		}
		require.Equal(t, []string{"agent:boss task:request a granted", "agent:boss task:request a granted"}, trailed)
	})
}

// TestWhatIsSaidAboutWork checks that messages about running work reach its agent, and that its
// responses reach the source.
//
// Rows: D-37, D-38.
func TestWhatIsSaidAboutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, w := handsOn(t, 1)
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"), act("a", "status", `{}`))
		require.Len(t, w.lines(), 2)
		w.says(response("a", "input_required", `,"message":"how many?"`))
		boss.says(act("a", "update", `{"input":4.0}`))
		require.Equal(t, act("a", "update", `{"input":4.0}`), w.lines()[2])
		boss.says(act("a", "cancel", `{"reason":"enough"}`))
		require.Contains(t, w.lines()[3], "task.cancel")
		require.Contains(t, boss.lines()[1], `"status":"cancelled"`)
		boss.says(act("a", "status", `{}`))
		require.Len(t, boss.lines(), 3)
		require.Zero(t, p.owed(boss)+p.owed(w))
		require.NoError(t, p.stop())
	})
}

// TestWorkThatIsRefused checks that a refusal is sent once, in the form of the message. It is in
// the audit, and counted by kind. A refused report has no reply unless it cannot be decoded.
//
// Rows: B-81, D-11, D-18, D-27, K-06.
func TestWorkThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, w := handsOn(t, 1)
		dir, watch := t.TempDir(), new(watcher)
		p := perform(t, Options{Record: newLedger(), StateDir: dir, Protocol: freely, Watch: watch.watch()}, agents, parts)
		synctest.Wait()
		boss.says(
			`{"id":"x","type":"parse","payload":{},"routing":{"source":"w"}}`,
			`{"id":"y","type":"parse","payload":{},"context":{"priority":"soon"}}`,
			`{"id":"z","type":"cook","payload":{},"context":{}}`,
			act("x", "status", `{}`),
			act("x", "update", `{}`),
			act("x", "cancel", `{"reason":"x"}`),
		)
		var failed, told []string
		for i, line := range boss.told() {
			if line.Type == "" {
				failed = append(failed, boss.lines()[i])
				continue
			}
			told = append(told, line.Type+" "+line.CorrelationID)
		}
		require.Len(t, failed, 3)
		for _, line := range failed {
			require.Contains(t, line, `"status":"failed"`)
		}
		require.Equal(t, []string{"response:error x", "response:error x", "response:error x"}, told)
		boss.says(handOn("a", "parse"))
		synctest.Wait()
		w.says(response("a", "in_progress", `,"result":1`), response("a", "completed", ""))
		<-time.After(time.Second) // the interval of log messages
		w.says(response("a", "failed", ""))
		require.Len(t, boss.lines(), 7, "only what was taken is passed on")
		require.Equal(t, "response:error", w.told()[1].Type)
		require.Equal(t, "a", w.told()[1].CorrelationID)
		require.Zero(t, p.owed(boss)+p.owed(w))
		require.Equal(t, []string{
			`judged stdio task:cancel "not_found" 1`, `judged stdio task:request "" 1`, `judged stdio task:request "denied" 1`,
			`judged stdio task:request "invalid" 1`, `judged stdio task:request "not_found" 1`, `judged stdio task:response "" 1`,
			`judged stdio task:response "conflict" 1`, `judged stdio task:response "invalid" 1`,
			`judged stdio task:status "not_found" 1`, `judged stdio task:update "invalid" 1`,
		}, watch.since(), "it is no request, and has no answer")
		require.NoError(t, p.stop())
		require.Condition(t, func() bool {
			return strings.Contains(strings.Join(p.told(), "\n"), "ignored task response: ")
		}, p.told())
		kinds := make(map[string]string)
		for _, line := range trail(t, dir) {
			kinds[fmt.Sprint(line["type"], " ", line["outcome"])] = fmt.Sprint(line["id"])
		}
		require.Equal(t, map[string]string{
			"task:request denied": "x", "task:request invalid": "y", "task:request not_found": "z", "task:request granted": "a",
			"task:status not_found": "x", "task:update invalid": "x", "task:cancel not_found": "x",
			"task:response invalid": "a", "task:response conflict": "a",
		}, kinds)
	})
}

// TestResponsesThatAreRefused checks that an agent gets one refusal of a response, because it
// may wait for the outcome. A reply to the refusal has no effect, and a response to an ended
// task is ignored.
//
// Rows: D-18, D-26, B-21.
func TestResponsesThatAreRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		agents, parts, boss, w := handsOn(t, 1)
		dir, watch := t.TempDir(), new(watcher)
		p := perform(t, Options{Record: record, StateDir: dir, Protocol: freely, Watch: watch.watch()}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"), handOn("b", "parse"))
		require.Len(t, w.lines(), 1, "the second waits")
		asks := response("b", "input_required", `,"message":"how many?"`)
		w.says(asks, response("a", "in_progress", ""), asks)
		require.Len(t, w.lines(), 3)
		for _, told := range w.told()[1:] {
			require.Equal(t, "response:error", told.Type)
			require.Equal(t, "b", told.CorrelationID)
			require.Equal(t, "not_forwarded", told.Error.Details["reason"])
		}
		w.says(w.lines()...)
		w.says(response("a", "completed", ""), response("a", "failed", ""))
		require.Len(t, w.lines(), 4, "that, and the second task")
		require.Equal(t, []string{response("a", "in_progress", ""), response("a", "completed", "")}, boss.lines())
		require.Zero(t, p.owed(boss)+p.owed(w))
		require.Equal(t, []string{
			`judged stdio task:request "" 2`, `judged stdio task:response "" 1`, `judged stdio task:response "" 1`,
			`judged stdio task:response "conflict" 1`, `judged stdio task:response "conflict" 1`, `judged stdio task:response "conflict" 1`,
		}, watch.since(), "each once")
		require.NoError(t, p.stop())
		trailed := 0
		for _, line := range trail(t, dir) {
			if line["type"] == "task:response" {
				trailed++
			}
		}
		require.Equal(t, 3, trailed, "each is noted once")
	})
}

// TestWhoDoesNotReadWhatIsRefusedWaits checks that an agent that does not read the refusals of
// its questions is blocked.
//
// Rows: B-21, T-04.
func TestWhoDoesNotReadWhatIsRefusedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 500
		agents, parts, boss, w := handsOn(t, 1)
		agents[1].Mailbox = stdin.Limits{Messages: 8, Bytes: 1 << 20}
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"), handOn("b", "parse"))
		require.Len(t, w.lines(), 1)
		again := p.deafen(w)
		said := w.goesOn(many, func(int) string { return response("b", "input_required", `,"message":"?"`) })
		require.Less(t, said(), 8)
		again()
		require.Len(t, w.lines(), many+1)
		require.Equal(t, many, said())
		require.Zero(t, p.owed(w))
		require.NoError(t, p.stop())
	})
}

// TestLimitOfDelegatedWork checks that delegated work counts against the limit, and that an
// agent over it is refused in the form of its message.
//
// Rows: B-63, T-24.
func TestLimitOfDelegatedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, w := handsOn(t, 10)
		p := perform(t, Options{Record: newLedger(), Protocol: dispatch.Protocol{Rate: 1, Burst: 2}}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"), handOn("b", "parse"), handOn("c", "parse"), act("a", "status", `{}`))
		require.Len(t, w.lines(), 2)
		require.Len(t, boss.lines(), 2)
		require.Contains(t, boss.lines()[0], `"RATE_LIMITED"`)
		require.Equal(t, "rate_limited", boss.told()[1].Error.Details["reason"])
		w.says(response("a", "in_progress", ""), response("b", "in_progress", ""), response("b", "completed", ""))
		require.Len(t, boss.lines(), 4)
		require.Equal(t, "rate_limited", w.told()[2].Error.Details["reason"], "somebody waits for it: it has to be said again")
		require.NoError(t, p.stop())
	})
}

// TestMuchWorkIsHandedOn checks that an agent can delegate without a pause, because it waits for no
// replies. Each refusal is sent once.
//
// Rows: B-21, D-17, T-04.
func TestMuchWorkIsHandedOn(t *testing.T) {
	bothWays(t, func(t *testing.T, record dispatch.Record) {
		const many = 10_000
		agents, parts, boss, w := handsOn(t, 1)
		agents[0].Mailbox = stdin.Limits{Messages: 8, Bytes: 1 << 20}
		p := perform(t, Options{Record: record, Protocol: freely}, agents, parts)
		synctest.Wait()
		for n := 0; n < many; n += 100 {
			var lines []string
			for i := range 100 {
				lines = append(lines, handOn(fmt.Sprint(n+i), "parse"))
			}
			boss.says(lines...)
		}
		require.Len(t, w.lines(), 1, "it has room for one")
		seen := make(map[string]bool)
		for _, line := range boss.lines() {
			require.Contains(t, line, `"AGENT_BUSY"`)
			require.False(t, seen[line], line)
			seen[line] = true
		}
		require.Equal(t, many, len(seen)+p.count(events.TaskCreated))
		require.Greater(t, p.count(events.TaskCreated), 999)
		require.Zero(t, p.view("boss").Mailbox.Refused)
		require.Zero(t, p.owed(boss))
		boss.says(request("1", "query-agents", `{}`))
		require.Equal(t, "response:success", boss.told()[len(seen)].Type)
		require.NoError(t, p.stop())
	})
}

// TestWhoHandsOnTooMuchWaits checks that only an agent that delegates more than the disk takes,
// or does not read its refusals, is blocked.
//
// Rows: B-21, B-63, T-04.
func TestWhoHandsOnTooMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 3000
		agents, parts, boss, w := handsOn(t, 1)
		agents[0].Mailbox = stdin.Limits{Messages: 8, Bytes: 1 << 20}
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		again := p.deafen(boss)
		said := boss.goesOn(many, func(n int) string { return handOn(fmt.Sprint(n), "parse") })
		require.Less(t, said(), 1100, "it is heard, whoever has to keep what is refused")
		w.says(request("1", "query-agents", `{}`))
		require.Equal(t, "response:success", w.told()[1].Type)
		again()
		require.Equal(t, many, said())
		require.Len(t, boss.lines(), many-p.count(events.TaskCreated))
		require.Zero(t, p.owed(boss))
		require.NoError(t, p.stop())
	})
}

// TestWorkThatIsNotRecorded checks that a decision that could not be recorded has no effect: no
// agent gets the work, and the source hears it once.
//
// Rows: B-21, B-74.
func TestWorkThatIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, w := handsOn(t, 2)
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		boss.says(handOn("done", "parse"), handOn("a", "parse"))
		synctest.Wait()
		w.says(response("done", "completed", ""))
		require.Len(t, boss.lines(), 1)
		gate, full := make(chan struct{}), errors.New("no space left on device")
		record.meddle(func([]wire.Record) error { <-gate; return full })
		boss.says(handOn("b", "parse"))
		synctest.Wait()
		boss.says(act("a", "cancel", `{}`), handOn("done", "parse"))
		synctest.Wait()
		close(gate)
		require.ErrorIs(t, p.end(), full)
		require.Len(t, w.lines(), 3, "the first two, and that it ends")
		require.Len(t, boss.lines(), 4, "a line that is not passed on is no request that is refused")
		require.Contains(t, boss.lines()[1], `"id":"b","status":"failed"`)
		require.Equal(t, []string{"a INTERNAL_ERROR", "notify:shutdown"}, boss.gist()[2:])
	})
}

// TestWhatIsTakenAndDoneAtOnce checks that an agent may start a task and respond to it in one
// chunk.
//
// Rows: D-18, D-26.
func TestWhatIsTakenAndDoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, _ := handsOn(t, 1)
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		boss.says(submit("1", "cobol"))
		id := boss.task("1").ID
		boss.says(request("2", "start-task", fmt.Sprintf(`{"taskId":%q}`, id)), response(id, "completed", ""))
		boss.says(request("3", "get-task", fmt.Sprintf(`{"taskId":%q}`, id)))
		require.Equal(t, "completed", boss.task("3").Status)
		require.Empty(t, p.life.agents["boss"].lastWords())
		<-time.After(time.Minute)
		require.NoError(t, p.stop())
	})
}

// requireFilledIn requires that a response is repeated with the metadata that it lacked.
func requireFilledIn(t *testing.T, first, again string) {
	t.Helper()
	require.True(t, strings.HasPrefix(again, strings.TrimSuffix(strings.TrimSpace(first), "}")+`,"metadata":{"startedAt":`), again)
}
