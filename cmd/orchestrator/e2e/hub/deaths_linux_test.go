package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/events"
)

// A lot maps states to the tasks of an agent.
type lot map[string]string

// deal gives an agent five tasks and brings each into its state.
func deal(h *stage.Hub, ann, boss *stage.Caller, a *stage.Agent) lot {
	h.T.Helper()
	tasks := make(lot)
	for _, state := range []string{"assigned", "running", "needs_human", "planning", "plan_review"} {
		id := create(ann, wanting(state, "go"))
		tasks[state] = id
		of := fmt.Sprintf(`{"taskId":%q`, id)
		switch state {
		case "planning", "plan_review":
			boss.Gets(nil, "POST /server/tasks/"+id+"/assign", `{"session_name":"holder","require_plan":true}`)
		default:
			server, _ := matched(ann, id)
			require.Equal(h.T, "holder", server)
		}
		a.Assigned(id)
		if state == "running" || state == "needs_human" {
			a.Granted(nil, "start-task", of+`}`)
		}
		if state == "needs_human" {
			a.Granted(nil, "request-help", of+`,"question":"Which?"}`)
		}
		if state == "plan_review" {
			a.Granted(nil, "submit-plan", of+`,"plan":"p"}`)
		}
		require.Equal(h.T, state, taskOf(ann, id).Status)
	}
	return tasks
}

// An agent ends while it has matched or manually assigned tasks. Its next run gets them again and
// restarts running ones; open questions are closed. A task fails when its agent has crashed twice.
//
// Rows, T-57, K-01.
func TestHubDeaths(t *testing.T) {
	t.Parallel()
	dead := func(h *stage.Hub, a *stage.Agent) *stage.Agent { a.Kill(); return h.NextReady("holder") }
	ended := func(h *stage.Hub, a *stage.Agent) *stage.Agent { a.Exit(0); return h.NextReady("holder") }
	killed := func(h *stage.Hub, _ *stage.Agent) *stage.Agent { h.Kill(); return h.Open("holder", "boss")[0] }
	stopped := func(h *stage.Hub, _ *stage.Agent) *stage.Agent { h.Stop(); return h.Open("holder", "boss")[0] }
	for name, way := range map[string]struct {
		end  func(*stage.Hub, *stage.Agent) *stage.Agent
		last string // the state of a task after the second time
	}{
		"dead": {dead, "failed"}, "ended": {ended, "assigned"}, "killed": {killed, "assigned"}, "stopped": {stopped, "assigned"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("holder", "go", 5)+planner, "holder", "boss")
			a := h.Open("holder", "boss")[0]
			ann, boss := h.Person(), h.AgentCaller("boss")
			tasks := deal(h, ann, boss, a)
			a = way.end(h, a)
			for state, words := range map[string]string{"assigned": "details", "running": "details", "needs_human": "details", "planning": "plan"} {
				a.Notified("task-assigned", tasks[state], words)
			}
			for state, want := range map[string]string{"assigned": "assigned", "running": "assigned", "needs_human": "assigned", "planning": "planning", "plan_review": "plan_review"} {
				require.Equal(t, want, taskOf(ann, tasks[state]).Status, state)
			}
			again := 2
			if name == "killed" || name == "stopped" { // the agent did not cause it
				again = 1
			}
			for state, attempts := range map[string]int{"assigned": 1, "running": again, "needs_human": again, "planning": 1, "plan_review": 1} {
				require.Equal(t, attempts, seen(a, tasks[state]).Attempts, state)
			}
			require.Empty(t, h.Questions())
			a.Settle()
			require.Len(t, a.Notices("task-assigned"), 4)

			a.Granted(nil, "start-task", fmt.Sprintf(`{"taskId":%q}`, tasks["running"]))
			ann.Gets(nil, "POST /tasks/"+tasks["plan_review"]+"/approve-plan", "")
			a.Notified("task-updated", tasks["plan_review"], "approved")
			a = way.end(h, a)
			stage.WaitFor(t, "end of it", func() bool { return taskOf(ann, tasks["running"]).Status == way.last })
			if way.last == "failed" {
				require.Contains(t, taskOf(ann, tasks["running"]).Error, "poison: 2 runs ended while they had it")
			} else {
				a.Assigned(tasks["running"])
			}
			a.Assigned(tasks["assigned"])
			stage.RequireNoGaps(t, h.Orchestrator)
			h.Stop()
		})
	}
}

