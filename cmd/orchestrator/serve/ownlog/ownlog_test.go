package ownlog

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The log of a background orchestrator is rotated when it is large.
func TestTurn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "orchestrator.log")
	require.NoError(t, Rotate(name), "there is none yet")
	for size, turned := range map[int64]bool{Size: false, Size + 1: true} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, os.Truncate(name, size))
		require.NoError(t, Rotate(name))
		if !turned {
			require.FileExists(t, name)
			continue
		}
		require.NoFileExists(t, name)
		info, err := os.Stat(name + ".1")
		require.NoError(t, err)
		require.Equal(t, size, info.Size())
	}
}

// A number of earlier logs is kept, and the oldest is replaced.
func TestOldLogs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "orchestrator.log")
	for n := range maxOldLogs + 3 {
		require.NoError(t, os.WriteFile(name, []byte(strconv.Itoa(n)), 0o600))
		require.NoError(t, shift(name))
	}
	names, err := filepath.Glob(name + "*")
	require.NoError(t, err)
	require.Len(t, names, maxOldLogs)
	for age, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(maxOldLogs+2-age), string(text), name)
	}
	require.ErrorIs(t, shift(name), os.ErrNotExist)
}

// Lines are counted in the log if the disk has no room for them.
func TestOwnLogOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	var disk bytes.Buffer
	l := New(&disk)
	write := func(text string) {
		n, err := l.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	write("one\n")
	l.to = full
	write("two\nthree\n")
	write("four\n")
	l.to = &disk
	write("five\n")
	write("six\n")
	require.Regexp(t, `^one\n\S+Z \[3 earlier lines could not be written\]\nfive\nsix\n$`, disk.String())
}
