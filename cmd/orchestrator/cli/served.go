package cli

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/first/form"
)

// A Served command line runs in the orchestrator, for a program that passed it on: see package first. It does what
// the program would do, or it is declined: then the program runs it. It is declined before it has done anything.
type Served struct {
	File     string // of this orchestrator; no other file is read
	StateDir string
	Socket   string
	Through  http.RoundTripper // makes requests as the caller
	Declined bool
}

// errDeclined ends a served command that its caller must run. It is not reported.
var errDeclined = errors.New("this command is for the caller")

// mayServe declines a served command that is not plain: see package form.
func (a *App) mayServe(verb *cobra.Command) error {
	if a.Served == nil {
		return nil
	}
	other := !slices.Contains(form.Plain, strings.TrimPrefix(verb.CommandPath(), "orchestrator "))
	verb.Flags().Visit(func(f *pflag.Flag) { other = other || slices.Contains(form.Own, f.Name) })
	if other {
		return a.decline()
	}
	return nil
}

// decline declines a served command. It returns nil if the command is not served.
func (a *App) decline() error {
	if a.Served == nil {
		return nil
	}
	a.Served.Declined = true
	return errDeclined
}

// stateDir returns the state directory for a file, if it is the file of this orchestrator and selects none: the rights
// and the environment of the caller may differ, so the file is not evaluated for it.
func (s *Served) stateDir(a *App, file string) (string, error) {
	if file != s.File || filepath.Join(filepath.Dir(file), ".orchestrator") != s.StateDir {
		return "", a.decline()
	}
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return "", a.decline()
	}
	text, err := os.ReadFile(file)
	if err != nil || bytes.Contains(text, []byte("state_dir")) {
		return "", a.decline()
	}
	return s.StateDir, nil
}

// connect returns a client that makes requests as the caller, if the caller means this orchestrator.
func (s *Served) connect(a *App, t client.Target) (*client.Client, error) {
	if t.Socket != s.Socket || t.URL != "" {
		return nil, a.decline()
	}
	if a.Flags.Verbose {
		a.Note("Speaking to %s", t.Where())
	}
	t.Through = s.Through
	return a.NewClient(t), nil
}
