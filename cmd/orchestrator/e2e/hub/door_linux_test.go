package hub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Rows, K-18, S-10.
func TestDoorOverTCP(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "http {\n  listen = [\"127.0.0.1:0\"]\n}\nagent \"a\" {\n  command = [\"cat\"]\n}\n").Up()
	url := s.Address()
	status, body := stage.Knock(t, url, "status", "")
	require.Equal(t, http.StatusUnauthorized, status, body)
	require.Contains(t, body, `"code":"unauthenticated"`)

	signer := &api.Signer{Path: filepath.Join(s.State(), "jwt.key")}
	forged, err := signer.Sign(api.Claims{ID: "t", Subject: "ann", Role: wire.PersonAdmin, ExpiresAt: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	status, body = stage.Knock(t, url, "status", forged)
	require.Equal(t, http.StatusUnauthorized, status, "a token that was signed with the key, but not issued: %s", body)
	for role, want := range map[string]int{wire.PersonOperator: http.StatusOK, wire.PersonViewer: http.StatusForbidden} {
		token := strings.TrimSpace(s.Ask("token", "issue", "--sub", "ann", "--role", role))
		status, body = stage.Knock(t, url, "status", token)
		require.Equal(t, http.StatusOK, status, body)
		status, body = stage.Knock(t, url, "start-agent", token)
		require.Equal(t, want, status, body)
		raised, err := signer.Verify(token, time.Now())
		require.NoError(t, err)
		raised.Role = wire.PersonAdmin
		forged, err = signer.Sign(raised)
		require.NoError(t, err)
		status, body = stage.Knock(t, url, "status", forged)
		require.Equal(t, http.StatusUnauthorized, status, "a token that was signed with another role: %s", body)
	}
	s.Stop()
	_, err = net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.Error(t, err)
}

func TestDoorThatIsTaken(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	s := stage.New(t, "http {\n  listen = [\""+other.Addr().String()+"\"]\n}\nagent \"a\" {\n  command = [\"touch\", \"a-ran\"]\n}\n").Up()
	require.Equal(t, cli.ExitConflict, s.Await())
	require.Contains(t, s.Stderr.All(), fmt.Sprintf("cannot serve http.listen (orchestrator.hcl:2): %s is in use by pid %d (", other.Addr(), os.Getpid()))
	require.Contains(t, s.Stderr.All(), "Nothing was started.")
	require.NoFileExists(t, s.Path("a-ran"))
	_, stderr, code := s.Call("status")
	require.Equal(t, cli.ExitNotRunning, code, stderr)
}

// In the environment of an agent, a command acts as that agent. It acts as an operator only if a
// flag names the orchestrator.
//
// Rows: A-45, K-18.
func TestCommandsInsideOfAnAgent(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
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
`).Up("--json")
	lines := s.WaitForLines(1, "inner")
	stage.WaitFor(t, "its last line", func() bool {
		lines = s.Lines("inner", control.StreamOut)
		return strings.HasPrefix(lines[len(lines)-1], "at ")
	})
	said := strings.Join(lines, "\n")
	require.Contains(t, said, `"submittedBy":"agent:inner"`)
	require.Contains(t, said, "status is for operators, and this is agent inner")
	require.Contains(t, said, "which may not do this")
	require.NotContains(t, said, "--state-dir", "nothing teaches an agent to be the operator")
	require.Contains(t, said, "status 4")
	require.Contains(t, said, "operator 4")
	words := strings.Fields(lines[len(lines)-1])
	require.Len(t, words, 4)
	url, token, socket := words[1], words[2], words[3]
	require.Equal(t, filepath.Dir(socket), s.State())

	status, body := stage.Knock(t, url, "query-tasks", token)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"submittedBy":"agent:inner"`)
	status, body = stage.Knock(t, url, "status", token)
	require.Equal(t, http.StatusForbidden, status, body)
	s.Ask("agent", "stop", "inner")
	status, body = stage.Knock(t, url, "query-tasks", token)
	require.Equal(t, http.StatusUnauthorized, status, body)
	require.NoFileExists(t, socket)
	s.Stop()
	left, err := filepath.Glob(filepath.Join(s.State(), "*.sock"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// The next start removes the agent sockets of a killed orchestrator.
func TestSocketsOfAKilledOrchestrator(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+"agent \"idle\" {\n  command  = [\"cat\"]\n  replicas = 20\n}\n").Up("--json")
	s.WaitForEvents(20, events.AgentStarted, "")
	require.NoError(t, s.Process.Process.Kill())
	s.Await()
	left := func() int {
		sockets, err := filepath.Glob(filepath.Join(s.State(), "r*.sock"))
		require.NoError(t, err)
		return len(sockets)
	}
	require.Equal(t, 20, left())
	s.Up("--json", "idle-0")
	stage.WaitFor(t, "the one agent", func() bool { return left() == 1 })
	s.Stop()
	require.Zero(t, left())
}

// A stranger runs the program without the permissions of the test's user. If the test is root,
// which ignores file modes, it uses another user.
type stranger struct {
	t            *testing.T
	dir, program string
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	program, err := stage.Program()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "orc")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) // the other user must reach the program
	mine := filepath.Join(dir, "orchestrator")
	// cp writes the copy: a file written by this process may be busy, because forks of other
	// tests inherit its descriptor.
	require.NoError(t, exec.Command("cp", program, mine).Run())
	return &stranger{t: t, dir: dir, program: mine}
}

