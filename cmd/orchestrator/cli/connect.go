package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// Connect returns a client of the orchestrator that the flags select. It sends no request yet.
func (a *App) Connect() (*client.Client, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	if a.Served != nil {
		return a.Served.connect(a, t)
	}
	if a.reading {
		if a.record != nil {
			return a.record, nil
		}
		d, there, err := a.OpenRecord(a, t)
		if there || err != nil {
			a.record = d
			return d, err
		}
	}
	if a.Flags.Verbose {
		a.Note("Speaking to %s", t.Where())
	}
	return a.NewClient(t), nil
}

// FromRecord reports whether answers come from the record of a team that is down.
func (a *App) FromRecord() bool { return a.record != nil }

// NewClient returns a client of a target. Its errors are failures.
func (a *App) NewClient(t client.Target) *client.Client {
	d := client.New(t, func(ctx context.Context, t *client.Target, err error) error {
		if refusal, ok := errors.AsType[*client.Refusal](err); ok {
			f := refused(t, refusal.Reason)
			f.temporary = refusal.Status >= http.StatusInternalServerError
			return f
		}
		if unknown, ok := errors.AsType[*client.UnknownServerError](err); ok {
			f := unknownServer(t, unknown)
			f.temporary = unknown.Code >= http.StatusInternalServerError
			return f
		}
		if over := a.Ended(ctx); over != nil {
			return over
		}
		f := connectionFailed(t, err)
		f.temporary = f.Exit != ExitDenied
		return f
	})
	d.Stalled = a.noteStalled
	return d
}

// noteStalled prints once that the answers show the record from before the hub lost the other hubs.
func (a *App) noteStalled(why string) {
	if !a.stalled {
		a.stalled = true
		a.Note("No quorum: %s. The data may be out of date.", why)
	}
}

// connectionFailed returns the failure for an error of the connection.
func connectionFailed(t *client.Target, err error) *Failure {
	if stranger, ok := errors.AsType[*api.StrangerError](err); ok {
		return &Failure{
			Exit: ExitDenied, Code: wire.CodeDenied,
			Message: fmt.Sprintf("not connected: the listener at %s belongs to another user (%d)", t.Where(), stranger.UID),
			Hint:    "Run the command as the user who started the orchestrator",
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &Failure{
			Exit: ExitDenied, Code: wire.CodeDenied,
			Message: "no permission to connect to the orchestrator at " + t.Where(),
			Hint:    "Run the command as the user who started it",
		}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return notRunning(t)
	case t.URL != "":
		return unreachable(t, err)
	}
	if _, ended := errors.AsType[*client.UnansweredError](err); ended {
		if api.AnswersNow(t.Socket, time.Second) {
			return &Failure{
				Exit: ExitNo, Code: CodeFailed, Message: "the orchestrator for " + t.Subject + " is running but closed the connection before the answer was complete",
				Because: []string{"Another hub may be at work now. If you requested a change, check whether it was made."},
				Hint:    "Try again: orchestrator hosts --hubs",
			}
		}
		f := notRunning(t)
		f.Because = []string{"It ended before it answered. If you requested a change, check whether it was made."}
		return f
	}
	return &Failure{
		Exit: ExitNotRunning, Code: CodeNotRunning,
		Message: "the orchestrator for " + t.Subject + " does not answer",
		Because: []string{rootCause(err).Error()},
		Hint:    "Check whether it is running: orchestrator status",
	}
}

// notRunning returns the failure for a target without an orchestrator. Its hint is a start
// command for the same target.
func notRunning(t *client.Target) *Failure {
	f := &Failure{
		Exit: ExitNotRunning, Code: CodeNotRunning,
		Message: "no orchestrator is running for " + t.Subject,
		Hint:    "Start it: orchestrator up" + t.Named,
		Details: map[string]any{"socket": t.Where()},
	}
	if t.URL != "" {
		f.Message = "no orchestrator is running at " + t.URL
		f.Hint = elsewhereHint
		return f
	}
	if info, err := os.Stat(t.Socket); err == nil && info.Mode().Type() != fs.ModeSocket {
		f.Message = fmt.Sprintf("%s is not a socket of an orchestrator", t.Socket)
		f.Hint = "Name its configuration: -c FILE     or its state directory: --state-dir DIR"
		return f
	}
	if end := lastEnd(filepath.Dir(t.Socket)); end != "" {
		f.Because = append(f.Because, end)
	}
	return f
}

const elsewhereHint = "Its address is http.listen in its file. On the same machine, leave out --host and $ORC_HOST"

// unreachable returns the failure for a URL that cannot be reached.
func unreachable(t *client.Target, err error) *Failure {
	f := &Failure{
		Exit: ExitNotRunning, Code: CodeNotRunning, Message: "the orchestrator at " + t.URL + " does not answer",
		Because: []string{rootCause(err).Error()}, Hint: elsewhereHint,
		Details: map[string]any{"socket": t.Where()},
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		f.Because = []string{fmt.Sprintf("The host %q does not exist.", unknown.Name)}
		return f
	}
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		f.Message = "the orchestrator at " + t.URL + " is not trusted: its certificate is unknown"
		f.Because = []string{wrong.Err.Error(), "No request and no token was sent to it."}
		f.Hint = "Get the certificate from its owner (http.certificate), then: export SSL_CERT_FILE=CERTIFICATE.pem"
		return f
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		f.Message = "the server at " + t.URL + " uses http, not https"
		f.Because = nil
		f.Hint = "Use: --host http" + strings.TrimPrefix(t.URL, "https")
	}
	return f
}

