package team

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/fixtures/privileged"
	"orchestrator/supervisor/home"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A lodge is a stage with agents that run as another user. They have the program, and a folder.
type lodge struct {
	*stage.Orchestrator
	uid, gid int
}

// newLodge makes a stage with a folder that other users can enter. It skips the test unless root
// runs it.
func newLodge(t *testing.T, hcl string, files ...string) *lodge {
	t.Helper()
	privileged.Test(t)
	l := &lodge{Orchestrator: stage.New(t, strings.Replace(stage.QuickStop, "defaults {", "defaults {\n  user = \"nobody\"", 1)+hcl, files...)}
	other, err := user.Lookup(privileged.Other)
	require.NoError(t, err)
	l.uid, l.gid = stage.Numbers(t, []string{other.Uid})[0], stage.Numbers(t, []string{other.Gid})[0]
	open(l.Orchestrator)
	t.Cleanup(func() { _ = os.RemoveAll(home.UserDir(l.State())) }) // after a failure
	require.NoError(t, os.Mkdir(l.Path("work"), 0o700))
	require.NoError(t, os.Chown(l.Path("work"), l.uid, l.gid))
	return l
}

// open lets other users enter the folder of the stage, and gives them the program in bin.
func open(s *stage.Orchestrator) {
	s.T.Helper()
	require.NoError(s.T, os.Chmod(s.Dir, 0o711))
	require.NoError(s.T, os.Mkdir(s.Path("bin"), 0o755))
	program, err := filepath.EvalSymlinks(s.Program)
	require.NoError(s.T, err)
	// A file that this process writes could not be executed while a child that is being started has it open.
	text, err := exec.Command("cp", program, s.Path("bin/orchestrator")).CombinedOutput()
	require.NoError(s.T, err, "%s", text)
	require.NoError(s.T, os.Chmod(s.Path("bin/orchestrator"), 0o755))
}

// withProgram is the attribute env of an agent that calls the program.
const withProgram = `env = { PATH = "${path.config}/bin:/usr/local/bin:/usr/bin:/bin", HOME = "${path.config}/work" }`

// An agent of another user uses stdio and its own socket, and reaches no file of root's: not the state directory, the
// operators' socket, the sockets of other agents, or files closed to the user. A process of the same user that the
// agent has not started cannot act for it.
func TestAgentOfOtherUser(t *testing.T) {
	t.Parallel()
	l := newLodge(t, `
secret "model" {
  file = "model.key"
}
agent "victim" {
  command = ["sh", "-c", "echo $$ $ORC_SOCKET >victim.part; mv victim.part victim; exec cat"]
  dir     = "work"
}
agent "roots" {
  command = ["sh", "-c", "echo $ORC_SOCKET >roots.part; mv roots.part roots; exec cat"]
  dir     = "work"
  user    = ""
}
agent "evil" {
  command = ["sh", "../evil.sh"]
  dir     = "work"
  `+withProgram+`
}
`, "model.key", "secret", "evil.sh", `
while [ ! -s victim ] || [ ! -s roots ]; do sleep 0.05; done
read pid socket <victim
tries() {
  if "$@" >out 2>&1; then echo "$* done"; else echo "$* refused"; fi
}
id -u
id -g
echo "$USER $LOGNAME $HOME"
tries cat ../model.key
tries cat ../orchestrator.hcl
tries cat $ORC_STATE_DIR/jwt.key
tries cat $ORC_STATE_DIR/lock
tries ls $ORC_STATE_DIR
tries cat /proc/$PPID/environ
tries kill -0 $PPID
tries mktemp
tries touch new
tries orchestrator --state-dir "$ORC_STATE_DIR" task add stolen
ORC_SOCKET=$socket ORC_TOKEN= tries orchestrator task add stolen
ORC_SOCKET=$(cat roots) ORC_TOKEN= tries orchestrator task add stolen
tries orchestrator task add mine
(sh -c '(orchestrator task add mine >away 2>&1; echo "forked $?" >>away) &' &)
while ! grep -q ^forked away 2>/dev/null; do sleep 0.05; done
grep ^forked away
echo over
exec cat
`)
	require.NoError(t, os.Chmod(l.Path("evil.sh"), 0o644))
	l.Up("--json")
	stage.WaitFor(t, "the end of the script", func() bool {
		return strings.HasSuffix(strings.Join(l.Lines("evil", control.StreamOut), "\n"), "over")
	})
	said := strings.NewReplacer(l.Dir, "DIR", strconv.Itoa(l.Process.Process.Pid), "UP").Replace(strings.Join(l.Lines("evil", control.StreamOut), "\n"))
	require.Equal(t, fmt.Sprintf(`%d
%d
nobody nobody DIR/work
cat ../model.key refused
cat ../orchestrator.hcl refused
cat DIR/state/jwt.key refused
cat DIR/state/lock refused
ls DIR/state refused
cat /proc/UP/environ refused
kill -0 UP refused
mktemp done
touch new done
orchestrator --state-dir DIR/state task add stolen refused
orchestrator task add stolen refused
orchestrator task add stolen refused
orchestrator task add mine done
forked 0
over`, l.uid, l.gid), said)
	require.Contains(t, l.WaitForEvents(1, events.AgentRefused, "evil")[0].Text, "tried to be agent victim")
	require.NotContains(t, l.Ask("task", "ls", "--json"), "stolen")

	require.Contains(t, l.asOther(l.socketOf("victim"), "task", "add", "stolen"), "does not belong to agent victim")
	require.Contains(t, l.asOther(l.Path("state/api.sock"), "task", "add", "stolen"), "no permission to connect to the orchestrator")
	l.Stop()
	_, err := os.Stat(filepath.Dir(l.socketOf("victim")))
	require.ErrorIs(t, err, os.ErrNotExist, "the folder of the sockets and of $TMPDIR is removed")
}

