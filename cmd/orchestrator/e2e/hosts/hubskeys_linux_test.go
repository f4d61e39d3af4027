package hosts

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
)

// newSafeThreeHubs prepares three hubs at addresses of their own, with the files that key ca makes in folders keys. In
// the file of the team their names are h1, h2 and h3, and they listen at 0.0.0.0:7433.
func newSafeThreeHubs(t *testing.T, file string) *threeHubs {
	h := &threeHubs{t: t}
	var names, listen []string
	var others []string // pairs of old and new text
	for i, address := range stage.FreeAddresses(t, 6) {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		name := fmt.Sprintf("127.0.0.%d", i%3+1)
		if at := net.JoinHostPort(name, port); i < 3 {
			h.peers, names = append(h.peers, at), append(names, name)
			others = append(others, fmt.Sprintf("h%d:7434", i+1), at)
		} else {
			h.urls, listen = append(h.urls, "https://"+at), append(listen, at)
		}
	}
	for i := range 3 {
		text := strings.NewReplacer(append(others, "0.0.0.0:7433", listen[i])...).Replace(file)
		h.hubs = append(h.hubs, stage.New(t, text))
		require.NoError(t, os.Mkdir(h.hubs[i].Path("keys"), 0o700))
	}
	h.hubs[0].Ask(append([]string{"key", "ca", "made"}, names...)...)
	for i, name := range names {
		for _, file := range []string{"ca.pem", "hubs.key", "hub.pem", "hub-key.pem"} {
			text, err := os.ReadFile(h.hubs[0].Path(filepath.Join("made", name, file)))
			require.NoError(t, err)
			h.hubs[i].Write(filepath.Join("keys", file), string(text))
		}
	}
	return h
}

// clusterFile returns a file of fixtures/cluster.
func clusterFile(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("../../../../fixtures/cluster", name))
	require.NoError(t, err)
	return string(text)
}

// Three hubs with the files of key ca trust each other and pass requests on. Clients that trust the authority
// reach any of them, also after the loss of the one at work.
func TestHubsOverTLS(t *testing.T) {
	t.Parallel()
	team, _, found := strings.Cut(clusterFile(t, "orchestrator.hcl"), "agent ")
	require.True(t, found)
	h := newSafeThreeHubs(t, team+"agent \"only\" {\n  command = [\"cat\"]\n}\n")
	for i := range h.hubs {
		h.hubs[i].Up("--json", "--node", strings.Split(h.peers[i], ":")[0])
	}
	at := h.atWork(-1, 0, 1, 2)
	spare := others(at)[0]
	stage.WaitFor(t, "passing on", func() bool {
		_, _, code := h.hubs[spare].Call("task", "add", "first")
		return code == cli.ExitOK
	})
	token := strings.TrimSpace(h.hubs[spare].Ask("token", "issue", "--sub", "ann", "--role", "operator"))
	ask := func(url string, args ...string) (said string, err error) {
		cmd := exec.Command(h.hubs[0].Program, append(args, "--host", url)...)
		cmd.Dir, cmd.Env = t.TempDir(), append(h.hubs[0].Environ(), "ORC_TOKEN="+token, "SSL_CERT_FILE="+h.hubs[0].Path("keys/ca.pem"))
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	for _, url := range h.urls {
		said, err := ask(url, "task", "ls", "--json")
		require.NoError(t, err, said)
		require.Contains(t, said, "first")
	}
	h.hubs[at].Signal(syscall.SIGKILL)
	<-h.hubs[at].Ended
	h.atWork(at, others(at)...)
	stage.WaitFor(t, "an answer of the next hub", func() bool {
		said, err := ask(strings.Join(h.urls, ","), "task", "ls", "--json")
		return err == nil && strings.Contains(said, "first")
	})
}

// composeCommands returns the commands of hubs and of hosts in compose.yaml.
func composeCommands(t *testing.T, compose string) (hub, host []string) {
	var found [][]string
	for _, m := range regexp.MustCompile(`(?m)^  command: \[(.*)\]$`).FindAllStringSubmatch(compose, -1) {
		var words []string
		for _, word := range regexp.MustCompile(`"[^"]*"|[^", ]+`).FindAllString(m[1], -1) {
			words = append(words, strings.Trim(word, `"`))
		}
		found = append(found, words)
	}
	require.Len(t, found, 2)
	return found[0], found[1]
}

// The cluster of fixtures/cluster, without Docker: its file and its commands start three hubs and two hosts. When a
// hub and a host are lost, the others run the agents.
func TestCluster(t *testing.T) {
	t.Parallel()
	file, compose := clusterFile(t, "orchestrator.hcl"), clusterFile(t, "compose.yaml")
	hub, host := composeCommands(t, compose)
	h := newSafeThreeHubs(t, file)
	for i := range h.hubs {
		h.hubs[i].Start(exec.Command(h.hubs[i].Program, append(hub, "--state-dir", h.hubs[i].State(), "--node", fmt.Sprintf("127.0.0.%d", i+1))...))
	}
	require.Contains(t, clusterFile(t, "start"), "token issue --actor \"HO:$host\"")
	require.Contains(t, clusterFile(t, "start"), "key ca /made/keys h1 h2 h3")
	var hosts []*stage.Orchestrator
	for n := range 2 {
		s, name := stage.New(t, file), fmt.Sprintf("w%d", n+1)
		stage.WaitFor(t, "a token", func() bool {
			token, _, code := h.hubs[0].Call("token", "issue", "--actor", "HO:"+name)
			s.Write("token", token)
			return code == cli.ExitOK
		})
		args := []string{"SSL_CERT_FILE=" + h.hubs[0].Path("keys/ca.pem"), s.Program, "--state-dir", s.State()}
		for _, word := range host {
			args = append(args, strings.ReplaceAll(word, "https://h1:7433,https://h2:7433,https://h3:7433", strings.Join(h.urls, ",")))
		}
		s.Start(exec.Command("env", args...))
		hosts = append(hosts, s)
	}
	at, busy := -1, -1
	stage.WaitFor(t, "all agents on hosts", func() bool {
		var reply control.HostsReply
		if text, _, _ := h.hubs[0].Call("hosts", "--json"); json.Unmarshal([]byte(text), &reply) != nil {
			return false
		}
		for _, hub := range reply.Hubs {
			if hub.State == "at_work" {
				at = slices.Index(h.peers, hub.Name)
			}
		}
		for i, s := range hosts {
			if len(s.Processes()) > 0 {
				busy = i
			}
		}
		return at >= 0 && busy >= 0 && len(hosts[0].Processes())+len(hosts[1].Processes()) >= 3
	})
	h.hubs[at].Signal(syscall.SIGKILL)
	<-h.hubs[at].Ended
	hosts[busy].Signal(syscall.SIGKILL)
	<-hosts[busy].Ended
	stage.WaitFor(t, "all agents on the host that is left", func() bool { return len(hosts[1-busy].Processes()) >= 3 })
	require.Contains(t, h.hubs[others(at)[0]].Ask("hosts"), fmt.Sprintf("w%d", 2-busy))
}
