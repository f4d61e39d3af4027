package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"orchestrator/fixtures/privileged"
)

// otherUser returns a user to change to, and skips the test if that is not possible.
func otherUser(t *testing.T) *User {
	t.Helper()
	privileged.Test(t)
	u, err := FindUser(privileged.Other)
	require.NoError(t, err)
	require.NotNil(t, u)
	return u
}

// lodging returns a host for children of other users, with a closed home, and a folder of the user.
func lodging(t *testing.T, u *User, o Options) (h *Host, dir string) {
	t.Helper()
	dir = privileged.Opened(t)
	shared, own := filepath.Join(dir, "shared"), filepath.Join(dir, "own")
	require.NoError(t, os.Mkdir(shared, 0o711))
	require.NoError(t, os.Mkdir(own, 0o700))
	require.NoError(t, os.Chown(own, u.UID, u.GID))
	o.Home, o.UserDir, o.Hidden = t.TempDir(), func() (string, error) { return shared, nil }, []string{shared}
	h, err := NewHost(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Empty(t, h.Close())
		left, err := os.ReadDir(shared)
		require.NoError(t, err)
		require.Empty(t, left, "the folders for temporary files are removed")
	})
	return h, own
}

// runAs runs a shell script as another user in dir, and returns its stdout and stderr in one.
func runAs(t *testing.T, h *Host, dir, script string, change func(*Spec)) (Exit, string) {
	t.Helper()
	m := newMerged()
	spec := Spec{
		Command: []string{"/bin/sh", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=/root"}, Run: uuid.NewString(),
		Listener: m,
	}
	change(&spec)
	_, err := h.Start(spec)
	require.NoError(t, err)
	receive(t, m.ended)
	return m.exit, strings.ReplaceAll(m.out.String(), "\r\n", "\n")
}

// A child of another user has the ids, the groups and the temporary folder of that user, its streams
// and terminal, and no capability, however it is started.
func TestChildOfOtherUser(t *testing.T) {
	u := otherUser(t)
	u.Groups = []int{u.GID, 4, 24}
	h, dir := lodging(t, u, Options{})
	const script = `
id -u; id -g; id -G
grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr -d '[:space:]'; echo
cd "$TMPDIR" && stat -c '%a %u' . && echo x >file && rm file
cd / && pwd
[ "$(cut -d' ' -f6 /proc/$$/stat)" = $$ ] && echo own session
echo again >/dev/stdout
echo wrong >/dev/stderr
`
	none := "0000000000000000"
	caps := fmt.Sprintf("CapInh:%sCapPrm:%[1]sCapEff:%[1]sCapBnd:%[1]sCapAmb:%[1]sNoNewPrivs:1", none)
	want := fmt.Sprintf("%d\n%d\n%s\n%s\n700 %[1]d\n/\nown session\nagain\n", u.UID, u.GID, strings.Trim(fmt.Sprint(u.Groups), "[]"), caps)
	for name, change := range map[string]func(*Spec){
		"plain":    func(*Spec) {},
		"terminal": func(s *Spec) { s.Pty = true },
		"no stdin": func(s *Spec) { s.NoStdin = true },
		"wrapped":  func(s *Spec) { s.Wrap = []string{"env", "A=b"} },
		"limited":  func(s *Spec) { s.Limits = Limits{OpenFiles: 100} },
		"confined": func(s *Spec) { s.Confine = &Confinement{Read: []string{"/"}, Write: []string{dir}, BestEffort: true} },
	} {
		t.Run(name, func(t *testing.T) {
			exit, out := runAs(t, h, dir, script, func(s *Spec) {
				s.User = u
				change(s)
			})
			require.Zero(t, exit.Code, out)
			require.Contains(t, out, "wrong\n")
			require.Equal(t, want, strings.Replace(out, "wrong\n", "", 1))
		})
	}
}

// A confined child of another user has the rights that both leave it.
func TestConfinedChildOfOtherUser(t *testing.T) {
	u := otherUser(t)
	h, dir := lodging(t, u, Options{})
	top := filepath.Dir(dir)
	c := &Confinement{Read: []string{"/"}, Write: []string{dir, filepath.Join(top, "roots")}, Hide: []string{filepath.Join(dir, "hidden")}}
	require.NoError(t, os.Mkdir(filepath.Join(top, "roots"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(top, "beside"), 0o777))
	require.NoError(t, os.Chmod(filepath.Join(top, "beside"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hidden"), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(top, "closed"), []byte("x"), 0o600))
	exit, out := runAs(t, h, dir, `
tries() { if "$@" 2>/dev/null; then echo "$2 done"; else echo "$2 refused"; fi; }
tries cat hidden
tries cat ../closed
tries touch ../roots/new
tries touch ../beside/new
tries cat file
mktemp >/dev/null && echo temporary file done
`, func(s *Spec) { s.User, s.Confine = u, c })
	require.Zero(t, exit.Code, out)
	if c.Complete() {
		require.Regexp(t, `^hidden refused
../closed refused
../roots/new refused
../beside/new refused
xfile done
temporary file done\n$`, out)
	}
}

// Processes that a child of another user has started end with it, in another session, too, and also
// if the host has no cgroup for it.
func TestTreeOfOtherUser(t *testing.T) {
	u := otherUser(t)
	for name, options := range hosts {
		t.Run(name, func(t *testing.T) {
			h, dir := lodging(t, u, options)
			told := newTold()
			c, err := h.Start(Spec{
				Command: []string{"/bin/sh", "-c", "(setsid sh -c 'trap : TERM; sleep 1000 & sleep 1000' &); sleep 1000 & echo ready; wait"}, Dir: dir,
				Env: []string{"PATH=/usr/bin:/bin"}, Run: uuid.NewString(), User: u, Listener: told,
			})
			require.NoError(t, err)
			told.firstWords(t)
			require.Equal(t, "ready\n", told.out.String()+told.err.String())
			c.Signal(syscall.SIGTERM)
			c.Kill()
			ending := receive(t, told.ended)
			require.Empty(t, ending.Survivors)
			require.False(t, ending.Unverified)
			for _, p := range ending.LeftOver {
				require.False(t, alive(p.PID))
			}
		})
	}
}

// The errors of a child that cannot start name the folder or the program, and the user.
func TestOtherUserCannotStart(t *testing.T) {
	u := otherUser(t)
	h, dir := lodging(t, u, Options{})
	closed := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "roots"), []byte("#!/bin/sh\n"), 0o744))
	for want, spec := range map[string]Spec{
		fmt.Sprintf(`cannot (use|enter) its folder %q: .*permission denied; the agent runs as user "nobody"`, closed):         {Command: []string{"true"}, Dir: closed},
		fmt.Sprintf(`%q may not be executed: permission denied; the agent runs as user "nobody"`, filepath.Dir(dir)+"/roots"): {Command: []string{"../roots"}, Dir: dir},
		fmt.Sprintf(`cannot look at %q: .*permission denied; the agent runs as user "nobody"`, closed+"/x"):                   {Command: []string{closed + "/x"}, Dir: dir},
	} {
		spec.User, spec.Env, spec.Run = u, []string{"PATH=/usr/bin:/bin"}, uuid.NewString()
		_, err := h.Start(spec)
		failed, ok := errors.AsType[*StartError](err)
		require.True(t, ok, "%v", err)
		require.Regexp(t, want, failed.Reason)
		require.ErrorIs(t, err, fs.ErrPermission)
	}
}

// Do has the rights of the user on its own thread, and takes none of another thread.
func TestDoAsOtherUser(t *testing.T) {
	u := otherUser(t)
	dir := privileged.Opened(t)
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.WriteFile(closed, []byte("x"), 0o600))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			require.ErrorIs(t, u.Do(func() error { return read(closed) }), fs.ErrPermission)
			require.ErrorIs(t, u.Do(func() error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) }), fs.ErrPermission)
			require.NoError(t, read(closed))
		})
	}
	group.Wait()
	require.Equal(t, fs.ErrClosed, u.Do(func() error { return fs.ErrClosed }))
	require.NoError(t, (*User)(nil).Do(func() error { return read(closed) }))
	waitForThat(t, func() bool { // the threads end after the calls
		threads, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return !slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
			text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/status")
			return err == nil && !strings.Contains(string(text), "Uid:\t0\t0\t0\t0\n")
		})
	})
}

