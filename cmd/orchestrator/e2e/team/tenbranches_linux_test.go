package team

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

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
)

// Ten tasks change one repository. Three change the same lines, one fails its verification twice, the agent crashes,
// and the orchestrator is killed while it makes a workspace and while it merges, at any moment. In the end main has
// exactly the changes, each once, and no work is lost.
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
	y := stage.NewRepo(t, `  verify = [["sh", "-c", "sleep 0.1; test ! -e broken"]]`+"\n}\nscheduler {\n  verify_attempts = 5\n")
	defer func() {
		if t.Failed() {
			t.Logf("branches:\n%s\ncommits:\n%s", y.Git("repo", "branch", "-vv"), y.Git("repo", "log", "--graph", "--oneline", "--branches"))
		}
	}()
	y.Up("--json")
	coder := y.Team.NextRun("coder")
	change := func(task *wire.Task, n int) {
		name := fmt.Sprint("file", n)
		if n < 3 {
			name = "file"
		}
		y.Change(task.Workspace.Path, name, fmt.Sprint("change ", n, "\n"))
	}
	kill := func(most int) {
		<-time.After(time.Duration(rand.IntN(most)) * time.Millisecond)
		y.Signal(syscall.SIGKILL)
		<-y.Ended
		y.Up("--json")
		coder = y.Team.NextRun("coder")
	}
	var tasks []wire.Task
	for n := range 10 {
		var task wire.Task
		if n == 6 { // it is killed while it makes the workspace
			id := strings.TrimSpace(y.Ask("task", "add", "task 6", "--role", "worker", "-q"))
			coder.Assigned(id)
			coder.Request("get-task", `{"taskId":"`+id+`"}`)
			kill(60)
			coder.Assigned(id)
			task = y.Enter(coder, id)
			require.Empty(t, y.Git(task.Workspace.Path, "status", "--porcelain"))
		} else {
			task = y.Begin(coder, fmt.Sprint("task ", n))
		}
		switch n {
		case 3:
			y.Change(task.Workspace.Path, "broken", "")
			for range 2 {
				coder.Refused("INVALID_REQUEST", "complete-task", stage.Finish(&task))
			}
			y.Git(task.Workspace.Path, "rm", "--quiet", "broken")
			y.Git(task.Workspace.Path, "commit", "--quiet", "-m", "repaired")
		case 4:
			change(&task, n)
			coder.Kill()
			coder = y.Team.NextRun("coder")
			require.Equal(t, task.Workspace, enterAgain(y, coder, task.ID))
		}
		if n != 4 {
			change(&task, n)
		}
		coder.Granted(nil, "complete-task", stage.Finish(&task))
		tasks = append(tasks, task)
	}

	if queue {
		text, err := os.ReadFile(y.Path("orchestrator.hcl"))
		require.NoError(t, err)
		y.Write("orchestrator.hcl", string(text)+"\nmerge {\n  queue = true\n}\n")
		y.Ask("reload")
		kill(3000)
		resolved := make(map[string]bool)
		stage.WaitFor(t, "all merged", func() bool {
			for _, task := range y.Tasks() {
				if !task.State.Final() && !resolved[task.ID] {
					resolved[task.ID] = true
					coder.Assigned(task.ID)
					heir := y.Enter(coder, task.ID)
					y.Git(heir.Workspace.Path, "merge", "--quiet", "-X", "ours", "main")
					coder.Granted(nil, "complete-task", stage.Finish(&heir))
				}
			}
			return strings.Count(y.Git("repo", "log", "--format=%s", "--no-merges", "main"), "\n") == 13 && !strings.Contains(y.Git("repo", "branch"), "task/")
		})
		tasks = nil
	}
	merged := 0
	for _, n := range rand.Perm(len(tasks)) {
		if merged == 4 { // it is killed while it merges, and started again
			go y.Call("task", "merge", tasks[n].ID)
			kill(300)
		}
		_, stderr, code := y.Call("task", "merge", tasks[n].ID)
		switch {
		case code != 0 && (strings.Contains(stderr, "is merged into main") || strings.Contains(stderr, "no workspace")): // before the kill
		case code != 0: // as in the refusal, the other branch is merged into the branch of the task first
			require.Contains(t, stderr, "change the same lines of file")
			require.Less(t, n, 3, stderr)
			y.Git(tasks[n].Workspace.Path, "merge", "--quiet", "-X", "ours", "main")
			y.Ask("task", "merge", tasks[n].ID)
		}
		merged++
	}

	var subjects []string
	for line := range strings.Lines(y.Git("repo", "log", "--format=%s", "--no-merges", "main")) {
		subjects = append(subjects, strings.TrimSpace(line))
	}
	slices.Sort(subjects)
	want := []string{"broken", "file", "file", "file", "file", "file3", "file4", "file5", "file6", "file7", "file8", "file9", "repaired"} // the first of the test itself, too
	require.Equal(t, want, subjects)
	for n := 3; n < 10; n++ {
		require.Equal(t, fmt.Sprint("change ", n, "\n"), y.Read(fmt.Sprint("repo/file", n)))
	}
	require.Empty(t, y.Git("repo", "status", "--porcelain"))
	y.Git("repo", "fsck", "--strict")
	y.Ask("workspace", "prune")
	left, err := os.ReadDir(y.Path("repo/.workspaces"))
	require.NoError(t, err)
	for _, entry := range left {
		require.Empty(t, filepath.Join(y.Path("repo/.workspaces"), entry.Name()), "a workspace is left")
	}
	y.Stop()
}
