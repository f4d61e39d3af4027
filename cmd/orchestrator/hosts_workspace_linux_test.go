package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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

// A verification whose host is lost has not failed.
func TestVerifyOnAHost(t *testing.T) {
	t.Parallel()
	f := newFarm(t, `
host "any" {
  names = ["*"]
  grace = "18s"
}
agent "far" {
  command = ["`+fixture(t, "worker")+`"]
  placement {}
  verify = [["sh", "-c", "echo >began; exec sleep 1000"]]
}
`)
	attic := f.host("attic")
	f.waitForAgent("far", "attic")
	id := strings.Fields(f.ask("task", "add", "do it far away", "-q"))[0]
	waitForThat(t, "the verification there", func() bool { _, err := os.Stat(attic.path("began")); return err == nil })
	attic.signal(syscall.SIGKILL)
	lost := f.waitForEvents(1, events.TaskUnverified, "far")
	require.Contains(t, lost[0].Text, "was not verified: on attic: its host attic does not answer")
	require.NotContains(t, f.ask("task", "show", id, "--json"), `"unverified"`)
	f.stop()
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

	hub.git(filepath.Join(attic.dir, "repo"), "remote", "remove", "origin") // now the hub sends what the host lacks
	hub.change("repo", "file", "three\n")
	id = strings.Fields(f.ask("task", "add", "again", "-q"))[0]
	waitForThat(t, "done again", func() bool { return f.taskState(id) == wire.TaskDone })
	hub.change("repo", "far", "theirs\n")
	require.Equal(t, "conflict", hub.refusesToMerge(id).Details["reason"])
	var heir wire.Task
	waitForThat(t, "the conflict resolved", func() bool {
		all := hub.tasks()
		heir = all[slices.IndexFunc(all, func(t wire.Task) bool { return strings.HasPrefix(t.Name, "Merge task/") })]
		return heir.State == wire.TaskDone
	})
	hub.ask("task", "merge", heir.ID)
	require.Equal(t, heir.ID+"\n", hub.read("repo/far"))
	require.Empty(t, hub.git("repo", "for-each-ref", "refs/orchestrator"))

	id = strings.Fields(f.ask("task", "add", "hide", "-q"))[0] // the agent does so with the repository
	failed := f.waitForEvents(1, events.TaskUnverified, "far")
	require.Contains(t, failed[0].Text, "is not verified: on attic: ")
	require.Contains(t, f.ask("task", "show", id, "--json"), `"unverified":1`, "the host has answered")
	f.ask("task", "cancel", id)
	hub.does(filepath.Join(attic.dir, "repo"), "mv .hidden .git")
	f.ask("agent", "restart", "far") // refusals are told again

	hub.does(hub.path("repo"), "head -c 700000 /dev/urandom >large; git add large; git commit -qm large")
	id = strings.Fields(f.ask("task", "add", "too much", "-q"))[0]
	refused := f.waitForEvents(2, events.AgentRefused, "far")
	require.Contains(t, refused[1].Text, "on attic: the repository there lacks more than 512 KiB of commits")
	require.NotEqual(t, wire.TaskDone, f.taskState(id))
	f.stop()
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
	spec := func() wire.Task {
		all := hub.tasks()
		return all[slices.IndexFunc(all, func(t wire.Task) bool { return t.Name == "spec" })]
	}
	waitForThat(t, "done", func() bool { return spec().State == wire.TaskDone })
	there := filepath.Join(attic.dir, "repo/.workspaces", wire.ShortID(spec().ID))
	require.Contains(t, f.ask("task", "response", spec().ID, "--artifact", "verification.txt"), there)
	require.Contains(t, hub.git("repo", "branch"), "spec/"+wire.ShortID(spec().ID))

	id := strings.Fields(f.ask("task", "add", "lose", "-q"))[0]
	refused := f.waitForEvents(1, events.TaskUnverified, "far")
	require.Contains(t, refused[0].Text, "the folder of its workspace was removed or replaced")
	f.ask("task", "cancel", id)
	id = strings.Fields(f.ask("task", "add", "swap", "-q"))[0]
	refused = f.waitForEvents(2, events.TaskUnverified, "far")
	require.Contains(t, refused[1].Text, "the workspace on attic cannot be used: ")
	require.NotContains(t, f.ask("task", "show", id, "--json"), `"unverified"`)
	require.Contains(t, f.ask("events"), "has changed files by which git finds a repository: on attic: ")
	f.ask("task", "cancel", id)
	id = strings.Fields(f.ask("task", "add", "other", "--verify", "true", "-q"))[0]
	refused = f.waitForEvents(3, events.TaskUnverified, "far")
	require.Contains(t, refused[2].Text, `on attic: the verify command "sh -c true" of the task is in no session and no task block of the file there`)
	require.NotEqual(t, wire.TaskDone, f.taskState(id))
	f.stop()
}
