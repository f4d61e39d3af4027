// Package review counts the reviews of a task and says what follows from each.
//
// # The loop
//
// A task is reviewed until a result approves it or rejects it, or until there
// have been as many results as there may be:
//
//	result             before the last       at the last
//
//	approved           Approve               Approve
//	rejected           Redesign              Redesign
//	changes_requested  Revise                what the policy says
//
// The last is the one with the number Max: of three, the third escalates, and
// there is no fourth to wait for. A person who is asked may allow one more.
//
// What is revised goes on with the same Loop, also under another name. What is
// planned anew begins with a new one.
//
// # The ledger
//
// A finding is followed over the results by its ID. It is open until a result
// says in which iteration it was fixed, or does not mention it any more, which
// counts as fixed then and there. It can come again. So what is open is always
// part of the latest result, and the ledger grows only by what is closed: of
// that, the oldest is dropped when there is too much.
//
// # What it will not do
//
// It does not say whether an approval may stand, who may review, or when. It
// knows nothing of a task but its reviews, and carries nothing out:
// a Step is what follows, not what was done.
package review