// socketOf returns the socket that the victim has written down.
func (l *lodge) socketOf(agent string) string {
	text, err := os.ReadFile(l.Path("work/" + agent))
	require.NoError(l.T, err)
	words := strings.Fields(string(text))
	return words[len(words)-1]
}

// asOther runs a command that must fail as the other user, at a socket, and returns its stderr.
func (l *lodge) asOther(socket string, words ...string) string {
	l.T.Helper()
	cmd := exec.Command(l.Path("bin/orchestrator"), words...)
	cmd.Dir, cmd.Env = l.Path("work"), []string{"PATH=/usr/bin:/bin", "HOME=" + l.Path("work"), "ORC_SOCKET=" + socket, "GORACE=" + stage.RaceOptions()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(l.uid), Gid: uint32(l.gid)}}
	text, err := cmd.CombinedOutput()
	require.Error(l.T, err, "%s", text)
	return string(text)
}

// The operators' socket refuses another user even if the folder and the file let that user connect.
func TestOperatorsSocketRefusesOtherUser(t *testing.T) {
	t.Parallel()
	l := newLodge(t, `
agent "a" {
  command = ["cat"]
  dir     = "work"
}
`)
	l.Up("--json")
	l.WaitForEvents(1, events.AgentStarted, "a")
	require.NoError(t, os.Chmod(l.Path("state"), 0o711))
	require.NoError(t, os.Chmod(l.Path("state/api.sock"), 0o666))
	require.Contains(t, l.asOther(l.Path("state/api.sock"), "task", "add", "stolen"), "this socket is for another user")
	conn, err := net.Dial("unix", l.Path("state/api.sock")) // root can connect to it
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	l.Stop()
}

// The orchestrator reads a file that an agent names as an artifact with the rights of the agent's user.
func TestArtifactOfOtherUser(t *testing.T) {
	t.Parallel()
	l := newLodge(t, `
agent "a" {
  command = ["sh", "-c", <<-EOT
    echo "the open text" >open
    while read -r line; do
      case "$line" in
      *notify:task-assigned*)
        task=$(expr "$line" : '.*"taskId":"\([^"]*\)"')
        for path in closed /etc/shadow open; do
          echo '{"type":"request:complete-task","id":"'$path'","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"'"$task"'","result":"done","artifacts":[{"name":"key","path":"'$path'"}]}}'
        done ;;
      *response*) echo "$line" >&2 ;;
      esac
    done
    EOT
  ]
  dir = "work"
  capabilities { names = ["go"] }
}
agent "wide" {
  command = ["sh", "-c", <<-EOT
    while read -r line; do
      case "$line" in
      *notify:task-assigned*)
        task=$(expr "$line" : '.*"taskId":"\([^"]*\)"')
        for path in etc/shadow proc/1/environ proc/self/maps; do
          echo '{"type":"request:complete-task","id":"'$path'","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"'"$task"'","result":"done","artifacts":[{"name":"key","path":"'$path'"}]}}'
        done ;;
      *response*) echo "$line" >&2 ;;
      esac
    done
    EOT
  ]
  dir = "/"
  capabilities { names = ["wide"] }
}
`)
	l.Write("work/closed", "the closed text")
	l.Up("--json")
	l.WaitForEvents(1, events.AgentStarted, "a")
	l.WaitForEvents(1, events.AgentStarted, "wide")
	l.Ask("task", "add", "Pages", "--capability", "go")
	l.Ask("task", "add", "Pages", "--capability", "wide")
	stage.WaitFor(t, "responses", func() bool {
		return len(l.Lines("a", control.StreamErr)) > 2 && len(l.Lines("wide", control.StreamErr)) > 2
	})
	said := l.Lines("a", control.StreamErr)
	require.Contains(t, said[0], `\"closed\": permission denied`)
	require.Contains(t, said[1], "names a file that cannot be used")
	require.Contains(t, said[2], `"response:success"`)
	for _, line := range l.Lines("wide", control.StreamErr) {
		require.Regexp(t, "permission denied|is a file of the kernel", line)
	}
	tasks := l.Ask("task", "ls", "--json")
	require.NotContains(t, tasks, "the closed text")
	l.Stop()
}

