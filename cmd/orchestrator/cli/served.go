package cli

import (
	"errors"
	"net/http"
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
	Socket   string            // of this orchestrator
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

// connect returns a client that makes requests as the caller, if the caller means this orchestrator.
func (s *Served) connect(a *App, t client.Target) (*client.Client, error) {
	if t.Socket != s.Socket || t.URL != "" {
		return nil, a.decline()
	}
	t.Through = s.Through
	return a.NewClient(t), nil
}