// rootCause removes the layer of the HTTP client from an error, which names an internal
// URL.
func rootCause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// refused returns the failure for an error response of the API.
func refused(t *client.Target, e *wire.Error) *Failure {
	f := &Failure{Exit: exitOf(e.Code), Code: e.Code, Message: e.Message, Hint: e.Hint, Details: e.Details}
	switch {
	case e.Code == wire.CodeDenied && e.Hint == "" && t.Inside:
		f.Hint = "This command runs as an agent, which may not do this. Ask a person: request:ask-user"
	case e.Code == wire.CodeUnauthenticated && t.URL != "":
		f.wantsToken(t)
	case e.Code == wire.CodeNotFound && e.Details["agents"] != nil:
		f.wantsAgent(e.Details)
	case e.Code == wire.CodeConflict && e.Hint == "" && e.Details["reason"] == "wrong_state":
		if id, ok := e.Details["taskId"].(string); ok {
			f.Hint = "The reason and the next steps: orchestrator why " + term.ID(id)
		}
	case e.Code == wire.CodeConflict && e.Hint == "" && e.Details["reason"] == "agent_down":
		if agent, ok := e.Details["agent"].(string); ok {
			f.Hint = "Start it: orchestrator agent start " + term.Word(agent)
		}
	}
	return f
}

// wantsToken adds how to get a token and where to put it.
func (f *Failure) wantsToken(t *client.Target) {
	f.Because = append(f.Because, "The request went to "+t.URL+" with the token in $ORC_TOKEN.")
	if t.Token == "" {
		f.Because = []string{"The request went to " + t.URL + " without a token: $ORC_TOKEN is not set."}
	}
	f.Hint = "Ask its owner for a token: orchestrator token issue --sub NAME     then: export ORC_TOKEN=…"
}

// wantsAgent adds the known agents and the probably meant one.
func (f *Failure) wantsAgent(details map[string]any) {
	wrong, _ := details["agent"].(string)
	var names []string
	listed, _ := details["agents"].([]any)
	for _, each := range listed {
		if name, ok := each.(string); ok {
			names = append(names, name)
		}
	}
	f.Message += DidYouMean(wrong, names)
	f.Because = append(f.Because, f.Hint)
	f.Hint = "List them: orchestrator ps"
}

// unknownServer returns the failure for a server that is not an orchestrator.
func unknownServer(t *client.Target, e *client.UnknownServerError) *Failure {
	f := &Failure{
		Exit: ExitNotRunning, Code: CodeNotRunning,
		Message: fmt.Sprintf("the server at %s is not an orchestrator (HTTP %s)", t.Where(), e.Status),
	}
	if t.URL != "" {
		f.Hint = elsewhereHint
	}
	if e.Code == http.StatusBadRequest && strings.Contains(e.Text, "HTTPS server") && t.URL != "" {
		f.Message = "the server at " + t.URL + " uses https, not http"
		f.Hint = "Use: --host https" + strings.TrimPrefix(t.URL, "http")
	}
	return f
}