func (s *stranger) call(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, cried bytes.Buffer
	cmd := exec.Command(s.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &cried
	cmd.Env = []string{"HOME=" + s.dir, "PATH=/bin:/usr/bin"}
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	err := cmd.Run()
	failed, ok := errors.AsType[*exec.ExitError](err)
	require.True(s.t, ok, "it was let in: %v", err)
	return out.String(), cried.String(), failed.ExitCode()
}

// The error names the file, folder or socket without the permission.
func TestStrangerIsToldWhatIsClosed(t *testing.T) {
	t.Parallel()
	s := newStranger(t)
	file := filepath.Join(s.dir, "orchestrator.hcl")
	require.NoError(t, os.WriteFile(file, []byte("agent \"a\" {\n  command = [\"true\"]\n}\n"), 0o000))
	out, cried, code := s.call("up")
	require.Equal(t, cli.ExitNo, code, cried)
	require.Empty(t, out)
	require.Contains(t, cried, file+": permission denied.")
	require.Contains(t, cried, "1 error. Nothing was started.")

	require.NoError(t, os.Chmod(file, 0o644))
	closed := filepath.Join(s.dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0o500))
	out, cried, code = s.call("up", "--state-dir", filepath.Join(closed, "state"))
	require.Equal(t, cli.ExitNo, code, cried)
	require.Empty(t, out)
	require.Contains(t, cried, "Error: cannot start in "+filepath.Join(closed, "state")+": making the state directory: ")
	require.Contains(t, cried, "permission denied")
	require.Contains(t, cried, "Nothing was started.")
	require.Contains(t, cried, "Keep the state elsewhere: --state-dir DIR")

	owner := stage.New(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").Up("--json")
	owner.WaitForEvents(1, "agent.started", "a")
	socket := filepath.Join(owner.State(), "api.sock")
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(socket, 0o000))
	}
	out, cried, code = s.call("status", "--host", socket)
	require.Equal(t, cli.ExitDenied, code, cried)
	require.Empty(t, out)
	require.Contains(t, cried, "Error: no permission to connect to the orchestrator at "+socket+"\n")
	require.Contains(t, cried, "Run the command as the user who started it")
	out, cried, code = s.call("status", "--host", socket, "--json")
	require.Equal(t, cli.ExitDenied, code)
	require.Empty(t, cried)
	require.Contains(t, out, `"code":"denied"`)
	require.NoError(t, os.Chmod(socket, 0o600))
	owner.Stop()
}

// described has the members of the OpenAPI document that the page shows.
type described struct {
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]struct {
		Summary  string
		Tags     []string
		Security []map[string][]string
	}
}

// The page of routes is generated from the program's OpenAPI document.
func TestRoutesPage(t *testing.T) {
	t.Parallel()
	s := stage.NewTeam(t, stage.Scripted("coder"), "coder")
	s.StartAll("coder")
	status, text := s.Fetch(s.Door(), "http://orchestrator/openapi.json", nil)
	require.Equal(t, http.StatusOK, status)
	var d described
	require.NoError(t, json.Unmarshal(text, &d))
	source.RequirePage(t, "../../help/routes.md", routesPage(t, &d), "TestRoutesPage")
}

func routesPage(t *testing.T, d *described) string {
	rows := make(map[string][]string)
	paths := make([]string, 0, len(d.Paths))
	for path := range d.Paths {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	require.Greater(t, len(paths), 50)
	for _, path := range paths {
		methods := make([]string, 0, len(d.Paths[path]))
		for method := range d.Paths[path] {
			methods = append(methods, method)
		}
		slices.Sort(methods)
		for _, method := range methods {
			e := d.Paths[path][method]
			require.Len(t, e.Tags, 1, path)
			var who []string
			for _, means := range e.Security {
				for name := range means {
					who = append(who, map[string]string{"operatorToken": "operators", "agentKey": "agents", "actorToken": "actors", "browserCookie": "people who have signed in"}[name])
				}
			}
			row := fmt.Sprintf("| `%s %s` | %s | %s |\n", strings.ToUpper(method), path, cmp.Or(strings.Join(who, ", "), "all"), strings.ReplaceAll(e.Summary, "|", `\|`))
			rows[e.Tags[0]] = append(rows[e.Tags[0]], row)
		}
	}
	var b strings.Builder
	b.WriteString("# Routes\n\n<!-- Made by TestRoutesPage -update -->\n")
	b.WriteString("Every route of `/openapi.json`, with its credential. The operators' socket needs none: `orchestrator help http`.\n")
	for _, tag := range d.Tags {
		fmt.Fprintf(&b, "\n## %s\n\n| Route | Who | Description |\n|---|---|---|\n%s", strings.TrimSuffix(tag.Description, "."), strings.Join(rows[tag.Name], ""))
		delete(rows, tag.Name)
	}
	require.Empty(t, rows, "routes of a kind that nobody explains")
	return b.String()
}
