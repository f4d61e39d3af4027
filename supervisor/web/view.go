package web

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// Address is where the listener of the web view is, if the team has no other: at a free port of this machine.
const Address = "127.0.0.1:0"

// A View is the web view of a team, as people find it.
type View struct {
	SignIns *api.SignIns
	URLs    []string // of the listeners of the team
	// Listen opens a listener at an address, and Answer begins to serve it.
	Listen func(address string) (*api.TCPListener, error)
	Answer func(net.Listener)
	// Dir is the folder for the pages of Open, and for the address of the listener, which stays the same when
	// the team runs again; "": there is none.
	Dir string

	mu  sync.Mutex
	own *api.TCPListener // nil until Own opens it
}

// Open performs the operation open-ui: it answers with the URL of the web view. It opens a listener if
// the team has none.
func (v *View) Open(ctx context.Context, r control.OpenUIRequest) (control.OpenUIReply, error) {
	end, err := v.SignIns.Invite(ctx, r)
	if err != nil {
		return control.OpenUIReply{}, err
	}
	base, err := v.base()
	if err != nil {
		return control.OpenUIReply{}, &wire.Error{
			Code: wire.CodeConflict, Message: "the web view has no address: " + err.Error(),
			Hint: "Name one in the file: http { listen = [\"127.0.0.1:7433\"] }",
		}
	}
	reply := control.OpenUIReply{FormatVersion: wire.FormatVersion, URL: base + end}
	if r.Page {
		reply.Page, err = v.page(reply.URL)
	}
	return reply, err
}

// page writes a page that leads to a URL. A command line that has the URL itself shows its code to every process of
// the machine, and this file is closed to other users and hidden from confined agents.
func (v *View) page(to string) (string, error) {
	if v.Dir == "" {
		return "", errors.New("there is no folder for the page")
	}
	file, err := os.CreateTemp(v.Dir, "ui-*.html") // with the mode 0600
	if err != nil {
		return "", fmt.Errorf("writing a page for the browser: %w", err)
	}
	time.AfterFunc(pageTime, func() { _ = os.Remove(file.Name()) })
	_, err = fmt.Fprintf(file, "<!doctype html><meta charset=utf-8><title>orchestrator</title><meta http-equiv=refresh content=\"0; url=%s\">\n", html.EscapeString(to))
	return file.Name(), errors.Join(err, file.Close())
}

// pageTime is how long a page is there. Its code holds for a shorter time.
const pageTime = 15 * time.Second

// Clear removes the pages that an orchestrator has left that was killed.
func (v *View) Clear() {
	left, _ := filepath.Glob(filepath.Join(v.Dir, "ui-*.html"))
	for _, name := range left {
		_ = os.Remove(name)
	}
}

// Show returns the URL of the web view for the user of this program.
func (v *View) Show() (string, error) {
	base, err := v.base()
	if err != nil {
		return "", err
	}
	return base + v.SignIns.InviteUser(), nil
}

// base returns the URL of a listener: one that only this machine can reach, if there is one.
func (v *View) base() (string, error) {
	if i := slices.IndexFunc(v.URLs, loopback); i >= 0 {
		return v.URLs[i], nil
	}
	if len(v.URLs) > 0 {
		return v.URLs[0], nil
	}
	return v.Own()
}

// Own returns the URL of the listener at Address. It opens the listener, unless it is open.
func (v *View) Own() (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		l, err := v.listen()
		if err != nil {
			return "", fmt.Errorf("opening the listener of the web view: %w", err)
		}
		v.own = l
		v.Answer(l)
	}
	return v.own.URL(), nil
}

// listen opens the listener where it was when the team ran before, or else at a free port.
func (v *View) listen() (*api.TCPListener, error) {
	path := filepath.Join(v.Dir, "ui.address")
	if text, err := os.ReadFile(path); err == nil && v.Dir != "" {
		if at, err := netip.ParseAddrPort(strings.TrimSpace(string(text))); err == nil && at.Addr().IsLoopback() {
			if l, err := v.Listen(at.String()); err == nil {
				return l, nil
			}
		}
	}
	l, err := v.Listen(Address)
	if err == nil && v.Dir != "" {
		_ = os.WriteFile(path, []byte(l.Addr().String()+"\n"), 0o600) // without it the next port is another
	}
	return l, err
}

// Listener returns the listener at Address, or nil if it is not open.
func (v *View) Listener() *api.TCPListener {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.own
}

// All returns the URLs of all listeners.
func (v *View) All() []string {
	if l := v.Listener(); l != nil {
		return append(slices.Clone(v.URLs), l.URL())
	}
	return v.URLs
}

// loopback reports whether only this machine can reach a URL, and without a certificate.
func loopback(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}
