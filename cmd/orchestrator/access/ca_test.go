package access

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
)

// filesOf returns the files below a folder with their texts.
func filesOf(t *testing.T, dir string) map[string]string {
	files := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	}))
	return files
}

// The certificate of a hub is valid for its names and addresses, for a server and for a client. A later hub gets one
// from the same authority, and no file changes.
func TestCA(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	began := time.Now()
	run := func(add bool, names ...string) error {
		hubs, err := readHubs(names)
		require.NoError(t, err)
		return (&certifier{dir: dir, shown: "keys", now: began}).make(hubs, add)
	}
	require.ErrorContains(t, run(true, "h1"), "cannot use the certificate authority")
	require.NoError(t, run(false, "h1,h1.example,10.0.0.1", "::1"))
	first := filesOf(t, dir)
	require.Equal(t, cli.ExitConflict, cli.FailureOf(run(false, "h4")).Exit)
	require.Equal(t, cli.ExitConflict, cli.FailureOf(run(true, "h1")).Exit)
	require.Equal(t, first, filesOf(t, dir), "nothing has changed")
	require.NoError(t, run(true, "h4"))
	for name, text := range first {
		require.Equal(t, text, filesOf(t, dir)[name])
	}

	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(first[filepath.Join(dir, "ca.pem")])))
	for hub, names := range map[string][]string{"h1": {"h1", "h1.example", "10.0.0.1"}, "::1": {"::1"}, "h4": {"h4"}} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, hub, "hub.pem"), filepath.Join(dir, hub, "hub-key.pem"))
		require.NoError(t, err)
		for _, name := range names {
			for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, KeyUsages: []x509.ExtKeyUsage{use}, CurrentTime: began.AddDate(1, 11, 0)})
				require.NoError(t, err)
			}
		}
		require.Error(t, pair.Leaf.VerifyHostname("other"))
		for _, name := range []string{"ca.pem", "hubs.key"} {
			require.Equal(t, first[filepath.Join(dir, name)], filesOf(t, dir)[filepath.Join(dir, hub, name)])
		}
		for _, name := range []string{"hubs.key", "hub-key.pem", "../ca-key.pem"} {
			info, err := os.Stat(filepath.Join(dir, hub, name))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		}
	}
}

// A certificate never outlives its authority.
func TestCAEnds(t *testing.T) {
	t.Parallel()
	dir, began := t.TempDir(), time.Now()
	require.NoError(t, (&certifier{dir: dir, now: began}).make([]namedHub{{"h1"}}, false))
	late := &certifier{dir: dir, now: began.AddDate(9, 6, 0)}
	require.NoError(t, late.make([]namedHub{{"h2"}}, true))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "h2", "hub.pem"), filepath.Join(dir, "h2", "hub-key.pem"))
	require.NoError(t, err)
	require.Equal(t, late.authority.NotAfter, pair.Leaf.NotAfter)
	require.ErrorContains(t, (&certifier{dir: dir, now: began.AddDate(11, 0, 0)}).make([]namedHub{{"h3"}}, true), "has expired")
}

// Arguments that are not names of machines are refused.
func TestCANames(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"h1:7434"}, {""}, {".."}, {"a/b"}, {"h1", "h1"}, {"h1,"}, {"-h1"}} {
		_, err := readHubs(names)
		require.Equal(t, cli.ExitUsage, cli.FailureOf(err).Exit, names)
	}
}
