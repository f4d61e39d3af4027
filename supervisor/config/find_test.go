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
