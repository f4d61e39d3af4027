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

// An errand is a request of a visitor.
type errand struct {
	who           *visitor
	request, body string
}

// atOnce sends all requests concurrently and returns the answers in order.
func (h *hub) atOnce(errands []errand) []*reply {
	h.t.Helper()
	replies, failures := make([]*reply, len(errands)), make([]error, len(errands))
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i, e := range errands {
		group.Go(func() {
			<-begin
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
func (h *hub) begun(who *visitor, count int) (ids []string) {
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
	h := newHub(t, listeners+quick+knowing("one", "go", 1)+knowing("two", "ts", 1), "one", "two")
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
