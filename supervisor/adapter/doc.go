// Package adapter makes coding agents members of the team: programs such as Claude Code and Codex,
// which speak a protocol of their own.
//
// A client may take the tools of the orchestrator in band, or from an MCP server that it starts,
// Opening.Door. Of a call to that server the Machine learns nothing, so after each turn it asks the
// orchestrator what became of the task, which mail was read, and what a log of a session has.
//
// A [Client] speaks the protocol of one program, and a [Machine] around it takes tasks, passes mail
// on, asks people for permissions and reports. Both are pure: they get lines and the time, and
// return what is to be done. A [Process] performs that. It is a process of an agent like any
// other, so that nothing else in the supervisor knows about adapters:
//
//	client's stdout ─ Client.Heard ─ Machine ─ requests and events ─ the agent's stdout
//	client's stdin  ─ Client ─────── Machine ─ notices and answers ─ the agent's stdin
//	what the model says ───────────────────────────────────────────── the agent's stderr
//
// What a model says is log. No line of it can be a message, whatever it looks like. The
// permissions of the client are always set. Lines of the client that are not known are ignored.
//
// A task becomes a prompt. If it requires a plan, nothing may be changed until the plan is approved:
// the client works in a mode of its own for that. Mail for a client that works is given to the running turn, if the client
// can take it; the model has it when the client says so, and only then is it acknowledged. A turn
// that ends while its task is open is handled as Opening.OnTurnEnd says. If the vendor limits the
// use, the task is returned and no turn begins before the time that the vendor names. Nor does one
// begin soon after a turn that failed before the model had its mail.
package adapter
