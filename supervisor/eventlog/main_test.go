package eventlog

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog/logtest/series"
)

// roleVariable makes the test binary another program; see roles.
const roleVariable = "EVENTLOG_TEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is another process with one of the roles.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err *strings.Builder
}

func start(t *testing.T, role, path string) *child {
	self, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.Command(self, path), err: &strings.Builder{}}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	c.cmd.Stderr = c.err
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.out = bufio.NewScanner(out)
	require.NoError(t, c.cmd.Start())
	return c
}

// acked reads the rest of the output and returns its last number, or before.
func (c *child) acked(t *testing.T, before int64) int64 {
	for c.out.Scan() {
		n, err := strconv.ParseInt(c.out.Text(), 10, 64)
		require.NoError(t, err, c.out.Text())
		before = n
	}
	return before
}

// copyLog copies the files of an open log, as a power failure would leave them.
func copyLog(t *testing.T, path, folder string) string {
	to := filepath.Join(folder, filepath.Base(path))
	for _, end := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + end)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to+end, content, 0o600))
	}
	return to
}

// mustOpen opens a log that is closed at the end of the test.
func mustOpen(t testing.TB, o Options) *SQLite {
	l, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// WithModernc makes options select the library that only the tests link, for tests outside of the
// package.
func WithModernc(o Options) Options {
	o.library = modernc
	return o
}

// SumOf returns the checksum of the last fact of a copy, which covers all facts, for tests outside of
// the package.
func SumOf(s *Shared) uint32 { return s.lastSum() }

// The facts that the tests write, under short names.
var (
	noon, later                    = series.Noon, series.Later
	fact, facts, letter            = series.Fact, series.Facts, series.Letter
	numbered, sift, seqs, searches = series.Numbered, series.Sift, series.Seqs, series.Searches
	all, found                     = series.All, series.Found
	trimmed, trimmable             = series.Trimmed, series.Trimmable
	requireRemoved                 = series.RequireRemoved
	rounds                         = series.Rounds
)
