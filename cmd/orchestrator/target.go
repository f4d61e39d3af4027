package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// target is the orchestrator that a verb speaks to.
type target struct {
	socket  string
	url     string // instead of the socket, of one that is elsewhere
	token   string // who we are there
	subject string // what it belongs to, for messages: a file, a folder or a socket
	named   string // the flag that names it, as it was typed
	inside  bool   // we are inside of an agent, and speak as that agent
}

// target finds the orchestrator that is meant. What is typed counts more than
// the environment: --host, --state-dir, --config, then $ORC_HOST, $ORC_SOCKET
// (which every agent has), then the configuration found from here.
func (a *app) target() (target, error) {
	f := a.flags
	switch {
	case f.host != "":
		return a.hostTarget(f.host)
	case f.stateDir != "":
		named := ""
		if f.config != "" {
			named = " -c " + plain.Word(f.config)
		}
		return target{
			socket: a.socketPath(a.path(f.stateDir)), subject: f.stateDir, named: named + " --state-dir " + plain.Word(f.stateDir),
		}, nil
	case f.config != "":
	case a.env("ORC_HOST") != "":
		return a.hostTarget(a.env("ORC_HOST"))
	case a.env("ORC_SOCKET") != "":
		t, err := a.hostTarget(a.env("ORC_SOCKET"))
		t.inside = a.env("ORC_AGENT_ID") != ""
		return t, err
	}
	file, err := a.findConfig()
	if err != nil {
		return target{}, err
	}
	t := target{socket: a.socketPath(a.stateDir(file)), subject: file}
	if f.config != "" {
		t.named = " -c " + plain.Word(f.config)
	}
	return t, nil
}

// where is the address that is spoken to.
func (t *target) where() string {
	if t.url != "" {
		return t.url
	}
	return t.socket
}

// hostTarget reads a --host: a socket, or the URL of an orchestrator.
func (a *app) hostTarget(host string) (target, error) {
	if path, ok := strings.CutPrefix(host, "unix://"); ok {
		return target{socket: a.path(path), subject: host}, nil
	}
	if !strings.Contains(host, "://") {
		return target{socket: a.path(host), subject: host}, nil
	}
	u, err := url.Parse(host)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, strings.Trim(u.Path, "/") != "", u.RawQuery != "":
		return target{}, usageError(
			fmt.Sprintf("%q is neither a socket nor the address of an orchestrator", host),
			"Write it as: --host https://build.example.com:7433     or: --host unix:///home/ann/shop/.orchestrator/api.sock",
		)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return target{}, usageError(
			fmt.Sprintf("%q would send the token unencrypted", host), "Use https:// for what is not on this machine",
		)
	}
	return target{url: u.Scheme + "://" + u.Host, token: a.env("ORC_TOKEN"), subject: host}, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// findConfig returns the configuration file that is meant, and says so when
// it is not in the working directory.
func (a *app) findConfig() (string, error) {
	file, err := config.Find(a.dir, a.flags.config, a.environ)
	if nowhere, ok := errors.AsType[*config.NotFound](err); ok {
		return "", noConfig(nowhere)
	}
	if untrusted, ok := errors.AsType[*config.UntrustedError](err); ok {
		return "", &failure{
			exit: exitDenied, code: wire.CodeDenied, message: "the configuration that was found is not used: " + untrusted.Why,
			hint:    "If you trust it, name it: -c " + plain.Word(untrusted.File),
			details: map[string]any{"file": untrusted.File},
		}
	}
	if err != nil {
		return "", fmt.Errorf("looking for the configuration: %w", err)
	}
	given := a.flags.config != "" || a.env("ORC_CONFIG") != ""
	if !given && filepath.Dir(file) != filepath.Clean(a.dir) {
		a.note("Using %s", file)
	}
	return file, nil
}

func noConfig(nowhere *config.NotFound) *failure {
	return &failure{
		exit: exitNo, code: codeNoConfig, message: "there is " + nowhere.Error(),
		hint:    "Write a first one: orchestrator init     Or name one: orchestrator -c FILE …",
		details: map[string]any{"looked_in": nowhere.Looked},
	}
}

// stateDir is where the orchestrator of a file keeps its state. A client must
// find it even while the file is edited, so mistakes in it are passed
// over here and the default is taken.
func (a *app) stateDir(file string) string {
	if a.flags.stateDir != "" {
		return a.path(a.flags.stateDir)
	}
	if c, _ := config.Load(file, a.options()); c != nil {
		return c.Orchestrator.StateDir
	}
	return filepath.Join(filepath.Dir(file), ".orchestrator")
}

// options are what the configuration is read with.
func (a *app) options() config.Options {
	files := make([]string, len(a.flags.varFiles))
	for i, file := range a.flags.varFiles {
		files[i] = a.path(file)
	}
	o := config.Options{Vars: a.flags.vars, VarFiles: files, Environ: a.environ}
	if a.flags.stateDir != "" {
		o.StateDir = a.path(a.flags.stateDir)
	}
	return o
}

// path is a path as seen from the working directory.
func (a *app) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}
