package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/delegation"
)

// kept returns the artifact files by hash.
func (s *stage) kept() map[string]string {
	s.t.Helper()
	found := make(map[string]string)
	require.NoError(s.t, filepath.WalkDir(filepath.Join(s.state(), "artifacts"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[entry.Name()] = string(text)
		return err
	}))
	return found
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// recorded returns the bytes of all files of the record.
func (s *stage) recorded() string {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.state(), "events.db*"))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, names)
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(s.t, err)
		all.Write(text)
	}
	return all.String()
}

// A large artifact is stored once, as a file and not in the record. The source gets its content
// in the response, byte for byte, and so do later requests.
//
// Rows: D-17, D-35, D-40, D-43.
func TestDelegationArtifacts(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook := all[0], all[1]
	large := "MARK-" + strings.Repeat("0123456789abcdef", 200<<10/16)
	odd := "ODD-" + strings.Repeat("x<&>", 100<<10/4)
	spelled := strings.ReplaceAll(odd, "<", `\u003c`) // not the spelling of this program
	line := func(id string) string {
		return fmt.Sprintf(`{"artifacts":[{"name":"small.txt","type":"text/plain","content":"{\"key\": \u00221\u0022}"},`+
			`{"content":"%s","more":[1.50],"name":"large.txt","type":"text/plain"},{"name":"odd.html","type":"text/html","content":"%s"},`+
			`{"name":"elsewhere","type":"image/png","ref":"s3://x"}],"status":"completed","id":%q,"result":{"n":1.50}}`, large, spelled, id)
	}
	boss.asks("t-1", "cook")
	cook.gets("t-1")
	cook.say(line("t-1") + "\n")
	require.Equal(t, line("t-1"), boss.hear(1, "t-1", delegation.Completed).line)
	kept := h.kept()
	require.Len(t, kept, 2)
	require.Equal(t, large, kept[hashOf(large)])
	require.FileExists(t, filepath.Join(h.state(), "artifacts", hashOf(large)[:2], hashOf(large)))

	boss.asks("t-2", "cook")
	cook.gets("t-2")
	cook.say(line("t-2") + "\n") // a repeat
	require.Equal(t, line("t-2"), boss.hear(1, "t-2", delegation.Completed).line)
	require.Equal(t, kept, h.kept())

	// later requests, in every way
	boss.acts("t-1", delegation.ActStatus, `{}`)
	again := boss.hear(2, "t-1", delegation.Completed).line
	require.True(t, strings.HasPrefix(again, strings.TrimSuffix(line("t-1"), "}")+`,"metadata":{"startedAt":`), "%.200s", again)
	var reply aWord
	boss.granted(&reply, "get-task-response", `{"taskId":"t-1"}`)
	require.Equal(t, h.response("t-1").Artifacts, reply.Artifacts)
	require.Equal(t, []string{large, odd}, []string{reply.Artifacts[1].Content, reply.Artifacts[2].Content})
	require.Equal(t, large, h.ask("task", "response", "t-1", "--artifact", "large.txt"))
	require.NotContains(t, h.ask("events", "--json", "--task", "t-1"), large)
	require.NotContains(t, h.ask("task", "response", "t-1"), large)

	h.stop()
	record := h.recorded()
	require.NotContains(t, record, large[:200], "what is large is not in the record")
	require.NotContains(t, record, odd[:200])
	require.NotContains(t, record, spelled[:200])
	require.Contains(t, record, "sha256:"+hashOf(large))
	h.cast("boss", "cook", "help")
	require.Equal(t, large, h.response("t-2").Artifacts[1].Content, "it is there in the next life")
	h.stop()
}

// requireLost requires that a request for an artifact says that the content is lost, and what to
// do.
func requireLost(h *theatre, id, hash string) {
	h.t.Helper()
	shown, said, code := h.call("task", "response", id, "--artifact", "a")
	require.Equal(h.t, cli.ExitNo, code)
	require.Empty(h.t, shown)
	require.Contains(h.t, said, `the content of "a" is lost`)
	require.Contains(h.t, said, "<state_dir>/artifacts as sha256:"+hash+", and is gone, or was changed")
	require.Contains(h.t, said, "The log of the orchestrator says why")
	require.Contains(h.t, said, "ask for the work again, with a new id: orchestrator task submit FILE")
	require.Contains(h.t, h.ask("task", "response", id), "  lost: sha256:"+hash+"\n")
}

// An artifact whose file was changed or deleted is not returned. The response still has its
// reference, the log says why, and other artifacts are not affected.
//
// Rows: D-17, D-35.
func TestDelegationArtifactIsTamperedWith(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook := all[0], all[1]
	contents := map[string]string{"changed": strings.Repeat("a", 100<<10), "gone": strings.Repeat("b", 100<<10), "fine": strings.Repeat("c", 100<<10)}
	for name, content := range contents {
		boss.asks(name, "cook")
		cook.gets(name)
		cook.says(name, "completed", fmt.Sprintf(`"artifacts":[{"name":"a","type":"text/plain","content":%q}]`, content))
		require.Equal(t, content, boss.hear(1, name, delegation.Completed).Artifacts[0].Content)
	}
	file := func(name string) string {
		hash := hashOf(contents[name])
		return filepath.Join(h.state(), "artifacts", hash[:2], hash)
	}
	require.NoError(t, os.WriteFile(file("changed"), []byte(strings.Repeat("A", 100<<10)), 0o600))
	require.NoError(t, os.Remove(file("gone")))
	for name, content := range contents {
		boss.acts(name, delegation.ActStatus, `{}`)
		got := boss.hear(2, name, delegation.Completed).Artifacts[0]
		want := delegation.Artifact{Name: "a", Type: "text/plain", Ref: "sha256:" + hashOf(content)}
		if name == "fine" {
			want = delegation.Artifact{Name: "a", Type: "text/plain", Content: content}
		}
		require.Equal(t, want, got)
		require.Equal(t, want, h.response(name).Artifacts[0])
	}
	require.Contains(t, h.cried.all(), "an artifact cannot be read")
	requireLost(h, "gone", hashOf(contents["gone"]))
	requireLost(h, "changed", hashOf(contents["changed"]))

	boss.asks("again", "cook") // making the artifact again restores the file
	cook.gets("again")
	cook.says("again", "completed", fmt.Sprintf(`"artifacts":[{"name":"a","type":"text/plain","content":%q}]`, contents["gone"]))
	require.Equal(t, contents["gone"], boss.hear(1, "again", delegation.Completed).Artifacts[0].Content)
	require.Equal(t, contents["gone"], h.response("gone").Artifacts[0].Content, "what was gone is there again")
	h.stop()
}
