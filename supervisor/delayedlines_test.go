package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/artifacts"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire/events"
)

// busy blocks the reading of the record and of artifacts until release is called.
func (p *play) busy() (release func()) {
	gate := make(chan struct{})
	p.options.Record.(*ledger).readAfter(gate)
	if p.artifacts != nil {
		p.artifacts.Read = func(path string) ([]byte, error) {
			<-gate
			return artifacts.ReadRegular(path)
		}
	}
	return func() { close(gate) }
}

// always restarts an agent a second after it has ended.
var always = settings.Restart{Policy: settings.Always, Delay: time.Second, Factor: 1, MaxDelay: time.Second, Burst: 10, Window: time.Minute}

// TestResponsesDoNotOvertakeEachOther checks that messages about a task keep their order, even
// if one must be read from the log first. Other tasks do not wait.
//
// Rows: D-17, D-26, D-35.
func TestResponsesDoNotOvertakeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, w := handsOn(t, 1)
		hand, others, all := talkers(t, worker("other", 1))
		agents = append(agents, hand...)
		parts["other"] = others["other"]
		other := all[0]
		p := perform(t, Options{Record: newLedger(), StateDir: t.TempDir(), Protocol: freely}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"))
		synctest.Wait()
		release := p.busy()
		first := response("a", "in_progress", `,"artifacts":[{"name":"n","type":"text/plain","content":"`+large("x")+`"}]`)
		w.says(first)
		synctest.Wait()
		w.says(response("a", "in_progress", ""), response("a", "completed", ""))
		require.Empty(t, boss.lines(), "they wait for the first")
		w.says(handOn("b", "other"))
		other.says(response("b", "completed", ""))
		require.Equal(t, response("b", "completed", ""), w.lines()[1])
		release()
		require.Equal(t, []string{first, response("a", "in_progress", ""), response("a", "completed", "")}, boss.lines())
		boss.says(handOn("c", "parse"))
		synctest.Wait()
		release = p.busy()
		w.says(response("c", "completed", ""))
		require.Len(t, boss.lines(), 4, "nothing is left for which it would wait")
		release()
		require.NoError(t, p.stop())
	})
}

// TestResponsesForTheNextRun checks that an undelivered response is read from the log and
// written to the next run of its source. The delivery is recorded once.
//
// Rows: D-17, D-36, T-04.
func TestResponsesForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, w := handsOn(t, 2)
		agents[0].Restart = always
		record := newLedger()
		p := perform(t, Options{Record: record, StateDir: t.TempDir(), Protocol: freely}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"), handOn("b", "parse"))
		synctest.Wait()
		boss.exit <- 0
		synctest.Wait()
		lines := []string{making("a", large("x")), response("b", "in_progress", "")}
		w.says(lines...)
		synctest.Wait()
		w.says(response("b", "completed", `,"result":1.0`))
		require.NotContains(t, kinds(record.facts(t), "task."), events.TaskAnswered)
		<-time.After(2 * time.Second)
		require.ElementsMatch(t, []string{lines[0], response("b", "completed", `,"result":1.0`)}, boss.lines())
		answered := 0
		for _, kind := range kinds(record.facts(t), "task.") {
			if kind == events.TaskAnswered {
				answered++
			}
		}
		require.Equal(t, 2, answered)
		require.NoError(t, p.stop())
	})
}

// TestPipeWaitsForWhatIsRead checks that an agent that joined by a pipe and sends no more still
// gets its delayed lines.
//
// Rows: B-21, D-37.
func TestPipeWaitsForWhatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, _, w := handsOn(t, 1)
		p := perform(t, Options{Record: newLedger(), StateDir: t.TempDir(), Protocol: freely}, agents, parts)
		me := p.join("me")
		me.say(handOn("a", "parse"))
		synctest.Wait()
		line := making("a", large("x"))
		w.says(line)
		require.Equal(t, line, me.hear())
		release := p.busy()
		me.ask("1", "get-task-response", `{"taskId":"a"}`)
		me.end()
		synctest.Wait()
		release()
		require.Contains(t, me.hear(), large("x"))
		me.goodbye()
		require.NoError(t, p.stop())
	})
}

// TestWhoAsksAgainAndAgainWaits checks that an agent that endlessly repeats requests for delayed
// lines is blocked. In the end it has as many replies as requests.
//
// Rows: B-21, D-39, T-04.
func TestWhoAsksAgainAndAgainWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 500
		agents, parts, boss, w := handsOn(t, 1)
		agents[0].Mailbox = stdin.Limits{Messages: 16, Bytes: 1 << 20}
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"))
		synctest.Wait()
		w.says(response("a", "completed", ""))
		synctest.Wait()
		release := p.busy()
		said := boss.goesOn(many, func(int) string { return handOn("a", "parse") })
		require.Less(t, said(), 16)
		release()
		require.Len(t, boss.lines(), many+1)
		require.Zero(t, p.owed(boss))
		require.NoError(t, p.stop())
	})
}