// Agents of another user are started again after a crash, go over at an upgrade, and end with all that
// they have started.
func TestLifeOfOtherUser(t *testing.T) {
	t.Parallel()
	l := newLodge(t, `
agent "crashes" {
  command = ["sh", "-c", "echo $TMPDIR; [ -e crashed ] && exec cat; touch crashed; exit 3"]
  dir     = "work"
  restart { delay = "10ms" }
}
agent "stays" {
  command = ["sh", "../stays.sh"]
  dir     = "work"
  `+withProgram+`
  confine {
    read = ["/"]
    best_effort = true
  }
}
`, "stays.sh", `
(setsid sh -c 'sleep 1000 & echo $! >>pids; trap : TERM; echo $$ >>pids; sleep 1000; sleep 1000' &)
sleep 1000 &
echo $! >>pids
echo "is $$"
while read -r line; do
  orchestrator task add mine >/dev/null && touch "$TMPDIR/x" && echo "$(id -u) still $$"
done
`)
	require.NoError(t, os.Chmod(l.Path("stays.sh"), 0o644))
	l.Up("--json")
	require.Len(t, l.WaitForEvents(2, events.AgentStarted, "crashes"), 2)
	folders := l.WaitForLines(2, "crashes")
	require.NotEqual(t, folders[0], folders[1])
	_, err := os.Stat(folders[0])
	require.ErrorIs(t, err, os.ErrNotExist, "it is removed with its run")
	pids := l.WaitForPIDs(3, "work/pids")
	is, _ := strings.CutPrefix(l.WaitForLines(1, "stays")[0], "is ")

	l.Ask("upgrade", "--quiet")
	l.Ask("bus", "send", "--to", "broadcast", "hello")
	require.Equal(t, fmt.Sprintf("%d still %s", l.uid, is), l.WaitForLines(2, "stays")[1])
	l.Stop()
	require.NoDirExists(t, home.UserDir(l.State()))
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
}

// After the orchestrator was killed, its watchdog ends the agents of another user, and the next one
// removes their files in /tmp.
func TestKilledWithOtherUser(t *testing.T) {
	t.Parallel()
	l := newLodge(t, `
agent "victim" {
  command = ["sh", "-c", "touch $TMPDIR/x; sleep 1000 & echo $! >>pids; echo $$ >>pids; echo $ORC_SOCKET >victim; exec sleep 1000"]
  dir     = "work"
}
`)
	l.Up("--json")
	pids := l.WaitForPIDs(2, "work/pids")
	stage.WaitFor(t, "the socket", func() bool {
		text, err := os.ReadFile(l.Path("work/victim"))
		return err == nil && strings.HasSuffix(string(text), "\n") // the shell makes the file before it writes
	})
	folder := filepath.Dir(l.socketOf("victim"))
	l.Signal(syscall.SIGKILL)
	<-l.Ended
	stage.WaitFor(t, "the end of the agent", func() bool {
		return syscall.Kill(pids[0], 0) == syscall.ESRCH && syscall.Kill(pids[1], 0) == syscall.ESRCH
	})
	require.DirExists(t, folder)
	l.Write("orchestrator.hcl", stage.QuickStop)
	l.Up("--json", "--exit-when-idle")
	l.Await()
	require.NoDirExists(t, folder)
}

