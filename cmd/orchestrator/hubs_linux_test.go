package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/fixtures/programs"
	"orchestrator/wire/events"
)

// threeHubs is a team with three hubs on this machine.
type threeHubs struct {
	t     *testing.T
	peers []string
	urls  []string // where they listen, if they do
	hubs  []*stage
}

// newThreeHubs prepares three hubs.
func newThreeHubs(t *testing.T) *threeHubs {
	return newThreeHubsWith(t, func(int) string { return "" })
}

// newOpenThreeHubs prepares three hubs that listen at addresses of their own.
func newOpenThreeHubs(t *testing.T, more string) *threeHubs {
	addresses := freeAddresses(t, 3)
	h := newThreeHubsWith(t, func(i int) string { return fmt.Sprintf("http {\n  listen = [%q]\n}\n", addresses[i]) + more })
	for _, address := range addresses {
		h.urls = append(h.urls, "http://"+address)
	}
	return h
}

// freeAddresses returns n addresses at which no program listens.
func freeAddresses(t *testing.T, n int) []string {
	addresses, err := programs.FreeAddresses(n)
	require.NoError(t, err)
	return addresses
}

// newThreeHubsWith prepares three hubs with additions to their files.
func newThreeHubsWith(t *testing.T, more func(i int) string) *threeHubs {
	h := &threeHubs{t: t, peers: freeAddresses(t, 3)}
	for i := range 3 {
		h.hubs = append(h.hubs, newStage(t, more(i)+fmt.Sprintf(`
secret "hubs" {
  file = "hubs.key"
}
store {
  kind        = "jetstream"
  peers       = ["%s"]
  credentials = secret.hubs
}
agent "only" {
  command = ["cat"]
}
`, strings.Join(h.peers, `", "`)), "hubs.key", "s3cret"))
	}
	return h
}

func (h *threeHubs) up(i int) { h.hubs[i].up("--json", "--node", h.peers[i]) }

// atWork waits until a hub other than before is at work, and returns it.
func (h *threeHubs) atWork(before int, hubs ...int) int {
	found := -1
	waitForThat(h.t, "hub at work", func() bool {
		for _, i := range hubs {
			if i != before && strings.Contains(h.hubs[i].said.all(), `"`+events.AgentStarted+`"`) {
				found = i
			}
		}
		return found >= 0
	})
	return found
}

// others returns the hubs except one.
func others(of int) []int { return []int{(of + 1) % 3, (of + 2) % 3} }

// The hub at work is killed, twice. Each time another one goes on with the same tasks, and the killed
// one stands by when it comes back.
func TestHubKilled(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	for i := range h.hubs {
		h.up(i)
	}
	at, want := h.atWork(-1, 0, 1, 2), []string{}
	for round := range 2 {
		hub := h.hubs[at]
		for i := range 5 {
			name := fmt.Sprintf("task-%d-%d", round, i)
			hub.ask("task", "add", name)
			want = append(want, name)
		}
		waitForThat(t, "standing by", func() bool {
			_, stderr, code := h.hubs[others(at)[0]].call("task", "ls")
			return code == cli.ExitConflict && strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
		})
		began := time.Now()
		hub.signal(syscall.SIGKILL)
		<-hub.ended
		killed := at
		at = h.atWork(killed, others(killed)...)
		t.Logf("another hub had started its agents after %v", time.Since(began))
		list := h.hubs[at].ask("task", "ls", "--json")
		for _, name := range want {
			require.Contains(t, list, name)
		}
		h.up(killed)
		waitForThat(t, "standing by", func() bool {
			_, stderr, _ := h.hubs[killed].call("status")
			return strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
		})
	}
	spare := h.hubs[others(at)[0]]
	spare.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, spare.await(), spare.cried.all())
	h.hubs[at].stop()
}

