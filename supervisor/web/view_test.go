package web

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/api"
)

// viewOf returns a View of a team with listeners, and counts those that are opened.
func viewOf(t *testing.T, opened *int, urls ...string) *View {
	return &View{
		SignIns: new(api.SignIns), URLs: urls, Answer: func(net.Listener) { *opened++ },
		Listen: func(address string) (*api.TCPListener, error) {
			l, err := api.ListenTCP(address, api.TCP{})
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
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, base)
	require.True(t, strings.HasPrefix(second, base))
	require.Equal(t, []string{base}, v.All())
	require.Equal(t, 1, opened)
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
