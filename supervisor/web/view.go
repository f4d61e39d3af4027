package web

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"

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
	// Listen opens a listener at Address, and Answer begins to serve it.
	Listen func() (*api.TCPListener, error)
	Answer func(net.Listener)

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
	return control.OpenUIReply{FormatVersion: wire.FormatVersion, URL: base + end}, nil
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
		l, err := v.Listen()
		if err != nil {
			return "", fmt.Errorf("opening the listener of the web view: %w", err)
		}
		v.own = l
		v.Answer(l)
	}
	return v.own.URL(), nil
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
