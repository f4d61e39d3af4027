package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
)

// A user can look at a team from any folder while it is the only one that runs. Each team has a
// file below the state home of its user, with the name of its configuration and of its socket. If
// the socket takes no connection, the file is left over from a killed team, and is removed.

// DemoPrefix begins the name of the folder of the demo.
const DemoPrefix = "orchestrator-demo-"

// runningTeam is a team of this user.
type runningTeam struct{ file, socket string }

func (t *runningTeam) isDemo() bool {
	return strings.HasPrefix(filepath.Base(filepath.Dir(t.file)), DemoPrefix)
}

// NoteTeam makes a team that runs known to other commands of this user, until forget is called.
func (a *App) NoteTeam(file, socket string) (forget func()) {
	dir, err := a.StateHome("running")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return func() {}
	}
	a.teams() // removes the files of killed teams
	sum := sha256.Sum256([]byte(file))
	name := filepath.Join(dir, hex.EncodeToString(sum[:]))
	if ReplaceFile(name, []byte(file+"\n"+socket+"\n")) != nil {
		return func() {}
	}
	return func() { _ = os.Remove(name) }
}

// teams returns the teams of this user that run.
func (a *App) teams() []runningTeam {
	dir, err := a.StateHome("running")
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(dir) // a folder that is missing has none
	var found []runningTeam
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(name)
		file, rest, whole := strings.Cut(string(text), "\n")
		t := runningTeam{file: file, socket: strings.TrimSuffix(rest, "\n")}
		if err != nil || !whole {
			continue
		}
		conn, err := net.Dial("unix", t.socket)
		if err != nil {
			_ = os.Remove(name)
			continue
		}
		_ = conn.Close()
		found = append(found, t)
	}
	return found
}

// onlyTeam returns the team for a command without a configuration: the demo, or the only running one.
// Otherwise it returns the given error. If several teams run, the hint of the error names them.
func (a *App) onlyTeam(nowhere error) (runningTeam, error) {
	all := a.teams()
	var demos []runningTeam
	for _, t := range all {
		if t.isDemo() {
			demos = append(demos, t)
		}
	}
	switch {
	case len(demos) == 1:
		return demos[0], nil
	case len(all) == 1:
		return all[0], nil
	}
	if f, ok := errors.AsType[*Failure](nowhere); ok && len(all) > 1 {
		var named []string
		for _, t := range all[:min(len(all), 3)] {
			named = append(named, "-c "+term.Word(t.file))
		}
		f.Hint = "Several of your teams are running. Name one: " + strings.Join(named, "     ")
	}
	return runningTeam{}, nowhere
}

// looksAround reports whether a command may be about the only team that runs: it looks, or answers
// a question. Commands that make changes need a configuration here.
func looksAround(verb *cobra.Command) bool {
	if ReadsRecord(verb) {
		return true
	}
	for c := verb; c.HasParent(); c = c.Parent() {
		if !c.Parent().HasParent() {
			switch c.Name() {
			case "ui", "watch", "inbox", "status", "ps":
				return true
			}
		}
	}
	return false
}

// around finds the team of a command that found no configuration.
func (a *App) around(err error) (string, error) {
	if err := a.decline(); err != nil { // the lists of running teams are the caller's
		return "", err
	}
	if !a.looks || a.Flags.Config != "" || a.Getenv("ORC_CONFIG") != "" {
		return "", err
	}
	if f, ok := errors.AsType[*Failure](err); !ok || f.Code != CodeNoConfig {
		return "", err
	}
	t, err := a.onlyTeam(err)
	if err != nil {
		return "", err
	}
	if !a.Flags.Quiet && !a.Flags.JSON && !a.found {
		what := "your only running team"
		if t.isDemo() {
			what = "the demo"
		}
		a.Note("Using %s: %s", what, term.OneLine(t.file))
	}
	a.found = true
	return t.file, nil
}

// FindableAnywhere reports whether commands that look find this team without its name, in the folder of
// this command.
func (a *App) FindableAnywhere() bool {
	_, err := config.Find(a.Dir, "", a.Environ)
	_, homeless := a.StateHome("running")
	return err != nil && homeless == nil && a.Getenv("ORC_HOST") == "" && a.Getenv("ORC_SOCKET") == ""
}
