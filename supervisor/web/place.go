package web

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// A Place is where browsers find the web view of a team on its machine. It stays the same when the team runs again.
type Place struct {
	// Name is a host name below localhost, which browsers resolve to this machine. Other programs cannot guess
	// it, so the cookie of a sign-in goes to no server of theirs.
	Name string
	Port uint16 // of the listener that View.Own has opened; 0: none yet
}

// placeFile is the file of the state directory with the place.
const placeFile = "ui.address"

var placeName = regexp.MustCompile(`^orc-[a-z2-7]{12}\.localhost$`)

// PlaceIn returns the place of the team with a state directory. If the directory has none, it gets one. If that fails,
// the place holds until the orchestrator stops.
func PlaceIn(dir string) (p Place, err error) {
	text, err := os.ReadFile(filepath.Join(dir, placeFile))
	name, port, wrong := net.SplitHostPort(strings.TrimSpace(string(text)))
	n, bad := strconv.ParseUint(port, 10, 16)
	if err == nil && wrong == nil && bad == nil && placeName.MatchString(name) {
		return Place{Name: name, Port: uint16(n)}, nil
	}
	p = Place{Name: "orc-" + strings.ToLower(rand.Text()[:12]) + ".localhost"}
	return p, p.keep(dir)
}

// keep writes the place to a state directory.
func (p Place) keep(dir string) error {
	text := net.JoinHostPort(p.Name, fmt.Sprint(p.Port)) + "\n"
	if err := os.WriteFile(filepath.Join(dir, placeFile), []byte(text), 0o600); err != nil {
		return fmt.Errorf("keeping the address of the web view: %w", err)
	}
	return nil
}

// Host returns the name, or "" if browsers do not find it. On macOS, Safari leaves names below localhost to the
// system. All other browsers know them.
func (p Place) Host() string {
	if runtime.GOOS != "darwin" {
		return p.Name
	}
	found, err := net.LookupHost(p.Name)
	if err != nil || len(found) == 0 {
		return ""
	}
	if at, err := netip.ParseAddr(found[0]); err != nil || !at.IsLoopback() {
		return ""
	}
	return p.Name
}