// A running task of a crashed agent is matched to another agent if one fits, up to max_attempts.
//
// Rows, T-57, K-01.
func TestHubGivenUp(t *testing.T) {
	t.Parallel()
	const rules = "scheduler {\n  max_attempts = 3\n}\n"
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+rules+Knowing("holder", "go", 1)+Knowing("other", "go", 1), "holder", "other")
	actors := h.Open("holder", "other")
	ann := h.Person()
	task := create(ann, `{"title":"x","spec":"s","requirements":{"languages":["go"],"prefer_server":"holder"}}`)
	server, _ := matched(ann, task)
	require.Equal(t, "holder", server)
	begin := func(a *stage.Agent) {
		a.Assigned(task)
		a.Granted(nil, "start-task", fmt.Sprintf(`{"taskId":%q}`, task))
	}
	begin(actors[0])
	actors[0].Exit(0)
	holder := h.NextReady("holder")
	begin(actors[1])
	actors[1].Exit(0)
	h.NextReady("other")
	begin(holder)
	holder.Exit(0)
	h.NextReady("holder")
	stage.WaitFor(t, "end of it", func() bool { return taskOf(ann, task).Status == "failed" })
	require.Contains(t, taskOf(ann, task).Error, "given up after 3 attempts: holder: its agent ended: exit 0; other: its agent ended: exit 0; holder: exit 0")

	poison := create(ann, wanting("y", "go"))
	matched(ann, poison)
	h.Write("orchestrator.hcl", stage.HTTP+stage.QuickStop+"scheduler {\n  max_attempts = 1\n}\n"+Knowing("holder", "go", 1)+Knowing("other", "go", 1))
	h.Ask("reload")
	h.AgentCaller(taskOf(ann, poison).Server).Gets(nil, "POST /servers/tasks/"+poison+"/start", "")
	h.Kill()
	h.Open("holder", "other")
	require.Equal(t, "assigned", taskOf(ann, poison).Status, "a kill of the orchestrator counts for nothing")
	h.Stop()
}

// The scheduler block decides when tasks are matched, and a reload changes it.
//
// Rows, T-11, T-12, T-13, T-47.
func TestHubSchedulerByReload(t *testing.T) {
	t.Parallel()
	file := func(rules string) string {
		return stage.HTTP + stage.QuickStop + "scheduler {\n" + rules + "}\n" + Knowing("worker", "go", 1) + Knowing("late", "ts", 1, "autostart = false")
	}
	h := stage.NewHub(t, file(""), "worker", "late")
	worker := h.Open("worker")[0]
	ann, late := h.Person(), h.AgentCaller("late")
	rule := func(rules string) {
		h.Write("orchestrator.hcl", file(rules))
		h.Ask("reload")
	}
	nobody := func(id string) {
		server, _ := matched(ann, id)
		require.Empty(t, server)
		require.Equal(t, "pending", taskOf(ann, id).Status)
	}

	first := create(ann, wanting("first", "go"))
	rule("  on_create = true\n")
	second := create(ann, wanting("second", "go"))
	worker.Assigned(second)
	require.Equal(t, "pending", taskOf(ann, first).Status)
	rule("  count_assigned = true\n")
	nobody(first)
	_, why := score(ann, first, "worker")
	require.Contains(t, why, "at capacity: 1/1 (disqualified)")
	rule("")
	server, _ := matched(ann, first)
	require.Equal(t, "worker", server)
	worker.Assigned(first)

	third := create(ann, wanting("third", "ts"))
	rule("  assign_offline = false\n")
	nobody(third)
	rule("  assign_offline = true\n")
	server, score := matched(ann, third)
	require.Equal(t, "late", server)
	require.Equal(t, 100, score, "50 and 50, and it is not online")
	require.Equal(t, third, polled(late)[0].ID)
	h.Ask("agent", "start", "late")
	h.NextReady("late").Assigned(third)
	late.Gets(nil, "POST /servers/tasks/"+third+"/start", "")
	late.Gets(nil, "POST /servers/tasks/"+third+"/complete", `{"result":"r"}`)

	h.Ask("agent", "stop", "late")
	rule("  on_online = false\n")
	fourth := create(ann, wanting("fourth", "ts"))
	h.Ask("agent", "start", "late")
	run := h.NextReady("late")
	run.Settle()
	require.Empty(t, run.Notices("task-assigned"))
	require.Equal(t, "pending", taskOf(ann, fourth).Status)
	rule("")
	h.Ask("agent", "restart", "late")
	h.NextReady("late").Assigned(fourth)
	require.Equal(t, []string{events.TaskCreated, events.TaskAssigned}, kinds(storyOf(h), fourth))
	h.Stop()
}

