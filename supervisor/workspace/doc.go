// Package workspace gives each task a git worktree with a branch of its own, runs the commands that verify
// what an agent has completed, and shows and merges what it has changed.
//
// A worktree is a folder .workspaces/SHORT beside the files of the repository, where SHORT is the beginning of
// the task's id. Git itself keeps what belongs together: the branch is the one that is checked out there, and
// the section of the branch in the repository's configuration holds the whole id and the branch that it began
// at. So nothing of it is in the state directory, and a removed state directory loses no work. A task that is
// tried again gets the same worktree. Only Prune, Merge and the Queue remove worktrees, and only with "git worktree
// remove", which refuses one with changes that are not committed, and after the branch has been merged.
//
// All commands, git among them, run as the agent of the task would: with its environment, its user, its limits
// and its confinement. What an agent has put into its repository can therefore do no more than the agent. The Queue
// is an exception: it verifies a merge of several branches as the agent of the first task that has a command. Hooks of
// git are not run.
//
// The work happens before a request of the agent is decided, on the goroutine that reads the agent: a worktree
// is made when the agent reads or starts its task, and the commands run when it completes it. If one fails, the
// request is refused with the last lines of its output, and the task goes on. So nothing has to be kept while
// they run: after a crash of the orchestrator the agent has no answer, and completes its task again.
package workspace
