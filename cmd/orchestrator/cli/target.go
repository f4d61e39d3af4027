package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// target returns the orchestrator that the flags and the environment select. The order is
// --host, --state-dir, --config, then $ORC_HOST, then $ORC_SOCKET (set for every agent),
// then the configuration found from the working directory.
func (a *App) target() (client.Target, error) {
	f := a.Flags
	switch {
	case f.Host != "":
		return a.hostTarget(f.Host)
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
		return a.hostTarget(a.Getenv("ORC_HOST"))
	case a.Getenv("ORC_SOCKET") != "":
		t, err := a.hostTarget(a.Getenv("ORC_SOCKET"))
		t.Inside = a.Getenv("ORC_AGENT_ID") != ""
		return t, err
	}
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return client.Target{}, err
	}
	dir, err := a.stateDir(file)
	if err != nil {
		return client.Target{}, err
	}
	t := client.Target{Socket: a.SocketPath(dir), Subject: file}
	if f.Config != "" {
		t.Named = " -c " + term.Word(f.Config)
	}
	return t, nil
}

// hostTarget parses a --host: a socket, or the URL of an orchestrator.
func (a *App) hostTarget(host string) (client.Target, error) {
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
			fmt.Sprintf("%q would send the token unencrypted", host), "Use https:// for what is not on this machine",
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
			Exit: ExitDenied, Code: wire.CodeDenied, Message: "the configuration that was found is not used: " + untrusted.Why,
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
		Hint:    "Write a first one: orchestrator init     Or name one: orchestrator -c FILE …",
		Details: map[string]any{"looked_in": nowhere.Looked},
	}
}

// stateDir returns the state directory for a file. It ignores mistakes in the file and
// returns the default then: a client must reach the orchestrator while the file is edited. A
// file that does not exist is an error, because the default may be that of another file.
func (a *App) stateDir(file string) (string, error) {
	if a.Flags.StateDir != "" {
		return a.Path(a.Flags.StateDir), nil
	}
	if c, _ := config.Load(file, a.Options()); c != nil {
		return c.Orchestrator.StateDir, nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return "", &Failure{
			Exit: ExitNo, Code: CodeNoConfig, Message: "the configuration cannot be read: " + file + ": there is no such file",
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
	o := config.Options{Vars: a.Flags.Vars, VarFiles: files, Environ: a.Environ}
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
// directory. The file is named, or is that of the state directory or the configuration.
func (a *App) RecordPath(named []string) (path, stateDir string, err error) {
	if len(named) > 0 {
		if named[0] == "" {
			return "", "", UsageError("the name of the record is empty", "Leave it out, or say what it is")
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
	if c, _ := config.Load(file, a.Options()); c != nil {
		if c.Store.Kind == "memory" {
			return "", "", UsageError("store { kind = \"memory\" } keeps no record", "Use store { kind = \"sqlite\" }")
		}
		return c.Store.Path, stateDir, nil
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
