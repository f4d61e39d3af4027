package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// A lot maps states to the tasks of an agent.
type lot map[string]string

// deal gives an agent five tasks and brings each into its state.
func (h *hubTeam) deal(ann, boss *visitor, a *actor) lot {
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
	dead := func(h *hubTeam, a *actor) *actor { a.die(); return h.enters("holder") }
	ended := func(h *hubTeam, a *actor) *actor { a.exit(0); return h.enters("holder") }
	killed := func(h *hubTeam, _ *actor) *actor { h.kill(); return h.open("holder", "boss")[0] }
	stopped := func(h *hubTeam, _ *actor) *actor { h.stop(); return h.open("holder", "boss")[0] }
	for name, way := range map[string]struct {
		end  func(*hubTeam, *actor) *actor
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
				require.Contains(t, ann.task(tasks["running"]).Error, "poison: 2 runs ended while they had it")
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

// An errand is a request of a visitor.
type errand struct {
	who           *visitor
	request, body string
}

// atOnce sends all requests concurrently, as many as a caller may have connections, and returns the answers in order.
func (h *hubTeam) atOnce(errands []errand) []*reply {
	h.t.Helper()
	replies, failures := make([]*reply, len(errands)), make([]error, len(errands))
	var group sync.WaitGroup
	begin, room := make(chan struct{}), make(chan struct{}, 48)
	for i, e := range errands {
		group.Go(func() {
			<-begin
			room <- struct{}{}
			defer func() { <-room }()
			replies[i], failures[i] = e.who.try(e.request, e.body)
		})
	}
	close(begin)
	group.Wait()
	for i, e := range errands {
		require.NoError(h.t, failures[i], "%s", e.request)
		h.requireLike(e.request, replies[i])
	}
	return replies
}

// begun returns new tasks that an agent has submitted and started.
func (h *hubTeam) begun(who *visitor, count int) (ids []string) {
	h.t.Helper()
	create, start := make([]errand, count), make([]errand, count)
	for i := range create {
		create[i] = errand{who: who, request: "POST /api/v1/server/tasks", body: fmt.Sprintf(`{"title":"part %d","spec":"s"}`, i)}
	}
	for i, r := range h.atOnce(create) {
		require.Equal(h.t, http.StatusCreated, r.status, r.text)
		var task hubTask
		require.NoError(h.t, json.Unmarshal([]byte(r.text), &task))
		ids = append(ids, task.ID)
		start[i] = errand{who: who, request: "POST /api/v1/servers/tasks/" + task.ID + "/start"}
	}
	for _, r := range h.atOnce(start) {
		require.Equal(h.t, http.StatusOK, r.status, r.text)
	}
	return ids
}

// A hundred tasks are completed concurrently, in both ways. The agent of a task that depends on
// all of them is notified once.
//
// Rows, T-21.
func TestHubManyEndAtOnce(t *testing.T) {
	t.Parallel()
	const many = 100
	h := newHub(t, listeners+quick+knowing("maker", "go", many)+knowing("user", "ts", 1), "maker", "user")
	user := h.open("maker", "user")[1]
	ann, maker := h.person(), h.program("maker")
	parts := h.begun(maker, many)
	whole := ann.create(wanting("whole", "ts", fmt.Sprintf(`"dependency_ids":["%s"]`, strings.Join(parts, `","`))))
	ends := make([]errand, many)
	for i, id := range parts {
		tree := []string{"/api/v1/servers/tasks/", "/api/v1/server/tasks/"}[i%2]
		ends[i] = errand{who: maker, request: "POST " + tree + id + "/complete", body: fmt.Sprintf(`{"result":"part %d"}`, i)}
	}
	granted := 0
	for _, r := range h.atOnce(append(ends, ends[0], ends[many-1])) {
		if r.status != http.StatusOK {
			require.Equal(t, http.StatusConflict, r.status, r.text)
			continue
		}
		require.Equal(t, `{"status":"ok"}`, r.text)
		granted++
	}
	require.Equal(t, many, granted)
	user.assigned(whole)
	user.quiet()
	require.Len(t, user.notices("task-assigned"), 1)
	story := h.story()
	require.Equal(t, []string{events.TaskCreated, events.TaskUnblocked, events.TaskAssigned}, kinds(story, whole))
	count := make(map[string]int)
	for _, kind := range kinds(story, "") {
		count[kind]++
	}
	require.Equal(t, many, count[events.TaskDone])
	require.Equal(t, many, count[events.DependencyResolved])
	require.Equal(t, many, count[events.TaskAnnounced])
	found := ann.task(whole)
	require.Equal(t, "assigned", found.Status)
	require.Len(t, found.Dependencies, many)
	for _, d := range found.Dependencies {
		require.True(t, d.Resolved)
	}
	requireNoHoles(t, h.stage)
	h.stop()
}

// Two requests at the same time make two tasks depend on each other. One of them is refused as a
// cycle.
//
// Rows, T-46.
func TestHubCrossedDependencies(t *testing.T) {
	t.Parallel()
	const pairs = 25
	h := newHub(t, listeners+quick+knowing("one", "go", 1, "manage = true")+knowing("two", "ts", 1, "manage = true"), "one", "two")
	h.open("one", "two")
	ann, one, two := h.person(), h.program("one"), h.program("two")
	var tasks []string
	var errands []errand
	depend := func(who *visitor, task, on string) errand {
		return errand{who: who, request: "POST /api/v1/server/tasks/" + task + "/dependencies", body: fmt.Sprintf(`{"depends_on_task_id":%q}`, on)}
	}
	for range pairs {
		a, b := ann.create(`{"title":"a","spec":"s"}`), ann.create(`{"title":"b","spec":"s"}`)
		tasks = append(tasks, a, b)
		errands = append(errands, depend(one, a, b), depend(two, b, a))
	}
	replies := h.atOnce(errands)
	for i := 0; i < len(replies); i += 2 {
		first, second := replies[i], replies[i+1]
		if first.status != http.StatusCreated {
			first, second = second, first
		}
		require.Equal(t, http.StatusCreated, first.status, first.text)
		require.Equal(t, http.StatusConflict, second.status, second.text)
		require.Contains(t, second.text, `"reason":"cycle"`)
		require.Equal(t, 1, len(ann.task(tasks[i]).Dependencies)+len(ann.task(tasks[i+1]).Dependencies))
	}
	for i := range 2 { // not on itself, but related in a cycle
		one.misses(http.StatusConflict, "conflict", "POST /server/tasks/"+tasks[i]+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q}`, tasks[i]))
		one.gets(nil, "POST /server/tasks/"+tasks[i]+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q,"dependency_type":"related"}`, tasks[1-i]))
	}
	h.stop()
}

