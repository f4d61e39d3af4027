package ui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeenFrom checks how a machine reaches the web view of a team that it reaches at a server.
func TestSeenFrom(t *testing.T) {
	const named, far = "http://orc-abc.localhost:4123/ui/#code=x", "https://build.example.com:7434/ui/#code=x"
	for _, test := range []struct{ server, address, want string }{
		{"https://build.example.com:7433", far, "https://build.example.com:7433/ui/#code=x"},
		{"https://build.example.com", named, "https://build.example.com/ui/#code=x"},
		{"http://127.0.0.1:9000", named, "http://orc-abc.localhost:9000/ui/#code=x"},
		{"http://localhost:9000", named, "http://orc-abc.localhost:9000/ui/#code=x"},
		{"http://127.0.0.1:9000", "http://127.0.0.1:4123/ui/#code=x", "http://127.0.0.1:9000/ui/#code=x"},
		{"http://127.0.0.1:9000", "\x00", "\x00"},
	} {
		require.Equal(t, test.want, seenFrom(test.server, test.address), test.server)
	}
}
