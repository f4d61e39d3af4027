package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// Ten tasks change one repository. Three change the same lines, one fails its verification twice, the agent crashes,
// and the orchestrator is killed while it makes a workspace and while it merges, at any moment. In the end main has each change once and nothing
// else, and no work is lost.
func TestTenBranches(t *testing.T) {
	t.Parallel()
	tenBranches(t, false)
}

// The same holds if the queue merges the branches.
func TestTenBranchesInAQueue(t *testing.T) {
	t.Parallel()
	tenBranches(t, true)
}

func tenBranches(t *testing.T, queue bool) {
	y := newYard(t, `  verify = [["sh", "-c", "sleep 0.1; test ! -e broken"]]`+"\n}\nscheduler {\n  verify_attempts = 5\n")
	defer func() {
		if t.Failed() {
			t.Logf("branches:\n%s\ncommits:\n%s", y.git("repo", "branch", "-vv"), y.git("repo", "log", "--graph", "--oneline", "--branches"))
		}
	}()
	y.up("--json")
	coder := y.theatre.enter("coder")
	change := func(task *wire.Task, n int) {
		name := fmt.Sprint("file", n)
		if n < 3 {
			name = "file"
		}
		y.change(task.Workspace.Path, name, fmt.Sprint("change ", n, "\n"))
	}
	kill := func(most int) {
		<-time.After(time.Duration(rand.IntN(most)) * time.Millisecond)
		y.signal(syscall.SIGKILL)
		<-y.ended
		y.up("--json")
		coder = y.theatre.enter("coder")
	}
	var tasks []wire.Task
	for n := range 10 {
		var task wire.Task
		if n == 6 { // it is killed while it makes the workspace
			id := strings.TrimSpace(y.ask("task", "add", "task 6", "--role", "worker", "-q"))
			coder.assigned(id)
			coder.request("get-task", `{"taskId":"`+id+`"}`)
			kill(60)
			coder.assigned(id)
			task = y.enter(coder, id)
			require.Empty(t, y.git(task.Workspace.Path, "status", "--porcelain"))
		} else {
			task = y.begin(coder, fmt.Sprint("task ", n))
		}
		switch n {
		case 3:
			y.change(task.Workspace.Path, "broken", "")
			for range 2 {
				coder.refused("INVALID_REQUEST", "complete-task", finishing(&task))
			}
			y.git(task.Workspace.Path, "rm", "--quiet", "broken")
			y.git(task.Workspace.Path, "commit", "--quiet", "-m", "repaired")
		case 4:
			change(&task, n)
			coder.die()
			coder = y.theatre.enter("coder")
			require.Equal(t, task.Workspace, y.enterAgain(coder, task.ID))
		}
		if n != 4 {
			change(&task, n)
		}
		coder.granted(nil, "complete-task", finishing(&task))
		tasks = append(tasks, task)
	}

	if queue {
		text, err := os.ReadFile(y.path("orchestrator.hcl"))
		require.NoError(t, err)
		y.write("orchestrator.hcl", string(text)+"\nmerge {\n  queue = true\n}\n")
		y.ask("reload")
		kill(3000)
		resolved := make(map[string]bool)
		waitForThat(t, "all merged", func() bool {
			for _, task := range y.tasks() {
				if !task.State.Final() && !resolved[task.ID] {
					resolved[task.ID] = true
					coder.assigned(task.ID)
					heir := y.enter(coder, task.ID)
					y.git(heir.Workspace.Path, "merge", "--quiet", "-X", "ours", "main")
					coder.granted(nil, "complete-task", finishing(&heir))
				}
			}
			return strings.Count(y.git("repo", "log", "--format=%s", "--no-merges", "main"), "\n") == 13 && !strings.Contains(y.git("repo", "branch"), "task/")
		})
		tasks = nil
	}
	merged := 0
	for _, n := range rand.Perm(len(tasks)) {
		if merged == 4 { // it is killed while it merges, and started again
			go y.call("task", "merge", tasks[n].ID)
			kill(300)
		}
		_, stderr, code := y.call("task", "merge", tasks[n].ID)
		switch {
		case code != 0 && (strings.Contains(stderr, "is merged into main") || strings.Contains(stderr, "no workspace")): // before the kill
		case code != 0: // as the refusal says, the other branch is merged into that of the task first
			require.Contains(t, stderr, "change the same lines of file")
			require.Less(t, n, 3, stderr)
			y.git(tasks[n].Workspace.Path, "merge", "--quiet", "-X", "ours", "main")
			y.ask("task", "merge", tasks[n].ID)
		}
		merged++
	}

	var subjects []string
	for line := range strings.Lines(y.git("repo", "log", "--format=%s", "--no-merges", "main")) {
		subjects = append(subjects, strings.TrimSpace(line))
	}
	slices.Sort(subjects)
	want := []string{"broken", "file", "file", "file", "file", "file3", "file4", "file5", "file6", "file7", "file8", "file9", "repaired"} // the first of the test itself, too
	require.Equal(t, want, subjects)
	for n := 3; n < 10; n++ {
		require.Equal(t, fmt.Sprint("change ", n, "\n"), y.read(fmt.Sprint("repo/file", n)))
	}
	require.Empty(t, y.git("repo", "status", "--porcelain"))
	y.git("repo", "fsck", "--strict")
	y.ask("workspace", "prune")
	left, err := os.ReadDir(y.path("repo/.workspaces"))
	require.NoError(t, err)
	for _, entry := range left {
		require.Empty(t, filepath.Join(y.path("repo/.workspaces"), entry.Name()), "a workspace is left")
	}
	y.stop()
}
