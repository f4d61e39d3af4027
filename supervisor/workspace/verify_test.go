package workspace

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// A workspace that was removed or replaced before its task is completed is made again, and the completion is refused
// once: uncommitted work is gone.
func TestRemovedWorkspace(t *testing.T) {
	const id = "11111111-0000-4000-8000-000000000001"
	for name, verify := range map[string][][]string{"verified": {{"true"}}, "plain": nil} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.ann.Verify = verify
			dir := b.begin(id)
			b.change(dir, "file", "two\n")
			b.write(dir, "loose", "lost\n")
			require.NoError(t, os.RemoveAll(dir))
			refused := b.complete(id)
			require.NotNil(t, refused)
			require.Equal(t, "no_workspace", refused.Details["reason"])
			require.Contains(t, refused.Message, "removed or replaced")
			require.Contains(t, b.noted(events.TaskWorkspace)[1], "has its workspace again")
			require.DirExists(t, dir)
			require.Nil(t, b.complete(id))
		})
	}
}
