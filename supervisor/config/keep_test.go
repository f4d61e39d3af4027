package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKeep checks the ways to say how much history stays.
func TestKeep(t *testing.T) {
	for text, want := range map[string]Store{
		"forever": {}, "30d": {KeepFor: 720 * time.Hour}, "12h": {KeepFor: 12 * time.Hour}, "10GiB": {KeepBytes: 10 << 30}, "1MiB": {KeepBytes: 1 << 20},
	} {
		c := load(t, write(t, "orchestrator.hcl", "store {\n  keep = \""+text+"\"\n}\nagent \"a\" {\n  command = [\"cat\"]\n}\n"), Options{})
		require.Equal(t, want.KeepFor, c.Store.KeepFor, text)
		require.Equal(t, want.KeepBytes, c.Store.KeepBytes, text)
	}
	for _, text := range []string{"", "0d", "-1d", "0s", "-5h", "1KiB", "30", "always", "1.5d", "99999999d"} {
		_, problems := Load(write(t, "orchestrator.hcl", "store {\n  keep = \""+text+"\"\n}\nagent \"a\" {\n  command = [\"cat\"]\n}\n"), Options{})
		require.Equal(t, 1, problems.Errors(), text)
		require.Equal(t, "config/bad-duration", problems[0].Code, text)
	}
}
