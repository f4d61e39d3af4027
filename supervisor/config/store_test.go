package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shared returns a file with a shared store that has more attributes.
func shared(more string) string {
	return fmt.Sprintf(`
secret "hubs" {
  file = "hubs.key"
}
store {
  kind        = "jetstream"
  credentials = secret.hubs
  %s
}
`, more)
}

const nearby = `peers = ["127.0.0.1:7434", "127.0.0.1:7435", "127.0.0.1:7436"]`

// A shared store knows its hubs, and which of them is this one.
func TestSharedStore(t *testing.T) {
	t.Parallel()
	file := write(t, "orchestrator.hcl", shared(nearby), "hubs.key", "s3cret\n")
	c := load(t, file, Options{Node: "127.0.0.1:7435"})
	require.Equal(t, "127.0.0.1:7435", c.Store.Node)
	require.Equal(t, "team", c.Store.Log)
	require.True(t, c.Store.Shared())
	secret, err := c.SecretOf(t.Context(), "store.credentials", nil)
	require.NoError(t, err)
	require.Equal(t, "s3cret", strings.TrimSpace(secret))
	require.Empty(t, load(t, file, Options{}).Store.Node, "three are on this machine")

	name, err := os.Hostname()
	require.NoError(t, err)
	file = write(t, "orchestrator.hcl", shared(fmt.Sprintf(`
  peers       = ["h1.example:7434", "%s:7434", "h3.example:7434"]
  ca          = "ca.pem"
  certificate = "c.pem"
  key         = "k.pem"`, name)), "ca.pem", "", "c.pem", "", "k.pem", "")
	require.Equal(t, name+":7434", load(t, file, Options{}).Store.Node)
	require.Equal(t, "h3.example:7434", load(t, file, Options{Node: "h3.example"}).Store.Node)
	_, err = load(t, file, Options{}).SecretOf(t.Context(), "store.credentials", nil)
	require.ErrorContains(t, err, "hubs.key")
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(file), "k.pem")))
	_, problems := Load(file, Options{})
	require.Contains(t, rendered(problems), "k.pem")
	load(t, file, Options{Host: true}) // it has no files of hubs

	file = write(t, "orchestrator.hcl.json", `{"secret": {"hubs": {"env": "HUBS"}}, "store": {"kind": "jetstream", "peers": ["127.0.0.1:1"], "credentials": "${secret.hubs}"}}`)
	secret, err = load(t, file, Options{Environ: []string{"HUBS=x"}}).SecretOf(t.Context(), "store.credentials", []string{"HUBS=x"})
	require.NoError(t, err)
	require.Equal(t, "x", secret)
}

// Settings that make a shared store unsafe or useless are refused with their place.
func TestSharedStoreRefused(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		`store { peers = ["h1:1"] }`:                                      "config/not-shared",
		`store { kind = "jetstream" }`:                                    "config/missing-attribute",
		shared(`peers = ["h1:1", "h2:1", "h3:1"]`):                        "config/hubs-without-tls",
		shared(`peers = ["127.0.0.1:1", "127.0.0.1:1"]`):                  "config/duplicate-peer",
		shared(`peers = ["127.0.0.1"]`):                                   "config/bad-address",
		shared(`peers = []`):                                              "config/empty",
		shared(nearby + "\n  keep = \"30d\""):                             "config/shared-keeps-all",
		shared(nearby + "\n  durable = false"):                            "config/shared-keeps-all",
		strings.Replace(shared(nearby), "secret.hubs", `"s3cret"`, 1):     "config/bad-credentials",
		strings.Replace(shared(nearby), "secret.hubs", "secret.other", 1): "config/bad-expression",
		shared(`peers = ["127.0.0.1:1", "127.0.0.1:2"]`):                  "config/two-hubs",
		shared(nearby + "\n  url = \"nats://127.0.0.1\""):                 "config/other-store",
		shared(nearby + "\n  monitor = [\"http://n1:8222\"]"):             "config/other-store",
		`store { url = "postgres:///x" }`:                                 "config/not-shared",
	} {
		_, problems := Load(config(t, text), Options{})
		require.True(t, slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == code }), "%s: %s", text, rendered(problems))
	}
	_, problems := Load(config(t, shared(nearby)), Options{Node: "h9"})
	require.Contains(t, rendered(problems), "not one of the peers")
}

