package child

import (
	"fmt"
	"os"
	"path/filepath"

	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestRemoveAll checks that folders in each other, deeper than a path can name, are removed with few
// descriptors, and that links are not followed.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	other := filepath.Join(top, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(other, "stays"), nil, 0o600))
	path := filepath.Join(top, "deep")
	require.NoError(t, os.Mkdir(path, 0o700))
	require.NoError(t, os.Symlink(other, filepath.Join(path, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(path, "moved-0"), nil, 0o600))
	folder, err := openFolder(-1, path)
	require.NoError(t, err)
	for n := range 3000 {
		name := fmt.Sprintf("a-folder-with-a-long-name-%d", n%2)
		require.NoError(t, unix.Mkdirat(int(folder.Fd()), name, 0o700))
		require.NoError(t, unix.Mkdirat(int(folder.Fd()), "moved-1", 0o700))
		below, err := openFolder(int(folder.Fd()), name)
		require.NoError(t, err)
		require.NoError(t, folder.Close())
		folder = below
	}
	require.NoError(t, folder.Close())
	require.NoError(t, RemoveAll(path))
	require.NoDirExists(t, path)
	require.FileExists(t, filepath.Join(other, "stays"))
	require.NoError(t, RemoveAll(path), "it is gone")
	require.NoError(t, os.Symlink(other, path))
	require.NoError(t, RemoveAll(path))
	require.FileExists(t, filepath.Join(other, "stays"))
}
