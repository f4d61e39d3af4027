package output

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLogFileOfManyParts checks that part 100 is newer than part 11, although it sorts before
// it. The current file must not be removed.
func TestLogFileOfManyParts(t *testing.T) {
	dir := t.TempDir()
	f := File{Dir: dir, Prefix: "000001", Suffix: ".out", Limits: Limits{MaxSize: 1, Keep: 3}}
	for i := range 250 {
		require.NoError(t, f.Write(fmt.Appendf(nil, "line %d\n", i+1), 1, time.Now()))
	}
	f.Close()
	require.Equal(t, []string{"000001-248.out", "000001-249.out", "000001-250.out"}, fileNames(dir, ".out"))
	for i, name := range fileNames(dir, ".out") {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("line %d\n", 248+i), string(text))
	}
}

func TestLogNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"000002-01.out", "000001-100.out", "000001-11.out", "1000000-01.out", "000001-09.err",
		"notes.out", "000001.out", "000001-x.out", "000003-01.out.gz",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.Equal(t, []string{"000001-11.out", "000001-100.out", "000002-01.out", "1000000-01.out"}, fileNames(dir, ".out"))
	require.Equal(t, []string{"000001-09.err"}, fileNames(dir, ".err"))
	require.Equal(t, 1_000_001, NextRun(dir))
	require.Empty(t, fileNames(filepath.Join(dir, "none"), ".out"))

	f := File{Dir: dir, Prefix: "000001", Suffix: ".out", part: 11, Limits: Limits{Keep: 1}}
	f.prune()
	require.Equal(t, []string{"000001-11.out", "1000000-01.out"}, fileNames(dir, ".out"), "what is written stays")
	require.FileExists(t, filepath.Join(dir, "notes.out"), "what is not ours stays")
}
