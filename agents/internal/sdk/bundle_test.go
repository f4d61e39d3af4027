//go:build !race

package sdk

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"
)

// TestTypeScriptBundle checks that the code of the npm package matches its sources, so that npm needs no compiler. With
// -update it writes it. Its types are written by "npm run types".
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

// TestTypeScriptTypes checks that the interfaces of the types of the npm package have the lines of those in its
// sources, since only npm can write them. Lines that the two format differently are left out. CI compares all.
func TestTypeScriptTypes(t *testing.T) {
	text, err := os.ReadFile("../../typescript/dist/index.d.ts")
	require.NoError(t, err)
	types := interfaces(string(text))
	require.Greater(t, len(types), 50)
	sources := ""
	for _, folder := range []string{"work", "wire", "connection"} {
		files, err := filepath.Glob("../../typescript/src/" + folder + "/*.ts")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sources += string(text)
		}
	}
	for name, lines := range interfaces(sources) {
		for _, line := range lines {
			if types[name] != nil && !strings.Contains(line, "{") {
				require.Contains(t, types[name], line, "%s in agents/typescript/dist/index.d.ts is stale: npm run types", name)
			}
		}
	}
}

// interfaces returns the lines of the exported interfaces in a text.
func interfaces(text string) map[string][]string {
	all, name := make(map[string][]string), ""
	for line := range strings.Lines(text) {
		if is := exported.FindStringSubmatch(line); is != nil {
			name = is[1]
		} else if line == "}\n" {
			name = ""
		} else if name != "" {
			all[name] = append(all[name], strings.TrimSpace(line))
		}
	}
	return all
}

var exported = regexp.MustCompile(`^export interface (\w+)`)
