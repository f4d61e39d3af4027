package web

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"orchestrator/supervisor/api"
	"orchestrator/supervisor/api/signin"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// Address is where the listener of the web view is, if the team has no other: at a free port of this machine.
const Address = "127.0.0.1:0"

// A View is the web view of a team, as people find it.
type View struct {
	SignIns *api.SignIns
	URLs    []string // of the listeners of the team
	Views   []string // the URLs of the web view there
	// Listen opens a listener at an address, and Answer begins to serve it.
	Listen func(address string) (*api.TCPListener, error)
	Answer func(net.Listener)
	Dir    string // the state directory

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
		reply.Page, err = signin.WritePage(v.Dir, reply.URL)
		time.AfterFunc(signin.PageLife, func() { _ = os.Remove(reply.Page) })
	}
	return reply, err
}

// Clear removes the pages that a killed orchestrator has left.
func (v *View) Clear() { signin.ClearPages(v.Dir, 0) }

// Show returns the URL of the web view for the user of this program.
func (v *View) Show() (string, error) {
	base, err := v.base()
	if err != nil {
		return "", err
	}
	return base + v.SignIns.InviteUser(), nil
}

// base returns the URL of a listener for browsers, if possible of a listener that only this machine can reach.
func (v *View) base() (string, error) {
	if i := slices.IndexFunc(v.Views, loopback); i >= 0 {
		return v.Views[i], nil
	}
	if len(v.Views) > 0 {
		return v.Views[0], nil
	}
	return v.Own()
}

// Own returns the URL for browsers of the listener at Address. It opens the listener, unless it is open.
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
	return v.own.ViewURL(), nil
}

// listen opens the listener at the port that it had when the team ran before, or else at a free one. The lock must be
// held.
func (v *View) listen() (*api.TCPListener, error) {
	place, _ := PlaceIn(v.Dir)
	if place.Port != 0 {
		if l, err := v.Listen(fmt.Sprintf("127.0.0.1:%d", place.Port)); err == nil {
			return l, nil
		}
	}
	l, err := v.Listen(Address)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		place.Port = uint16(at.Port)
	}
	_ = place.keep(v.Dir) // without it the next port is another
	return l, nil
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
	return u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost") || err == nil && address.IsLoopback()
}
