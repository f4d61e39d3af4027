package storeurl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNATS(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]URL{
		"nats://127.0.0.1":               {Servers: []string{"nats://127.0.0.1:4222"}},
		"tls://hub@n1:1, n2,tls://[::1]": {Servers: []string{"tls://n1:1", "tls://n2:4222", "tls://[::1]:4222"}, User: "hub", Remote: true},
		"tls://hub@n1,hub@n2/":           {Servers: []string{"tls://n1:4222", "tls://n2:4222"}, User: "hub", Remote: true},
	} {
		u, ok := NATS(text)
		require.True(t, ok, text)
		require.Equal(t, want, u)
	}
	for text, password := range map[string]bool{
		"": false, "n1:4222": false, "http://n1": false, "nats://": false, "nats://n1,,n2": false, "nats://n1/x": false, "nats://n1?x": false,
		"nats://n1,tls://n2": false, "nats://a@n1,b@n2": false, "nats://a@n1/x": false, "nats://a:b@n1/x": true, "nats://a:b@[n1": true,
	} {
		u, ok := NATS(text)
		require.False(t, ok, text)
		require.Equal(t, password, u.Password, text)
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"localhost": true, "127.3.2.1": true, "::1": true, "::ffff:127.0.0.1": true, "h1": false, "10.0.0.1": false, "": false} {
		require.Equal(t, want, IsLoopback(host), host)
	}
}
