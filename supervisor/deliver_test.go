package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// TestToldTasksRun checks that a task is assigned when that is recorded, and runs only after the
// notice was written to its agent.
//
// Rows: B-08, B-56, T-04.
func TestToldTasksRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, worker("w", 1))
		boss, w := all[0], all[1]
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		again := p.deafen(w)
		boss.says(submit("1", "w"))
		synctest.Wait()
		require.Equal(t, []string{"task.created", "task.assigned"}, kinds(record.facts(t), "task."))
		again()
		synctest.Wait()
		require.Equal(t, []string{"task.created", "task.assigned", "task.started"}, kinds(record.facts(t), "task."))
		require.Equal(t, []string{"notify:task-assigned"}, w.gist())
		require.NoError(t, p.stop())
	})
}

// TestUndeliveredAssignmentIsGivenToAnother checks that an assignment without room in the
// mailbox goes to another agent. The first agent gets work again after it has read.
//
// Rows: B-08, B-56, T-04.
func TestUndeliveredAssignmentIsGivenToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := worker("first", 1), worker("second", 1)
		first.Offers, second.Offers = []string{"w"}, []string{"w"}
		first.Mailbox = stdin.Limits{Messages: 10, Bytes: 300}
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, first, second)
		boss, deaf, fine := all[0], all[1], all[2]
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		again := p.deafen(deaf)
		require.NoError(t, p.Tell(t.Context(), "first", []byte(`{"type":"`+strings.Repeat("x", 250)+"\"}\n")))
		synctest.Wait()
		boss.says(submit("1", "w"))
		require.Equal(t, []string{"notify:task-assigned"}, fine.gist())
		require.Equal(t, []string{"task.created", "task.assigned", "task.requeued", "task.assigned", "task.started"}, kinds(record.facts(t), "task."))
		require.Equal(t, 1, p.count(events.AgentUndelivered), "people hear of it")
		boss.says(submit("2", "w"))
		synctest.Wait()
		require.Equal(t, []string{"task.created"}, kinds(record.facts(t), "task.")[5:], "nobody can be told of it")
		again()
		require.Equal(t, "notify:task-assigned", deaf.gist()[1], "it reads again, and there is work")
		require.NoError(t, p.stop())
	})
}

// TestDeafAgentIsGivenNothing checks that an agent that is deaf for long is marked and loses its
// assignments. It gets work again when it has recovered.
//
// Rows: B-08, T-04.
func TestDeafAgentIsGivenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, worker("w", 10))
		boss, w := all[0], all[1]
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		again := p.deafen(w)
		boss.says(submit("1", "w"), submit("2", "w"))
		<-time.After(11 * time.Second)
		require.Equal(t, control.StateStalled, p.view("w").State)
		boss.says(submit("3", "w"))
		boss.says(request("4", "get-task", fmt.Sprintf(`{"taskId":%q}`, boss.task("3").ID)))
		require.Empty(t, boss.task("4").AssignedTo)
		again()
		require.Len(t, w.gist(), 3)
		require.Equal(t, control.StateRunning, p.view("w").State)
		require.NoError(t, p.stop())
	})
}

// TestNoticesComeInOrder checks that notices of many tasks are whole lines, each once, in order.
//
// Rows: B-73, T-58.
func TestNoticesComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 100
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, worker("w", many))
		boss, w := all[0], all[1]
		p := perform(t, Options{Record: newLedger(), Protocol: freely}, agents, parts)
		synctest.Wait()
		var lines []string
		for n := range many {
			lines = append(lines, submit(fmt.Sprint(n), "w"))
		}
		boss.says(lines...)
		told := w.told()
		require.Len(t, told, many)
		for n, line := range told {
			require.Equal(t, "notify:task-assigned", line.Type)
			require.Contains(t, string(line.Payload), boss.task(fmt.Sprint(n)).ID)
		}
		require.NoError(t, p.stop())
	})
}

// TestLettersAreForOneRun checks that a letter for an ended run is not written to the next run,
// since it has made no request.
//
// Rows: B-21, B-30.
func TestLettersAreForOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a", Restart: settings.Restart{Policy: settings.Always, Delay: time.Millisecond, Factor: 1, MaxDelay: time.Second, Burst: 10, Window: time.Minute}})
		a := all[0]
		record := newLedger()
		p := perform(t, Options{Record: record}, agents, parts)
		synctest.Wait()
		release := record.hold()
		a.says(submit("1", ""), request("2", "ask-user", `{"question":"why?","timeout":60000}`))
		synctest.Wait()
		a.exit <- 1
		<-time.After(time.Second)
		release()
		require.Empty(t, a.gist(), "the next run hears what the last one asked")
		require.Len(t, kinds(record.facts(t), events.TaskCreated), 1)
		a.says(submit("1", ""))
		require.Equal(t, []string{"1 granted"}, a.gist())
		require.Len(t, kinds(record.facts(t), events.TaskCreated), 1, "it is the same request")
		<-time.After(time.Minute)
		require.Equal(t, []string{"1 granted"}, a.gist(), "no caller waits for the question any more")
		require.NoError(t, p.stop())
	})
}

// TestReloadChangesTheRoster checks a reload: a new agent gets the tasks that it can do, and the
// task of a removed agent waits for another one.
//
// Rows: B-36, B-56.
func TestReloadChangesTheRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "boss"}, worker("old", 1), worker("new", 1))
		boss, old, fresh := all[0], all[1], all[2]
		p := perform(t, Options{Record: newLedger()}, agents[:2], parts)
		synctest.Wait()
		boss.says(submit("1", "new"), submit("2", "old"))
		require.Equal(t, []string{"notify:task-assigned"}, old.gist())
		defaults(t, &agents[2])
		agents[2].Offers = []string{"new", "old"}
		added := p.apply(Change{Action: settings.ActionStart, Name: "new", Agent: agents[2]}, Change{Action: settings.ActionStop, Name: "old"})
		<-time.After(time.Minute)
		require.Len(t, added.outcomes(), 2)
		require.Equal(t, []string{"notify:task-assigned"}, fresh.gist())
		require.Contains(t, string(fresh.told()[0].Payload), boss.task("1").ID)
		boss.says(request("3", "query-agents", `{}`), request("4", "get-task", fmt.Sprintf(`{"taskId":%q}`, boss.task("2").ID)))
		require.NotContains(t, string(boss.told()[2].Payload), `"old","role"`)
		require.Equal(t, "queued", boss.task("4").Status)
		fresh.says(request("5", "complete-task", fmt.Sprintf(`{"taskId":%q}`, boss.task("1").ID)))
		require.Equal(t, []string{"notify:task-assigned", "5 granted", "notify:task-assigned"}, fresh.gist(), "it can do that too")
		require.NoError(t, p.stop())
	})
}
