// Package review counts the reviews of a task and decides the next step after each.
//
// # The loop
//
// A task is reviewed until a result approves or rejects it, or until the number of results
// reaches its limit:
//
//	result             before the last       at the last
//
//	approved           Approve               Approve
//	rejected           Redesign              Redesign
//	changes_requested  Revise                by the policy
//
// The last result is the one with the number Max: of three, the third escalates. A person who
// is asked may allow one more.
//
// A revision continues the same Loop, even under another id. A redesign starts a new one.
//
// # The ledger
//
// A finding is tracked over the results by its ID. It is open until a result reports it as
// fixed or omits it, which counts as fixed in that iteration. It can be reported again later.
// So open findings are always part of the latest result, and only closed ones accumulate. The
// oldest closed ones are dropped when there are too many.
//
// # Limits
//
// The package does not decide whether an approval is valid, who may review, or when. It knows
// only the reviews of a task, and does not carry out the Step that it returns.
package review
