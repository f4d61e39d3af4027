package config

import (
	"cmp"
	"os"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/config/storeurl"
)

// server checks a store that a server of PostgreSQL keeps. Any machine may be a hub, so a hub has the name of
// its machine unless it has another one.
func (r *reader) server(b *hcl.Block, set map[string]hcl.Range) {
	s := &r.config.Store
	r.shares(b, set, []string{"url"}, []string{"peers", "monitor", "certificate", "key"},
		"the server of url keeps the record, and sslmode in url sets its encryption. ca is for the hubs' http.certificate.")
	name, _ := os.Hostname()
	s.Node = cmp.Or(r.options.Node, name, "hub")
}

// serverURL reads the URL of a server, in a block after its kind was read.
func serverURL(block hcl.Range) func(*Store, value) {
	return func(into *Store, v value) {
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
	u, ok := storeurl.Postgres(text)
	switch {
	case !ok:
		v.reject("bad-url", "Bad URL", "url must be the URL of a PostgreSQL server, for example \"postgres://orchestrator@db.example/orchestrator?sslmode=verify-full\".", "")
	case u.Password:
		v.r.reportPassword(block)
	case u.Remote && !slices.Contains([]string{"require", "verify-ca", "verify-full"}, u.SSLMode):
		v.reject("server-without-tls", "Server without TLS",
			"The server is on another machine: traffic to it must be encrypted. Set sslmode in url to require, verify-ca or verify-full.",
			"Write ?sslmode=verify-full at the end, and &sslrootcert=FILE for your own certificate authority.")
	default:
		into.URL = text
	}
}

// reportPassword reports a URL with a password, at its block.
func (r *reader) reportPassword(block hcl.Range) {
	r.report(block, Problem{
		Code: "config/password-in-url", Summary: "Password in the file",
		Detail: "url has a password, which must not be in this file.",
		Hint:   "Put it into a secret block, and write: credentials = secret.NAME",
	})
}
