package agents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// TestOperationsOnTasks is TestOperations for the requests on tasks that are extensions.
func TestOperationsOnTasks(t *testing.T) {
	task, name := taskNamed("one"), "new"
	list := &wire.TaskList{Tasks: []wire.Task{task.Task}}
	link := wire.Link{ID: "d1", On: "task-two", Type: hub.DependsInput, Contract: "k"}
	note := wire.Note{ID: "n1", TaskID: "task-one", Author: "agent:me", Content: "c", CreatedAt: "2026-02-04T14:30:00.000Z"}
	for operation, each := range map[string]exchange{
		"update-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.UpdateTask(t.Context(), wire.UpdateTask{TaskID: "task-one", Name: &name, Without: []string{"requirements"}})
			},
			want:   &wire.UpdateTask{TaskID: "task-one", Name: &name, Without: []string{"requirements"}},
			answer: task, got: asHeard(task),
		},
		"assign-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.AssignTask(t.Context(), wire.AssignTask{TaskID: "task-one", Agent: "coder", RequirePlan: true})
			},
			want:   &wire.AssignTask{TaskID: "task-one", Agent: "coder", RequirePlan: true},
			answer: task, got: asHeard(task),
		},
		"auto-assign": {
			ask:    func(t *talk) (any, error) { return t.agent.AutoAssign(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: wire.Assignment{Status: "no_match"}, got: wire.Assignment{Status: "no_match"},
		},
		"match-agents": {
			ask:    func(t *talk) (any, error) { return t.agent.MatchAgents(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: wire.Matches{Servers: []wire.Match{{ServerName: "a", Score: -1}}, Total: 1},
			got:    []wire.Match{{ServerName: "a", Score: -1, Reasons: []string{}}},
		},
		"poll-tasks": {
			ask:  func(t *talk) (any, error) { return t.agent.PollTasks(t.Context()) },
			want: &wire.Nothing{}, answer: list, got: []wire.Task{asHeard(task)},
		},
		"check-tasks": {
			ask:  func(t *talk) (any, error) { return t.agent.CheckTasks(t.Context(), "coder") },
			want: &wire.CheckTasks{SessionID: "coder"}, answer: list, got: []wire.Task{asHeard(task)},
		},
		"request-help": {
			ask:    func(t *talk) (any, error) { return t.agent.RequestHelp(t.Context(), "task-one", "?", []int{1}) },
			want:   &wire.RequestHelp{TaskID: "task-one", Question: "?", Context: wire.Raw(`[1]`)},
			answer: task, got: asHeard(task),
		},
		"submit-plan": {
			ask:    func(t *talk) (any, error) { return t.agent.SubmitPlan(t.Context(), "task-one", wire.Raw(delicate)) },
			want:   &wire.SubmitPlan{TaskID: "task-one", Plan: wire.Raw(delicate)},
			answer: task, got: asHeard(task),
		},
		"approve-plan": {
			ask:  func(t *talk) (any, error) { return t.agent.ApprovePlan(t.Context(), "task-one") },
			want: &wire.TaskID{TaskID: "task-one"}, answer: task, got: asHeard(task),
		},
		"revise-plan": {
			ask:  func(t *talk) (any, error) { return t.agent.RevisePlan(t.Context(), "task-one", "test first") },
			want: &wire.RevisePlan{TaskID: "task-one", Feedback: "test first"}, answer: task, got: asHeard(task),
		},
		"add-dependency": {
			ask: func(t *talk) (any, error) {
				return t.agent.AddDependency(t.Context(), "task-one", hub.Dependency{On: "task-two", Type: hub.DependsInput, Contract: "k"})
			},
			want:   &wire.AddDependency{TaskID: "task-one", Dependency: hub.Dependency{On: "task-two", Type: hub.DependsInput, Contract: "k"}},
			answer: &wire.LinkReply{Dependency: link}, got: link,
		},
		"remove-dependency": {
			ask:    func(t *talk) (any, error) { return t.agent.RemoveDependency(t.Context(), "task-one", "d1") },
			want:   &wire.RemoveDependency{TaskID: "task-one", DependencyID: "d1"},
			answer: &wire.LinkReply{Dependency: link}, got: link,
		},
		"add-note": {
			ask: func(t *talk) (any, error) {
				return t.agent.AddNote(t.Context(), wire.AddNote{TaskID: "task-one", Content: "c", Urgent: true})
			},
			want:   &wire.AddNote{TaskID: "task-one", Content: "c", Urgent: true},
			answer: wire.NoteReply{Note: note}, got: note,
		},
		"list-notes": {
			ask:  func(t *talk) (any, error) { return t.agent.ListNotes(t.Context(), "task-one") },
			want: &wire.TaskID{TaskID: "task-one"}, answer: wire.NoteList{Notes: []wire.Note{note}}, got: []wire.Note{note},
		},
	} {
		each.require(t, operation)
	}
}

// TestOperationsOnServers is TestOperations for requests of servers.
func TestOperationsOnServers(t *testing.T) {
	server := wire.Server{ServerID: "s1", Name: "a", Status: "online", Repos: wire.Raw(`{}`)}
	can := &hub.Capabilities{Document: wire.Raw(`{"languages":["go"]}`)}
	exchange{
		ask: func(t *talk) (any, error) {
			return t.agent.UpdateCapabilities(t.Context(), wire.UpdateCapabilities{Capabilities: can, System: wire.Raw(`{"load":0.50}`)})
		},
		want: &wire.UpdateCapabilities{
			Capabilities: &hub.Capabilities{Document: wire.Raw(`{"languages":["go"]}`), Languages: []string{"go"}, Capacity: 1},
			System:       wire.Raw(`{"load":0.50}`),
		},
		answer: server, got: server,
	}.require(t, "update-capabilities")
	exchange{
		ask:  func(t *talk) (any, error) { return t.agent.Servers(t.Context()) },
		want: &wire.Nothing{}, answer: wire.ServerList{Servers: []wire.Server{server}}, got: []wire.Server{server},
	}.require(t, "query-servers")
}

func TestPlansAndQuestionsThatCannotBeTold(t *testing.T) {
	converse(t, func(t *talk) {
		_, err := t.agent.SubmitPlan(t.Context(), "x", func() {})
		require.Error(t, err)
		_, err = t.agent.RequestHelp(t.Context(), "x", "?", func() {})
		require.Error(t, err)
	})
}

// TestResults checks that the results built by the SDK are those that the orchestrator reads.
func TestResults(t *testing.T) {
	for name, each := range map[string]struct {
		result agents.Result
		want   string
	}{
		"all of it": {
			result: agents.Result{
				Summary: "it went <well>",
				Changes: agents.Changes{Modified: []string{"a"}, Created: []string{"b"}, Deleted: []string{"c"}, LinesAdded: 3, LinesRemoved: 1},
				Contracts: map[string]agents.Contract{
					"all": agents.Fulfilled(wire.Raw(`{"n":1.0}`)), "some": agents.Partial(map[string]int{"n": 1}), "none": agents.Skipped("no time"),
				},
				Tests:     agents.Tests{Framework: "go", Total: 3, Passed: 2, Skipped: 1, Coverage: 87.5},
				Artifacts: map[string]any{"log": "out.log"},
			},
			want: `{"$schema":"orchestratia/task-result/v1","summary":"it went <well>",` +
				`"changes":{"files_modified":["a"],"files_created":["b"],"files_deleted":["c"],"lines_added":3,"lines_removed":1},` +
				`"contracts":{"all":{"status":"fulfilled","data":{"n":1.0}},"none":{"status":"skipped","data":{"reason":"no time"}},"some":{"status":"partial","data":{"n":1}}},` +
				`"tests":{"framework":"go","total":3,"passed":2,"failed":0,"skipped":1,"coverage_percent":87.5},"artifacts":{"log":"out.log"}}`,
		},
		"a summary": {
			result: agents.Result{Summary: "nothing to do"},
			want:   `{"$schema":"orchestratia/task-result/v1","summary":"nothing to do"}`,
		},
	} {
		text, err := object.Encode(each.result)
		require.NoError(t, err, name)
		require.Equal(t, each.want, string(text))
		read := hub.ReadResult(text)
		require.True(t, read.Structured)
		require.Nil(t, read.Breach)
		require.Len(t, read.Contracts, len(each.result.Contracts))
	}
}
