package screens

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/supervisor/notify"
	"orchestrator/wire/events"
)

// A question of an agent reaches a command and a webhook, through a kill of the orchestrator. A notification that the
// webhook refuses is a dead letter that can be sent again. The URL, which is secret, is nowhere.
func TestNotify(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	s := stage.New(t, stage.QuickStop+fmt.Sprintf(`
secret "hook" {
  file = "hook.url"
}
notify {
  on      = ["question"]
  command = ["./tell", "extra"]
  webhook = secret.hook
  secret  = secret.hook
}
agent "own" {
  command = ["sh", "-c", %q]
}
`, `echo '{"type":"request:ask-user","id":"'$$'","timestamp":"2026-11-21T14:00:00Z","payload":{"question":"Which port, '$$'?"}}'; exec sleep 1000`))
	s.Write("hook.url", hook.URL+"/very-secret\n")
	s.Write("tell", "#!/bin/sh\nprintf '%s|%s|%s\\n' \"$1\" \"$2\" \"$ORC_NOTIFICATION\" >>told\n")
	require.NoError(t, os.Chmod(s.Path("tell"), 0o700))
	s.Up("--json").Serving()
	stage.WaitFor(t, "webhook", func() bool { return len(hook.texts()) == 1 })
	stage.WaitFor(t, "command", func() bool {
		text, _ := os.ReadFile(s.Path("told"))
		return strings.Contains(string(text), "\n")
	})
	require.Regexp(t, `^Question, own: q1 Which port, \d+\?$`, hook.texts()[0])
	require.Contains(t, s.Read("told"), "extra|"+hook.texts()[0]+"|{\"format_version\"")

	asked := s.WaitForEvents(1, events.QuestionAsked, "own")[0]
	stage.WaitFor(t, "saved place, without which the question is told again", func() bool {
		text, _ := os.ReadFile(filepath.Join(s.State(), "notify-place"))
		return string(text) == fmt.Sprint(asked.Seq)
	})
	hook.answer(http.StatusGone)
	require.NoError(t, s.Process.Process.Kill())
	s.Await()
	s.Up("--json").Serving()
	stage.WaitFor(t, "dead letter", func() bool { return strings.Contains(s.Ask("notify", "dead"), "it is refused: HTTP 410") })
	require.Len(t, hook.texts(), 1, "the first question was not told again")
	_, _, code := s.Call("notify", "dead", "--resend")
	require.Equal(t, cli.ExitNo, code)
	hook.answer(http.StatusOK)
	require.Contains(t, s.Ask("notify", "dead", "--resend"), "sent")
	require.Len(t, hook.texts(), 2)
	require.Contains(t, s.Ask("notify", "dead"), "All messages were delivered.")

	tried := s.Ask("notify", "test")
	require.Regexp(t, `(?m)^command +told$`, tried)
	require.Regexp(t, `(?m)^webhook at http://127.0.0.1:\d+ +told$`, tried)
	require.Equal(t, "Test: notifications from this team arrive here", hook.texts()[2])
	s.Stop()
	require.NotContains(t, s.Stdout.All()+s.Stderr.All()+tried, "very-secret")
}

// The terminal of up gets a bell and a notification, before the line of the event.
func TestNotifyTerminal(t *testing.T) {
	t.Parallel()
	w := inTerminal(t, stage.QuickStop+`
notify {
  on   = ["question"]
  bell = true
  osc  = true
}
agent "own" {
  command = ["sh", "-c", "sleep 0.5; echo '{\"type\":\"request:ask-user\",\"id\":\"1\",\"timestamp\":\"2026-11-21T14:00:00Z\",\"payload\":{\"question\":\"Which port?\"}}'; exec sleep 1000"]
}
`, "exec $UP", 100, 24)
	w.until("Which port?")
	stage.WaitFor(t, "bell", func() bool {
		return strings.Contains(w.Written(), "\x1b]9;Question, own: q1 Which port?\x1b\\\a")
	})
	w.types("\x03")
	w.ends(cli.ExitOK)
}

// A hook is a webhook.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []string
}

func newHook(t *testing.T) *hook {
	h := &hook{status: http.StatusOK}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		var m notify.Message
		if r.Header.Get(notify.SignatureHeader) == "sha256="+notify.Sign(h.URL+"/very-secret", body) && json.Unmarshal(body, &m) == nil && h.status == http.StatusOK {
			h.got = append(h.got, m.Text)
		}
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) answer(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

func (h *hook) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.got...)
}