// An errand is a request of a visitor.
type errand struct {
	who           *stage.Caller
	request, body string
}

// atOnce sends all requests, 32 at a time, and returns the answers in order. A caller may have 64 connections,
// and the server may close one after its answer was read.
func atOnce(h *stage.Hub, errands []errand) []*stage.Response {
	h.T.Helper()
	replies, failures := make([]*stage.Response, len(errands)), make([]error, len(errands))
	var group sync.WaitGroup
	begin, room := make(chan struct{}), make(chan struct{}, 32)
	for i, e := range errands {
		group.Go(func() {
			<-begin
			room <- struct{}{}
			defer func() { <-room }()
			replies[i], failures[i] = e.who.Try(e.request, e.body)
		})
	}
	close(begin)
	group.Wait()
	for i, e := range errands {
		require.NoError(h.T, failures[i], "%s", e.request)
		h.RequireLike(e.request, replies[i])
	}
	return replies
}

// begun returns new tasks that an agent has submitted and started.
func begun(h *stage.Hub, who *stage.Caller, count int) (ids []string) {
	h.T.Helper()
	create, start := make([]errand, count), make([]errand, count)
	for i := range create {
		create[i] = errand{who: who, request: "POST /api/v1/server/tasks", body: fmt.Sprintf(`{"title":"part %d","spec":"s"}`, i)}
	}
	for i, r := range atOnce(h, create) {
		require.Equal(h.T, http.StatusCreated, r.Status, r.Text)
		var task hubTask
		require.NoError(h.T, json.Unmarshal([]byte(r.Text), &task))
		ids = append(ids, task.ID)
		start[i] = errand{who: who, request: "POST /api/v1/servers/tasks/" + task.ID + "/start"}
	}
	for _, r := range atOnce(h, start) {
		require.Equal(h.T, http.StatusOK, r.Status, r.Text)
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
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("maker", "go", many)+Knowing("user", "ts", 1), "maker", "user")
	user := h.Open("maker", "user")[1]
	ann, maker := h.Person(), h.AgentCaller("maker")
	parts := begun(h, maker, many)
	whole := create(ann, wanting("whole", "ts", fmt.Sprintf(`"dependency_ids":["%s"]`, strings.Join(parts, `","`))))
	ends := make([]errand, many)
	for i, id := range parts {
		tree := []string{"/api/v1/servers/tasks/", "/api/v1/server/tasks/"}[i%2]
		ends[i] = errand{who: maker, request: "POST " + tree + id + "/complete", body: fmt.Sprintf(`{"result":"part %d"}`, i)}
	}
	granted := 0
	for _, r := range atOnce(h, append(ends, ends[0], ends[many-1])) {
		if r.Status != http.StatusOK {
			require.Equal(t, http.StatusConflict, r.Status, r.Text)
			continue
		}
		require.Equal(t, `{"status":"ok"}`, r.Text)
		granted++
	}
	require.Equal(t, many, granted)
	user.Assigned(whole)
	user.Settle()
	require.Len(t, user.Notices("task-assigned"), 1)
	story := storyOf(h)
	require.Equal(t, []string{events.TaskCreated, events.TaskUnblocked, events.TaskAssigned}, kinds(story, whole))
	count := make(map[string]int)
	for _, kind := range kinds(story, "") {
		count[kind]++
	}
	require.Equal(t, many, count[events.TaskDone])
	require.Equal(t, many, count[events.DependencyResolved])
	require.Equal(t, many, count[events.TaskAnnounced])
	found := taskOf(ann, whole)
	require.Equal(t, "assigned", found.Status)
	require.Len(t, found.Dependencies, many)
	for _, d := range found.Dependencies {
		require.True(t, d.Resolved)
	}
	stage.RequireNoGaps(t, h.Orchestrator)
	h.Stop()
}

