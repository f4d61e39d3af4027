package cli

import (
	"fmt"
	"slices"

	"orchestrator/supervisor/config"
)

// Invalid is the failure of a verb that cannot go on with a file: every
// mistake in it, and what did not happen because of them.
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

// ShowProblems prints mistakes on stderr, ends the sentence of their number
// with what follows from them, and answers with the exit code.
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

// withCodes adds to each mistake how to ask what it means.
func withCodes(problems config.Problems) config.Problems {
	told := slices.Clone(problems)
	for i := range told {
		told[i].Hint += "\nWhat it means: orchestrator help " + told[i].Code
	}
	return told
}
