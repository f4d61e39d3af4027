package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// knock sends a request for an operation to a URL with a credential.
func knock(t *testing.T, url, operation, credential string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/operations/"+operation, strings.NewReader("{}"))
	require.NoError(t, err)
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(bytes.TrimSpace(text))
}

// listening returns the address that the orchestrator prints.
func (s *stage) listening() string {
	s.t.Helper()
	var url string
	waitForThat(s.t, "the line that says where it listens", func() bool {
		for line := range strings.Lines(s.cried.all()) {
			if rest, ok := strings.CutPrefix(line, "Listening at "); ok {
				url = strings.TrimSpace(rest)
			}
		}
		return url != ""
	})
	return url
}

// Rows, K-18.
func TestDoorOverTCP(t *testing.T) {
	t.Parallel()
	s := newStage(t, "http {\n  listen = [\"127.0.0.1:0\"]\n}\nagent \"a\" {\n  command = [\"cat\"]\n}\n").up()
	url := s.listening()
	status, body := knock(t, url, "status", "")
	require.Equal(t, http.StatusUnauthorized, status, body)
	require.Contains(t, body, `"code":"unauthenticated"`)

	signer := &api.Signer{Path: filepath.Join(s.state(), "jwt.key")}
	for role, want := range map[string]int{wire.PersonOperator: http.StatusOK, wire.PersonViewer: http.StatusForbidden} {
		token, err := signer.Sign(api.Claims{ID: "t", Subject: "ann", Role: role, ExpiresAt: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		status, body = knock(t, url, "status", token)
		require.Equal(t, http.StatusOK, status, body)
		status, body = knock(t, url, "start-agent", token)
		require.Equal(t, want, status, body)
	}
	s.stop()
	_, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.Error(t, err)
}

func TestDoorThatIsTaken(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	s := newStage(t, "http {\n  listen = [\""+other.Addr().String()+"\"]\n}\nagent \"a\" {\n  command = [\"touch\", \"a-ran\"]\n}\n").up()
	require.Equal(t, cli.ExitConflict, s.await())
	require.Contains(t, s.cried.all(), fmt.Sprintf("cannot serve http.listen (orchestrator.hcl:2): %s is in use by pid %d (", other.Addr(), os.Getpid()))
	require.Contains(t, s.cried.all(), "Nothing was started.")
	require.NoFileExists(t, s.path("a-ran"))
	_, stderr, code := s.call("status")
	require.Equal(t, cli.ExitNotRunning, code, stderr)
}

// In the environment of an agent, a command acts as that agent. It acts as an operator only if a
// flag names the orchestrator.
//
// Rows: A-45, K-18.
func TestCommandsInsideOfAnAgent(t *testing.T) {
	t.Parallel()
	s := newStage(t, `
http {
  listen = ["127.0.0.1:0"]
}
agent "inner" {
  command = ["sh", "inner.sh"]
  restart {
    policy = "never"
  }
}
`, "inner.sh", `
orchestrator task add mine --json
orchestrator status 2>&1
echo status $?
orchestrator --state-dir "$ORC_STATE_DIR" status >/dev/null
echo operator $?
echo "at $ORC_URL $ORC_TOKEN $ORC_SOCKET"
cat
`).up("--json")
	lines := s.waitForLines(1, "inner")
	waitForThat(t, "its last line", func() bool {
		lines = s.lines("inner", control.StreamOut)
		return strings.HasPrefix(lines[len(lines)-1], "at ")
	})
	said := strings.Join(lines, "\n")
	require.Contains(t, said, `"submittedBy":"agent:inner"`)
	require.Contains(t, said, "status is for operators, and this is agent inner")
	require.Contains(t, said, "which may not do this")
	require.NotContains(t, said, "--state-dir", "nothing teaches an agent to be the operator")
	require.Contains(t, said, "status 4")
	require.Contains(t, said, "operator 0")
	words := strings.Fields(lines[len(lines)-1])
	require.Len(t, words, 4)
	url, token, socket := words[1], words[2], words[3]
	require.Equal(t, filepath.Dir(socket), s.state())

	status, body := knock(t, url, "query-tasks", token)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"submittedBy":"agent:inner"`)
	status, body = knock(t, url, "status", token)
	require.Equal(t, http.StatusForbidden, status, body)
	s.ask("agent", "stop", "inner")
	status, body = knock(t, url, "query-tasks", token)
	require.Equal(t, http.StatusUnauthorized, status, body)
	require.NoFileExists(t, socket)
	s.stop()
	left, err := filepath.Glob(filepath.Join(s.state(), "*.sock"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// The next start removes the agent sockets of a killed orchestrator.
func TestSocketsOfAKilledOrchestrator(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+"agent \"idle\" {\n  command  = [\"cat\"]\n  replicas = 20\n}\n").up("--json")
	s.waitForEvents(20, events.AgentStarted, "")
	require.NoError(t, s.process.Process.Kill())
	s.await()
	left := func() int {
		sockets, err := filepath.Glob(filepath.Join(s.state(), "r*.sock"))
		require.NoError(t, err)
		return len(sockets)
	}
	require.Equal(t, 20, left())
	s.up("--json", "idle-0")
	waitForThat(t, "the one agent", func() bool { return left() == 1 })
	s.stop()
	require.Zero(t, left())
}
