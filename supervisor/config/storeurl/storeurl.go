// Package storeurl reads the URLs of servers that keep a shared record, which may name several servers with commas. It
// also knows which addresses are on this machine.
package storeurl

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// A URL has the properties of a URL that a configuration needs.
type URL struct {
	Password bool     // the URL has one
	Remote   bool     // a server may be on another machine
	SSLMode  string   // of PostgreSQL
	Servers  []string // of NATS, each as a URL without a user
	User     string   // of NATS
}

// Postgres reads the URL of a server of PostgreSQL. Package url takes only one host.
func Postgres(text string) (u URL, ok bool) {
	rest, ok := strings.CutPrefix(text, "postgres://")
	if !ok {
		rest, ok = strings.CutPrefix(text, "postgresql://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if !ok || err != nil || strings.ContainsAny(text, " \t\n\x00#") {
		return URL{}, false
	}
	authority, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		_, password, _ := strings.Cut(authority[:at], ":")
		u.Password, authority = password != "", authority[at+1:]
	}
	u.Password = u.Password || values.Has("password") || values.Has("sslpassword")
	if modes := values["sslmode"]; len(modes) > 0 {
		u.SSLMode = modes[len(modes)-1]
	}
	for _, host := range append(strings.Split(authority, ","), strings.Split(values.Get("host"), ",")...) {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.Trim(host, "[]")
		socket := strings.HasPrefix(host, "/") || strings.HasPrefix(strings.ToLower(host), "%2f")
		u.Remote = u.Remote || host != "" && !socket && !IsLoopback(host)
	}
	return u, true
}

// NATS reads the URL of servers of NATS. The scheme and the user of the first server apply to all.
func NATS(text string) (u URL, ok bool) {
	scheme, rest, _ := strings.Cut(text, "://")
	ok = scheme == "nats" || scheme == "tls"
	for i, one := range strings.Split(rest, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), scheme+"://")
		server, err := url.Parse(scheme + "://" + one)
		if err != nil || server.Hostname() == "" || strings.Trim(server.Path, "/") != "" || server.RawQuery != "" || server.Fragment != "" {
			user, _, has := strings.Cut(one, "@")
			u.Password, ok = u.Password || has && strings.Contains(user, ":"), false
			continue
		}
		_, password := server.User.Password()
		u.Password, u.Remote = u.Password || password, u.Remote || !IsLoopback(server.Hostname())
		if i == 0 {
			u.User = server.User.Username()
		} else if server.User != nil && server.User.Username() != u.User {
			ok = false
		}
		u.Servers = append(u.Servers, scheme+"://"+net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "4222")))
	}
	return u, ok
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// IsElsewhere reports whether a peer may be on another machine.
func IsElsewhere(peer string) bool {
	host, _, _ := net.SplitHostPort(peer)
	return !IsLoopback(host)
}

// IsHere reports whether the host of a peer is this machine's name or has one of its addresses.
func IsHere(peer string) bool {
	host, _, _ := net.SplitHostPort(peer)
	name, _ := os.Hostname()
	short, _, _ := strings.Cut(name, ".")
	if IsLoopback(host) || host == name || host == short {
		return true
	}
	ip := net.ParseIP(host)
	addresses, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && ip != nil && n.IP.Equal(ip)
	})
}

// IsWebhook reports whether notifications may be sent to a URL.
func IsWebhook(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname()))
}
