package handlers

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// TestVerbs has every caller request every operation on a task in every state. The outcome is a
// table in testdata: the state of the task afterwards, or the reason of the refusal. A refused
// request has no effect.
//
// Rows.
// Rows: B-55, B-57, B-68, B-77, K-01, K-06, T-22, T-59.
func TestVerbs(t *testing.T) {
	var table strings.Builder
	for _, st := range verbStates {
		for _, verb := range verbs {
			for _, caller := range callers {
				if verb.event && caller == "operator" {
					continue // people send no events
				}
				fmt.Fprintf(&table, "%-11s %-12s %-14s %s\n", st.name, verb.name, caller, say(t, st, verb, caller))
			}
		}
		table.WriteString("\n")
	}
	const file = "testdata/verbs.txt"
	text, err := os.ReadFile(file)
	if !*update {
		require.NoError(t, err)
	}
	requireGolden(t, file, string(text), table.String())
}

// callers lists the actors that make the requests: an agent over its pipe or as a daemon (strict),
// the same with rights to tasks of other agents (wide), or a person.
var callers = []string{"submitter", "holder", "strict:holder", "stranger", "wide:stranger", "wide:submitter", "operator"}

// verbState is a state with the script that brings a task named x into it.
type verbState struct {
	name   string
	state  wire.TaskState
	script string
}

var verbStates = []verbState{
	{"pending", wire.TaskPending, `> submitter a submit-task {"type":"t","name":"x"}`},
	{"waiting", wire.TaskPending, `> submitter a submit-task {"type":"t","name":"x","requiredCapabilities":["none"]}`},
	{"blocked", wire.TaskPending, `> submitter a submit-task {"type":"t","name":"y"}
> submitter b submit-task {"type":"t","name":"x","requiredRole":"worker","dependencies":["$y"]}`},
	{"assigned", wire.TaskAssigned, `> submitter a submit-task {"type":"t","name":"x","requiredRole":"worker"}`},
	{"running", wire.TaskRunning, `> submitter a submit-task {"type":"t","name":"x","requiredRole":"worker"}
told holder $x`},
	{"given", wire.TaskAssigned, `> submitter a submit-task {"type":"t","name":"x"}
> submitter b assign-task {"taskId":"$x","agent":"holder"}`},
	{"gated", wire.TaskAssigned, `> submitter a submit-task {"type":"t","name":"y"}
> submitter b submit-task {"type":"t","name":"x","dependencies":["$y"]}
> submitter c assign-task {"taskId":"$x","agent":"holder"}`},
	{"planning", wire.TaskPlanning, `> submitter a submit-task {"type":"t","name":"x"}
> submitter b assign-task {"taskId":"$x","agent":"holder","requirePlan":true}`},
	{"plan_review", wire.TaskPlanReview, `> submitter a submit-task {"type":"t","name":"x"}
> submitter b assign-task {"taskId":"$x","agent":"holder","requirePlan":true}
> holder a submit-plan {"taskId":"$x","plan":"p"}`},
	{"begun", wire.TaskRunning, `> submitter a submit-task {"type":"t","name":"x"}
> submitter b assign-task {"taskId":"$x","agent":"holder"}
> holder a start-task {"taskId":"$x"}`},
	{"needs_human", wire.TaskNeedsHuman, `> submitter a submit-task {"type":"t","name":"x"}
> submitter b assign-task {"taskId":"$x","agent":"holder"}
> holder a start-task {"taskId":"$x"}
> holder b request-help {"taskId":"$x","question":"?"}`},
	{"people's", wire.TaskPending, `> operator a hub:submit-task {"title":"x","spec":"s","requirements":{"languages":["go"]}}`},
	{"done", wire.TaskDone, `> submitter a submit-task {"type":"t","name":"x","requiredRole":"worker"}
> holder a complete-task {"taskId":"$x"}`},
	{"failed", wire.TaskFailed, `> submitter a submit-task {"type":"t","name":"x","requiredRole":"worker"}
> holder a fail-task {"taskId":"$x","error":"e"}`},
	{"cancelled", wire.TaskCancelled, `> submitter a submit-task {"type":"t","name":"x","requiredRole":"worker"}
> submitter b cancel-task {"taskId":"$x"}`},
}

type verb struct {
	name, message string
	event         bool
}

