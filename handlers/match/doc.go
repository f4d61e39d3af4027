// Package match says who fits a task: of the agents that offer what it demands,
// the best one, and of every agent why it is or is not.
//
// # Points
//
// What a task demands is hard or soft. Who misses something hard is
// disqualified, whatever else it has:
//
//	repo           +100   it is among the agent's repos
//	languages       +50   the agent knows all of them, for itself or in any repo
//	environments    +30   the agent has one of them
//	capacity        +50   fewer tasks run than may
//
// Something soft adds points and is never missed:
//
//	tools           +10   each that the agent has, for itself or in the repo
//	tags             +5   each
//	preference     +200   the agent is the one that the task prefers
//	online          +25
//
// What is demanded twice counts once, and what is not demanded gives no points,
// but that capacity and being online always count. An agent that offers nothing
// at all is disqualified. Texts are equal or they are not: "Go" is not "go".
//
// The best has the most points, of those the least load, and of those the first
// name. It does not depend on the order in which agents became known.
//
// # How it is fast
//
// Every agent has a slot, and every value that an agent offers has the set of
// slots that offer it, 64 to a word. Who meets what is hard are those in all of
// these sets, and the soft points of 64 agents are added up at once: each bit of
// the sums is a word of its own. So a search passes over the words of the rarest
// hard value, and over all words only where nothing hard is demanded.
//
// # What it will not do
//
// It decides nothing but the fit: it does not know what a task is, when it is
// given out, or who is told. It keeps what it was told of each agent and
// notices nothing by itself.
package match
