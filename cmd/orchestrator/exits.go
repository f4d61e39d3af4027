package main

// The exit codes; "orchestrator help exit-codes" tells people the same.
const (
	exitOK          = 0
	exitNo          = 1 // the answer is no
	exitUsage       = 2 // the command line makes no sense
	exitDifferences = 3
	exitDenied      = 4
	exitNotRunning  = 5 // no orchestrator answers
	exitConflict    = 6
	exitNotFound    = 7
	exitTimeout     = 124 // as timeout(1) says it
	exitBug         = 125 // ours
	exitNoProgram   = 127 // as shells say it, of the command of run
	exitHungUp      = 129 // 128 + SIGHUP: the terminal was closed
	exitInterrupted = 130 // 128 + SIGINT, as shells say it
	exitBrokenPipe  = 141 // 128 + SIGPIPE: the reader of the answer is gone
	exitTerminated  = 143 // 128 + SIGTERM
)