// A task is completed and cancelled at the same time. Exactly one takes effect, for the task and
// for its dependents.
//
// Rows, T-44, T-59.
func TestHubCompleteAgainstCancel(t *testing.T) {
	t.Parallel()
	const many = 25
	h := newHub(t, listeners+quick+knowing("maker", "go", many), "maker")
	h.open("maker")
	ann, maker := h.person(), h.program("maker")
	tasks := h.begun(maker, many)
	after := make([]string, many)
	errands := make([]errand, 0, 2*many)
	for i, id := range tasks {
		after[i] = ann.create(fmt.Sprintf(`{"title":"after","spec":"s","dependency_ids":[%q]}`, id))
		errands = append(errands,
			errand{who: maker, request: "POST /api/v1/servers/tasks/" + id + "/complete", body: `{"result":"done"}`},
			errand{who: maker, request: "DELETE /api/v1/server/tasks/" + id, body: `{"reason":"enough"}`})
	}
	replies := h.atOnce(errands)
	look := func() {
		for i, id := range tasks {
			done := replies[2*i].status == http.StatusOK
			require.ElementsMatch(t, []int{http.StatusOK, http.StatusConflict}, []int{replies[2*i].status, replies[2*i+1].status})
			found := ann.task(id)
			require.Equal(t, map[bool]string{true: "done", false: "cancelled"}[done], found.Status)
			require.Equal(t, done, string(found.Result) != "null")
			next := ann.task(after[i])
			require.Equal(t, "pending", next.Status)
			require.Equal(t, done, next.Dependencies[0].Resolved)
		}
	}
	look()
	for i, id := range tasks[:2] {
		maker.misses(http.StatusConflict, "conflict", "POST /servers/tasks/"+id+"/complete", `{"result":"again"}`)
		maker.misses(http.StatusConflict, "conflict", "DELETE /server/tasks/"+id, "")
		if r := replies[2*i]; r.status != http.StatusOK {
			continue
		}
		require.Equal(t, `{"summary":"done","completed_by":"agent:maker"}`, string(ann.task(id).Result))
	}
	h.kill()
	h.open("maker")
	look()
	h.stop()
}
