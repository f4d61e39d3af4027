package config

import (
	"fmt"
	"os"
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
	secret, err := c.StoreCredentials(t.Context(), nil)
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
	_, err = load(t, file, Options{}).StoreCredentials(t.Context(), nil)
	require.ErrorContains(t, err, "hubs.key")

	file = write(t, "orchestrator.hcl.json", `{"secret": {"hubs": {"env": "HUBS"}}, "store": {"kind": "jetstream", "peers": ["127.0.0.1:1"], "credentials": "${secret.hubs}"}}`)
	secret, err = load(t, file, Options{Environ: []string{"HUBS=x"}}).StoreCredentials(t.Context(), []string{"HUBS=x"})
	require.NoError(t, err)
	require.Equal(t, "x", secret)
}

// What makes a shared store unsafe or useless is refused with its place.
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
	} {
		_, problems := Load(config(t, text), Options{})
		require.True(t, slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == code }), "%s: %s", text, rendered(problems))
	}
	_, problems := Load(config(t, shared(nearby)), Options{Node: "h9"})
	require.Contains(t, rendered(problems), "not one of the peers")
}
