//go:build !race

package sdk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"
)

// TestTypeScriptBundle checks that the code of the npm package is that of its sources, so that npm needs
// no compiler. With -update it writes it. Its types are written by "npm run types".
func TestTypeScriptBundle(t *testing.T) {
	const file = "../../typescript/dist/index.js"
	folder, err := filepath.Abs("../../typescript")
	require.NoError(t, err)
	built := api.Build(api.BuildOptions{
		AbsWorkingDir: folder,
		EntryPoints:   []string{"src/index.ts"},
		Outfile:       "dist/index.js",
		Bundle:        true,
		Format:        api.FormatESModule,
		Platform:      api.PlatformNode,
		Target:        api.ES2022,
		TsconfigRaw:   `{}`,
		Charset:       api.CharsetUTF8,
	})
	require.Empty(t, append(built.Errors, built.Warnings...))
	require.Len(t, built.OutputFiles, 1)
	if *update {
		require.NoError(t, os.WriteFile(file, built.OutputFiles[0].Contents, 0o644))
	}
	is, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(built.OutputFiles[0].Contents), string(is), "%s is stale: go test ./agents/internal/sdk -update", file)
}
