package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// trustEnv names the variable that makes up refuse commands it cannot ask about.
const trustEnv = "ORC_TRUST"

// CheckTrust looks for commands of a configuration that this user has not run from its file
// before. On a terminal it asks whether to run them. Elsewhere it only notes them, or refuses them
// if ORC_TRUST is strict. It remembers commands that may run. If yes is true, all of them may.
func (a *App) CheckTrust(c *config.Config, yes bool) error {
	strict := false
	switch mode := a.Getenv(trustEnv); mode {
	case "":
	case "strict":
		strict = true
	default:
		return UsageError(fmt.Sprintf("ORC_TRUST is %q", wire.Visible(mode)), "Set it to strict, or unset it")
	}
	news := a.newCommands(c)
	if len(news) == 0 {
		return nil
	}
	switch {
	case yes:
	case term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stderr) && !a.Flags.JSON:
		_, _ = fmt.Fprintf(a.Stderr, "%s runs commands that you have not run from it before:\n\n%s\n", wire.Visible(c.File), CommandTable(news))
		if err := a.Confirm("Run them?"); err != nil {
			return err
		}
	case strict:
		return &Failure{
			Exit: ExitNo, Code: CodeFailed,
			Message: fmt.Sprintf("you have not run %s of %s before", term.Count(len(news), "command"), wire.Visible(c.File)),
			Because: append(strings.Split(strings.TrimRight(CommandTable(news), "\n"), "\n"), "ORC_TRUST is strict, and there is no terminal to ask at. Nothing was started."),
			Hint:    "Read them, then: orchestrator up --yes",
		}
	default:
		a.Note("%s of %s: first run by you. ORC_TRUST=strict refuses such.", term.Count(len(news), "command"), wire.Visible(c.File))
	}
	if err := a.Trust(c); err != nil {
		a.Note("It is not remembered which commands you run: %v", err)
	}
	return nil
}

// CommandTable lists commands, one on a line.
func CommandTable(list []config.Command) string {
	rows := make([][]term.Cell, 0, len(list))
	for i := range list {
		c := &list[i]
		place := wire.Visible(strings.Join(append([]string{c.Place}, c.Notes...), ", "))
		rows = append(rows, []term.Cell{
			term.Text("  " + wire.Visible(c.Of)), term.Text(wire.Visible(strings.Join(Quoted(c.Argv), " "))), term.Text(place),
		})
	}
	return term.Table(rows)
}

// newCommands returns the commands that are not remembered for the file of c.
func (a *App) newCommands(c *config.Config) []config.Command {
	known := make(map[string]bool)
	if name, err := a.trustFile(c.File); err == nil {
		text, _ := os.ReadFile(name) // without it, nothing is known
		for print := range strings.Lines(string(text)) {
			known[strings.TrimSpace(print)] = true
		}
	}
	return slices.DeleteFunc(c.Commands(), func(one config.Command) bool { return known[one.Print] })
}

// Trust remembers the commands of a configuration as those that this user runs.
func (a *App) Trust(c *config.Config) error {
	name, err := a.trustFile(c.File)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	var text strings.Builder
	for _, one := range c.Commands() {
		text.WriteString(one.Print + "\n")
	}
	return ReplaceFile(name, []byte(text.String()))
}

var errNoHome = errors.New("HOME is not set")

// trustFile returns the file that remembers the commands of a configuration file.
func (a *App) trustFile(file string) (string, error) {
	dir := a.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := a.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errNoHome
		}
		dir = filepath.Join(home, ".local", "state")
	}
	print := sha256.Sum256([]byte(file))
	return filepath.Join(dir, "orchestrator", "trusted", hex.EncodeToString(print[:])), nil
}
