package web_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVendoredFiles compares the libraries of the web view with the digests that vendorize wrote.
func TestVendoredFiles(t *testing.T) {
	list, err := os.ReadFile("assets/vendor.sha256")
	require.NoError(t, err)
	listed := map[string]bool{"vendor.sha256": true}
	for line := range strings.Lines(string(list)) {
		sum, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, found, "%q is not a digest and a name", line)
		text, err := os.ReadFile(filepath.Join("assets", name))
		require.NoError(t, err)
		assert.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(text)), "%s was changed by hand: go run ./supervisor/web/vendorize", name)
		listed[name] = true
	}
	found, err := filepath.Glob("assets/vendor*")
	require.NoError(t, err)
	for _, path := range found {
		assert.True(t, listed[filepath.Base(path)], "%s has no digest", path)
	}
}

// TestModulesAreShort reads the modules that people write.
func TestModulesAreShort(t *testing.T) {
	found, err := filepath.Glob("assets/*.js")
	require.NoError(t, err)
	for _, path := range found {
		if strings.HasPrefix(filepath.Base(path), "vendor-") {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Less(t, strings.Count(string(text), "\n"), 300, "%s: lines", path)
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"} {
			assert.NotContains(t, string(text), word, "%s: text of agents is never HTML or code", path)
		}
	}
}
