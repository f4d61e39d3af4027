package hub

// States of the branch of a task that is done.
const (
	MergeWaiting   = "waiting"   // the queue will merge it; tasks that depend on this one wait
	MergeRefused   = "refused"   // the queue could not merge it; tasks that depend on this one still wait
	MergeDone      = "merged"    // it is part of another branch
	MergeUnchanged = "unchanged" // it has no commit
	MergeLeft      = "left"      // the queue was closed before it was merged; no task waits for it
)

// MergeStates lists them.
var MergeStates = []string{MergeWaiting, MergeRefused, MergeDone, MergeUnchanged, MergeLeft}

// The statuses of an automatic assignment.
const (
	Assigned = "assigned"
	NoMatch  = "no_match" // no agent fits, or all are full
)
