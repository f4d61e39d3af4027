package console

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

var lookedAt = time.Date(2026, 11, 20, 14, 33, 2, 0, time.UTC)

// workshop returns the rows of a busy team.
func workshop() *rowsData {
	task := func(id, name string, state wire.TaskState, agent string, progress float64, needs ...string) wire.Task {
		return wire.Task{ID: id + "-0000-4000-8000-000000000000", Name: name, State: state, AssignedTo: agent, Progress: progress, WaitsFor: needs}
	}
	return &rowsData{at: lookedAt, Dashboard: supervisor.Dashboard{
		Status: control.Status{
			Tasks: control.TaskCounts{Running: 1, InReview: 1, Pending: 9, Blocked: 1, Done: 3, Failed: 1}, Questions: 1,
			Agents: []control.AgentView{
				{Name: "planner", State: control.StateRunning},
				{Name: "coder-0", State: control.StateRunning, Tasks: []control.TaskLabel{{ID: "7f3a9c1e-0000-4000-8000-000000000000", Name: "API", State: wire.TaskRunning, Progress: 0.64}}},
				{Name: "coder-1", State: control.StateBackoff, NextStartMS: 4200},
				{Name: "idler", State: control.StateRunning},
			},
		},
		Tasks: []wire.Task{
			task("7f3a9c1e", "API", wire.TaskRunning, "coder-0", 0.64), task("5be1d7c0", "写手 store\x1b[2J", wire.TaskInReview, "reviewer", 0),
			task("91c0aa42", "Dashboard", wire.TaskPending, "", 0, "7f3a9c1e-0000-4000-8000-000000000000"), task("0d11c3aa", "Guide", wire.TaskPending, "", 0),
		},
		Questions: []wire.Question{{
			ID: "q1", Agent: "coder-0", Question: "Which login?", Options: []wire.Option{{Label: "OAuth", Value: "oauth"}, {Value: "jwt"}},
			Deadline: object.Timestamp(lookedAt.Add(4*time.Minute + 19*time.Second)),
		}},
	}}
}

// Active and waiting items come first; the others are counted.
func TestVistaRows(t *testing.T) {
	require.Equal(t, `── 1 running 1 in_review 9 pending 3 done 1 failed ────────────────────────────
?  q1 coder-0: Which login?  1 [oauth: OAuth]  2 [jwt]               4m17s left
>  7f3a9c1e API              running      [######----]  64%  coder-0
r  5be1d7c0 写手 store\x1b…  in_review                       reviewer
.  91c0aa42 Dashboard        pending                         waits for 7f3a9c1e
   … 8 more tasks
   coder-0  running   7f3a9c1e API 64%
   coder-1  backoff   starts in 3.0s
   … 2 more agents`, strings.Join(workshop().rows(79, 9, lookedAt.Add(2*time.Second)), "\n"))
}

// Answers that do not fit beside their question get their own rows if there is room.
func TestVistaAnswers(t *testing.T) {
	v := workshop()
	long := []wire.Option{{Label: "white walls and blue water", Value: "day"}, {Label: "a dark sky with many stars", Value: "night"}, {Value: "storm"}}
	v.Questions[0].Options = long
	rows := v.rows(79, 9, lookedAt.Add(2*time.Second))
	require.Equal(t, `?  q1 coder-0: Which login?                                          4m17s left
   1 [day: white walls and blue water]
   2 [night: a dark sky with many stars]
   3 [storm]`, strings.Join(rows[1:5], "\n"))
	require.Len(t, rows, 9)
	require.Contains(t, strings.Join(rows, "\n"), "7f3a9c1e API")
	require.Contains(t, v.rows(79, 4, lookedAt)[1], "1 [day: white", "else they begin beside it")
}

// The pinned text is the last row, unless only a few rows fit.
func TestPinnedRow(t *testing.T) {
	v := workshop()
	v.pinned = "Browser: orchestrator ui"
	rows := v.rows(79, 9, lookedAt)
	require.Len(t, rows, 9)
	require.Equal(t, "   Browser: orchestrator ui", rows[8])
	require.NotContains(t, strings.Join(v.rows(79, 4, lookedAt), "\n"), "Browser")
}

// Rows never exceed the available width and height.
func TestVistaFits(t *testing.T) {
	for columns := 10; columns < 200; columns++ {
		for most := range 20 {
			v := workshop()
			v.pinned = "Browser: orchestrator ui"
			rows := v.rows(columns, most, lookedAt)
			require.LessOrEqual(t, len(rows), most)
			for _, row := range rows {
				require.LessOrEqual(t, term.Width(row), columns, "%q", row)
				require.NotContains(t, row, "\x1b")
			}
		}
	}
}
