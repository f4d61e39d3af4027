package why

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// chain returns n tasks. Each depends on the one before.
func chain(n int) []task.Seen {
	tasks := make([]task.Seen, n)
	for i := range tasks {
		tasks[i].Task = wire.Task{ID: fmt.Sprintf("%08d", i), Name: "step", State: wire.TaskPending}
		if i > 0 {
			tasks[i].Dependencies = []string{tasks[i-1].ID}
		}
	}
	return tasks
}

// drawn returns the tree of all tasks and the number of tasks left out.
func drawn(tasks []task.Seen, most int) (lines []string, left int) {
	g := task.NewGraph(tasks)
	g.Choose(func(int) bool { return true })
	tree := task.NewTree(g, most, false)
	tree.Grow()
	return strings.Split(strings.TrimSuffix(term.Table(tree.Rows), "\n"), "\n"), tree.Left()
}

func TestTreeOfALongChain(t *testing.T) {
	lines, left := drawn(chain(1000), 2000)
	require.Zero(t, left)
	require.Len(t, lines, 1000, "each once")
	wide := 0
	for _, line := range lines {
		wide = max(wide, term.Width(line))
	}
	require.Less(t, wide, 3*task.Deepest+40, "what lies deep begins again at the left")

	lines, left = drawn(chain(1000), 200)
	require.Len(t, lines, 200)
	require.Equal(t, 800, left)
}

// Resolved dependencies may form a cycle, because no task waits.
func TestTreeOfACircle(t *testing.T) {
	tasks := chain(3)
	tasks[0].Dependencies = []string{tasks[2].ID}
	lines, left := drawn(tasks, 10)
	require.Zero(t, left)
	require.Equal(t, []string{
		"00000000 step           pending",
		"└─ 00000001 step        pending",
		"   └─ 00000002 step     pending",
		"      └─ 00000000 step  (above)",
	}, lines)

	g := task.NewGraph(tasks)
	require.True(t, g.ChooseAround(tasks[1].ID))
	require.Len(t, g.Chosen(), 3)
	require.False(t, g.ChooseAround("nobody"))
}

func TestHoldups(t *testing.T) {
	tasks := chain(4)
	for i := 1; i < 4; i++ {
		tasks[i].WaitsFor = tasks[i].Dependencies
	}
	tasks[3].WaitsFor = append(tasks[3].WaitsFor, tasks[0].ID, "gone")
	c := &taskCauses{task: &tasks[3]}
	c.holdups(task.ByID(tasks))
	require.Len(t, c.WaitsFor, 2)
	require.Len(t, c.HeldUpBy, 1, "once, by however many ways")
	require.Empty(t, c.behind(), "it waits for that one itself")
}

// TestLostNeed checks that the advice on a cancelled task is a command that brings it back.
func TestLostNeed(t *testing.T) {
	tasks := chain(4)
	tasks[0].State = wire.TaskDone
	tasks[1].State = wire.TaskFailed
	for i := 2; i < 4; i++ {
		tasks[i].State, tasks[i].Reason = wire.TaskCancelled, wire.DependencyFailed
	}
	c := &taskCauses{Task: inStory(&tasks[3]), task: &tasks[3], lost: lostNeed(&tasks[3], task.ByID(tasks))}
	require.Equal(t, []string{
		"It was cancelled: Dependency failed",
		`It needs 00000001 "step", which is failed. Why: orchestrator why 00000001`,
		"Retry that task, and this one is retried with it: orchestrator task retry 00000001",
	}, c.next())
	require.Nil(t, lostNeed(&tasks[1], task.ByID(tasks)))
}

func TestReasonsInShort(t *testing.T) {
	require.Equal(t, "languages +50", task.PointWords("language match: go, sql (+50)"))
	require.Equal(t, "preferred +200", task.PointWords("preferred server (+200)"))
	require.Equal(t, "is lucky +7", task.PointWords("is lucky (+7)"))
	require.Equal(t, "what it is", task.PointWords("what it is"))
	require.Equal(t, "lacks repo shop", task.LackWords("missing repo: shop (disqualified)"))
	require.Equal(t, "is asleep", task.LackWords("is asleep (disqualified)"))
}

// TestLastHolder checks that the advice on a requeued task is a valid command. why accepts the
// agents in the status, but not servers on other machines.
func TestLastHolder(t *testing.T) {
	c := &taskCauses{
		Tried:  []tried{{Kind: events.TaskRequeued, Agent: "coder"}},
		status: &control.Status{Agents: []control.AgentView{{Name: "coder"}}},
	}
	require.Equal(t, []string{"Why coder no longer has it: orchestrator why coder"}, c.lastHolder())
	c.Tried[0].Agent = "attic"
	require.Equal(t, []string{"It was assigned to the server attic. See whether that is online: orchestrator agent servers"}, c.lastHolder())
	c.Tried[0].Kind = events.TaskFailed
	require.Nil(t, c.lastHolder())
}

// Commands for a running team are left out for one that is down, and the reason is kept.
func TestWhenDown(t *testing.T) {
	require.Equal(t, []string{
		"The team is down: all tasks wait until it is up again.",
		"It goes to coder, as soon as it is idle.",
		"Its plan waits for approval. Read it: orchestrator task show 91c0",
		"No agent fits. It waits for one that does.",
	}, whenDown([]string{
		"It goes to coder, as soon as it is idle. At once: orchestrator task assign --auto 91c0",
		"Its plan waits for approval. Read it: orchestrator task show 91c0",
		"Then: orchestrator task approve-plan 91c0     or: orchestrator task revise-plan 91c0 -m TEXT",
		"No agent fits. It waits for one that does. Change the file, then: orchestrator reload",
	}))
}