// exitOf returns the exit code for an error code.
func exitOf(code wire.Code) int {
	switch code {
	case wire.CodeInvalid:
		return ExitUsage
	case wire.CodeDenied, wire.CodeUnauthenticated:
		return ExitDenied
	case wire.CodeConflict:
		return ExitConflict
	case wire.CodeNotFound:
		return ExitNotFound
	case wire.CodeTimeout:
		return ExitTimeout
	case wire.CodeInternal:
		return exitBug
	}
	return ExitNo
}

// target returns the orchestrator that the flags and the environment select. The order is
// --host, --state-dir, --config, then $ORC_HOST, then $ORC_SOCKET (set for every agent),
// then the configuration found from the working directory.
func (a *App) target() (client.Target, error) {
	f := a.Flags
	switch {
	case f.Host != "":
		return a.HostTarget(f.Host)
	case f.StateDir != "":
		named := ""
		if f.Config != "" {
			named = " -c " + term.Word(f.Config)
		}
		return client.Target{
			Socket: a.SocketPath(a.Path(f.StateDir)), Subject: f.StateDir, Named: named + " --state-dir " + term.Word(f.StateDir),
		}, nil
	case f.Config != "":
	case a.Getenv("ORC_HOST") != "":
		return a.HostTarget(a.Getenv("ORC_HOST"))
	case a.Getenv("ORC_SOCKET") != "":
		t, err := a.HostTarget(a.Getenv("ORC_SOCKET"))
		t.Inside = a.Getenv("ORC_AGENT_ID") != ""
		return t, err
	}
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		file, err = a.around(err)
	}
	if err != nil {
		return client.Target{}, err
	}
	dir, err := a.stateDir(file)
	if err != nil {
		return client.Target{}, err
	}
	t := client.Target{Socket: a.SocketPath(dir), Subject: file}
	if f.Config != "" && !a.Unnamed {
		t.Named = " -c " + term.Word(f.Config)
	}
	return t, nil
}

// Named returns the flags that a command needs to reach the same orchestrator, such as " -c FILE", or "".
func (a *App) Named() string {
	t, _ := a.target()
	return t.Named
}

// HostTarget parses a --host: a socket, the URL of an orchestrator, or the URLs of several hubs, with
// commas.
func (a *App) HostTarget(host string) (client.Target, error) {
	if first, rest, several := strings.Cut(host, ","); several && strings.Contains(first, "://") {
		t, err := a.HostTarget(first)
		if err != nil {
			return t, err
		}
		next, err := a.HostTarget(rest)
		switch {
		case err != nil:
			return next, err
		case t.URL == "" || next.URL == "":
			return t, UsageError(fmt.Sprintf("%q contains a socket: only addresses of hubs can be combined", host), "Write it as: --host https://h1:7433,https://h2:7433")
		}
		t.Others, t.Subject = append([]string{next.URL}, next.Others...), host
		return t, nil
	}
	if path, ok := strings.CutPrefix(host, "unix://"); ok {
		return client.Target{Socket: a.Path(path), Subject: host}, nil
	}
	if !strings.Contains(host, "://") {
		return client.Target{Socket: a.Path(host), Subject: host}, nil
	}
	u, err := url.Parse(host)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, strings.Trim(u.Path, "/") != "", u.RawQuery != "":
		return client.Target{}, UsageError(
			fmt.Sprintf("%q is neither a socket nor the address of an orchestrator", host),
			"Write it as: --host https://build.example.com:7433     or: --host unix:///home/ann/shop/.orchestrator/api.sock",
		)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return client.Target{}, UsageError(
			fmt.Sprintf("%q would send the token unencrypted", host), "Use https:// for other machines",
		)
	}
	return client.Target{URL: u.Scheme + "://" + u.Host, Token: a.Getenv("ORC_TOKEN"), Subject: host}, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// FindConfig returns the path of the configuration file that has a name, or is searched for
