// Package adapter makes coding agents members of the team: programs such as Claude Code and Codex,
// which speak a protocol of their own.
//
// A client may take the tools of the orchestrator in band, or from an MCP server that it starts, Opening.Door. The
// Machine does not see calls to that server, so after each turn it asks the orchestrator for the state of the task, the
// unread mail, and the log of a session.
//
// A [Client] speaks the protocol of one program, and a [Machine] around it takes tasks, passes mail on, asks people for
// permissions and reports. Both are pure: they get lines and the time, and return effects. A [Process] performs the
// effects. It looks like any other process of an agent, so the rest of the supervisor does not know about adapters:
//
//	client's stdout ─ Client.Heard ─ Machine ─ requests and events ─ the agent's stdout
//	client's stdin  ─ Client ─────── Machine ─ notices and answers ─ the agent's stdin
//	words of the model ────────────────────────────────────────────── the agent's stderr
//
// The words of a model are log. No line of them can be a message, whatever it looks like. The permissions of the client
// are always set. Unknown lines of the client are ignored.
//
// A task becomes a prompt. If it requires a plan, the client works in its planning mode and may not change files until
// the plan is approved. Mail for a working client is added to the running turn, if the client can take it. The mail is
// acknowledged when the client reports that the model has it. Opening.OnTurnEnd decides about a turn that ends while
// its task is open. If the vendor's usage limit is reached, the task is returned and no turn begins before the time that the
// vendor names. After a turn that failed before the model had its mail, the next turn waits, too.
package adapter
