package documents

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/schema"
	"orchestrator/wire/schema/generator"
)

var update = flag.Bool("update", false, "write the schemas anew")

// TestSchemaFiles compares the files of all schemas with their declarations.
func TestSchemaFiles(t *testing.T) {
	files := make(map[string][]byte)
	g := generator.Generator{Root: "../../..", Documents: All(), Words: Words}
	for _, o := range wire.Operations {
		text, err := requestText(&g, o)
		require.NoError(t, err)
		files[schema.FileName("request:"+o.Name)] = []byte(text)
	}
	for i := range g.Documents {
		d := &g.Documents[i]
		examples, err := os.ReadFile("../examples/" + schema.FileName(d.Name))
		require.NoError(t, err, "the examples of %s", d.Name)
		text, err := g.Text(d, examples)
		require.NoError(t, err)
		files[schema.FileName(d.Name)] = text
	}
	for name, want := range files {
		file := "../json/" + name
		if *update {
			require.NoError(t, os.WriteFile(file, want, 0o644))
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), string(text), "%s is not as it is declared: go test ./wire/schema/... -run TestSchemaFiles -update", file)
	}
	found, err := filepath.Glob("../json/*.json")
	require.NoError(t, err)
	for _, file := range found {
		require.True(t, files[filepath.Base(file)] != nil, "%s is declared nowhere", file)
	}
}