// Every hub answers: one that stands by passes requests and streams on, with the caller's credential,
// and goes on doing so for the hub that comes after the first.
func TestAnyHub(t *testing.T) {
	t.Parallel()
	h := newOpenThreeHubs(t, "")
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	spare := others(at)
	for _, i := range spare {
		waitForThat(t, "passing on", func() bool {
			_, _, code := h.hubs[i].call("status")
			return code == cli.ExitOK
		})
	}
	h.hubs[spare[0]].ask("task", "add", "through-a-standby")
	require.Contains(t, h.hubs[at].ask("task", "ls", "--json"), "through-a-standby")
	require.Contains(t, h.hubs[at].ask("events", "--json"), `"hub.epoch"`)
	token := strings.TrimSpace(h.hubs[spare[1]].ask("token", "issue", "--sub", "ann", "--role", "operator"))
	client := func(host string, args ...string) (string, string, int) {
		cmd := exec.Command(h.hubs[0].program, append(args, "--host", host)...)
		var out, cried bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &cried
		cmd.Env = append(h.hubs[0].environ(), "ORC_TOKEN="+token)
		_ = cmd.Run()
		return out.String(), cried.String(), cmd.ProcessState.ExitCode()
	}
	for _, url := range h.urls {
		stdout, stderr, code := client(url, "task", "ls", "--json")
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Contains(t, stdout, "through-a-standby")
	}
	all := strings.Join(h.urls, ",")
	cmd := exec.Command(h.hubs[0].program, "task", "add", "forged", "--host", h.urls[spare[0]])
	cmd.Env = append(h.hubs[0].environ(), "ORC_TOKEN=") // nobody
	require.Error(t, cmd.Run())
	forged, err := http.NewRequest(http.MethodPost, h.urls[at]+"/api/v1/operations/status", strings.NewReader("{}"))
	require.NoError(t, err)
	forged.Header.Set("Orchestrator-Forwarded", "e30.e30.e30")
	forged.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(forged)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)

	h.hubs[at].signal(syscall.SIGKILL)
	<-h.hubs[at].ended
	next := h.atWork(at, spare...)
	waitForThat(t, "passing on to the next hub", func() bool {
		_, _, code := client(all, "task", "add", "after-the-loss")
		return code == cli.ExitOK
	})
	last := spare[0]
	if last == next {
		last = spare[1]
	}
	waitForThat(t, "passing on", func() bool {
		stdout, _, code := h.hubs[last].call("task", "ls", "--json")
		return code == cli.ExitOK && strings.Contains(stdout, "after-the-loss")
	})
	_, stderr, code := h.hubs[last].call("pipe", "--as", "guest")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, h.hubs[last].ask("down"), "stands by no longer", "not the hub at work")
	h.hubs[next].ask("status")
}

// A hub that hung is deposed when it wakes: it stops its agents and stands by. Meanwhile the others answer: what they
// have passed on to it is asked again at the next hub.
func TestHubDeposed(t *testing.T) {
	t.Parallel()
	h := newOpenThreeHubs(t, "")
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	h.hubs[at].ask("task", "add", "kept")
	for _, i := range others(at) {
		waitForThat(t, "passing on", func() bool {
			_, _, code := h.hubs[i].call("status")
			return code == cli.ExitOK
		})
	}
	waitForThat(t, "hubs known", func() bool { return strings.Count(h.hubs[at].ask("hosts", "--hubs", "--json"), `"followed"`) == 3 })
	h.hubs[at].signal(syscall.SIGSTOP)
	for _, i := range others(at) {
		require.Contains(t, h.hubs[i].ask("hosts", "--hubs"), "at work", "it answers that itself")
		require.Contains(t, h.hubs[i].ask("task", "ls"), "kept")
		h.hubs[i].ask("status")
	}
	next := h.atWork(at, others(at)...)
	waitForThat(t, "degraded", func() bool {
		return strings.Contains(h.hubs[next].ask("hosts", "--hubs"), "Degraded:") && strings.Contains(h.hubs[next].ask("status", "--json"), `"degraded":true`)
	})
	h.hubs[next].ask("task", "add", "more")
	h.hubs[at].signal(syscall.SIGCONT)
	waitForThat(t, "standing by", func() bool {
		list, _, _ := h.hubs[at].call("task", "ls", "--json")
		return strings.Contains(list, "more")
	})
	require.Contains(t, h.hubs[at].said.all(), events.AgentStopped)
	require.Empty(t, h.hubs[at].processes(), "its agents have ended")
	list := h.hubs[next].ask("task", "ls", "--json")
	require.Contains(t, list, "kept")
	require.Contains(t, list, "more")
}

