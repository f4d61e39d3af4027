// Package workspace gives each task a git worktree and a branch, runs the commands that verify a
// completion, and shows and merges the changes of a task.
//
// A worktree is a folder .workspaces/SHORT beside the files of the repository, where SHORT is the beginning of the
// task's id. The notes about its branch, such as its task and its first commit, are in a file of the state directory,
// where agents cannot write (marks.go). If the file is lost, they are made again from the record, or the worktree is
// found by the name of its folder, so a removed state directory loses no work. A task that is tried again on its folder
// gets the same worktree. Only Prune, Merge and the Queue remove worktrees with commits, after the branch has been
// merged, with "git worktree remove", which refuses one with changes that are not committed.
//
// All commands, git among them, run as the agent of the task would: with its environment, its user, its limits and its
// confinement. Programs that an agent has put into its repository therefore have no more rights than the agent. The
// Queue is an exception: it verifies a merge of several branches as the agent of the first task that has a command.
// Hooks of git are not run.
//
// The work happens before a request of the agent is decided, on the goroutine that reads the agent: a worktree is made
// when the agent reads or starts its task, and the commands run when the agent completes the task. If one fails, the
// request is refused with the last lines of its output, and the task goes on. So the commands need no state: after a
// crash of the orchestrator the agent has no answer, and completes its task again.
package workspace
