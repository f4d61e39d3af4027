package main

import (
	"fmt"
	"slices"

	"orchestrator/supervisor/config"
)

// invalid is the failure of a verb that cannot go on with a file: every
// mistake in it, and what did not happen because of them.
func (a *app) invalid(problems config.Problems, consequence string) error {
	if !a.json() {
		return a.showProblems(problems, consequence, exitNo)
	}
	message := "The configuration is not valid"
	if err := problems.Err(); err != nil {
		message = err.Error()
	}
	return &failure{
		exit: exitNo, code: codeConfig, message: message, hint: consequence,
		details: map[string]any{"diagnostics": []config.Problem(problems)},
	}
}

// showProblems prints mistakes on stderr, ends the sentence of their number
// with what follows from them, and answers with the exit code.
func (a *app) showProblems(problems config.Problems, consequence string, exit int) error {
	if a.flags.verbose {
		problems = withCodes(problems)
	}
	if err := problems.Render(a.stderr, bool(a.paint(a.stderr))); err != nil {
		return err
	}
	if consequence != "" {
		consequence = " " + consequence
	}
	_, _ = fmt.Fprintln(a.stderr, consequence)
	if exit == exitOK {
		return nil
	}
	return exitWith(exit)
}

// withCodes adds to each mistake how to ask what it means.
func withCodes(problems config.Problems) config.Problems {
	told := slices.Clone(problems)
	for i := range told {
		told[i].Hint += "\nWhat it means: orchestrator help " + told[i].Code
	}
	return told
}
