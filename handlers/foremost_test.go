package handlers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// BenchmarkForemost lists the open tasks of a large team late in its work: 10,000 tasks are
// done, and each of 1,000 agents has one.
func BenchmarkForemost(b *testing.B) {
	z := newBench(b, 1000)
	submit := request(b, "submit-task", workerTask)
	for range 10_000 {
		z.cycle(submit)
	}
	for range 2000 {
		z.ask(planner, submit)
	}
	b.ReportAllocs()
	for b.Loop() {
		if tasks := z.state.OpenTasks(40); len(tasks) != 40 {
			b.Fatal(len(tasks))
		}
	}
}

// TestForemost checks that assigned tasks come first, and that waiting tasks show what they wait
// for.
func TestForemost(t *testing.T) {
	z := newBench(t, 1)
	var ids []string
	for range 3 {
		ids = append(ids, z.submit(workerTask))
	}
	last := z.submit(fmt.Sprintf(`{"type":"x","name":"last","dependencies":[%q]}`, ids[2]))
	tasks := z.state.OpenTasks(10)
	require.Len(t, tasks, 4)
	require.Equal(t, ids[0], tasks[0].ID)
	require.NotEmpty(t, tasks[0].AssignedTo)
	require.Equal(t, []string{ids[1], ids[2], last}, []string{tasks[1].ID, tasks[2].ID, tasks[3].ID})
	require.Equal(t, wire.TaskPending, tasks[3].State)
	require.Equal(t, []string{ids[2]}, tasks[3].WaitsFor)
	require.Len(t, z.state.OpenTasks(2), 2)
	require.Empty(t, z.state.Asked(2))
}
