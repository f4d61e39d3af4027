package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
)

// newSafeShire prepares three hubs at addresses of their own, with the files that key ca makes. They use them for
// their engine and for HTTP.
func newSafeShire(t *testing.T) *shire {
	h := &shire{t: t}
	var names []string
	for i, address := range freeAddresses(t, 6) {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		name := fmt.Sprintf("127.0.0.%d", i%3+1)
		if i < 3 {
			h.peers, names = append(h.peers, net.JoinHostPort(name, port)), append(names, name)
		} else {
			h.urls = append(h.urls, "https://"+net.JoinHostPort(name, port))
		}
	}
	for i := range 3 {
		h.hubs = append(h.hubs, newStage(t, fmt.Sprintf(`
secret "hubs" {
  file = "hubs.key"
}
http {
  listen      = [%q]
  certificate = "hub.pem"
  key         = "hub-key.pem"
}
store {
  kind        = "jetstream"
  peers       = ["%s"]
  credentials = secret.hubs
  ca          = "ca.pem"
  certificate = "hub.pem"
  key         = "hub-key.pem"
}
agent "only" {
  command = ["cat"]
}
`, strings.TrimPrefix(h.urls[i], "https://"), strings.Join(h.peers, `", "`))))
	}
	h.hubs[0].ask(append([]string{"key", "ca", "keys"}, names...)...)
	for i, name := range names {
		for _, file := range []string{"ca.pem", "hubs.key", "hub.pem", "hub-key.pem"} {
			text, err := os.ReadFile(h.hubs[0].path(filepath.Join("keys", name, file)))
			require.NoError(t, err)
			h.hubs[i].write(file, string(text))
		}
	}
	return h
}

// Three hubs with the files of key ca trust each other and pass requests on. Clients that trust the authority
// reach any of them, also after the loss of the one at work.
func TestHubsOverTLS(t *testing.T) {
	t.Parallel()
	h := newSafeShire(t)
	for i := range h.hubs {
		h.hubs[i].up("--json", "--node", strings.Split(h.peers[i], ":")[0])
	}
	at := h.atWork(-1, 0, 1, 2)
	spare := others(at)[0]
	waitForThat(t, "passing on", func() bool {
		_, _, code := h.hubs[spare].call("task", "add", "first")
		return code == cli.ExitOK
	})
	token := strings.TrimSpace(h.hubs[spare].ask("token", "issue", "--sub", "ann", "--role", "operator"))
	ask := func(url string, args ...string) (said string, err error) {
		cmd := exec.Command(h.hubs[0].program, append(args, "--host", url)...)
		cmd.Dir, cmd.Env = t.TempDir(), append(h.hubs[0].environ(), "ORC_TOKEN="+token, "SSL_CERT_FILE="+h.hubs[0].path("ca.pem"))
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	for _, url := range h.urls {
		said, err := ask(url, "task", "ls", "--json")
		require.NoError(t, err, said)
		require.Contains(t, said, "first")
	}
	h.hubs[at].signal(syscall.SIGKILL)
	<-h.hubs[at].ended
	h.atWork(at, others(at)...)
	waitForThat(t, "an answer of the next hub", func() bool {
		said, err := ask(strings.Join(h.urls, ","), "task", "ls", "--json")
		return err == nil && strings.Contains(said, "first")
	})
}
