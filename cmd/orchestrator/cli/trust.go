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

// CheckTrust looks among commands of a configuration for commands that this user has not run from
// its file before. On a terminal it asks whether to run them. Elsewhere it only notes them, or
// refuses them with a hint if ORC_TRUST is strict. It remembers commands that may run. If yes is
// true, all of them may.
func (a *App) CheckTrust(c *config.Config, commands []config.Command, yes bool, hint string) error {
	strict := false
	switch mode := a.Getenv(trustEnv); mode {
	case "":
	case "strict":
		strict = true
	default:
		return UsageError(fmt.Sprintf("ORC_TRUST is %q", wire.Visible(mode)), "Set it to strict, or unset it")
	}
	known := a.knownCommands(c)
	news := slices.DeleteFunc(slices.Clone(commands), func(one config.Command) bool { return known[one.Print] })
	if len(news) == 0 {
		return nil
	}
	switch {
	case yes:
	case term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stderr) && !a.Flags.JSON:
		_, _ = fmt.Fprintf(a.Stderr, "%s runs commands that you have not approved yet:\n\n%s\n", wire.Visible(c.File), CommandTable(news))
		if err := a.Confirm("Run them?"); err != nil {
			return err
		}
	case strict:
		return &Failure{
			Exit: ExitNo, Code: CodeFailed,
			Message: fmt.Sprintf("you have not approved %s of %s yet", term.Count(len(news), "command"), wire.Visible(c.File)),
			Because: append(strings.Split(strings.TrimRight(CommandTable(news), "\n"), "\n"), "ORC_TRUST is strict, and no terminal is available for the question. Nothing was started."),
			Hint:    hint,
		}
	default:
		a.Note("Running %s of %s. To require approval, set ORC_TRUST=strict.", term.Count(len(news), "new command"), wire.Visible(c.File))
	}
	if err := a.Trust(c, commands); err != nil {
		a.Note("Your approval could not be saved: %v", err)
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

// knownCommands returns the prints of the commands that are remembered for the file of c.
func (a *App) knownCommands(c *config.Config) map[string]bool {
	known := make(map[string]bool)
	if name, err := a.trustFile(c.File); err == nil {
		text, _ := os.ReadFile(name) // without it, no command is known
		for print := range strings.Lines(string(text)) {
			known[strings.TrimSpace(print)] = true
		}
	}
	return known
}

// Trust stores the configuration's commands as approved and removes obsolete approvals.
func (a *App) Trust(c *config.Config, commands []config.Command) error {
	name, err := a.trustFile(c.File)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	var text strings.Builder
	known := a.knownCommands(c)
	for _, one := range commands {
		known[one.Print] = true
	}
	for _, one := range c.Commands() {
		if known[one.Print] {
			text.WriteString(one.Print + "\n")
		}
	}
	return ReplaceFile(name, []byte(text.String()))
}

var errNoHome = errors.New("HOME is not set")

// StateHome returns a folder for data of the user of this program.
func (a *App) StateHome(name string) (string, error) {
	dir := a.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := a.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errNoHome
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "orchestrator", name), nil
}

// trustFile returns the file that remembers the commands of a configuration file.
func (a *App) trustFile(file string) (string, error) {
	dir, err := a.StateHome("trusted")
	print := sha256.Sum256([]byte(file))
	return filepath.Join(dir, hex.EncodeToString(print[:])), err
}
