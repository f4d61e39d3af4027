package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// runConfined runs a shell script in dir, and returns its exit and its output.
func runConfined(t *testing.T, dir, script string, c *Confinement) (Exit, string) {
	t.Helper()
	h, err := NewHost(Options{Home: t.TempDir(), NoCgroup: true})
	require.NoError(t, err)
	defer h.Close()
	exit, out, err := runScript(h, dir, script, c)
	require.NoError(t, err)
	return exit, out
}

func runScript(h *Host, dir, script string, c *Confinement) (Exit, string, error) {
	m := newMerged()
	_, err := h.Start(Spec{
		Command: []string{"/bin/sh", "-c", script}, Dir: dir, Env: os.Environ(), Run: uuid.NewString(), NoStdin: true, Confine: c,
		Listener: m,
	})
	if err != nil {
		return Exit{}, "", err
	}
	<-m.ended
	return m.exit, m.out.String(), nil
}

// git runs in a folder, and fails the test if it does.
func git(t *testing.T, dir string, words ...string) {
	t.Helper()
	c := exec.Command("git", words...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

const gitIdentity = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n"

// In a linked worktree, an agent makes, changes, moves and commits files. It cannot change the
// hooks and the settings of the repository.
func TestConfinedGitWorktree(t *testing.T) {
	main := filepath.Join(t.TempDir(), "main")
	require.NoError(t, os.Mkdir(main, 0o700))
	git(t, main, "init", "-q")
	require.NoError(t, os.WriteFile(main+"/file", []byte("one\n"), 0o600))
	git(t, main, "add", ".")
	git(t, main, "commit", "-qm", "one")
	git(t, main, "worktree", "add", "-q", "-b", "work", "../work")
	work := filepath.Join(filepath.Dir(main), "work")
	exit, out := runConfined(t, work, gitIdentity+`set -e
mkdir -p inner; echo two >inner/new; sed -i s/one/two/ file; mv inner/new moved
git add .; git commit -qm two; git checkout -q -b more; git status --short; git log --oneline | wc -l
set +e
git config user.name evil
echo evil >../main/.git/hooks/pre-commit
echo evil >>../main/.git/config
mv ../main/.git/hooks ../main/.git/away
`, &Confinement{Write: []string{work, main + "/.git"}, Read: []string{"/"}})
	require.Regexp(t, `(?m)^2$`, out, exit.String())
	require.Equal(t, 1, exit.Code, out)
	require.Equal(t, 4, strings.Count(out, "Permission denied"), out)
	git(t, main, "fsck")
	hooks, err := os.ReadDir(main + "/.git/hooks")
	require.NoError(t, err)
	for _, hook := range hooks {
		require.NotEqual(t, "pre-commit", hook.Name())
	}
}

// Repositories below a folder that an agent may change keep their hooks and settings, with the ones of submodules and
// of worktrees elsewhere. An agent with a task that gets a worktree in one of them works there, also if it is made
// later.
func TestConfinedInnerRepository(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	top := dir + "/proj/deep/repo"
	require.NoError(t, os.MkdirAll(top, 0o700))
	git(t, top, "init", "-q", "-b", "main")
	git(t, top, "commit", "-q", "--allow-empty", "-m", "one")
	git(t, top, "worktree", "add", "-q", dir+"/elsewhere")
	require.NoError(t, os.MkdirAll(top+"/.git/modules", 0o700))
	git(t, top, "clone", "-q", "--bare", ".", ".git/modules/sub")
	evil := "for at in .git/hooks/pre-commit .git/modules/sub/hooks/pre-commit; do echo evil >$at; done\n" +
		"for at in .git/config .git/modules/sub/config .git/worktrees/elsewhere/gitdir .git/worktrees/elsewhere/commondir; do echo evil >>$at; done\n"
	_, out := runConfined(t, top, evil, &Confinement{Write: []string{dir + "/proj"}, Read: []string{"/"}})
	require.Equal(t, 6, strings.Count(out, "Permission denied"), out)

	require.NoError(t, os.Mkdir(top+"/.workspaces", 0o700))
	require.NoError(t, unix.Mkfifo(dir+"/go", 0o600))
	later := gitIdentity + `set -e
read -r go <../../../go
cd .workspaces/task; echo two >file; git add .; git commit -q -m two; git log --oneline | wc -l
set +e
cd ../..
` + evil
	confine := &Confinement{Write: []string{dir + "/proj"}, Read: []string{"/"}, Repositories: []string{top}}
	go func() {
		begun, err := os.OpenFile(dir+"/go", os.O_WRONLY, 0) // waits for the child
		assert.NoError(t, err)
		git(t, top, "worktree", "add", "-q", "-b", "task", ".workspaces/task")
		_, _ = begun.WriteString("go\n")
	}()
	_, out = runConfined(t, top, later, confine)
	require.Regexp(t, `(?m)^2$`, out)
	require.Equal(t, 4, strings.Count(out, "Permission denied"), out)
}

// In a repository itself, an agent reads, and changes the existing files. It can make no commit:
// git would have to make files beside its hooks.
func TestConfinedGitRepository(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	require.NoError(t, os.MkdirAll(dir+"/src", 0o700))
	require.NoError(t, os.WriteFile(dir+"/src/file", []byte("one\n"), 0o600))
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "one")
	_, out := runConfined(t, dir, gitIdentity+`
echo two >src/file; echo new >src/new; git diff | grep -c ^+two
git add . || echo not added
echo x >top || echo not made
mv .git away || echo not moved
echo x >.git/hooks/pre-commit || echo no hook
git config core.pager evil || echo not set
`, &Confinement{Write: []string{dir}, Read: []string{"/"}})
	for _, line := range []string{"1\n", "not added\n", "not made\n", "not moved\n", "no hook\n", "not set\n"} {
		require.Contains(t, out, line)
	}
}

// With no ports, a child has only sockets of this machine.
func TestConfinedWithoutNetwork(t *testing.T) {
	dir := t.TempDir()
	c := &Confinement{Write: []string{dir}, Read: []string{"/"}, Limited: true}
	for _, r := range c.filter() {
		require.NotEmpty(t, compile([]refusal{r}, unix.EPERM))
	}
	_, out := runConfined(t, dir, `python3 -c '
import socket
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET6, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM)):
    try:
        socket.socket(family, kind)
        print("made")
    except PermissionError:
        print("refused")
'`, c)
	require.Equal(t, "refused\nrefused\nmade\n", out)
}

// A child may have the right to read only some files. Links in it lead to files that it may read.
func TestConfinedReading(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(other+"/file", []byte("text\n"), 0o600))
	read := []string{"/usr", "/bin", "/lib", "/lib64", "/etc", "/no/such/folder"}
	_, out := runConfined(t, dir, "cat "+other+"/file; echo x >file; cat file", &Confinement{Write: []string{dir}, Read: read})
	require.Contains(t, out, "Permission denied")
	require.Contains(t, out, "x\n")
	_, out = runConfined(t, dir, "cat "+other+"/file", &Confinement{Write: []string{dir}, Read: append(read, other)})
	require.Equal(t, "text\n", out)
}

