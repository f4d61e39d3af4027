// Package child runs programs as process trees.
//
// A Host starts children. Start gives the program its pipes, or a raw terminal, and its own
// process group. It also marks the environment. Four things are then guaranteed.
//
//   - The exit of the program is noticed at once, even while a grandchild keeps the output open.
//     The last output is reported before the exit.
//   - After the exit the whole tree is ended: the group, children in other sessions, and orphans
//     of double forks. They get SIGTERM, and SIGKILL after a lull, or, if Signal was called, after
//     Kill. Ended is called when none is left. It reports processes that do not die, and trees that
//     could not be checked.
//   - No process is signalled by a process id that may have been reused. The leader stays unreaped
//     until the tree is empty, which reserves its id and the id of its group. Every other process is
//     signalled through a pidfd that is checked after it was opened.
//   - If the orchestrator itself is killed, the leader dies with it, and a watchdog ends the rest
//     within seconds. It uses the leaves and marks of the runs, and the list of their processes
//     that it was sent. If the watchdog was killed as well, the next start does this (Host.ClearEarlier).
//
// A child can be confined (Spec.Confine). The file that this process executes first, its shim, takes
// rights from itself by Landlock and seccomp, and then executes the program.
//
// The orchestrator is a subreaper, so orphans become its children. They are assigned to a child
// by ORC_RUN_ID in their environment, or by the leader's group or session. With a delegated
// cgroup, each child has its own leaf instead. Processes that were below this process before
// the Host was created, and that lack its mark, are foreign. They and their descendants are
// reaped, but never signalled.
//
// The mark is only for the end of a run: at worst a process is ended with a run that it names. To identify a process,
// Origin relies on observations of the Host, because a program can name any run.
//
// Without a cgroup, an orphan may have cleared its environment and left the session between two
// looks at the trees, which are 250 ms apart. The owner of such an orphan is unknown. It is
// ended by Host.Close, or by the watchdog if any look has seen it. Systems other than Linux
// have no subreaper, readable marks, pidfd or watchdog: only the group is ended. See
// proc_darwin.go.
//
// A program can also lose processes while it runs. EndLost ends lost processes that were started within a time. It is
// for adapters, which know when a turn of a coding agent was interrupted.
//
// If a program is on a mount that hangs, Start waits for it before it takes a lock. A later
// hang, between fork and the end of exec, delays every count of orphans. It also stops this
// whole process at the next garbage collection, because the runtime cannot stop a thread that
// forks.
//
// The package does not restart programs, split lines, or decide when a child should stop. It
// waits for no process that it did not start or adopt.
package child
