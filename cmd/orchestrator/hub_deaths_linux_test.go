package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// A lot maps states to the tasks of an agent.
type lot map[string]string

// deal gives an agent five tasks and brings each into its state.
func (h *hub) deal(ann, boss *visitor, a *actor) lot {
	h.t.Helper()
	tasks := make(lot)
	for _, state := range []string{"assigned", "running", "needs_human", "planning", "plan_review"} {
		id := ann.create(wanting(state, "go"))
		tasks[state] = id
		of := fmt.Sprintf(`{"taskId":%q`, id)
		switch state {
		case "planning", "plan_review":
			boss.gets(nil, "POST /server/tasks/"+id+"/assign", `{"session_name":"holder","require_plan":true}`)
		default:
			server, _ := ann.matched(id)
			require.Equal(h.t, "holder", server)
		}
		a.assigned(id)
		if state == "running" || state == "needs_human" {
			a.granted(nil, "start-task", of+`}`)
		}
		if state == "needs_human" {
			a.granted(nil, "request-help", of+`,"question":"Which?"}`)
		}
		if state == "plan_review" {
			a.granted(nil, "submit-plan", of+`,"plan":"p"}`)
		}
		require.Equal(h.t, state, ann.task(id).Status)
	}
	return tasks
}

// An agent ends while it has matched or manually assigned tasks. Its next run gets them again and
// restarts running ones; open questions are closed. A task whose agent crashed twice fails.
//
// Rows, T-57, K-01.
func TestHubDeaths(t *testing.T) {
	t.Parallel()
	dead := func(h *hub, a *actor) *actor { a.die(); return h.enters("holder") }
	ended := func(h *hub, a *actor) *actor { a.exit(0); return h.enters("holder") }
	killed := func(h *hub, _ *actor) *actor { h.kill(); return h.open("holder", "boss")[0] }
	stopped := func(h *hub, _ *actor) *actor { h.stop(); return h.open("holder", "boss")[0] }
	for name, way := range map[string]struct {
		end  func(*hub, *actor) *actor
		last string // the state of a task after the second time
	}{
		"dead": {dead, "failed"}, "ended": {ended, "assigned"}, "killed": {killed, "assigned"}, "stopped": {stopped, "assigned"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, listeners+quick+knowing("holder", "go", 5)+planner, "holder", "boss")
			a := h.open("holder", "boss")[0]
			ann, boss := h.person(), h.program("boss")
			tasks := h.deal(ann, boss, a)
			a = way.end(h, a)
			for state, words := range map[string]string{"assigned": "details", "running": "details", "needs_human": "details", "planning": "plan"} {
				a.told("task-assigned", tasks[state], words)
			}
			for state, want := range map[string]string{"assigned": "assigned", "running": "assigned", "needs_human": "assigned", "planning": "planning", "plan_review": "plan_review"} {
				require.Equal(t, want, ann.task(tasks[state]).Status, state)
			}
			again := 2
			if name == "killed" || name == "stopped" { // the agent did not cause it
				again = 1
			}
			for state, attempts := range map[string]int{"assigned": 1, "running": again, "needs_human": again, "planning": 1, "plan_review": 1} {
				require.Equal(t, attempts, a.seen(tasks[state]).Attempts, state)
			}
			require.Empty(t, h.questions())
			a.quiet()
			require.Len(t, a.notices("task-assigned"), 4)

			a.granted(nil, "start-task", fmt.Sprintf(`{"taskId":%q}`, tasks["running"]))
			ann.gets(nil, "POST /tasks/"+tasks["plan_review"]+"/approve-plan", "")
			a.told("task-updated", tasks["plan_review"], "approved")
			a = way.end(h, a)
			waitForThat(t, "end of it", func() bool { return ann.task(tasks["running"]).Status == way.last })
			if way.last == "failed" {
				require.Contains(t, ann.task(tasks["running"]).Error, "poison: 2 agents ended with it")
			} else {
				a.assigned(tasks["running"])
			}
			a.assigned(tasks["assigned"])
			requireNoHoles(t, h.stage)
			h.stop()
		})
	}
}

