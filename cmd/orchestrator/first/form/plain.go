package form

// Plain are the commands that the running orchestrator may run for a program. They ask it and print the answer,
// and use no file, no stdin and no other program, except where they are declined.
var Plain = []string{
	"status", "ps", "hosts", "logs", "events", "why", "cost", "graph",
	"agent ls", "agent show", "agent servers",
	"bus presence", "bus status", "bus topics",
	"inbox", "inbox ls", "inbox show", "inbox answer",
	"review ls", "review show",
	"session ls", "session show",
	"task ls", "task show", "task add", "task assign", "task match", "task update", "task deps",
	"task plan", "task approve-plan", "task revise-plan", "task start", "task done", "task fail", "task retry",
	"task note", "task notes", "task diff", "task input", "task response", "task graph",
	"workspace ls", "workspace show",
}

// Own are the long flags with which a command stays in its own process: they name another team, or it waits.
var Own = []string{"config", "follow", "help", "host", "state-dir", "timeout", "var", "var-file", "wait", "watch", "wire"}

// Variables are the variables of the environment that the commands read, and that are passed on.
var Variables = []string{"HOME", "NO_COLOR", "TERM", "TZ", "XDG_STATE_HOME"}
