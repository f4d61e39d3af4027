package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	file := write(t, "orchestrator.hcl", "", "a/b/x", "", "repo/.git/x", "", "repo/sub/x", "", "home/ann/x", "", "json/orchestrator.hcl.json", "{}")
	dir := filepath.Dir(file)
	at := func(p string) string { return filepath.Join(dir, p) }
	for name, c := range map[string]struct {
		dir, explicit string
		environ       []string
		want          string
	}{
		"here":               {dir: dir, want: file},
		"in a parent":        {dir: at("a/b"), want: file},
		"json":               {dir: at("json"), want: at("json/orchestrator.hcl.json")},
		"explicit":           {dir: at("a"), explicit: "b/other.hcl", want: at("a/b/other.hcl")},
		"explicit folder":    {dir: at("a"), explicit: "../json", want: at("json/orchestrator.hcl.json")},
		"environ":            {dir: at("a"), environ: []string{"ORC_CONFIG=/x/y.hcl"}, want: "/x/y.hcl"},
		"explicit over both": {dir: dir, explicit: "/z.hcl", environ: []string{"ORC_CONFIG=/x/y.hcl"}, want: "/z.hcl"},
	} {
		got, err := Find(c.dir, c.explicit, c.environ)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}

	var notFound *NotFound
	_, err := Find(at("repo/sub"), "", nil)
	require.ErrorAs(t, err, &notFound)
	require.Equal(t, []string{at("repo/sub"), at("repo")}, notFound.Looked)
	_, err = Find(at("home/ann"), "", []string{"HOME=" + at("home")})
	require.ErrorAs(t, err, &notFound)
	require.Equal(t, at("home"), notFound.Looked[1])
	_, err = Find(dir, "a", nil)
	require.ErrorAs(t, err, &notFound)
	require.ErrorContains(t, err, "no orchestrator.hcl in "+at("a"))
}

func TestFindFromARelativeFolder(t *testing.T) {
	file := write(t, "orchestrator.hcl", "", "sub/x", "")
	t.Chdir(filepath.Join(filepath.Dir(file), "sub"))
	here, err := os.Getwd()
	require.NoError(t, err)
	got, err := Find(".", "", nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(filepath.Dir(here), "orchestrator.hcl"), got)
}

// TestFindTrustsOnlyItsUser checks that a file that another user could have written is not used
// if it was only found. A named file is used.
func TestFindTrustsOnlyItsUser(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, dir, file string){
		"an open file":    func(t *testing.T, _, file string) { require.NoError(t, os.Chmod(file, 0o666)) },
		"an open folder":  func(t *testing.T, dir, _ string) { require.NoError(t, os.Chmod(dir, 0o777)) },
		"a sticky folder": func(t *testing.T, dir, _ string) { require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky)) },
		"a link to a file in an open folder": func(t *testing.T, dir, file string) {
			other := t.TempDir()
			require.NoError(t, os.Rename(file, filepath.Join(other, "real.hcl")))
			require.NoError(t, os.Symlink(filepath.Join(other, "real.hcl"), file))
			require.NoError(t, os.Chmod(other, 0o777))
		},
		"another user's file": func(t *testing.T, _, file string) {
			if os.Geteuid() != 0 {
				require.NotEmpty(t, writtenByOthers(stat(t, file), os.Geteuid()+1))
				require.NoError(t, os.Chmod(file, 0o666))
				return
			}
			require.NoError(t, os.Chown(file, 65534, -1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "orchestrator.hcl")
			require.NoError(t, os.WriteFile(file, nil, 0o644))
			inner := filepath.Join(dir, "inner")
			require.NoError(t, os.Mkdir(inner, 0o755))
			found, err := Find(inner, "", nil)
			require.NoError(t, err)
			require.Equal(t, file, found)
			open(t, dir, file)
			_, err = Find(inner, "", nil)
			var untrusted *UntrustedError
			require.ErrorAs(t, err, &untrusted)
			require.Equal(t, file, untrusted.File)
			for _, environ := range [][]string{nil, {"ORC_CONFIG=" + file}} {
				explicit := file
				if environ != nil {
					explicit = ""
				}
				found, err = Find(inner, explicit, environ)
				require.NoError(t, err)
				require.Equal(t, file, found)
			}
		})
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info
}
