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
//     then killed, and Ended is not called before none is left.
//   - No process is signalled on trust. The leader stays unreaped, so that its
//     number and its group's cannot be reused, until the tree is empty; every
//     other process is held by a pidfd that is checked after it was opened.
//   - If the orchestrator itself is killed, the leader dies with it, and what
//     else is left is found by its mark at the next start (Host.ClearEarlier).
//
// How the tree is known: the orchestrator is a subreaper, so orphans become
// its children; they carry ORC_RUN_ID in their environment or sit in the
// leader's group or session. Where a cgroup is delegated to us, each child has
// a leaf of its own instead, and the kernel knows.
//
// What it cannot know without a cgroup: an orphan that cleared its environment
// and left the session. It is kept in mind and ended by Host.Close. Elsewhere
// than on Linux there is no subreaper, no mark can be read and no pidfd: the
// group is ended, and no more is promised; see proc_darwin.go.
//
// The package does not restart, does not split lines, does not decide when a
// child should stop, and waits for no process that it did not start or adopt.
package child
