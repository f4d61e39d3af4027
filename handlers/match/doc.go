// Package match finds the agent that fits a task best, and explains for every agent why it does
// or does not fit.
//
// # Points
//
// A demand of a task is hard or soft. An agent that misses a hard one is disqualified:
//
//	repo           +100   it is among the agent's repos
//	languages       +50   the agent knows all of them, in general or in any repo
//	environments    +30   the agent has one of them
//	capacity        +50   fewer tasks run than the agent may run
//
// A soft demand only adds points:
//
//	tools           +10   each that the agent has, in general or in the repo
//	tags             +5   each
//	preference     +200   the task prefers the agent
//	online          +25
//
// A repeated demand counts once, and a demand that is not made gives no points. Capacity and online
// always count. An agent without an offer is disqualified. Texts are compared exactly: "Go" is not
// "go".
//
// The best agent has the most points. Ties go to the lower load, then to the first name. The
// result does not depend on the order in which agents were added.
//
// # Implementation
//
// Every agent has a slot, and every offered value has the set of slots that offer it, 64 to a
// word. Agents in the sets of all hard values qualify. The soft points of 64 agents are added
// at once, with one word for each bit of the sums. So a search visits the words of the rarest
// hard value, or all words without a hard value.
//
// # Limits
//
// The package decides only the fit. It does not know the meaning of a task, when it is assigned or
// who is notified. It knows agents only from its caller.
package match
