package wire

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the schemas of requests anew")

// TestRequestSchemas compares the schema files of requests with their operations.
func TestRequestSchemas(t *testing.T) {
	files, err := filepath.Glob("schema/json/request.*.json")
	require.NoError(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "request."), ".json")
		require.NotNil(t, OperationNamed(name), "%s describes no operation", file)
	}
	for _, o := range Operations {
		file := "schema/json/request." + o.Name + ".json"
		if *update {
			require.NoError(t, os.WriteFile(file, o.Schema(), 0o644))
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(o.Schema()), string(text), "%s is not as its operation declares it: go test ./wire -run TestRequestSchemas -update", file)
	}
}
