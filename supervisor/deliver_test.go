package supervisor

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// TestToldTasksRun checks that a task is assigned when that is recorded, and runs only after the
// notice was written to its agent.
//
// Rows: B-08, B-56, T-04.
func TestToldTasksRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, Agent{Name: "boss"}, worker("w", 1))
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
		agents, parts, all := talkers(t, Agent{Name: "boss"}, first, second)
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
		agents, parts, all := talkers(t, Agent{Name: "boss"}, worker("w", 10))
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
		agents, parts, all := talkers(t, Agent{Name: "boss"}, worker("w", many))
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
// which has requested nothing.
//
// Rows: B-21, B-30.
func TestLettersAreForOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, Agent{Name: "a", Restart: Restart{Policy: Always, Delay: time.Millisecond, Factor: 1, MaxDelay: time.Second, Burst: 10, Window: time.Minute}})
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
		agents, parts, all := talkers(t, Agent{Name: "boss"}, worker("old", 1), worker("new", 1))
		boss, old, fresh := all[0], all[1], all[2]
		p := perform(t, Options{Record: newLedger()}, agents[:2], parts)
		synctest.Wait()
		boss.says(submit("1", "new"), submit("2", "old"))
		require.Equal(t, []string{"notify:task-assigned"}, old.gist())
		defaults(t, &agents[2])
		agents[2].Offers = []string{"new", "old"}
		added := p.apply(Change{Action: ActionStart, Name: "new", Agent: agents[2]}, Change{Action: ActionStop, Name: "old"})
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

// TestLinesArePassedTogether checks that lines for one run are one write, unchanged and in
// order, with one receipt. Letters between them keep their place.
//
// Rows: C-16.
func TestLinesArePassedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(Options{Log: hclog.NewNullLogger()})
		box, theirs := boxOf(t, stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		heard := receiptsOf(box)
		d.recipients.open("a", "run", box)
		to := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: "run"}
		line := func(n int) handlers.Letter {
			return handlers.Letter{To: to, Line: wire.Raw(fmt.Sprintf(`{"n": %d}`, n)), Said: int64(n)}
		}
		long := line(6)
		long.Line = wire.Raw(`"` + strings.Repeat("x", 2*stdin.BatchBytes) + `"`)
		letters := []handlers.Letter{line(1), line(2), line(3), {To: to, Notice: wire.NoticeShutdown, Payload: &wire.ShutdownNotice{}}, line(4), line(5), long, line(7)}
		d.deliver(letters, new([]byte))
		synctest.Wait()
		reader := bufio.NewReader(theirs)
		var all []string
		for range letters {
			text, err := reader.ReadString('\n')
			require.NoError(t, err)
			all = append(all, text)
			synctest.Wait()
		}
		require.Equal(t, []string{"{\"n\": 1}\n", "{\"n\": 2}\n", "{\"n\": 3}\n"}, all[:3])
		require.Contains(t, all[3], wire.NoticeShutdown)
		require.Equal(t, []string{"{\"n\": 4}\n", "{\"n\": 5}\n", string(long.Line) + "\n", "{\"n\": 7}\n"}, all[4:])
		require.Equal(t, receipted{said: []int64{1, 2, 3}, written: true}, <-heard)
		require.Equal(t, receipted{said: []int64{4, 5}, written: true}, <-heard)
		require.Equal(t, receipted{said: []int64{6}, written: true}, <-heard)
		require.Equal(t, receipted{said: []int64{7}, written: true}, <-heard)
		box.Drop()
		d.close()
	})
}

// TestNothingOvertakesWhatWasMissed checks that a session message does not overtake one that the
// run has missed. Until the loss is handled, later messages are refused too, even if there is
// room again.
//
// Rows: C-91, C-92.
func TestNothingOvertakesWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := Agent{Name: "a", Mailbox: stdin.Limits{Messages: 4, Bytes: 1 << 20}}
		agents, parts, all := talkers(t, small)
		a := all[0]
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		again := p.deafen(a)
		to := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: a.run.spec.Run}
		send := func(n, after int64) {
			p.dispatcher.deliver([]handlers.Letter{{To: to, Line: fmt.Appendf(nil, `{"type":"%d"}`, n), Said: n, After: after}}, new([]byte))
		}
		for n := range int64(10) {
			send(n+1, n)
		}
		again()
		taken := len(a.told())
		require.Less(t, taken, 10)
		send(11, 10)
		require.Len(t, a.told(), taken, "it was sent before it was known that others were missed")
		for n := taken; n < 11; n++ {
			send(int64(n+1), 0)
			synctest.Wait()
		}
		for n, line := range a.told() {
			require.Equal(t, strconv.Itoa(n+1), line.Type)
		}
		require.Len(t, a.told(), 11)
		require.NoError(t, p.stop())
	})
}

// TestHopeIsToldOnce checks that an agent that reads again gets everything at once. Its recovery
// is reported once, however much it had missed.
//
// Rows: B-08, C-91, T-04.
func TestHopeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := Agent{Name: "a", Mailbox: stdin.Limits{Messages: 4, Bytes: 1 << 20}}
		agents, parts, all := talkers(t, small)
		a := all[0]
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		again := p.deafen(a)
		to := handlers.Actor{Kind: handlers.Agent, Name: "a", Run: a.run.spec.Run}
		for n := range 20 {
			p.dispatcher.deliver([]handlers.Letter{{To: to, Line: wire.Raw(`{}`), Said: int64(n)}}, new([]byte))
		}
		require.LessOrEqual(t, p.view("a").Mailbox.Messages, 4)
		require.Zero(t, p.count(events.AgentRecovered))
		require.Equal(t, 1, p.count(events.AgentUndelivered))
		again()
		require.Equal(t, 1, p.count(events.AgentRecovered))
		require.Len(t, a.told(), 4)
		require.NoError(t, p.stop())
		p.dispatcher.deliver([]handlers.Letter{{To: to, Line: wire.Raw(`{}`), Said: 1}}, new([]byte))
	})
}