// A hub without the others shows what was recorded, and refuses requests that write. It can be stopped: its end is
// not recorded then.
func TestHubWithoutOthers(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	id := strings.Fields(h.hubs[at].ask("task", "add", "kept", "-q"))[0]
	for _, i := range others(at) {
		h.hubs[i].signal(syscall.SIGKILL)
		<-h.hubs[i].ended
	}
	for n := range 2 { // one that is sent before the hub knows, and one that is refused
		_, stderr, code := h.hubs[at].call("task", "add", "lost")
		require.NotEqual(t, cli.ExitOK, code)
		require.NotContains(t, stderr, "disk")
		for _, i := range others(at) {
			require.True(t, n == 0 || strings.Contains(stderr, h.peers[i]), stderr)
		}
	}
	for _, verb := range []string{"status", "ps", "task ls", "task show " + id, "why " + id, "why only", "logs only", "events", "agent show only", "inbox"} {
		stdout, stderr, code := h.hubs[at].call(strings.Fields(verb)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Contains(t, stderr, "No quorum: nothing can be recorded", verb)
		require.NotContains(t, stdout, "lost", verb)
	}
	require.Contains(t, h.hubs[at].ask("status", "--json"), `"no_quorum":"nothing can be recorded`)
	require.Contains(t, h.hubs[at].ask("hosts", "--hubs"), "No quorum: nothing can be recorded")
	h.hubs[at].signal(syscall.SIGINT)
	h.hubs[at].await()
	require.Contains(t, h.hubs[at].cried.all(), "the other hubs cannot be reached")
	require.Empty(t, h.hubs[at].processes())
}

// A hub in the background names the hubs that it waits for.
func TestHubWaitsInBackground(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	first := h.hubs[0].up("-d", "--node", h.peers[0])
	waitForThat(t, "the others named", func() bool {
		said := first.cried.all()
		return strings.Contains(said, "Waiting for other hubs: ") && strings.Contains(said, h.peers[1]) && strings.Contains(said, h.peers[2])
	})
	first.signal(syscall.SIGINT)
	first.await()
	require.Contains(t, first.ask("down"), "stands by no longer")
}

// A hub that stands by can be in the background, and be stopped.
func TestHubInBackground(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	i := others(at)[0]
	spare := h.hubs[i]
	spare.signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, spare.await(), spare.cried.all())
	require.Contains(t, spare.ask("up", "-d", "--node", h.peers[i]), "stands by: the hub is "+h.peers[at])
	_, stderr, code := h.hubs[at].call("drain", h.peers[at])
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "is a hub, and only hosts are drained")
	_, stderr, code = h.hubs[at].call("upgrade")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "not upgraded in place")
	require.Contains(t, spare.ask("down"), "stands by no longer")
	_, stderr, code = spare.call("status")
	require.Equal(t, cli.ExitNotRunning, code, stderr)
}

// A hub must know which of the peers it is, and the others' address.
func TestHubRefused(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	_, stderr, code := h.hubs[0].call("up")
	require.Equal(t, cli.ExitUsage, code, stderr)
	require.Contains(t, stderr, "orchestrator up --node "+h.peers[0])
	_, stderr, code = h.hubs[0].call("up", "--node", "elsewhere:1")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, stderr, "unknown hub")
}
