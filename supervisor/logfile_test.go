package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Part 100 is younger than part 11, though not by its name's letters: the file
// that is written is not the one that is removed.
func TestLogFileOfManyParts(t *testing.T) {
	dir := t.TempDir()
	f := logFile{dir: dir, prefix: "000001", suffix: ".out", limits: Output{MaxSize: 1, Keep: 3}}
	for i := range 250 {
		require.NoError(t, f.write(fmt.Appendf(nil, "line %d\n", i+1), 1, time.Now()))
	}
	f.close()
	require.Equal(t, []string{"000001-248.out", "000001-249.out", "000001-250.out"}, logNames(dir, ".out"))
	for i, name := range logNames(dir, ".out") {
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
	require.Equal(t, []string{"000001-11.out", "000001-100.out", "000002-01.out", "1000000-01.out"}, logNames(dir, ".out"))
	require.Equal(t, []string{"000001-09.err"}, logNames(dir, ".err"))
	require.Equal(t, 1_000_001, nextRun(dir))
	require.Empty(t, logNames(filepath.Join(dir, "none"), ".out"))

	f := logFile{dir: dir, prefix: "000001", suffix: ".out", part: 11, limits: Output{Keep: 1}}
	f.prune()
	require.Equal(t, []string{"000001-11.out", "1000000-01.out"}, logNames(dir, ".out"), "what is written stays")
	require.FileExists(t, filepath.Join(dir, "notes.out"), "what is not ours stays")
}
