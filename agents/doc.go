// Package agents is for those who write agents: what an agent of ours may know
// is package wire, and no more, so that it has no more rights than a stranger's
// program. The kit itself comes with the messages.
package agents
