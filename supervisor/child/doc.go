// Package child runs one process at a time as what it really is: a tree.
//
// A Host makes children. Start gives the program its pipes (or a raw terminal)
// and a group of its own, marks its environment, and returns; from then on
// four things are sure.
//
//   - Its exit is noticed at once, also while a grandchild keeps its output
//     open, and what it said last is heard before the exit is told.
//   - After the exit the whole tree is ended: the group, children that made
//     sessions of their own, orphans of double forks. They are asked first and
//     then killed: after a lull, or, where the end was ordered by Signal, when
//     the caller says Kill. Ended is not called before none is left; where that
//     could not be seen, or a process does not die, it says so.
//   - No process is signalled on trust. The leader stays unreaped, so that its
//     number and its group's cannot be reused, until the tree is empty; every
//     other process is held by a pidfd that is checked after it was opened.
//   - If the orchestrator itself is killed, the leader dies with it, and a
//     watchdog ends what else is left within seconds: by the leaves and marks of
//     the runs, and by what it was told about their trees. If the watchdog was
//     killed as well, the next start does it (Host.ClearEarlier).
//
// How the tree is known: the orchestrator is a subreaper, so orphans become
// its children; they carry ORC_RUN_ID in their environment or sit in the
// leader's group or session. Where a cgroup is delegated to us, each child has
// a leaf of its own instead, and the kernel knows. What was below this process
// before the Host was made, and does not bear our mark, is foreign: it and its
// descendants are reaped, as they must be, and never signalled.
//
// What it cannot know without a cgroup: whose an orphan is that cleared its
// environment and left the session before a look at the trees has seen it; there is
// one every 250 ms. It is ended by Host.Close, or by the watchdog if a look has seen
// it at all. Elsewhere than on Linux there is no subreaper, no mark can be read, no
// pidfd and no watchdog: the group is ended, and no more is promised; see
// proc_darwin.go.
//
// A program on a mount that hangs is waited for before anything is held for
// it. What hangs later, between fork and the end of exec (its interpreter, or
// a mount that goes away just then), holds up every count of orphans, and at
// the next garbage collection this whole process: while a thread of a Go
// program forks, the runtime cannot stop it.
//
// The package does not restart, does not split lines, does not decide when a
// child should stop, and waits for no process that it did not start or adopt.
package child
