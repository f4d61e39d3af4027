package eventlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInPlace checks that a file is lost if its path holds nothing or another file. A path that
// cannot be read proves nothing.
func TestInPlace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	open, err := os.Stat(name)
	require.NoError(t, err)
	require.NoError(t, InPlace(name, open))
	require.NoError(t, InPlace(filepath.Join(name, "below"), open), "it cannot be asked")
	require.NoError(t, os.Rename(name, name+".old"))
	var lost *LostError
	require.ErrorAs(t, InPlace(name, open), &lost)
	require.False(t, lost.Replaced)
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.ErrorAs(t, InPlace(name, open), &lost)
	require.True(t, lost.Replaced)
}
