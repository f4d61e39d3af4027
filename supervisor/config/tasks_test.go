package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/settings"
)

var writers = settled + agentLike("writer", "") + agentLike("pair", "replicas = 2\n role = \"tester\"")

// TestTasks checks that task blocks are complete and sorted by their needs.
func TestTasks(t *testing.T) {
	c := load(t, write(t, "orchestrator.hcl", writers+`
task "client" {
  requires = ["go"]
  needs    = ["spec", "draft", "spec"]
}
task "spec" {
  title = "Write the spec"
  spec  = file("spec.md")
  agent = "writer"
  needs = ["draft"]
}
task "draft" {}
task "try" {
  role  = "tester"
}
task "again" {
  agent = "pair-1"
}
`, "spec.md", "All of it."), Options{})
	require.Equal(t, []Task{
		{Name: "draft", Title: "draft", Role: "worker"},
		{Name: "spec", Title: "Write the spec", Spec: "All of it.", Agent: "writer", Needs: []string{"draft"}},
		{Name: "client", Title: "client", Requires: []string{"go"}, Needs: []string{"spec", "draft"}},
		{Name: "try", Title: "try", Role: "tester"},
		{Name: "again", Title: "again", Agent: "pair-1"},
	}, c.Tasks)
	require.Equal(t, "orchestrator.hcl:23", c.Place("task.client"))
}

// TestTaskMistakes checks the mistakes in task blocks and their places.
func TestTaskMistakes(t *testing.T) {
	for text, want := range map[string][]string{
		`task "a" { agent = "wirter" }`:                       {"config/unknown-agent", "22:20", `"writer"?`},
		`task "a" { agent = "pair" }`:                         {"config/unknown-agent", "22:20", `for example "pair-0"`},
		`task "a" { role = "testre" }`:                        {"config/unknown-role", "22:19", `"tester"?`},
		`task "a" { role = "planner" }`:                       {"config/task-without-agent", "22:1", "waits until one joins"},
		`task "a" { needs = ["b"] }`:                          {"config/unknown-task", "22:21", `Task "a" needs "b"`},
		`task "a" { needs = "b" }`:                            {"config/wrong-type", "22:20", "a list of tasks"},
		`task "a" { needs = ["a"] }`:                          {"config/dependency-cycle", "22:21", "a -> a"},
		"task \"a\" {\n agent = \"writer\"\n role = \"x\"\n}": {"config/agent-and-role", "23:2", "Keep one"},
		"task \"a\" {}\ntask \"a\" {}":                        {"config/duplicate-task", "23:6", "hcl:22"},
		`task "a b" {}`:                                       {"config/bad-name", "22:6", "A task needs a name"},
		`task {}`:                                             {"config/bad-label", "22:6", ""},
		`task "a" { attempts = 2 }`:                           {"config/unknown-attribute", "22:12", "It can have title"},
		`task "a" { title = "" }`:                             {"config/empty", "22:20", ""},
		"task \"a\" {\n needs = [\"c\"]\n}\ntask \"b\" {\n needs = [\"a\"]\n}\ntask \"c\" {\n needs = [\"b\"]\n}": {
			"config/dependency-cycle", "26:11", "Tasks cannot wait for each other: a -> c -> b -> a."},
	} {
		_, problems := Load(config(t, writers+text+"\n"), Options{})
		require.Len(t, problems, 1, text)
		require.Equal(t, want[0], problems[0].Code, text)
		require.Equal(t, "orchestrator.hcl:"+want[1], problems[0].Range.String(), text)
		require.Contains(t, problems[0].Detail+" "+problems[0].Hint, want[2], text)
	}
}

// TestCompareTasks checks that a reload shows its effects on tasks.
func TestCompareTasks(t *testing.T) {
	changes := compared(t, writers+"task \"same\" {}\ntask \"other\" {}\ntask \"gone\" {}\n",
		writers+"task \"same\" {}\ntask \"other\" { agent = \"writer\" }\ntask \"new\" { needs = [\"same\"] }\n")
	require.Equal(t, []Change{
		{Action: settings.ActionLive, Attributes: []string{"task.other"}, Place: "orchestrator.hcl:23", Detail: "task.other was already submitted, and its task stays unchanged"},
		{Action: settings.ActionLive, Attributes: []string{"task.new"}, Place: "orchestrator.hcl:24", Detail: "task.new is submitted, unless it already was"},
		{Action: settings.ActionLive, Attributes: []string{"task.gone"}, Place: "orchestrator.hcl:24", Detail: "task.gone is no longer declared; its task stays"},
	}, changes)
}
