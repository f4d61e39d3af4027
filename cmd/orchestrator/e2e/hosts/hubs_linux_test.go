package hosts

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
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/events"
)

// threeHubs is a team with three hubs on this machine.
type threeHubs struct {
	t     *testing.T
	peers []string
	urls  []string // where they listen, if they do
	hubs  []*stage.Orchestrator
}

// newThreeHubs prepares three hubs.
func newThreeHubs(t *testing.T) *threeHubs {
	return newThreeHubsWith(t, func(int) string { return "" })
}

// newOpenThreeHubs prepares three hubs that listen at addresses of their own.
func newOpenThreeHubs(t *testing.T, more string) *threeHubs {
	addresses := stage.FreeAddresses(t, 3)
	h := newThreeHubsWith(t, func(i int) string { return fmt.Sprintf("http {\n  listen = [%q]\n}\n", addresses[i]) + more })
	for _, address := range addresses {
		h.urls = append(h.urls, "http://"+address)
	}
	return h
}

// newThreeHubsWith prepares three hubs with additions to their files.
func newThreeHubsWith(t *testing.T, more func(i int) string) *threeHubs {
	h := &threeHubs{t: t, peers: stage.FreeAddresses(t, 3)}
	for i := range 3 {
		h.hubs = append(h.hubs, stage.New(t, more(i)+fmt.Sprintf(`
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

func (h *threeHubs) up(i int) { h.hubs[i].Up("--json", "--node", h.peers[i]) }

// atWork waits until a hub other than before is at work, and returns it.
func (h *threeHubs) atWork(before int, hubs ...int) int {
	found := -1
	stage.WaitFor(h.t, "hub at work", func() bool {
		for _, i := range hubs {
			if i != before && strings.Contains(h.hubs[i].Stdout.All(), `"`+events.AgentStarted+`"`) {
				found = i
			}
		}
		return found >= 0
	})
	return found
}

// others returns the hubs except one.
func others(of int) []int { return []int{(of + 1) % 3, (of + 2) % 3} }

// The hub at work is killed, twice. Each time another one continues the same tasks, and the killed
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
			hub.Ask("task", "add", name)
			want = append(want, name)
		}
		stage.WaitFor(t, "standing by", func() bool {
			_, stderr, code := h.hubs[others(at)[0]].Call("task", "ls")
			return code == cli.ExitConflict && strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
		})
		began := time.Now()
		hub.Signal(syscall.SIGKILL)
		<-hub.Ended
		killed := at
		at = h.atWork(killed, others(killed)...)
		t.Logf("another hub had started its agents after %v", time.Since(began))
		list := h.hubs[at].Ask("task", "ls", "--json")
		for _, name := range want {
			require.Contains(t, list, name)
		}
		h.up(killed)
		stage.WaitFor(t, "standing by", func() bool {
			_, stderr, _ := h.hubs[killed].Call("status")
			return strings.Contains(stderr, "stands by: the hub is "+h.peers[at])
		})
	}
	spare := h.hubs[others(at)[0]]
	spare.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, spare.Await(), spare.Stderr.All())
	h.hubs[at].Stop()
}

// Every hub answers: one that stands by passes requests and streams on, with the caller's
// credential, also to the hub that comes after the first.
func TestAnyHub(t *testing.T) {
	t.Parallel()
	h := newOpenThreeHubs(t, "")
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	spare := others(at)
	for _, i := range spare {
		stage.WaitFor(t, "passing on", func() bool {
			_, _, code := h.hubs[i].Call("status")
			return code == cli.ExitOK
		})
	}
	h.hubs[spare[0]].Ask("task", "add", "through-a-standby")
	require.Contains(t, h.hubs[at].Ask("task", "ls", "--json"), "through-a-standby")
	require.Contains(t, h.hubs[at].Ask("events", "--json"), `"hub.epoch"`)
	token := strings.TrimSpace(h.hubs[spare[1]].Ask("token", "issue", "--sub", "ann", "--role", "operator"))
	client := func(host string, args ...string) (string, string, int) {
		cmd := exec.Command(h.hubs[0].Program, append(args, "--host", host)...)
		var out, cried bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &cried
		cmd.Env = append(h.hubs[0].Environ(), "ORC_TOKEN="+token)
		_ = cmd.Run()
		return out.String(), cried.String(), cmd.ProcessState.ExitCode()
	}
	for _, url := range h.urls {
		stdout, stderr, code := client(url, "task", "ls", "--json")
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Contains(t, stdout, "through-a-standby")
	}
	all := strings.Join(h.urls, ",")
	cmd := exec.Command(h.hubs[0].Program, "task", "add", "forged", "--host", h.urls[spare[0]])
	cmd.Env = append(h.hubs[0].Environ(), "ORC_TOKEN=") // nobody
	require.Error(t, cmd.Run())
	forged, err := http.NewRequest(http.MethodPost, h.urls[at]+"/api/v1/operations/status", strings.NewReader("{}"))
	require.NoError(t, err)
	forged.Header.Set("Orchestrator-Forwarded", "e30.e30.e30")
	forged.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(forged)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)

	h.hubs[at].Signal(syscall.SIGKILL)
	<-h.hubs[at].Ended
	next := h.atWork(at, spare...)
	stage.WaitFor(t, "passing on to the next hub", func() bool {
		_, _, code := client(all, "task", "add", "after-the-loss")
		return code == cli.ExitOK
	})
	last := spare[0]
	if last == next {
		last = spare[1]
	}
	stage.WaitFor(t, "passing on", func() bool {
		stdout, _, code := h.hubs[last].Call("task", "ls", "--json")
		return code == cli.ExitOK && strings.Contains(stdout, "after-the-loss")
	})
	_, stderr, code := h.hubs[last].Call("pipe", "--as", "guest")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, h.hubs[last].Ask("down"), "no longer stands by", "not the hub at work")
	h.hubs[next].Ask("status")
}

// A hub that hung is deposed when it wakes: it stops its agents and stands by. The other hubs answer without it, and
// repeat the requests that they have passed on to it at the next hub.
func TestHubDeposed(t *testing.T) {
	t.Parallel()
	h := newOpenThreeHubs(t, "")
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	h.hubs[at].Ask("task", "add", "kept")
	for _, i := range others(at) {
		stage.WaitFor(t, "passing on", func() bool {
			_, _, code := h.hubs[i].Call("status")
			return code == cli.ExitOK
		})
	}
	stage.WaitFor(t, "hubs known", func() bool { return strings.Count(h.hubs[at].Ask("hosts", "--hubs", "--json"), `"followed"`) == 3 })
	h.hubs[at].Signal(syscall.SIGSTOP)
	for _, i := range others(at) {
		require.Contains(t, h.hubs[i].Ask("hosts", "--hubs"), "at work", "it answers that itself")
		require.Contains(t, h.hubs[i].Ask("task", "ls"), "kept")
		h.hubs[i].Ask("status")
	}
	next := h.atWork(at, others(at)...)
	stage.WaitFor(t, "degraded", func() bool {
		return strings.Contains(h.hubs[next].Ask("hosts", "--hubs"), "Degraded:") && strings.Contains(h.hubs[next].Ask("status", "--json"), `"degraded":true`)
	})
	h.hubs[next].Ask("task", "add", "more")
	h.hubs[at].Signal(syscall.SIGCONT)
	stage.WaitFor(t, "standing by", func() bool {
		list, _, _ := h.hubs[at].Call("task", "ls", "--json")
		return strings.Contains(list, "more")
	})
	require.Contains(t, h.hubs[at].Stdout.All(), events.AgentStopped)
	require.Empty(t, h.hubs[at].Processes(), "its agents have ended")
	list := h.hubs[next].Ask("task", "ls", "--json")
	require.Contains(t, list, "kept")
	require.Contains(t, list, "more")
}

// A hub without the others shows its copy of the record, and refuses requests that write. It can be stopped, but its
// end is not recorded.
func TestHubWithoutOthers(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	for i := range h.hubs {
		h.up(i)
	}
	at := h.atWork(-1, 0, 1, 2)
	id := strings.Fields(h.hubs[at].Ask("task", "add", "kept", "-q"))[0]
	for _, i := range others(at) {
		h.hubs[i].Signal(syscall.SIGKILL)
		<-h.hubs[i].Ended
	}
	for n := range 2 { // one that is sent before the hub knows, and one that is refused
		_, stderr, code := h.hubs[at].Call("task", "add", "lost")
		require.NotEqual(t, cli.ExitOK, code)
		require.NotContains(t, stderr, "disk")
		for _, i := range others(at) {
			require.True(t, n == 0 || strings.Contains(stderr, h.peers[i]), stderr)
		}
	}
	for _, verb := range []string{"status", "ps", "task ls", "task show " + id, "why " + id, "why only", "logs only", "events", "agent show only", "inbox"} {
		stdout, stderr, code := h.hubs[at].Call(strings.Fields(verb)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		require.Contains(t, stderr, "No quorum: nothing can be recorded", verb)
		require.NotContains(t, stdout, "lost", verb)
	}
	require.Contains(t, h.hubs[at].Ask("status", "--json"), `"no_quorum":"nothing can be recorded`)
	require.Contains(t, h.hubs[at].Ask("hosts", "--hubs"), "No quorum: nothing can be recorded")
	h.hubs[at].Signal(syscall.SIGINT)
	h.hubs[at].Await()
	require.Contains(t, h.hubs[at].Stderr.All(), "the other hubs cannot be reached")
	require.Empty(t, h.hubs[at].Processes())
}

// A hub in the background names the hubs that it waits for.
func TestHubWaitsInBackground(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	first := h.hubs[0].Up("-d", "--node", h.peers[0])
	stage.WaitFor(t, "the others named", func() bool {
		said := first.Stderr.All()
		return strings.Contains(said, "Waiting for other hubs: ") && strings.Contains(said, h.peers[1]) && strings.Contains(said, h.peers[2])
	})
	first.Signal(syscall.SIGINT)
	first.Await()
	require.Contains(t, first.Ask("down"), "no longer stands by")
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
	spare.Signal(syscall.SIGINT)
	require.Equal(t, cli.ExitOK, spare.Await(), spare.Stderr.All())
	require.Contains(t, spare.Ask("up", "-d", "--node", h.peers[i]), "stands by: the hub is "+h.peers[at])
	_, stderr, code := h.hubs[at].Call("drain", h.peers[at])
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "is a hub, and only hosts are drained")
	_, stderr, code = h.hubs[at].Call("upgrade")
	require.Equal(t, cli.ExitConflict, code, stderr)
	require.Contains(t, stderr, "not upgraded in place")
	require.Contains(t, spare.Ask("down"), "no longer stands by")
	_, stderr, code = spare.Call("status")
	require.Equal(t, cli.ExitNotRunning, code, stderr)
}

// A hub must know which of the peers it is, and the others' address.
func TestHubRefused(t *testing.T) {
	t.Parallel()
	h := newThreeHubs(t)
	_, stderr, code := h.hubs[0].Call("up")
	require.Equal(t, cli.ExitUsage, code, stderr)
	require.Contains(t, stderr, "orchestrator up --node "+h.peers[0])
	_, stderr, code = h.hubs[0].Call("up", "--node", "elsewhere:1")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, stderr, "unknown hub")
}
