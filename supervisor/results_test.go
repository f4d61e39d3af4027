package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/dispatch"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// A workshop is a play with the agent w, which works in a folder.
type workshop struct {
	*play
	w      *talker
	folder string
	state  string // the state directory
}

func openWorkshop(t *testing.T) *workshop {
	spec := worker("w", 50)
	spec.Dir = t.TempDir()
	agents, parts, all := talkers(t, spec)
	s := &workshop{w: all[0], folder: spec.Dir, state: t.TempDir()}
	s.play = perform(t, Options{Record: newLedger(), StateDir: s.state, Protocol: freely}, agents, parts)
	synctest.Wait()
	return s
}

// order submits a task for w and returns its id.
func (s *workshop) order() string {
	answer, err := s.Requests.Ask(s.t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", []byte(`{"type":"t","name":"n","requiredRole":"worker"}`))
	require.NoError(s.t, err)
	synctest.Wait()
	return answer.(*wire.TaskReply).Task.ID
}

// handIn has w complete a task with artifacts, a JSON list, and returns the refusal, or "".
func (s *workshop) handIn(id, request, artifacts string) string {
	s.w.says(fmt.Sprintf(`{"type":"request:complete-task","id":%q,"timestamp":%q,"payload":{"taskId":%q,"artifacts":%s}}`, request, noon, id, artifacts))
	told := s.w.told()
	last := told[len(told)-1]
	require.Equal(s.t, request, last.CorrelationID)
	if last.Error == nil {
		return ""
	}
	return last.Error.Message
}

// made returns the artifacts in the response to a task.
func (s *workshop) made(id string) []delegation.Artifact {
	answer, err := s.Requests.Ask(s.t.Context(), handlers.Actor{Kind: handlers.Operator}, "get-task-response", []byte(`{"taskId":"`+id+`"}`))
	require.NoError(s.t, err)
	r, wrong := wire.ReadTaskResponse(answer.(*wire.TaskAnswer).Document, 64)
	require.Nil(s.t, wrong)
	return r.Artifacts
}

func (s *workshop) write(name, text string) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600))
}

// TestFilesOfResults checks that a file is read when its task is completed, that large content is
// not in the log, and that its reader gets it unchanged.
func TestFilesOfResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWorkshop(t)
		defer func() { require.NoError(t, s.stop()) }()
		long := `"` + large("x") + `"` // looks like JSON
		s.write("long.txt", long)
		s.write("short.md", "short\n")
		require.NoError(t, os.Symlink("short.md", filepath.Join(s.folder, "link")))
		id := s.order()
		require.Empty(t, s.handIn(id, "1", `[{"path":"long.txt"},{"name":"s","type":"text/markdown","path":"`+filepath.Join(s.folder, "short.md")+`"},{"path":"./link"},{"name":"c","content":"c"}]`))
		s.write("short.md", "changed later")
		require.Equal(t, []delegation.Artifact{
			{Name: "long.txt", Type: "text/plain", Content: long},
			{Name: "s", Type: "text/markdown", Content: "short\n"},
			{Name: "./link", Type: "text/plain", Content: "short\n"},
			{Name: "c", Type: "text/plain", Content: "c"},
		}, s.made(id))
		require.Len(t, keptFiles(t, s.state), 1)

		answer, err := s.Requests.Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "get-task", []byte(`{"taskId":"`+id+`"}`))
		require.NoError(t, err)
		listed, err := object.Encode(answer)
		require.NoError(t, err)
		require.Contains(t, string(listed), fmt.Sprintf(`"artifacts":[{"name":"long.txt","type":"text/plain","size":%d},{"name":"s","type":"text/markdown","size":6},`+
			`{"name":"./link","type":"text/plain","size":6},{"name":"c","type":"text/plain","size":1}]`, len(long)))

		require.NoError(t, os.Remove(filepath.Join(s.folder, "long.txt")))
		require.Empty(t, s.handIn(id, "1", `[{"path":"long.txt"},{"name":"s","type":"text/markdown","path":"`+filepath.Join(s.folder, "short.md")+`"},{"path":"./link"},{"name":"c","content":"c"}]`),
			"the same request again gets the first answer, although the file is gone")
	})
}

// TestFilesElsewhere checks that only text files of a bounded size in the agent's folder are taken.
// A path that leads out of it is refused, also by a symbolic link.
func TestFilesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWorkshop(t)
		defer func() { require.NoError(t, s.stop()) }()
		outside := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
		require.NoError(t, os.Symlink(outside, filepath.Join(s.folder, "link")))
		require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(s.folder, "dir")))
		require.NoError(t, os.Mkdir(filepath.Join(s.folder, "own"), 0o700))
		require.NoError(t, syscall.Mkfifo(filepath.Join(s.folder, "pipe"), 0o600))
		s.write("binary", "\xff\xfe")
		s.write("huge", strings.Repeat("x", hub.MaxArtifactBytes+1))
		s.write("half", strings.Repeat("x", hub.MaxArtifactBytes/2+1))
		id := s.order()
		for path, why := range map[string]string{
			outside:                  "path escapes from parent",
			"../" + outside[1:]:      "path escapes from parent",
			"own/../../secret":       "path escapes from parent",
			"link":                   "path escapes from parent",
			"dir/secret":             "path escapes from parent",
			"none":                   "no such file or directory",
			"own":                    "is not a regular file",
			"pipe":                   "is not a regular file",
			"binary":                 "is not text in UTF-8",
			"huge":                   "is too large",
			`half"},{"path":"./half`: "is too large",
		} {
			refused := s.handIn(id, "of "+path, `[{"path":"`+path+`"}]`)
			require.Contains(t, refused, ".path names a file that cannot be used: ", path)
			require.Contains(t, refused, why, path)
		}
		require.Equal(t, "running", s.task(id).Status)
	})
}

// TestFilesOfOthers checks that only the run that works in a folder has files taken from it: a
// caller with a key of the agent may be on another machine, and a program that joined works
// elsewhere.
func TestFilesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWorkshop(t)
		defer func() { require.NoError(t, s.stop()) }()
		s.write("a", "a")
		run := s.life.agents["w"].run
		complete := func(from handlers.Actor) error {
			_, err := s.Requests.Ask(t.Context(), from, "complete-task", []byte(`{"taskId":"`+s.order()+`","artifacts":[{"path":"a"}]}`))
			return err
		}
		require.NoError(t, complete(handlers.Actor{Kind: handlers.Agent, Name: "w", Only: run}))
		for _, from := range []handlers.Actor{{Kind: handlers.Agent, Name: "w"}, {Kind: handlers.Operator}, {Kind: handlers.Operator, Name: "w"}} {
			require.ErrorContains(t, complete(from), "paths need a folder")
		}
		s.dispatcher.SetFolder("w", "other", dispatch.Folder{})
		require.ErrorContains(t, complete(handlers.Actor{Kind: handlers.Agent, Name: "w", Only: run}), "paths need a folder")
	})
}
