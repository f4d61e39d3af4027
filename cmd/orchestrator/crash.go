package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"orchestrator/wire"
)

// caught turns a panic of the verb into one line, exit 125 and a file for
// the people who fix it.
func (a *app) caught(code *int) {
	cause := recover()
	if cause == nil {
		return
	}
	file, err := writeCrash(cause, debug.Stack())
	hint := "Please report it. What is known is in " + file + " (no secrets in it)"
	if err != nil {
		hint = fmt.Sprintf("Please report it. What is known could not be written: %v", err)
	}
	*code = a.report(&failure{
		exit:    exitBug,
		code:    wire.CodeInternal,
		message: "this is a bug in orchestrator: " + firstLine(fmt.Sprint(cause)) + ". " + hint,
		details: map[string]any{"report": file},
	})
}

// writeCrash keeps the stack. The arguments and the environment stay out of
// it: they may hold secrets.
func writeCrash(cause any, stack []byte) (string, error) {
	name := "orchestrator-crash-" + time.Now().UTC().Format("20060102T150405") + "-*.txt"
	file, err := os.CreateTemp("", name)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(file, "%s\n\npanic: %v\n\n%s", versionLine(), cause, stack)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return file.Name(), err
}