var verbs = []verb{
	{"start", `start-task {"taskId":"$x"}`, false},
	{"complete", `complete-task {"taskId":"$x"}`, false},
	{"fail", `fail-task {"taskId":"$x","error":"e"}`, false},
	{"cancel", `cancel-task {"taskId":"$x"}`, false},
	{"retry", `retry-task {"taskId":"$x"}`, false},
	{"assign", `assign-task {"taskId":"$x","agent":"other"}`, false},
	{"assign, plan", `assign-task {"taskId":"$x","agent":"other","requirePlan":true}`, false},
	{"auto-assign", `auto-assign {"taskId":"$x"}`, false},
	{"plan", `submit-plan {"taskId":"$x","plan":"p"}`, false},
	{"approve", `approve-plan {"taskId":"$x"}`, false},
	{"revise", `revise-plan {"taskId":"$x","feedback":"f"}`, false},
	{"help", `request-help {"taskId":"$x","question":"?"}`, false},
	{"update", `update-task {"taskId":"$x","description":"d"}`, false},
	{"depend", `add-dependency {"taskId":"$x","dependsOnTaskId":"$z"}`, false},
	{"relate", `add-dependency {"taskId":"$x","dependsOnTaskId":"$z","dependencyType":"related"}`, false},
	{"note", `add-note {"taskId":"$x","content":"c"}`, false},
	{"progress", `event:progress {"taskId":"$x","progress":0.5}`, true},
	{"error", `event:error {"taskId":"$x","error":"e","recoverable":true}`, true},
	{"fatal", `event:error {"taskId":"$x","error":"e","recoverable":false}`, true},
}

// transitions lists the transitions of doc.go, and the ones that it leaves out.
var transitions = map[wire.TaskState][]wire.TaskState{
	wire.TaskPending:    {wire.TaskAssigned, wire.TaskPlanning, wire.TaskCancelled},
	wire.TaskAssigned:   {wire.TaskRunning, wire.TaskPlanning, wire.TaskPending, wire.TaskCancelled},
	wire.TaskPlanning:   {wire.TaskPlanReview, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskPlanReview: {wire.TaskPlanning, wire.TaskRunning, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskRunning:    {wire.TaskDone, wire.TaskFailed, wire.TaskNeedsHuman, wire.TaskVerifying, wire.TaskPending, wire.TaskCancelled},
	wire.TaskVerifying:  {wire.TaskRunning, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskNeedsHuman: {wire.TaskRunning, wire.TaskCancelled},
	wire.TaskDone:       {},
	wire.TaskFailed:     {wire.TaskPending},
	wire.TaskCancelled:  {wire.TaskPending},
}

// say brings a task into a state, makes the request, and returns the outcome.
func say(t *testing.T, st verbState, v verb, caller string) string {
	p := newPlayer(t)
	for _, line := range append([]string{
		`able holder {"languages":["go"]}`,
		"agents: submitter(planner) holder(worker) stranger(reviewer) other(reviewer)", "up",
		"start submitter", "start holder", "start stranger", `> stranger first submit-task {"type":"t","name":"z"}`,
	}, strings.Split(st.script, "\n")...) {
		p.play(line)
	}
	k := p.task("x")
	require.Equal(t, st.state, k.View.State)
	before, records := spelled(t, p.state), len(p.records)
	id := "z "
	if v.event {
		id = ""
	}
	p.play("> " + caller + " " + id + v.message)
	p.requireReplay()
	if p.last.Refused == nil {
		requireAllowed(t, st.state, p.records[records:])
		return string(k.View.State)
	}
	require.Equal(t, before, spelled(t, p.state), "what is refused changes nothing")
	require.Empty(t, p.last.Records)
	why := "- " + string(p.last.Refused.Code)
	if reason := p.last.Refused.Details["reason"]; reason != nil {
		why += fmt.Sprintf(" (%s)", reason)
	}
	return why
}

// requireAllowed follows a task through its records.
func requireAllowed(t *testing.T, st wire.TaskState, records []wire.Record) {
	to := map[string]wire.TaskState{
		events.TaskAssigned: wire.TaskAssigned, events.TaskStarted: wire.TaskRunning, events.TaskRequeued: wire.TaskPending,
		events.TaskReopened: wire.TaskPending, events.TaskDone: wire.TaskDone, events.TaskFailed: wire.TaskFailed, events.TaskCancelled: wire.TaskCancelled,
		events.TaskPlanned: wire.TaskPlanReview, events.TaskPlanReturned: wire.TaskPlanning, events.TaskHelpWanted: wire.TaskNeedsHuman,
	}
	for _, r := range records {
		next := to[r.Kind]
		if strings.Contains(string(r.Payload), `"plan":true`) {
			next = wire.TaskPlanning
		}
		if next != "" {
			require.Contains(t, transitions[st], next)
			st = next
		}
	}
}
