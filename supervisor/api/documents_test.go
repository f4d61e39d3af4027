package api

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/schema"
	shared "orchestrator/wire/schema/documents"
	"orchestrator/wire/schema/generator"
)

var update = flag.Bool("update", false, "write the schemas anew")

// TestSchemaFile compares the file of the schemas of the API with their declarations.
func TestSchemaFile(t *testing.T) {
	words := shared.Words
	words["api.codes"] = []string{
		string(wire.CodeMalformed), string(wire.CodeInvalid), string(wire.CodeUnauthenticated), string(wire.CodeDenied), string(wire.CodeNotFound),
		string(wire.CodeUnknownType), string(codeMethod), string(wire.CodeConflict), string(wire.CodeTooLarge), string(wire.CodeMediaType),
		string(wire.CodeLimited), string(wire.CodeTimeout), string(wire.CodeInternal),
	}
	g := generator.Generator{Root: "../..", Documents: slices.Concat(documents, shared.All()), Words: words}
	var all schema.Node
	for i := range documents {
		node, err := g.Document(&documents[i])
		require.NoError(t, err)
		all = append(all, schema.Member{Key: documents[i].Name, Value: node})
	}
	const file = "schemas/api.json"
	if *update {
		require.NoError(t, os.WriteFile(file, generator.Format(all), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(generator.Format(all)), string(text), "%s is not as it is declared: go test ./supervisor/api -run TestSchemaFile -update", file)
	files, err := os.ReadDir("schemas")
	require.NoError(t, err)
	require.Len(t, files, 1, "each file but api.json is declared nowhere")
}