// serverFile returns a file with a store on a server that has more attributes.
func serverFile(more string) string {
	return fmt.Sprintf(`
secret "db" {
  file = "db.key"
}
store {
  kind = "postgres"
  %s
}
`, more)
}

// A store on a server needs its URL, and the hub has the name of its machine or the one it is given.
func TestServerStore(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://hub@127.0.0.1:5432/team", "postgresql://localhost/team?sslmode=disable", "postgres:///team?host=/var/run/postgresql",
		"postgres://hub@%2Fvar%2Frun/team", "postgres://hub@[::1]:5432", "postgres://h1:5432,h2:5433/team?sslmode=verify-full",
		"postgres://hub@db.example/team?sslmode=disable&sslmode=require",
	} {
		file := write(t, "orchestrator.hcl", serverFile(fmt.Sprintf("url = %q", url)))
		c := load(t, file, Options{})
		require.Equal(t, url, c.Store.URL)
		require.True(t, c.Store.Shared())
		require.Equal(t, "team", c.Store.Log)
		name, err := os.Hostname()
		require.NoError(t, err)
		require.Equal(t, name, c.Store.Node)
		require.Equal(t, "h2", load(t, file, Options{Node: "h2"}).Store.Node)
		secret, err := c.SecretOf(t.Context(), "store.credentials", nil)
		require.NoError(t, err)
		require.Empty(t, secret)
	}
	file := write(t, "orchestrator.hcl", serverFile(`
  url         = "postgres:///team"
  credentials = secret.db
  ca          = "ca.pem"
  log         = "lighthouse"`), "db.key", "s3cret\n", "ca.pem", "")
	c := load(t, file, Options{})
	secret, err := c.SecretOf(t.Context(), "store.credentials", nil)
	require.NoError(t, err)
	require.Equal(t, "s3cret", secret)
	require.Equal(t, "lighthouse", c.Store.Log)
}

// Settings that make such a store unsafe or useless are refused with their place. A password is not
// shown.
func TestServerStoreRefused(t *testing.T) {
	t.Parallel()
	const url = `url = "postgres:///team"`
	for text, code := range map[string]string{
		"":                                       "config/missing-attribute",
		`url = "mysql:///team"`:                  "config/bad-url",
		`url = "postgres:// /team"`:              "config/bad-url",
		`url = 12`:                               "config/bad-url",
		`url = "postgres://db/team"`:             "config/server-without-tls",
		`url = "postgres:///team?host=db"`:       "config/server-without-tls",
		`url = "postgres://127.0.0.1,db/team"`:   "config/server-without-tls",
		`url = "postgres://db/?sslmode=prefer"`:  "config/server-without-tls",
		`url = "postgres://hub:hunter2@db/team"`: "config/password-in-url",
		`url = "postgres:///?password=hunter2"`:  "config/password-in-url",
		url + "\n  peers = [\"127.0.0.1:1\"]":    "config/other-store",
		url + "\n  certificate = \"c.pem\"":      "config/other-store",
		url + "\n  keep = \"30d\"":               "config/shared-keeps-all",
		url + "\n  durable = false":              "config/shared-keeps-all",
		url + "\n  credentials = \"s3cret\"":     "config/bad-credentials",
		url + "\n  credentials = secret.unknown": "config/bad-expression",
	} {
		_, problems := Load(config(t, serverFile(text)), Options{})
		require.True(t, slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == code }), "%s: %s", text, rendered(problems))
		require.NotContains(t, rendered(problems), "hunter2")
	}
}

const ownNATS = `
  url     = "nats://127.0.0.1:4222"
  monitor = ["http://127.0.0.1:8222"]
`

