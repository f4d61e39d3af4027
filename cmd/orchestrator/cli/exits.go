package cli

// The exit codes; "orchestrator help exit-codes" tells people the same.
const (
	ExitOK          = 0
	ExitNo          = 1 // the answer is no
	ExitUsage       = 2 // the command line makes no sense
	ExitDifferences = 3
	ExitDenied      = 4
	ExitNotRunning  = 5 // no orchestrator answers
	ExitConflict    = 6
	ExitNotFound    = 7
	ExitTimeout     = 124 // as timeout(1) says it
	exitBug         = 125 // ours
	ExitNoProgram   = 127 // as shells say it, of the command of run
	ExitHungUp      = 129 // 128 + SIGHUP: the terminal was closed
	ExitInterrupted = 130 // 128 + SIGINT, as shells say it
	ExitBrokenPipe  = 141 // 128 + SIGPIPE: the reader of the answer is gone
	ExitTerminated  = 143 // 128 + SIGTERM
)
