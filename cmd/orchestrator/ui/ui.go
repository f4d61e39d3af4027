// Package ui holds the command ui, which opens the web view of a running team in a browser.
package ui

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/api/signin"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// flags are the flags of ui.
type flags struct{ print, viewer bool }

// Command returns the ui command.
func Command(a *cli.App) *cobra.Command {
	var f flags
	verb := &cobra.Command{
		Use:   "ui",
		Short: "Open the web view in a browser",
		Long: `Opens the web view of the running team in the browser. The browser gets a page that only you
can read, with a code that signs it in once, within ten seconds. The sign-in lasts 12 hours,
even if the team restarts. A browser in a sandbox, for example a snap, can't read the page:
use --print.

Without a display, and with --print, the address is printed, and its code holds for two
minutes. On another machine, forward the port with ssh, and open the same address:
ssh -L 41234:127.0.0.1:41234 HOST

If the team has no listener for HTTP, the orchestrator opens one at a free port of this
machine. Without a code or a token it answers nothing.`,
		Example: `  orchestrator ui
  orchestrator ui --print      only the address, for another browser
  orchestrator ui --viewer     for a person who only reads`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return open(ctx, a, d, f) })
		},
	}
	verb.Flags().BoolVar(&f.print, "print", false, "print the address and open nothing")
	verb.Flags().BoolVar(&f.viewer, "viewer", false, "sign in as a viewer (read only)")
	return verb
}

// open asks for the address of the web view and opens it.
func open(ctx context.Context, a *cli.App, d *client.Client, f flags) error {
	program := opener(a)
	opens := program != "" && !f.print && !a.Flags.Quiet && !a.JSON()
	request := control.OpenUIRequest{Role: wire.PersonOperator, Page: opens && d.Target.URL == ""}
	if f.viewer {
		request.Role = wire.PersonViewer
	}
	reply, err := invite(ctx, a, d, request)
	if err != nil {
		return err
	}
	if d.Target.URL != "" {
		reply.URL = seenFrom(d.Target.URL, reply.URL)
	}
	if a.JSON() {
		return a.Document(reply)
	}
	if !opens {
		return a.Print("%s\n", reply.URL)
	}
	if reply.Page == "" { // the team is on another machine
		reply.Page, err = page(a, reply.URL)
	}
	if err == nil {
		err = start(program, "file://"+(&url.URL{Path: reply.Page}).EscapedPath(), a)
	}
	if err != nil {
		a.Note("The browser did not open (%v). Open this address:", err)
		f.print = true // with a code that holds long enough
		return open(ctx, a, d, f)
	}
	a.Note("The web view opens in your browser. If it does not: orchestrator ui --print")
	return nil
}

// page writes a page for the browser, and removes earlier ones. A command line is open to all processes.
func page(a *cli.App, to string) (string, error) {
	dir, err := a.StateHome("pages")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	signin.ClearPages(dir, signin.PageLife)
	return signin.WritePage(dir, to)
}

// invite asks for the address of the web view.
func invite(ctx context.Context, a *cli.App, d *client.Client, r control.OpenUIRequest) (control.OpenUIReply, error) {
	text, err := a.Ask(ctx, d, "open-ui", r)
	if err != nil {
		return control.OpenUIReply{}, err
	}
	return client.Decode[control.OpenUIReply](text)
}

// seenFrom returns an address of the web view with the server that this machine uses for the
// orchestrator. A host name below localhost stays if that is a port of this machine, such as one
// that ssh forwards.
func seenFrom(server, address string) string {
	base, err := url.Parse(server)
	u, wrong := url.Parse(address)
	if err != nil || wrong != nil {
		return address
	}
	host := base.Host
	if at, err := netip.ParseAddr(base.Hostname()); strings.HasSuffix(u.Hostname(), ".localhost") && base.Scheme == "http" && base.Port() != "" &&
		(base.Hostname() == "localhost" || err == nil && at.IsLoopback()) {
		host = net.JoinHostPort(u.Hostname(), base.Port())
	}
	u.Scheme, u.Host = base.Scheme, host
	return u.String()
}

// opener returns the program that opens addresses in a browser, or "" without one or probably
// without a display.
func opener(a *cli.App) string {
	switch {
	case a.Getenv("BROWSER") != "":
		return find(a, a.Getenv("BROWSER"))
	case runtime.GOOS == "darwin" && a.Getenv("SSH_CONNECTION") == "":
		return find(a, "open")
	case a.Getenv("DISPLAY") != "" || a.Getenv("WAYLAND_DISPLAY") != "":
		return find(a, "xdg-open")
	}
	return ""
}

// find returns the path of a program, or "" if it is not there.
func find(a *cli.App, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// start starts a program that outlives this one, without the terminal.
func start(program, address string, a *cli.App) error {
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer nothing.Close()
	process, err := os.StartProcess(program, []string{filepath.Base(program), address}, &os.ProcAttr{
		Dir: a.Dir, Env: a.Environ, Files: []*os.File{nothing, nothing, nothing}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	return process.Release()
}