// A child with a terminal can use it by its name, and makes no other.
func TestConfinedTerminal(t *testing.T) {
	h, err := NewHost(Options{Home: t.TempDir(), NoCgroup: true})
	require.NoError(t, err)
	defer h.Close()
	spec := sh("echo mine >/dev/tty; cat </dev/ptmx || echo refused")
	spec.Pty, spec.Confine = true, &Confinement{Write: []string{t.TempDir()}, Read: []string{"/"}}
	c := start(t, h, spec)
	c.end(t)
	require.Equal(t, "mine\nrefused\n", strings.ReplaceAll(c.out.String(), "\r", ""), c.err.String())
}

// The files of a folder are read for a child only if it may read all of them itself.
func TestMayReadAll(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, errors.Join(os.Mkdir(dir+"/work", 0o700), os.Mkdir(dir+"/other", 0o700), os.Symlink(dir+"/other", dir+"/link")))
	c := &Confinement{Write: []string{dir + "/work"}, Read: []string{dir + "/link"}, Hide: []string{dir + "/other/absent", "/elsewhere"}}
	require.True(t, c.MayReadAll(dir+"/work"))
	require.True(t, c.MayReadAll(dir+"/work/inner"))
	require.False(t, c.MayReadAll(dir))
	require.False(t, c.MayReadAll(dir+"/other"))
	require.False(t, c.MayReadAll(dir+"/link"))
	require.False(t, c.MayReadAll(dir+"/other/absent/inner"))
	require.True(t, c.MayReadAll(dir+"/other/beside"))
	require.True(t, (*Confinement)(nil).MayReadAll(dir))
}

// A child with a wrong confinement does not start. It reports the reason, and exits with 126.
func TestConfinementFails(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(other, dir+"/link"))
	for why, write := range map[string][]string{
		"allowing " + dir + "/absent: no such file or directory":  {dir + "/absent"},
		dir + "/link is a symbolic link that leads out of " + dir: {dir, dir + "/link"},
	} {
		for _, effort := range []bool{false, true} {
			exit, out := runConfined(t, dir, "echo it runs", &Confinement{Write: write, Read: []string{"/"}, BestEffort: effort})
			require.Equal(t, 126, exit.Code, out)
			require.Contains(t, out, "orchestrator: this agent was not started: it cannot be confined: "+why)
			require.NotContains(t, out, "it runs")
		}
	}
	exit, out := runConfined(t, dir, "echo it runs", &Confinement{Write: []string{dir}, Read: []string{"/etc"}})
	require.Equal(t, 126, exit.Code, out)
	require.Contains(t, out, "its confine block must allow to read it")
}

// withoutLandlock plays a host on a kernel without Landlock: a filter refuses its calls.
func withoutLandlock(dir string) {
	must(os.Unsetenv(modeEnv))
	must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	must(refuseCalls([]refusal{{call: unix.SYS_LANDLOCK_CREATE_RULESET}}, unix.ENOSYS, unix.SECCOMP_FILTER_FLAG_TSYNC))
	h, err := NewHost(Options{Home: dir, NoCgroup: true})
	must(err)
	defer h.Close()
	for _, effort := range []bool{false, true} {
		// stderr has the warning, too. The order of two pipes is not known.
		_, out, err := runScript(h, dir, "echo it runs >&2", &Confinement{Write: []string{dir}, Read: []string{"/"}, BestEffort: effort})
		fmt.Printf("%s%v\n", out, err)
		var refused *StartError
		if errors.As(err, &refused) {
			fmt.Println(refused.Hint)
		}
	}
}

// On a kernel without Landlock a child is not started, unless it is enough to try.
func TestNoLandlock(t *testing.T) {
	as(t, ordinary(), func(t *testing.T, dir string, command func(string) *exec.Cmd) {
		out, err := command("without-landlock " + dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
		const why = "this kernel has no Landlock, which came with Linux 5.13 (function not implemented)\n"
		require.Equal(t, "it cannot be confined: "+why+
			"set best_effort = true in its confine block to start it with partial or no confinement: orchestrator help security\n"+
			"orchestrator: this agent is confined only in part, or not at all: "+why+"it runs\n<nil>\n", string(out))
	})
}
