package cli

import (
	"fmt"
	"slices"

	"orchestrator/supervisor/config"
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
	told := slices.Clone(problems)
	for i := range told {
		told[i].Hint += "\nWhat it means: orchestrator help " + told[i].Code
	}
	return told
}