// The file is refused if an agent's user can change files that root uses, or if that user does not
// exist. A folder that the user cannot enter fails the start of the agent.
func TestOtherUserIsRefused(t *testing.T) {
	t.Parallel()
	const agent = "agent \"a\" {\n  command = [\"cat\"]\n  dir     = \"work\"\n"
	l := newLodge(t, agent+"}\n", "more.env", "A=b\n")
	for want, text := range map[string]string{
		`orchestrator\.hcl:4:\d+.*Unknown user|User "no-such-user" does not exist`: agent + "  user = \"no-such-user\"\n}\n",
		`who may change\s+or replace\s+\S+/work/more\.env`:                         agent + "  env_file = [\"work/more.env\"]\n}\n",
		`who may change\s+or replace\s+\S+/work/logs`:                              agent + "  output {\n    dir = \"${path.config}/work/logs\"\n  }\n}\n",
		`who may change\s+or replace\s+\S+/work/key`:                               agent + "}\nsecret \"s\" {\n  file = \"work/key\"\n}\n",
		`who may\s+read\s+\S+/open\.key`:                                           agent + "}\nsecret \"s\" {\n  file = \"open.key\"\n}\n",
	} {
		l.Write("work/more.env", "A=b\n")
		l.Write("open.key", "k")
		require.NoError(t, os.Chmod(l.Path("open.key"), 0o644))
		l.Write("orchestrator.hcl", "defaults {\n  user = \"nobody\"\n}\n"+text)
		_, stderr, code := l.Call("up")
		require.Equal(t, cli.ExitNo, code, stderr)
		require.Regexp(t, want, stderr)
		require.Contains(t, stderr, "Nothing was started.")
	}
	l.Write("orchestrator.hcl", "defaults {\n  user = \"nobody\"\n}\n"+agent+"}\n")
	require.NoError(t, os.Chown(l.Dir, l.uid, l.gid))
	_, stderr, code := l.Call("up", "-c", "orchestrator.hcl")
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Regexp(t, `who may change\s+or replace\s+\S+/orchestrator\.hcl`, stderr)
	require.NoError(t, os.Chown(l.Dir, 0, 0))

	require.NoError(t, os.Chown(l.Path("work"), 0, 0))
	l.Write("orchestrator.hcl", "defaults {\n  user = \"nobody\"\n}\n"+agent+"}\n"+
		"agent \"acp\" {\n  command = [\"cat\"]\n  dir = \"/\"\n  protocol = \"acp\"\n}\n")
	l.Up("--json")
	require.Regexp(t, `user "nobody" cannot execute \S+, which gives the agent its tools; install`, l.WaitForEvents(1, events.AgentGaveUp, "acp")[0].Text)
	failed := l.WaitForEvents(1, events.AgentGaveUp, "a")[0]
	require.Contains(t, failed.Text, "cannot enter its folder "+strconv.Quote(l.Path("work"))+`: permission denied; the agent runs as user "nobody"`)
	l.Stop()
}

// Only root can start an agent as another user. A team of any user may name that user.
func TestOtherUserWithoutRoot(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "")
	other, err := user.Current()
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		other, err = user.Lookup(privileged.Other)
		require.NoError(t, err)
	}
	id := stage.Numbers(t, []string{other.Uid, other.Gid})
	open(s)
	require.NoError(t, os.Mkdir(s.Path("home"), 0o700))
	run := func(name string, words ...string) string {
		file := s.Path("home/orchestrator.hcl")
		require.NoError(t, os.WriteFile(file, []byte("agent \"a\" {\n  command = [\"sh\", \"-c\", \"id -un; echo $HOME\"]\n  user    = \""+name+"\"\n}\n"), 0o600))
		require.NoError(t, os.Chown(file, id[0], id[1]))
		require.NoError(t, os.Chown(s.Path("home"), id[0], id[1]))
		cmd := exec.Command(s.Path("bin/orchestrator"), words...)
		cmd.Dir, cmd.Env = s.Path("home"), []string{"PATH=/usr/bin:/bin", "HOME=" + s.Path("home"), "GORACE=" + stage.RaceOptions()}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id[0]), Gid: uint32(id[1])}}
		}
		text, err := cmd.CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			require.NoError(t, err)
		}
		return string(text)
	}
	for _, words := range [][]string{{"up"}, {"check", "--security"}, {"validate"}, {"doctor"}} {
		said := run("root", words...)
		require.Contains(t, said, "orchestrator.hcl:3:", "%v", words)
		require.Regexp(t, fmt.Sprintf(`Only root can start an agent as user "root", and you are user %d`, id[0]), strings.Join(strings.Fields(said), " "))
	}
	require.Contains(t, run("root", "validate", "--no-env"), "is valid")
	said := run(other.Username, "up", "--exit-when-idle")
	require.Contains(t, said, other.Username)
	require.Contains(t, said, other.HomeDir)
}
