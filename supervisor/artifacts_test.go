package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/artifacts"
	"orchestrator/supervisor/dispatch"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// large returns content that is too large for a response.
func large(of string) string { return strings.Repeat(of, 3*artifacts.DetachAbove/len(of)) }

// making returns the response of an agent that has made an artifact.
func making(id, content string) string {
	return response(id, "completed", `,"artifacts":[{"name":"draft.md","type":"text/markdown","content":"`+content+`"}]`)
}

// keeping returns a play with the task a that w has started, the folder of its artifacts, and the
// output of the log.
func keeping(t *testing.T) (p *play, dir string, said *strings.Builder, boss, w *talker) {
	agents, parts, boss, w := handsOn(t, 1)
	dir, said = t.TempDir(), new(strings.Builder)
	o := Options{Record: newLedger(), StateDir: dir, Protocol: freely, Log: hclog.New(&hclog.LoggerOptions{Output: said})}
	p = perform(t, o, agents, parts)
	synctest.Wait()
	boss.says(handOn("a", "parse"))
	synctest.Wait()
	return p, dir, said, boss, w
}

// keptFiles returns the files of artifacts.
func keptFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "artifacts", "*", "*"))
	require.NoError(t, err)
	return files
}

// TestArtifactsAreKept checks that content is stored once, in a file only for its user, and
// unchanged.
//
// Rows: D-35.
func TestArtifactsAreKept(t *testing.T) {
	dir := t.TempDir()
	a := artifacts.New(dir, nil)
	refs := make(map[string]bool)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 20 {
		for n := range 5 {
			all.Go(func() {
				ref, err := a.Keep(fmt.Sprint("content ", n))
				mu.Lock()
				defer mu.Unlock()
				refs[ref] = err == nil && delegation.IsArtifactRef(ref)
			})
		}
	}
	all.Wait()
	require.Len(t, refs, 5)
	for ref, fine := range refs {
		require.True(t, fine)
		content, err := a.Load(ref)
		require.NoError(t, err)
		require.Equal(t, ref, delegation.ArtifactRef(artifacts.HashOf([]byte(content))))
	}
	files := keptFiles(t, dir)
	require.Len(t, files, 5, "nothing is left over")
	for _, name := range files {
		require.Equal(t, filepath.Base(name)[:2], filepath.Base(filepath.Dir(name)))
		for path, mode := range map[string]os.FileMode{name: 0o600, filepath.Dir(name): 0o700, filepath.Dir(filepath.Dir(name)): 0o700} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), path)
		}
	}
}

// TestArtifactsThatAreChanged checks that an existing file is written again only if its content
// is wrong. Changed content is never returned.
//
// Rows: D-35.
func TestArtifactsThatAreChanged(t *testing.T) {
	dir := t.TempDir()
	a := artifacts.New(dir, nil)
	ref, err := a.Keep("content")
	require.NoError(t, err)
	file := keptFiles(t, dir)[0]
	long := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(file, long, long))
	_, err = a.Keep("content")
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(long), "it is not written again")

	require.NoError(t, os.WriteFile(file, []byte("CONTENT"), 0o600))
	_, err = a.Load(ref)
	require.ErrorContains(t, err, "was changed")
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(file, []byte("half"), 0o600) },
		func() error { return os.WriteFile(file, []byte("CONTENT"), 0o600) },
		func() error { return os.Symlink("/dev/zero", file) },
		func() error { return syscall.Mkfifo(file, 0o600) },
	} {
		require.NoError(t, os.Remove(file))
		require.NoError(t, spoil())
		_, err = a.Load(ref)
		require.Error(t, err)
		_, err = a.Keep("content")
		require.NoError(t, err, "made again, it is there again")
		content, err := a.Load(ref)
		require.NoError(t, err)
		require.Equal(t, "content", content)
	}

	require.NoError(t, os.Remove(file))
	_, err = a.Load(ref)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, wrong := range []string{"", "sha256:", "../../etc/passwd", "sha256:" + strings.Repeat("../", 21) + "a", strings.ToUpper(ref)} {
		_, err = a.Load(wrong)
		require.ErrorContains(t, err, "does not refer to stored content")
	}
}

