package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"syscall"

	"orchestrator/wire"
)

// failure is why a verb could not do what it was asked: an exit code, a code
// for programs, and for people what happened, why, and what to do next.
type failure struct {
	exit    int
	code    wire.Code
	message string
	because []string // the reasons, each a sentence or two
	hint    string   // the next step, with a command that can be pasted
	details map[string]any

	// said: the verb has given its whole answer, and the answer is no. Only
	// the exit code is left to deliver.
	said bool
}

func (f *failure) Error() string { return f.message }

// The codes that only the command line has; the API's are in package wire.
const (
	codeUsage      wire.Code = "usage"
	codeConfig     wire.Code = "config_invalid"
	codeNoConfig   wire.Code = "config_not_found"
	codeNotRunning wire.Code = "not_running"
	codeFailed     wire.Code = "failed"
	codeStopped    wire.Code = "interrupted"
)

// exitWith is the failure of a verb that has said everything itself.
func exitWith(exit int) *failure { return &failure{exit: exit, said: true} }

// usageError returns what is wrong with the command line, and what would be right.
func usageError(message, hint string) *failure {
	return &failure{exit: exitUsage, code: codeUsage, message: message, hint: hint}
}

// failureOf gives any error its exit code. Any other error is exitNo.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitWith(exitBrokenPipe)
	}
	return &failure{exit: exitNo, code: codeFailed, message: err.Error()}
}

// report is the one place where an error becomes output: a document on stdout
// for programs, text on stderr for people.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	f := failureOf(err)
	switch {
	case f.said:
	case a.json():
		_ = a.document(f.refusal())
	default:
		f.print(a.stderr, a.paint(a.stderr))
	}
	return f.exit
}

// refusal is the failure as the API would say it.
func (f *failure) refusal() wire.Refusal {
	details := maps.Clone(f.details)
	if len(f.because) > 0 {
		if details == nil {
			details = map[string]any{}
		}
		details["reasons"] = f.because
	}
	return wire.Refusal{
		FormatVersion: wire.FormatVersion,
		Error:         &wire.Error{Code: f.code, Message: f.message, Details: details, Hint: f.hint},
	}
}

// print shows the failure on a screen. Some of its words come from the file or
// from agents, so none is trusted.
func (f *failure) print(w io.Writer, p paint) {
	fmt.Fprintf(w, "%s %s\n", p.bad("Error:"), p.strong(visibleLines(f.message)))
	for _, reason := range append(f.because, f.hint) {
		if reason != "" {
			fmt.Fprintf(w, "  %s %s\n", p.dim("="), visibleLines(reason))
		}
	}
}

// visibleLines is wire.Visible for text that may have several lines; the later
// ones are indented under the first.
func visibleLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = wire.Visible(line)
	}
	return strings.Join(lines, "\n    ")
}
