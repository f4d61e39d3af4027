package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/artifacts"
	"orchestrator/wire/delegation"
)

// objects implements Objects in memory. With a fault, its methods fail.
type objects struct {
	kept  map[string]string
	fault error
}

func (o *objects) PutObject(_ context.Context, hash string, content []byte) error {
	if o.fault == nil {
		o.kept[hash] = string(content)
	}
	return o.fault
}

func (o *objects) GetObject(_ context.Context, hash string) ([]byte, error) {
	content, ok := o.kept[hash]
	if !ok && o.fault == nil {
		return nil, fs.ErrNotExist
	}
	return []byte(content), o.fault
}

// TestArtifactsOfSeveralHubs checks that content is among the objects before the record refers to it, that a hub
// without the file reads it from there and then has the file, and the error if it is nowhere.
func TestArtifactsOfSeveralHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir, said, boss, w := keeping(t)
		o := &objects{kept: make(map[string]string), fault: errors.New("no quorum")}
		p.artifacts.Objects = o
		w.says(making("a", large("x")))
		require.Empty(t, boss.lines(), "nothing refers to it")
		require.Empty(t, keptFiles(t, dir))
		o.fault = nil
		w.says(making("a", large("x")))
		require.Len(t, boss.lines(), 1)
		require.Equal(t, large("x"), o.kept[artifacts.HashOf([]byte(large("x")))])

		asks := func(id string) string {
			boss.says(request(id, "get-task-response", `{"taskId":"a"}`))
			return boss.lines()[len(boss.lines())-1]
		}
		for i, spoil := range []func(path string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte("changed"), 0o600) }} {
			file := keptFiles(t, dir)[0]
			require.NoError(t, spoil(file))
			require.Contains(t, asks(string(rune('1'+i))), large("x"))
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, large("x"), string(text))
		}
		require.NotContains(t, said.String(), "cannot be read")

		require.NoError(t, os.Remove(keptFiles(t, dir)[0]))
		o.kept[artifacts.HashOf([]byte(large("x")))] = "other"
		require.Contains(t, asks("3"), `"ref":"sha256:`)
		require.Contains(t, said.String(), "other content under its name")
		clear(o.kept)
		<-time.After(time.Second) // until then, the same error is not logged again
		require.Contains(t, asks("4"), `"ref":"sha256:`)
		require.Contains(t, said.String(), "neither here nor in the shared store")
		require.NoError(t, p.stop())
	})
}

// TestArtifactsAreMoved checks that the files of a hub become objects, and objects files of another hub.
func TestArtifactsAreMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir, _, boss, w := keeping(t)
		w.says(making("a", large("x")))
		require.Len(t, boss.lines(), 1)
		require.NoError(t, p.stop())
		o := &objects{kept: make(map[string]string)}
		changed := filepath.Join(dir, "artifacts", "00", strings.Repeat("0", 64))
		require.NoError(t, os.MkdirAll(filepath.Dir(changed), 0o700))
		require.NoError(t, os.WriteFile(changed, []byte("not its content"), 0o600))
		n, err := artifacts.ShareArtifacts(t.Context(), dir, o)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Len(t, o.kept, 1)
		other := t.TempDir()
		for range 2 {
			n, missing, err := artifacts.FetchArtifacts(t.Context(), other, p.options.Record, o)
			require.NoError(t, err)
			require.Equal(t, []int{1, 0}, []int{n, missing})
		}
		there := artifacts.New(other, func(string, ...any) {})
		content, err := there.Load(delegation.ArtifactRef(artifacts.HashOf([]byte(large("x")))))
		require.NoError(t, err)
		require.Equal(t, large("x"), content)
		clear(o.kept)
		n, missing, err := artifacts.FetchArtifacts(t.Context(), t.TempDir(), p.options.Record, o)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1}, []int{n, missing})
		o.fault = errors.New("no quorum")
		_, _, err = artifacts.FetchArtifacts(t.Context(), t.TempDir(), p.options.Record, o)
		require.ErrorIs(t, err, o.fault)
		_, err = artifacts.ShareArtifacts(t.Context(), dir, o)
		require.ErrorIs(t, err, o.fault)
		n, err = artifacts.ShareArtifacts(t.Context(), t.TempDir(), o)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}