// TestFoldersOfArtifactsSurvive checks that a folder is trusted only after it and its parent
// were synced by this process. An existing folder may have been made just before a kill, or by a
// process that could not sync it.
//
// Rows: D-35, B-74.
func TestFoldersOfArtifactsSurvive(t *testing.T) {
	dir := t.TempDir()
	a := artifacts.New(dir, nil)
	top, below := a.Dir, filepath.Join(a.Dir, artifacts.HashOf([]byte("content"))[:2])
	var synced []string
	ill := map[string]error{dir: errors.New("no such sector")}
	a.Sync = func(folder string) error {
		synced = append(synced, folder)
		return ill[folder]
	}
	_, err := a.Keep("content")
	require.ErrorIs(t, err, ill[dir])
	require.NoDirExists(t, top, "who comes next must not take it for one that survives")
	clear(ill)
	ill[top] = errors.New("no space left on device")
	for range 2 {
		_, err = a.Keep("content")
		require.ErrorIs(t, err, ill[top])
		require.NoDirExists(t, below)
	}
	clear(ill)
	synced = nil
	for range 2 {
		_, err = a.Keep("content")
		require.NoError(t, err)
	}
	require.Equal(t, []string{top, dir, below, top, below, below}, synced)

	again := artifacts.New(dir, nil)
	again.Sync, synced = a.Sync, nil
	_, err = again.Keep("content")
	require.NoError(t, err)
	require.Equal(t, []string{top, dir, below, top, below}, synced, "another life does not rely on it")

	require.NoError(t, os.RemoveAll(top))
	_, err = a.Keep("content")
	require.NoError(t, err)
	require.Len(t, keptFiles(t, dir), 1)
}

// TestUnfinishedArtifactsAreRemoved checks that exactly the unfinished files of a killed process
// are removed at the next start.
//
// Rows: D-35, B-74.
func TestUnfinishedArtifactsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a := artifacts.New(dir, nil)
		_, err := a.Keep("content")
		require.NoError(t, err)
		old, fresh, other := filepath.Join(a.Dir, "new-1"), filepath.Join(a.Dir, "new-2"), filepath.Join(a.Dir, "mine")
		for path, at := range map[string]time.Time{old: time.Now().Add(-time.Second), fresh: time.Now().Add(time.Second), other: time.Now().Add(-time.Second)} {
			require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
			require.NoError(t, os.Chtimes(path, at, at))
		}
		p := perform(t, Options{StateDir: dir}, nil, nil)
		require.NoFileExists(t, old)
		require.FileExists(t, fresh, "somebody may be writing it")
		require.FileExists(t, other)
		require.Len(t, keptFiles(t, dir), 1)
		require.NoError(t, p.stop())
	})
}

// TestLargeArtifacts checks that large content is not in the log. Every recipient gets it, digit
// for digit: the delegating agent, and any reader.
//
// Rows: D-35.
func TestLargeArtifacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, boss, w := handsOn(t, 1)
		record, dir := newLedger(), t.TempDir()
		p := perform(t, Options{Record: record, StateDir: dir}, agents, parts)
		synctest.Wait()
		boss.says(handOn("a", "parse"), handOn("b", "parse"))
		synctest.Wait()
		line := making("a", large(`\u0041 \"line\"\n`))
		w.says(line)
		require.Equal(t, []string{line}, boss.lines())
		small := making("b", "a line")
		w.says(small)
		require.Equal(t, []string{line, small}, boss.lines())
		require.Len(t, keptFiles(t, dir), 1)
		for _, r := range record.facts(t) {
			require.Less(t, len(r.Payload), artifacts.DetachAbove, r.Kind)
		}
		answer, err := p.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "get-task-response", []byte(`{"taskId":"a"}`))
		require.NoError(t, err)
		require.False(t, delegation.HasArtifactRefs(answer.(*wire.TaskAnswer).Document))
		require.Contains(t, string(answer.(*wire.TaskAnswer).Document), large(`\u0041 \"line\"\n`))
		boss.says(request("1", "get-task-response", `{"taskId":"a"}`), request("2", "get-task-response", `{"taskId":"b"}`))
		told := boss.lines()[2:]
		require.Len(t, told, 2)
		require.Contains(t, strings.Join(told, ""), large(`\u0041 \"line\"\n`))
		boss.says(handOn("a", "parse"))
		requireFilledIn(t, line, boss.lines()[4])
		require.Zero(t, p.owed(boss)+p.owed(w))
		require.NoError(t, p.stop())
	})
}

