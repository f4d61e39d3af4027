package hosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// farWorker leaves a file in the workspace of each task. If its task is to merge a commit, it does.
const farWorker = `#!/bin/sh
say() { echo "{\"type\":\"request:$1\",\"id\":\"$1-$id\",\"timestamp\":\"2026-11-21T14:00:00Z\",\"payload\":{\"taskId\":\"$id\"}}"; }
while read -r line; do
	case $line in
	*'"notify:task-assigned"'*)
		id=$(printf "%s" "$line" | sed 's/.*"taskId":"\([^"]*\)".*/\1/')
		say get-task ;;
	*'"response:success"'*'"correlationId":"get-task-'*)
		cd "$(printf "%s" "$line" | sed 's/.*"workspace":{"path":"\([^"]*\)".*/\1/')" || exit
		export GIT_AUTHOR_NAME=F GIT_AUTHOR_EMAIL=f@example.org GIT_COMMITTER_NAME=F GIT_COMMITTER_EMAIL=f@example.org
		onto=$(printf "%s" "$line" | sed -n 's/.*Merge the commit \([0-9a-f]*\) into it.*/\1/p')
		test -z "$onto" || git merge -q "$onto" >/dev/null 2>&1
		echo "$id" >far
		git add far
		git commit -q -m far
		case $line in
		*'"name":"hide"'*) mv ../../.git ../../.hidden ;;
		*'"name":"lose"'*) rm -rf "$PWD" ;;
		*'"name":"swap"'*) mv "$PWD" "$PWD.moved" && ln -s "$PWD.moved" "$PWD" ;;
		esac
		say complete-task ;;
	esac
done
`

