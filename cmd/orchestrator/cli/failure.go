package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A Failure is the error of a command. It has an exit code, a code for programs, and for
// people a message, its reasons and a next step.
type Failure struct {
	Exit    int
	Code    wire.Code
	Message string
	Because []string // reasons, each a sentence or two
	Hint    string   // next step, with a command to paste
	Details map[string]any

	// temporary is set if the connection failed, or the answer had a status of 500 or above.
	temporary bool

	// said is set if the command has printed its whole answer. Only the exit code is left
	// to report.
	said bool
}

func (f *Failure) Error() string { return f.Message }

// Codes that only the command line uses. The codes of the API are in package wire.
const (
	codeUsage      wire.Code = "usage"
	codeConfig     wire.Code = "config_invalid"
	CodeNoConfig   wire.Code = "config_not_found"
	CodeNotRunning wire.Code = "not_running"
	CodeFailed     wire.Code = "failed"
	codeStopped    wire.Code = "interrupted"
)

// ExitWith returns the failure of a command that has printed its whole answer.
func ExitWith(exit int) *Failure { return &Failure{Exit: exit, said: true} }

// UsageError returns a failure for a wrong command line. The hint shows a correct one.
func UsageError(message, hint string) *Failure {
	return &Failure{Exit: ExitUsage, Code: codeUsage, Message: message, Hint: hint}
}

// Temporary reports whether the same request may succeed later, because the orchestrator did not
// answer or could not carry it out.
func Temporary(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.temporary
}

// FailureOf returns err as a Failure. Errors of unknown kinds have the code ExitNo.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if errors.Is(err, syscall.EPIPE) {
		return ExitWith(ExitBrokenPipe)
	}
	return &Failure{Exit: ExitNo, Code: CodeFailed, Message: err.Error()}
}

// report prints an error and returns its exit code. Errors are a document on stdout for
// programs, and text on stderr for people. No other function prints errors.
func (a *App) report(err error) int {
	if err == nil {
		return ExitOK
	}
	f := FailureOf(err)
	switch {
	case f.said, a.Served != nil && a.Served.Declined:
	case a.JSON():
		_ = a.Document(f.refusal())
	default:
		f.Print(a.Stderr, a.Paint(a.Stderr))
	}
	return f.Exit
}

// Fail reports an error of a command line that has not run here, and returns its exit code.
func (a *App) Fail(args []string, err error) int {
	a.args = args
	return a.report(err)
}

// refusal returns the failure in the form of an API error.
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

// Print writes the failure to a screen. It escapes all text, because some comes from the
// file or from agents.
func (f *Failure) Print(w io.Writer, p term.Paint) {
	fmt.Fprintf(w, "%s %s\n", p.Bad("Error:"), p.Strong(VisibleLines(f.Message)))
	for _, reason := range append(f.Because, f.Hint) {
		if reason != "" {
			fmt.Fprintf(w, "  %s %s\n", p.Dim("="), VisibleLines(reason))
		}
	}
}

// VisibleLines escapes text of several lines and indents the lines after the first.
func VisibleLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = wire.Visible(line)
	}
	return strings.Join(lines, "\n    ")
}

// WithAnswers adds the options of the question to an error about an answer.
func WithAnswers(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && f.Code == wire.CodeInvalid {
		if options := term.TextsOf(f.Details["options"]); len(options) > 0 {
			f.Because = append(f.Because, "Possible answers: "+strings.Join(options, ", "))
		}
	}
	return WithHint(err, wire.CodeNotFound, "List them: orchestrator inbox")
}

// InMessage converts a pointer into the request to one into the session message.
func InMessage(pointer string) string { return strings.TrimPrefix(pointer, "/payload/message") }

// Problems adds the errors in a session message to a failure, each with its place.
func Problems(err error) error { return ProblemsBelow(err, InMessage) }

// ProblemsBelow is Problems for any request. The function seen converts a pointer for the
// author of the request.
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

// Hints for names that are not found.
const (
	NoTaskHint  = "List them: orchestrator task ls"
	NoAgentHint = "List them: orchestrator agent ls"
)

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

// Invalid returns the failure of a command with an invalid file: every mistake in the file,
// and the consequence for the command.
func (a *App) Invalid(problems config.Problems, consequence string) error {
	if !a.JSON() {
		return a.ShowProblems(problems, consequence, ExitNo)
	}
	message := "The configuration is not valid"
	if err := problems.Err(); err != nil {
		message = err.Error()
	}
	return &Failure{
		Exit: ExitNo, Code: codeConfig, Message: message, Hint: consequence,
		Details: map[string]any{"diagnostics": []config.Problem(problems)},
	}
}

// ShowProblems prints mistakes and their consequence to stderr. It returns a failure with
// the exit code, or nil for ExitOK.
func (a *App) ShowProblems(problems config.Problems, consequence string, exit int) error {
	if a.Flags.Verbose {
		problems = withCodes(problems)
	}
	if err := problems.Render(a.Stderr, bool(a.Paint(a.Stderr))); err != nil {
		return err
	}
	if consequence != "" {
		consequence = " " + consequence
	}
	_, _ = fmt.Fprintln(a.Stderr, consequence)
	if exit == ExitOK {
		return nil
	}
	return ExitWith(exit)
}

// withCodes adds the command that explains its code to each mistake.
func withCodes(problems config.Problems) config.Problems {
	shown := slices.Clone(problems)
	for i := range shown {
		shown[i].Hint += "\nHelp: orchestrator help " + shown[i].Code
	}
	return shown
}