// without one. It prints a note if the file is not in the working directory.
func (a *App) FindConfig(name string) (string, error) {
	file, err := config.Find(a.Dir, name, a.Environ)
	if nowhere, ok := errors.AsType[*config.NotFound](err); ok {
		return "", noConfig(nowhere)
	}
	if untrusted, ok := errors.AsType[*config.UntrustedError](err); ok {
		return "", &Failure{
			Exit: ExitDenied, Code: wire.CodeDenied, Message: "the configuration found here is not used: " + untrusted.Why,
			Hint:    "If you trust it, name it: -c " + term.Word(untrusted.File),
			Details: map[string]any{"file": untrusted.File},
		}
	}
	if err != nil {
		return "", fmt.Errorf("looking for the configuration: %w", err)
	}
	given := name != "" || a.Getenv("ORC_CONFIG") != ""
	if !given && filepath.Dir(file) != filepath.Clean(a.Dir) {
		a.Note("Using %s", file)
	}
	return file, nil
}

func noConfig(nowhere *config.NotFound) *Failure {
	return &Failure{
		Exit: ExitNo, Code: CodeNoConfig, Message: "there is " + nowhere.Error(),
		Hint:    "Create one: orchestrator init     Or name one: orchestrator -c FILE …",
		Details: map[string]any{"looked_in": nowhere.Looked},
	}
}

// stateDir returns the state directory for a file. It ignores mistakes in the file and
// returns the default then: a client must reach the orchestrator while the file is edited. A
// file that does not exist is an error, because the default may belong to another file.
func (a *App) stateDir(file string) (string, error) {
	if a.Served != nil {
		return a.Served.stateDir(a, file)
	}
	if a.Flags.StateDir != "" {
		return a.Path(a.Flags.StateDir), nil
	}
	if dir, _, ok := config.Record(file, a.Options()); ok {
		return dir, nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return "", &Failure{
			Exit: ExitNo, Code: CodeNoConfig, Message: "the configuration cannot be read: " + file + ": no such file",
			Hint: "Name another one: -c FILE     Or its state directory: --state-dir DIR", Details: map[string]any{"file": file},
		}
	}
	return filepath.Join(filepath.Dir(file), ".orchestrator"), nil
}

// Options returns the options for reading the configuration.
func (a *App) Options() config.Options {
	files := make([]string, len(a.Flags.VarFiles))
	for i, file := range a.Flags.VarFiles {
		files[i] = a.Path(file)
	}
	o := config.Options{Vars: a.Flags.Vars, VarFiles: files, Environ: a.Environ, Node: a.Getenv("ORC_NODE")}
	if a.Flags.StateDir != "" {
		o.StateDir = a.Path(a.Flags.StateDir)
	}
	return o
}

// Path returns name as a path relative to the app's working directory, or unchanged if it
// is absolute.
func (a *App) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Dir, name)
}

// IsStateDir reports whether dir has the lock file of an orchestrator.
func IsStateDir(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "lock"))
	return err == nil
}

// RecordPath returns the path of the event log that a command uses, and its state
// directory. The file is named, or is the log of the state directory or of the configuration.
func (a *App) RecordPath(named []string) (path, stateDir string, err error) {
	if len(named) > 0 {
		if named[0] == "" {
			return "", "", UsageError("the name of the record is empty", "Leave it out, or give a value")
		}
		path = a.Path(named[0])
		return path, filepath.Dir(path), nil
	}
	if a.Flags.StateDir != "" {
		stateDir = a.Path(a.Flags.StateDir)
		return filepath.Join(stateDir, "events.db"), stateDir, nil
	}
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return "", "", err
	}
	if stateDir, err = a.stateDir(file); err != nil {
		return "", "", err
	}
	if _, store, ok := config.Record(file, a.Options()); ok {
		if store.Kind == "memory" {
			return "", "", UsageError("store { kind = \"memory\" } keeps no record", "Use store { kind = \"sqlite\" }")
		}
		return store.Path, stateDir, nil
	}
	return filepath.Join(stateDir, "events.db"), stateDir, nil
}

// Short returns a path relative to the working directory if it is below it.
func (a *App) Short(file string) string {
	if near, err := filepath.Rel(a.Dir, file); err == nil && filepath.IsLocal(near) {
		return near
	}
	return file
}