func TestMayReplace(t *testing.T) {
	u := otherUser(t)
	dir := privileged.Opened(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, mode os.FileMode, uid int) {
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.Mkdir(at(name), 0o700))
		} else {
			require.NoError(t, os.WriteFile(at(name), nil, 0o600))
		}
		require.NoError(t, os.Chown(at(name), uid, 0))
		require.NoError(t, unix.Chmod(at(name), uint32(mode)))
	}
	put("roots/", 0o755, 0)
	put("roots/file", 0o644, 0)
	put("roots/open", 0o666, 0)
	put("roots/theirs", 0o400, u.UID)
	put("sticky/", 0o1777, 0)
	put("sticky/file", 0o600, 0)
	put("open/", 0o777, 0)
	put("open/inner/", 0o755, 0)
	put("open/inner/file", 0o600, 0)
	put("theirs/", 0o700, u.UID)
	put("theirs/file", 0o600, 0)
	put("closed/", 0o700, 0)
	put("closed/file", 0o666, 0)
	require.NoError(t, os.Symlink(at("roots/file"), at("theirs/link")))
	require.NoError(t, os.Symlink(at("theirs/file"), at("roots/link")))
	require.NoError(t, os.Symlink("../theirs/way", at("roots/detour"))) // over a link of the user
	require.NoError(t, os.Symlink(at("roots"), at("theirs/way")))
	require.NoError(t, os.Symlink(at("theirs/file"), at("closed/link")))
	require.NoError(t, os.Symlink("circle", at("closed/circle")))
	for name, want := range map[string]bool{
		"roots/detour/file": true, "closed/link": true, "closed/circle": true,
		"roots": false, "roots/file": false, "roots/absent": false, "roots/open": true, "roots/theirs": true, "roots/link": true,
		"sticky/file": false, "sticky/absent": true, "sticky": true,
		"open/inner/file": true, "theirs": true, "theirs/file": true, "theirs/link": true,
		"closed/file": false, "closed/absent": false,
	} {
		require.Equal(t, want, u.MayReplace(at(name)), name)
	}
	require.True(t, u.MayRead(at("roots/file")))
	require.False(t, u.MayRead(at("sticky/file")))
	require.False(t, u.MayRead(at("closed/file")))
}

func TestFindUser(t *testing.T) {
	u, err := FindUser("")
	require.NoError(t, err)
	require.Nil(t, u)
	_, err = FindUser("no-such-user")
	require.ErrorContains(t, err, `user "no-such-user" does not exist`)
	if os.Geteuid() != 0 {
		_, err = FindUser("root")
		require.ErrorContains(t, err, "only root on Linux can start an agent as another user")
		return
	}
	u, err = FindUser("root")
	require.NoError(t, err)
	require.Nil(t, u)
}
