package config

import (
	"cmp"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// server checks a store that a server of PostgreSQL keeps. Any machine may be a hub, so a hub has the name of
// its machine unless it has another one.
func server(r *reader, b *hcl.Block, set map[string]hcl.Range) {
	s := &r.config.Store
	shares(r, b, set, []string{"url"}, []string{"peers", "monitor", "certificate", "key"},
		"the server of url keeps the record, and its sslmode says how that is encrypted. ca is that of the hubs' http.certificate.")
	name, _ := os.Hostname()
	s.Node = cmp.Or(r.options.Node, name, "hub")
}

// serverURL reads the URL of a server, in a block, whose kind was read before.
func serverURL(into *Store, block hcl.Range) func(value) {
	return func(v value) {
		text, ok := v.asText()
		switch {
		case !ok:
		case into.Kind == "jetstream":
			natsURL(into, block, v, text)
		default:
			postgresURL(into, block, v, text)
		}
	}
}

// postgresURL reads the URL of a server of PostgreSQL, in a block. The engine reads the rest of it. A
// problem shows its line, so one with a password is reported at the block.
func postgresURL(into *Store, block hcl.Range, v value, text string) {
	u, ok := parseServerURL(text)
	switch {
	case !ok:
		v.reject("bad-url", "Bad URL", "url is that of a server of PostgreSQL, such as \"postgres://orchestrator@db.example/orchestrator?sslmode=verify-full\".", "")
	case u.password:
		reportPassword(v.r, block)
	case u.remote && !slices.Contains([]string{"require", "verify-ca", "verify-full"}, u.sslmode):
		v.reject("server-without-tls", "Server without TLS",
			"The server is on another machine: what hubs send it must not be read on the way. The sslmode of url is require, verify-ca or verify-full there.",
			"Write ?sslmode=verify-full at the end, and &sslrootcert=FILE for a certificate authority of your own.")
	default:
		into.URL = text
	}
}

// reportPassword reports a URL with a password, at its block.
func reportPassword(r *reader, block hcl.Range) {
	r.report(block, Problem{
		Code: "config/password-in-url", Summary: "Password in the file",
		Detail: "url has a password, and this file is no place for one.",
		Hint:   "Put it into a secret, and write: credentials = secret.NAME",
	})
}

// A parsedURL is what this package knows of the URL of a server.
type parsedURL struct {
	password bool
	remote   bool // a host may be another machine
	sslmode  string
}

// parseServerURL reads a URL, which may name several hosts. Package url takes only one.
func parseServerURL(text string) (u parsedURL, ok bool) {
	rest, ok := strings.CutPrefix(text, "postgres://")
	if !ok {
		rest, ok = strings.CutPrefix(text, "postgresql://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if !ok || err != nil || strings.ContainsAny(text, " \t\n\x00#") {
		return parsedURL{}, false
	}
	authority, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		_, password, _ := strings.Cut(authority[:at], ":")
		u.password, authority = password != "", authority[at+1:]
	}
	u.password = u.password || values.Has("password") || values.Has("sslpassword")
	if modes := values["sslmode"]; len(modes) > 0 {
		u.sslmode = modes[len(modes)-1]
	}
	for _, host := range append(strings.Split(authority, ","), strings.Split(values.Get("host"), ",")...) {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.Trim(host, "[]")
		socket := strings.HasPrefix(host, "/") || strings.HasPrefix(strings.ToLower(host), "%2f")
		u.remote = u.remote || host != "" && !socket && !isLoopback(host)
	}
	return u, true
}
