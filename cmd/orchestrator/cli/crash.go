package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// caught turns a panic into one line of output, exit code 125 and a crash file.
func (a *App) caught(code *int) {
	cause := recover()
	if cause == nil {
		return
	}
	file, err := writeCrash(cause, debug.Stack())
	hint := "Please report it. What is known is in " + file + " (no secrets in it)"
	if err != nil {
		hint = fmt.Sprintf("Please report it. What is known could not be written: %v", err)
	}
	*code = a.report(&Failure{
		Exit:    exitBug,
		Code:    wire.CodeInternal,
		Message: "this is a bug in orchestrator: " + term.FirstLine(fmt.Sprint(cause)) + ". " + hint,
		Details: map[string]any{"report": file},
	})
}

// writeCrash writes the stack to a file. It leaves out the arguments and the environment,
// which may hold secrets.
func writeCrash(cause any, stack []byte) (string, error) {
	name := "orchestrator-crash-" + time.Now().UTC().Format("20060102T150405") + "-*.txt"
	file, err := os.CreateTemp("", name)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(file, "%s\n\npanic: %v\n\n%s", VersionLine(), cause, stack)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return file.Name(), err
}
