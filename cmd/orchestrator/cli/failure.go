package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"syscall"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Failure is why a verb could not do what it was asked: an exit code, a code
// for programs, and for people what happened, why, and what to do next.
type Failure struct {
	Exit    int
	Code    wire.Code
	Message string
	Because []string // the reasons, each a sentence or two
	Hint    string   // the next step, with a command that can be pasted
	Details map[string]any

	// said: the verb has given its whole answer, and the answer is no. Only
	// the exit code is left to deliver.
	said bool
}

func (f *Failure) Error() string { return f.Message }

// The codes that only the command line has; the API's are in package wire.
const (
	codeUsage      wire.Code = "usage"
	codeConfig     wire.Code = "config_invalid"
	CodeNoConfig   wire.Code = "config_not_found"
	CodeNotRunning wire.Code = "not_running"
	CodeFailed     wire.Code = "failed"
	codeStopped    wire.Code = "interrupted"
)

// ExitWith is the failure of a verb that has said everything itself.
func ExitWith(exit int) *Failure { return &Failure{Exit: exit, said: true} }

// UsageError returns what is wrong with the command line, and what would be right.
func UsageError(message, hint string) *Failure {
	return &Failure{Exit: ExitUsage, Code: codeUsage, Message: message, Hint: hint}
}

// FailureOf gives any error its exit code. Any other error is ExitNo.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if errors.Is(err, syscall.EPIPE) {
		return ExitWith(ExitBrokenPipe)
	}
	return &Failure{Exit: ExitNo, Code: CodeFailed, Message: err.Error()}
}

// report is the one place where an error becomes output: a document on stdout
// for programs, text on stderr for people.
func (a *App) report(err error) int {
	if err == nil {
		return ExitOK
	}
	f := FailureOf(err)
	switch {
	case f.said:
	case a.JSON():
		_ = a.Document(f.refusal())
	default:
		f.Print(a.Stderr, a.Paint(a.Stderr))
	}
	return f.Exit
}

// refusal is the failure as the API would say it.
func (f *Failure) refusal() wire.Refusal {
	details := maps.Clone(f.Details)
	if len(f.Because) > 0 {
		if details == nil {
			details = map[string]any{}
		}
		details["reasons"] = f.Because
	}
	return wire.Refusal{
		FormatVersion: wire.FormatVersion,
		Error:         &wire.Error{Code: f.Code, Message: f.Message, Details: details, Hint: f.Hint},
	}
}

// Print shows the failure on a screen. Some of its words come from the file or
// from agents, so none is trusted.
func (f *Failure) Print(w io.Writer, p term.Paint) {
	fmt.Fprintf(w, "%s %s\n", p.Bad("Error:"), p.Strong(VisibleLines(f.Message)))
	for _, reason := range append(f.Because, f.Hint) {
		if reason != "" {
			fmt.Fprintf(w, "  %s %s\n", p.Dim("="), VisibleLines(reason))
		}
	}
}

// VisibleLines is wire.Visible for text that may have several lines; the later
// ones are indented under the first.
func VisibleLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = wire.Visible(line)
	}
	return strings.Join(lines, "\n    ")
}

// WithAnswers adds to a refusal what could be answered, or asked for.
func WithAnswers(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && f.Code == wire.CodeInvalid {
		if options := term.TextsOf(f.Details["options"]); len(options) > 0 {
			f.Because = append(f.Because, "The answers are: "+strings.Join(options, ", "))
		}
	}
	return WithHint(err, wire.CodeNotFound, "See which there are: orchestrator inbox")
}

// InMessage is a place in a message, where the pointer is to where it came in.
func InMessage(pointer string) string { return strings.TrimPrefix(pointer, "/payload/message") }

// Problems adds to a refusal everything that is wrong, each with its place in what
// was written.
func Problems(err error) error { return ProblemsBelow(err, InMessage) }

// ProblemsBelow is Problems for what was sent below a place: seen says where that is
// for its author.
func ProblemsBelow(err error, seen func(pointer string) string) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return err
	}
	listed, _ := f.Details["errors"].([]any)
	for _, one := range listed {
		problem, _ := one.(map[string]any)
		pointer, _ := problem["pointer"].(string)
		message, _ := problem["message"].(string)
		if message != "" {
			f.Because = append(f.Because, object.Problem{Pointer: seen(pointer), Message: message}.String())
		}
	}
	if pointer, _ := f.Details["pointer"].(string); len(listed) == 0 && pointer != "" {
		f.Because = append(f.Because, "At "+seen(pointer))
	}
	return err
}

// Where to look for what was not found.
const (
	NoTaskHint  = "See which there are: orchestrator task ls"
	NoAgentHint = "See which there are: orchestrator agent ls"
)