// A lost host does not fail the verification on it.
func TestVerifyOnAHost(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
host "any" {
  names = ["*"]
  grace = "18s"
}
agent "far" {
  command = ["`+stage.Fixture(t, "worker")+`"]
  placement {}
  verify = [["sh", "-c", "echo >began; exec sleep 1000"]]
}
`)
	attic := f.host("attic")
	f.waitForAgent("far", "attic")
	id := strings.Fields(f.Ask("task", "add", "do it far away", "-q"))[0]
	stage.WaitFor(t, "the verification there", func() bool { _, err := os.Stat(attic.Path("began")); return err == nil })
	attic.Signal(syscall.SIGKILL)
	lost := f.WaitForEvents(1, events.TaskUnverified, "far")
	require.Contains(t, lost[0].Text, "was not verified: on attic: its host attic does not answer")
	require.NotContains(t, f.Ask("task", "show", id, "--json"), `"unverified"`)
	f.Stop()
}

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
	hub := &stage.Repo{Team: &stage.Team{Orchestrator: stage.New(t, file, "far.sh", farWorker)}}
	require.NoError(t, os.Mkdir(hub.Path("repo"), 0o700))
	hub.Git("repo", "init", "--quiet", "--initial-branch=main")
	hub.Git("repo", "config", "user.email", "a@example.org")
	hub.Git("repo", "config", "user.name", "A")
	hub.Change("repo", "file", "one\n")
	f := farmOf(hub.Orchestrator, file)
	attic := stage.New(t, f.file, "token", f.Ask("token", "issue", "--actor", "HO:attic"), "far.sh", farWorker)
	hub.Git("repo", "clone", "--quiet", hub.Path("repo"), filepath.Join(attic.Dir, "repo"))
	join(attic, f.url)
	f.waitForAgent("far", "attic")

	hub.Change("repo", "file", "two\n") // the host fetches it
	id := strings.Fields(f.Ask("task", "add", "do it far away", "-q"))[0]
	stage.WaitFor(t, "done", func() bool { return f.TaskState(id) == wire.TaskDone })
	there := filepath.Join(attic.Dir, "repo/.workspaces", wire.ShortID(id))
	require.Contains(t, f.Ask("task", "show", id), there+"  task/"+wire.ShortID(id)+" on attic")
	require.Contains(t, f.Ask("task", "response", id, "--artifact", "verification.txt"), there)
	require.Contains(t, f.Ask("task", "diff", id), "+"+id)
	f.Ask("task", "merge", id)
	require.Equal(t, id+"\n", hub.Read("repo/far"))
	require.NotContains(t, hub.Git("repo", "branch"), "task/")

	hub.Git(filepath.Join(attic.Dir, "repo"), "remote", "remove", "origin") // the hub sends the commits that the host lacks
	hub.Change("repo", "file", "three\n")
	id = strings.Fields(f.Ask("task", "add", "again", "-q"))[0]
	stage.WaitFor(t, "done again", func() bool { return f.TaskState(id) == wire.TaskDone })
	hub.Change("repo", "far", "theirs\n")
	require.Equal(t, "conflict", hub.RefusesToMerge(id).Details["reason"])
	var heir wire.Task
	stage.WaitFor(t, "the conflict resolved", func() bool {
		all := hub.Tasks()
		heir = all[slices.IndexFunc(all, func(t wire.Task) bool { return strings.HasPrefix(t.Name, "Merge task/") })]
		return heir.State == wire.TaskDone
	})
	hub.Ask("task", "merge", heir.ID)
	require.Equal(t, heir.ID+"\n", hub.Read("repo/far"))
	require.Empty(t, hub.Git("repo", "for-each-ref", "refs/orchestrator"))

	id = strings.Fields(f.Ask("task", "add", "hide", "-q"))[0] // the agent does so with the repository
	failed := f.WaitForEvents(1, events.TaskUnverified, "far")
	require.Contains(t, failed[0].Text, "is not verified: on attic: ")
	require.Contains(t, f.Ask("task", "show", id, "--json"), `"unverified":1`, "the host has answered")
	f.Ask("task", "cancel", id)
	hub.Does(filepath.Join(attic.Dir, "repo"), "mv .hidden .git")
	f.Ask("agent", "restart", "far") // refusals are repeated

	hub.Does(hub.Path("repo"), "head -c 700000 /dev/urandom >large; git add large; git commit -qm large")
	id = strings.Fields(f.Ask("task", "add", "too much", "-q"))[0]
	refused := f.WaitForEvents(2, events.AgentRefused, "far")
	require.Contains(t, refused[1].Text, "on attic: the repository there lacks more than 512 KiB of commits")
	require.NotEqual(t, wire.TaskDone, f.TaskState(id))
	f.Stop()
}

// A task block gives its task a workspace and verify commands on a host, too. The host runs only commands of its own file.
// A task whose workspace was removed or replaced is no longer verifying.
func TestTaskBlockOnAHost(t *testing.T) {
	t.Parallel()
	file := `
agent "far" {
  command = ["sh", "far.sh"]
  placement {}
  workspace {
    worktree = "repo"
  }
}
task "spec" {
  agent  = "far"
  verify = [["sh", "-c", "test -s far; pwd"]]
  workspace {
    worktree = "repo"
    branch   = "spec/${task.short}"
  }
}
`
	hub := &stage.Repo{Team: &stage.Team{Orchestrator: stage.New(t, file, "far.sh", farWorker)}}
	require.NoError(t, os.Mkdir(hub.Path("repo"), 0o700))
	hub.Git("repo", "init", "--quiet", "--initial-branch=main")
	hub.Git("repo", "config", "user.email", "a@example.org")
	hub.Git("repo", "config", "user.name", "A")
	hub.Change("repo", "file", "one\n")
	f := farmOf(hub.Orchestrator, file)
	attic := stage.New(t, f.file, "token", f.Ask("token", "issue", "--actor", "HO:attic"), "far.sh", farWorker)
	hub.Git("repo", "clone", "--quiet", hub.Path("repo"), filepath.Join(attic.Dir, "repo"))
	join(attic, f.url)
	spec := func() wire.Task {
		all := hub.Tasks()
		return all[slices.IndexFunc(all, func(t wire.Task) bool { return t.Name == "spec" })]
	}
	stage.WaitFor(t, "done", func() bool { return spec().State == wire.TaskDone })
	there := filepath.Join(attic.Dir, "repo/.workspaces", wire.ShortID(spec().ID))
	require.Contains(t, f.Ask("task", "response", spec().ID, "--artifact", "verification.txt"), there)
	require.Contains(t, hub.Git("repo", "branch"), "spec/"+wire.ShortID(spec().ID))

	id := strings.Fields(f.Ask("task", "add", "lose", "-q"))[0]
	refused := f.WaitForEvents(1, events.TaskUnverified, "far")
	require.Contains(t, refused[0].Text, "the folder of its workspace was removed or replaced")
	f.Ask("task", "cancel", id)
	id = strings.Fields(f.Ask("task", "add", "swap", "-q"))[0]
	refused = f.WaitForEvents(2, events.TaskUnverified, "far")
	require.Contains(t, refused[1].Text, "the workspace on attic cannot be used: ")
	require.NotContains(t, f.Ask("task", "show", id, "--json"), `"unverified"`)
	require.Contains(t, f.Ask("events"), "has changed files that git uses to find a repository: on attic: ")
	f.Ask("task", "cancel", id)
	id = strings.Fields(f.Ask("task", "add", "other", "--verify", "true", "-q"))[0]
	refused = f.WaitForEvents(3, events.TaskUnverified, "far")
	require.Contains(t, refused[2].Text, `on attic: the verify command "sh -c true" of the task is not in a session or task block of the host's configuration`)
	require.NotEqual(t, wire.TaskDone, f.TaskState(id))
	f.Stop()
}