// A running task whose agent crashed is matched to another agent if one fits, up to
// max_attempts.
//
// Rows, T-57, K-01.
func TestHubGivenUp(t *testing.T) {
	t.Parallel()
	const rules = "scheduler {\n  max_attempts = 3\n}\n"
	h := newHub(t, listeners+quick+rules+knowing("holder", "go", 1)+knowing("other", "go", 1), "holder", "other")
	actors := h.open("holder", "other")
	ann := h.person()
	task := ann.create(`{"title":"x","spec":"s","requirements":{"languages":["go"],"prefer_server":"holder"}}`)
	server, _ := ann.matched(task)
	require.Equal(t, "holder", server)
	begin := func(a *actor) {
		a.assigned(task)
		a.granted(nil, "start-task", fmt.Sprintf(`{"taskId":%q}`, task))
	}
	begin(actors[0])
	actors[0].exit(0)
	holder := h.enters("holder")
	begin(actors[1])
	actors[1].exit(0)
	h.enters("other")
	begin(holder)
	holder.exit(0)
	h.enters("holder")
	waitForThat(t, "end of it", func() bool { return ann.task(task).Status == "failed" })
	require.Contains(t, ann.task(task).Error, "given up after 3 attempts: holder: its agent ended: exit 0; other: its agent ended: exit 0; holder: exit 0")

	poison := ann.create(wanting("y", "go"))
	ann.matched(poison)
	h.write("orchestrator.hcl", listeners+quick+"scheduler {\n  max_attempts = 1\n}\n"+knowing("holder", "go", 1)+knowing("other", "go", 1))
	h.ask("reload")
	h.program(ann.task(poison).Server).gets(nil, "POST /servers/tasks/"+poison+"/start", "")
	h.kill()
	h.open("holder", "other")
	require.Equal(t, "assigned", ann.task(poison).Status, "a kill of the orchestrator counts for nothing")
	h.stop()
}

// The scheduler block decides when tasks are matched, and a reload changes it.
//
// Rows, T-11, T-12, T-13, T-47.
func TestHubSchedulerByReload(t *testing.T) {
	t.Parallel()
	file := func(rules string) string {
		return listeners + quick + "scheduler {\n" + rules + "}\n" + knowing("worker", "go", 1) + knowing("late", "ts", 1, "autostart = false")
	}
	h := newHub(t, file(""), "worker", "late")
	worker := h.open("worker")[0]
	ann, late := h.person(), h.program("late")
	rule := func(rules string) {
		h.write("orchestrator.hcl", file(rules))
		h.ask("reload")
	}
	nobody := func(id string) {
		server, _ := ann.matched(id)
		require.Empty(t, server)
		require.Equal(t, "pending", ann.task(id).Status)
	}

	first := ann.create(wanting("first", "go"))
	rule("  on_create = true\n")
	second := ann.create(wanting("second", "go"))
	worker.assigned(second)
	require.Equal(t, "pending", ann.task(first).Status)
	rule("  count_assigned = true\n")
	nobody(first)
	_, why := ann.score(first, "worker")
	require.Contains(t, why, "at capacity: 1/1 (disqualified)")
	rule("")
	server, _ := ann.matched(first)
	require.Equal(t, "worker", server)
	worker.assigned(first)

	third := ann.create(wanting("third", "ts"))
	rule("  assign_offline = false\n")
	nobody(third)
	rule("  assign_offline = true\n")
	server, score := ann.matched(third)
	require.Equal(t, "late", server)
	require.Equal(t, 100, score, "50 and 50, and it is not online")
	require.Equal(t, third, late.polled()[0].ID)
	h.ask("agent", "start", "late")
	h.enters("late").assigned(third)
	late.gets(nil, "POST /servers/tasks/"+third+"/start", "")
	late.gets(nil, "POST /servers/tasks/"+third+"/complete", `{"result":"r"}`)

	h.ask("agent", "stop", "late")
	rule("  on_online = false\n")
	fourth := ann.create(wanting("fourth", "ts"))
	h.ask("agent", "start", "late")
	run := h.enters("late")
	run.quiet()
	require.Empty(t, run.notices("task-assigned"))
	require.Equal(t, "pending", ann.task(fourth).Status)
	rule("")
	h.ask("agent", "restart", "late")
	h.enters("late").assigned(fourth)
	require.Equal(t, []string{events.TaskCreated, events.TaskAssigned}, kinds(h.story(), fourth))
	h.stop()
}