// Servers of NATS keep the record, and any machine may be a hub.
func TestNATSStore(t *testing.T) {
	t.Parallel()
	file := write(t, "orchestrator.hcl", shared(`
  url     = "tls://hub@n1:4223,n2, tls://[::1]"
  monitor = ["http://n1:8222", "https://n2:8222/nats"]
  log     = "lighthouse"
  ca      = "ca.pem"
`), "hubs.key", "s3cret", "ca.pem", "")
	c := load(t, file, Options{Node: "h2"})
	require.Equal(t, []string{"tls://n1:4223", "tls://n2:4222", "tls://[::1]:4222"}, c.Store.Servers)
	require.Equal(t, "hub", c.Store.User)
	require.Equal(t, []string{"http://n1:8222", "https://n2:8222/nats"}, c.Store.Monitors)
	require.Equal(t, "h2", c.Store.Node)
	require.Empty(t, c.Store.Peers)
	require.True(t, c.Store.Shared())
	name, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, name, load(t, file, Options{}).Store.Node)
	require.Equal(t, []string{"nats://127.0.0.1:4222"}, load(t, config(t, shared(ownNATS)), Options{}).Store.Servers)
	byCertificate := strings.Replace(shared(ownNATS+"certificate = \"c.pem\"\nkey = \"k.pem\""), "credentials = secret.hubs", "", 1)
	load(t, write(t, "orchestrator.hcl", byCertificate, "c.pem", "", "k.pem", ""), Options{})
}

// Settings that make a store on servers of NATS unsafe or useless are refused with their place. A password is not
// shown.
func TestNATSStoreRefused(t *testing.T) {
	t.Parallel()
	monitored := func(url string) string {
		return shared(fmt.Sprintf("url = %q\n  monitor = [\"http://n1:8222\"]", url))
	}
	for text, code := range map[string]string{
		shared(`url = "nats://127.0.0.1"`):                                         "config/missing-attribute",
		strings.Replace(shared(ownNATS), "credentials = secret.hubs", "", 1):       "config/missing-attribute",
		shared(ownNATS + nearby):                                                   "config/other-store",
		shared(ownNATS + `key = "k.pem"`):                                          "config/half-certificate",
		shared(ownNATS + `keep = "30d"`):                                           "config/shared-keeps-all",
		shared(`url = "nats://127.0.0.1"` + "\n  monitor = []"):                    "config/empty",
		shared(`url = "nats://127.0.0.1"` + "\n  monitor = [\"n1:8222\"]"):         "config/bad-url",
		monitored("postgres:///team"):                                              "config/bad-url",
		monitored("nats://127.0.0.1,"):                                             "config/bad-url",
		monitored("nats://127.0.0.1,tls://127.0.0.2"):                              "config/bad-url",
		monitored("nats://127.0.0.1/x"):                                            "config/bad-url",
		monitored("nats://n1"):                                                     "config/server-without-tls",
		monitored("nats://127.0.0.1,n2"):                                           "config/server-without-tls",
		monitored("nats://hub:hunter2@127.0.0.1"):                                  "config/password-in-url",
		`store { monitor = ["http://n1:8222"] }`:                                   "config/not-shared",
		serverFile("url = \"postgres:///team\"\n  monitor = [\"http://n1:8222\"]"): "config/other-store",
	} {
		_, problems := Load(config(t, text), Options{})
		require.True(t, slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == code }), "%s: %s", text, rendered(problems))
		require.NotContains(t, rendered(problems), "hunter2")
	}
}

// TestPeersAreHosts checks that hubs may call each other by the names in peers, unless the file
// lists the names.
func TestPeersAreHosts(t *testing.T) {
	t.Parallel()
	const store = `store {
  kind        = "jetstream"
  peers       = ["127.0.0.1:7434", "127.0.0.2:7434", "localhost:7435"]
  credentials = secret.hubs
}
secret "hubs" {
  env = "HUBS"
}
`
	o := Options{Node: "127.0.0.1:7434"}
	c := load(t, config(t, store), o)
	require.Equal(t, []string{"localhost", "127.0.0.1", "::1", "127.0.0.2"}, c.HTTP.Hosts)
	c = load(t, config(t, store+"http {\n  hosts = [\"hub.example\"]\n}\n"), o)
	require.Equal(t, []string{"hub.example"}, c.HTTP.Hosts)
}