// Two requests at the same time make two tasks depend on each other. One of them is refused as a
// cycle.
//
// Rows, T-46.
func TestHubCrossedDependencies(t *testing.T) {
	t.Parallel()
	const pairs = 25
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("one", "go", 1, "manage = true")+Knowing("two", "ts", 1, "manage = true"), "one", "two")
	h.Open("one", "two")
	ann, one, two := h.Person(), h.AgentCaller("one"), h.AgentCaller("two")
	var tasks []string
	var errands []errand
	depend := func(who *stage.Caller, task, on string) errand {
		return errand{who: who, request: "POST /api/v1/server/tasks/" + task + "/dependencies", body: fmt.Sprintf(`{"depends_on_task_id":%q}`, on)}
	}
	for range pairs {
		a, b := create(ann, `{"title":"a","spec":"s"}`), create(ann, `{"title":"b","spec":"s"}`)
		tasks = append(tasks, a, b)
		errands = append(errands, depend(one, a, b), depend(two, b, a))
	}
	replies := atOnce(h, errands)
	for i := 0; i < len(replies); i += 2 {
		first, second := replies[i], replies[i+1]
		if first.Status != http.StatusCreated {
			first, second = second, first
		}
		require.Equal(t, http.StatusCreated, first.Status, first.Text)
		require.Equal(t, http.StatusConflict, second.Status, second.Text)
		require.Contains(t, second.Text, `"reason":"cycle"`)
		require.Equal(t, 1, len(taskOf(ann, tasks[i]).Dependencies)+len(taskOf(ann, tasks[i+1]).Dependencies))
	}
	for i := range 2 { // not on itself, but related in a cycle
		one.Fails(http.StatusConflict, "conflict", "POST /server/tasks/"+tasks[i]+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q}`, tasks[i]))
		one.Gets(nil, "POST /server/tasks/"+tasks[i]+"/dependencies", fmt.Sprintf(`{"depends_on_task_id":%q,"dependency_type":"related"}`, tasks[1-i]))
	}
	h.Stop()
}

// A task is completed and cancelled at the same time. Exactly one takes effect, for the task and
// for its dependents.
//
// Rows, T-44, T-59.
func TestHubCompleteAgainstCancel(t *testing.T) {
	t.Parallel()
	const many = 25
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("maker", "go", many), "maker")
	h.Open("maker")
	ann, maker := h.Person(), h.AgentCaller("maker")
	tasks := begun(h, maker, many)
	after := make([]string, many)
	errands := make([]errand, 0, 2*many)
	for i, id := range tasks {
		after[i] = create(ann, fmt.Sprintf(`{"title":"after","spec":"s","dependency_ids":[%q]}`, id))
		errands = append(errands,
			errand{who: maker, request: "POST /api/v1/servers/tasks/" + id + "/complete", body: `{"result":"done"}`},
			errand{who: maker, request: "DELETE /api/v1/server/tasks/" + id, body: `{"reason":"enough"}`})
	}
	replies := atOnce(h, errands)
	look := func() {
		for i, id := range tasks {
			done := replies[2*i].Status == http.StatusOK
			require.ElementsMatch(t, []int{http.StatusOK, http.StatusConflict}, []int{replies[2*i].Status, replies[2*i+1].Status})
			found := taskOf(ann, id)
			require.Equal(t, map[bool]string{true: "done", false: "cancelled"}[done], found.Status)
			require.Equal(t, done, string(found.Result) != "null")
			next := taskOf(ann, after[i])
			require.Equal(t, "pending", next.Status)
			require.Equal(t, done, next.Dependencies[0].Resolved)
		}
	}
	look()
	for i, id := range tasks[:2] {
		maker.Fails(http.StatusConflict, "conflict", "POST /servers/tasks/"+id+"/complete", `{"result":"again"}`)
		maker.Fails(http.StatusConflict, "conflict", "DELETE /server/tasks/"+id, "")
		if r := replies[2*i]; r.Status != http.StatusOK {
			continue
		}
		require.Equal(t, `{"summary":"done","completed_by":"agent:maker"}`, string(taskOf(ann, id).Result))
	}
	h.Kill()
	h.Open("maker")
	look()
	h.Stop()
}
