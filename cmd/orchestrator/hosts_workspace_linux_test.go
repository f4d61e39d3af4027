package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// farWorker leaves a file in the workspace of each task.
const farWorker = `#!/bin/sh
say() { echo "{\"type\":\"request:$1\",\"id\":\"$1-$id\",\"timestamp\":\"2026-11-21T14:00:00Z\",\"payload\":{\"taskId\":\"$id\"}}"; }
while read -r line; do
	case $line in
	*'"notify:task-assigned"'*)
		id=$(echo "$line" | sed 's/.*"taskId":"\([^"]*\)".*/\1/')
		say get-task ;;
	*'"response:success"'*'"correlationId":"get-task-'*)
		cd "$(echo "$line" | sed 's/.*"workspace":{"path":"\([^"]*\)".*/\1/')" || exit
		test ! -e far || exit 3
		echo "$id" >far
		git add far
		git -c user.name=F -c user.email=f@example.org commit -q -m far
		say complete-task ;;
	esac
done
`

// An agent on a host works in a workspace there. When its task is done, its branch is in the repository of the hub.
func TestWorkspaceOnAHost(t *testing.T) {
	t.Parallel()
	file := `
agent "far" {
  command = ["sh", "far.sh"]
  placement {}
  verify = [["sh", "-c", "test -s far; pwd"]]
  workspace {
    worktree = "repo"
  }
}
`
	hub := &yard{&theatre{stage: newStage(t, file, "far.sh", farWorker)}}
	require.NoError(t, os.Mkdir(hub.path("repo"), 0o700))
	hub.git("repo", "init", "--quiet", "--initial-branch=main")
	hub.git("repo", "config", "user.email", "a@example.org")
	hub.git("repo", "config", "user.name", "A")
	hub.change("repo", "file", "one\n")
	f := farmOf(hub.stage, file)
	attic := newStage(t, f.file, "token", f.ask("token", "issue", "--actor", "HO:attic"), "far.sh", farWorker)
	hub.git("repo", "clone", "--quiet", hub.path("repo"), filepath.Join(attic.dir, "repo"))
	attic.join(f.url)
	f.waitForAgent("far", "attic")

	hub.change("repo", "file", "two\n") // the host fetches it
	id := strings.Fields(f.ask("task", "add", "do it far away", "-q"))[0]
	waitForThat(t, "done", func() bool { return f.taskState(id) == wire.TaskDone })
	there := filepath.Join(attic.dir, "repo/.workspaces", wire.ShortID(id))
	require.Contains(t, f.ask("task", "show", id), there+"  task/"+wire.ShortID(id)+" on attic")
	require.Contains(t, f.ask("task", "response", id, "--artifact", "verification.txt"), there)
	require.Contains(t, f.ask("task", "diff", id), "+"+id)
	f.ask("task", "merge", id)
	require.Equal(t, id+"\n", hub.read("repo/far"))
	require.NotContains(t, hub.git("repo", "branch"), "task/")

	hub.git(filepath.Join(attic.dir, "repo"), "remote", "remove", "origin")
	hub.git("repo", "rm", "--quiet", "far")
	hub.git("repo", "commit", "--quiet", "-m", "again")
	id = strings.Fields(f.ask("task", "add", "again", "-q"))[0]
	refused := f.waitForEvents(1, events.AgentRefused, "far")
	require.Contains(t, refused[0].Text, "on attic: the repository")
	require.Contains(t, refused[0].Text, "has no commit")
	require.NotEqual(t, wire.TaskDone, f.taskState(id))
	f.stop()
}
