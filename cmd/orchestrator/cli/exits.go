package cli

// The exit codes. The manual page exit-codes lists the same.
const (
	ExitOK          = 0
	ExitNo          = 1 // the answer is no
	ExitUsage       = 2 // wrong command line
	ExitDifferences = 3
	ExitDenied      = 4
	ExitNotRunning  = 5 // no orchestrator answers
	ExitConflict    = 6
	ExitNotFound    = 7
	ExitTimeout     = 124 // as in timeout(1)
	exitBug         = 125 // a bug in this program
	ExitNoProgram   = 127 // the command of run was not found, as in shells
	ExitHungUp      = 129 // 128 + SIGHUP: the terminal was closed
	ExitInterrupted = 130 // 128 + SIGINT, as in shells
	ExitBrokenPipe  = 141 // 128 + SIGPIPE: the reader of the answer is gone
	ExitTerminated  = 143 // 128 + SIGTERM
)