// TestArtifactsOnAFullDisk checks that a response is refused if its artifacts cannot be stored. The
// agent sends it again when the disk has room. Errors are logged at most once a second.
//
// Rows: D-35, B-74.
func TestArtifactsOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir, said, boss, w := keeping(t)
		inTheWay := filepath.Join(dir, "artifacts")
		require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
		line := making("a", large("x"))
		w.says(line, line, line)
		require.Len(t, w.lines(), 4)
		for _, told := range w.told()[1:] {
			require.Equal(t, "response:error", told.Type)
			require.Equal(t, "a", told.CorrelationID)
			require.Equal(t, "INTERNAL_ERROR", told.Error.Code)
		}
		require.Empty(t, boss.lines())
		require.Empty(t, p.life.agents["w"].lastWords(), "it is no log")
		require.Equal(t, "queued", p.task("a").Status)
		require.Equal(t, 1, strings.Count(said.String(), "an artifact cannot be stored"))
		<-time.After(time.Second)
		w.says(line)
		synctest.Wait()
		require.Equal(t, 2, strings.Count(said.String(), "an artifact cannot be stored"))
		require.NoError(t, os.Remove(inTheWay))
		w.says(line)
		require.Equal(t, []string{line}, boss.lines())
		require.NoError(t, p.stop())
	})
}

// TestChangedArtifactsAreNotPassedOn checks that a changed file is not passed on: the recipient
// gets the reference to it.
//
// Rows: D-35.
func TestChangedArtifactsAreNotPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir, said, boss, w := keeping(t)
		w.says(making("a", large("x")))
		require.Len(t, boss.lines(), 1)
		require.NoError(t, os.WriteFile(keptFiles(t, dir)[0], []byte(large("y")), 0o600))
		boss.says(handOn("a", "parse"), request("1", "get-task-response", `{"taskId":"a"}`))
		require.Len(t, boss.lines(), 3)
		for _, line := range boss.lines()[1:] {
			require.NotContains(t, line, "yyy")
			require.Contains(t, line, `"ref":"sha256:`)
		}
		require.Equal(t, 1, strings.Count(said.String(), "an artifact cannot be read"))
		require.Contains(t, said.String(), "was changed")
		require.NoError(t, p.stop())
	})
}

// completing returns a request that completes a task with an artifact.
func completing(id, task, content string) string {
	return request(id, "complete-task", `{"taskId":"`+task+`","artifacts":[{"name":"draft.md","content":"`+content+`"}]}`)
}

// TestArtifactsOfRefusedRequests checks that the file of a refused completion is removed, unless it
// was there before, or another completion that was granted has the same content.
func TestArtifactsOfRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir, _, boss, w := keeping(t)
		w.says(completing("1", "none", large("x")))
		require.Equal(t, "response:error", w.told()[len(w.told())-1].Type)
		require.Empty(t, keptFiles(t, dir))
		w.says(making("a", large("x")), completing("2", "none", large("x")))
		require.Len(t, boss.lines(), 1)
		require.Len(t, keptFiles(t, dir), 1, "a record refers to it")
		require.NoError(t, p.stop())
	})
}

