package web

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/api"
)

// viewOf returns a View of a team with listeners, and counts the open ones.
func viewOf(t *testing.T, opened *int, urls ...string) *View {
	return &View{
		SignIns: new(api.SignIns), URLs: urls, Views: urls, Dir: t.TempDir(), Answer: func(net.Listener) { *opened++ },
		Listen: func(address string) (*api.TCPListener, error) {
			l, err := api.ListenTCP(address, api.TCP{View: "orc-a.localhost"})
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return l, err
		},
	}
}

func TestListenerIsOpenedOnce(t *testing.T) {
	var opened int
	v := viewOf(t, &opened)
	require.Nil(t, v.Listener())
	require.Empty(t, v.All())
	first, err := v.Show()
	require.NoError(t, err)
	second, err := v.Show()
	require.NoError(t, err)
	require.NotEqual(t, first, second, "each code is another")
	base, code, found := strings.Cut(first, "/ui/#code=")
	require.True(t, found)
	require.Len(t, code, 26)
	require.Regexp(t, `^http://orc-a\.localhost:\d+$`, base)
	require.True(t, strings.HasPrefix(second, base))
	require.Equal(t, []string{strings.Replace(base, "orc-a.localhost", "127.0.0.1", 1)}, v.All())
	require.Equal(t, 1, opened)

	require.NoError(t, v.own.Close())
	next := viewOf(t, &opened)
	next.Dir = v.Dir
	again, err := next.Own()
	require.NoError(t, err)
	require.Equal(t, base, again, "the port is kept")
}

func TestPlaceIsKept(t *testing.T) {
	dir := t.TempDir()
	p, err := PlaceIn(dir)
	require.NoError(t, err)
	require.Regexp(t, `^orc-[a-z2-7]{12}\.localhost$`, p.Name)
	require.Zero(t, p.Port)
	p.Port = 7433
	require.NoError(t, p.keep(dir))
	again, err := PlaceIn(dir)
	require.NoError(t, err)
	require.Equal(t, p, again)
	for _, text := range []string{"", "127.0.0.1:7433", "orc-abcdefghijkl.localhost", "orc-abcdefghijkl.localhost:x", "evil.example:80"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, placeFile), []byte(text), 0o600))
		other, err := PlaceIn(dir)
		require.NoError(t, err)
		require.Regexp(t, placeName, other.Name, text)
		require.NotEqual(t, "orc-abcdefghijkl.localhost", other.Name)
	}
	_, err = PlaceIn(filepath.Join(dir, "missing"))
	require.ErrorContains(t, err, "keeping the address of the web view")
}

func TestListenersOfTheTeam(t *testing.T) {
	for want, urls := range map[string][]string{
		"http://127.0.0.1:7433":       {"https://build.example.com:7434", "http://127.0.0.1:7433"},
		"http://[::1]:7433":           {"https://build.example.com:7434", "http://[::1]:7433"},
		"https://build.example.com:1": {"https://build.example.com:1", "https://other.example.com:2"},
	} {
		var opened int
		shown, err := viewOf(t, &opened, urls...).Show()
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(shown, want+"/ui/#code="), shown)
		require.Zero(t, opened)
	}
}

func TestNoListener(t *testing.T) {
	v := viewOf(t, new(int))
	v.Listen = func(string) (*api.TCPListener, error) { return nil, errors.New("no port is free") }
	_, err := v.Show()
	require.ErrorContains(t, err, "no port is free")
	require.Nil(t, v.Listener())
	require.Nil(t, (*View)(nil).Listener(), "before the team is up")
}