// TestClaimsOnArtifacts checks the order of claims: content stays as long as a request that may be
// granted refers to it.
func TestClaimsOnArtifacts(t *testing.T) {
	dir := t.TempDir()
	a := artifacts.New(dir, nil)
	hold := func() []string {
		ref, err := a.Keep("content")
		require.NoError(t, err)
		return []string{ref}
	}
	first, second := hold(), hold()
	a.Release(first, false)
	require.Len(t, keptFiles(t, dir), 1, "the second may be granted")
	a.Release(second, false)
	require.Empty(t, keptFiles(t, dir))
	first, second = hold(), hold()
	a.Release(first, true)
	a.Release(second, false)
	require.Len(t, keptFiles(t, dir), 1, "the first was granted")
	a.Release(hold(), false)
	require.Len(t, keptFiles(t, dir), 1, "it was there before")
	a.Release([]string{"https://example.com", delegation.ArtifactRef(artifacts.HashOf(nil))}, false)
	require.Empty(t, a.Claims)
}

// TestSweepOfArtifacts checks that exactly the files that no record refers to are removed: not
// files that are older than the log, files of undecided requests, and files with other names.
func TestSweepOfArtifacts(t *testing.T) {
	dir, began := t.TempDir(), time.Now().Add(-time.Hour)
	a, record := artifacts.New(dir, nil), newLedger()
	refs := make(map[string]string)
	for _, name := range []string{"recorded", "orphan", "old", "claimed", "late"} {
		ref, err := a.Keep(name)
		require.NoError(t, err)
		refs[name] = ref
		if name != "claimed" {
			a.Release([]string{ref}, true)
		}
	}
	file := func(name string) string {
		hash, _ := delegation.ArtifactHash(refs[name])
		return a.Path(hash)
	}
	require.NoError(t, os.Chtimes(file("old"), began.Add(-time.Second), began.Add(-time.Second)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "artifacts", "mine"), nil, 0o600))
	require.NoError(t, record.Append(t.Context(), 0, []wire.Record{{Kind: "task.done", At: time.Now(), Payload: []byte(`{"artifacts":[{"ref":"` + refs["recorded"] + `"}]}`)}}))
	removed, err := a.Sweep(t.Context(), record, began, func() {
		ref, err := a.Keep("late") // a request refers to it again
		require.NoError(t, err)
		a.Release([]string{ref}, true)
	})
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.NoFileExists(t, file("orphan"))
	for _, name := range []string{"recorded", "old", "claimed", "late"} {
		require.FileExists(t, file(name), name)
	}
	require.NoError(t, record.Close())
	_, err = a.Sweep(t.Context(), record, began, func() {})
	require.ErrorIs(t, err, fs.ErrClosed)
	require.FileExists(t, file("recorded"), "nothing is removed without all references")
}

// An agent may put a link in the place of its folder.
func TestArtifactsOfAnotherFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	work, closed := filepath.Join(top, "work"), filepath.Join(top, "closed")
	require.NoError(t, os.Mkdir(work, 0o700))
	require.NoError(t, os.Mkdir(closed, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(closed, "key"), []byte("secret"), 0o600))
	is, err := os.Stat(work)
	require.NoError(t, err)
	require.NoError(t, os.Rename(work, work+".old"))
	require.NoError(t, os.Symlink(closed, work))
	_, err = artifacts.ReadWithin(dispatch.Folder{Path: work, Is: is}, "key", 1<<20)
	require.ErrorContains(t, err, "was replaced after its start")
}

// The files of the kernel in the folder of an agent belong to the orchestrator, if they describe a
// process.
func TestArtifactOfTheKernel(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"proc/self/environ", "proc/self/maps", "/proc/self/status"} {
		if _, err := os.Stat(filepath.Join("/", path)); err != nil {
			continue // not on macOS
		}
		top, err := os.Stat("/")
		require.NoError(t, err)
		_, err = artifacts.ReadWithin(dispatch.Folder{Path: "/", Is: top}, path, 1<<20)
		require.ErrorContains(t, err, "is a file of the kernel", path)
	}
}
